"""The app without a mouse, without seeing the picture, in both themes and on a phone."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from pages._ui.catalog import PAGES
from tests.browser.conftest import drawn, idle, query, rerun, settle, shown, slide

CANVAS = "[class*=st-key-canvas]"
# axe's rule, where, and why it is left out
EXCLUDED = [
    # Chromium and Firefox focus what scrolls by themselves; a test below does it. Streamlit gives no tabindex.
    ("scrollable-region-focusable", f"{CANVAS}, [data-testid=stTable], [data-testid=stMarkdownContainer]:has(> table)"),
    # Streamlit's navigation has its headings between the items of the list.
    ("list", "[data-testid=stSidebarNav]"),
    ("listitem", "[data-testid=stSidebarNav]"),
    # WCAG 1.4.3 exempts what is disabled; axe does not see which control Streamlit's label belongs to.
    ("color-contrast", "[data-testid=stSlider]:has(input:disabled)"),
]
STATES = [
    "",
    "view=versus&table=true&h=7&mask=foo",  # with a notice and a table
    "input=upload",  # with an error
]


def violations(page):
    """The serious and the critical ones that are not excluded; others are printed."""
    found = []
    for violation in Axe().run(page).response["violations"]:
        for node in violation["nodes"]:
            place = f"{violation['impact']} {violation['id']}: {node['html'][:120]}"
            excluded = any(
                rule == violation["id"] and page.evaluate("([a, b]) => !!document.querySelector(a)?.closest(b)", where)
                for rule, selector in EXCLUDED
                for where in [[node["target"][0], selector]]
            )
            if violation["impact"] in ("serious", "critical") and not excluded:
                found.append(place)
            else:
                print("excluded" if excluded else "minor", place)
    return found


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_axe_finds_nothing_serious(page, lang, width):
    page.set_viewport_size({"width": width, "height": 900})
    found = {}
    for state in STATES if lang == "en" else STATES[:1]:
        page.emulate_media(color_scheme="light")
        page.goto(f"/?lang={lang}&{state}")
        idle(page)
        assert page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-CN"}[lang]
        found[state, "light"] = violations(page)
        if width < 900 and not state:
            page.get_by_test_id("stExpandSidebarButton").click()
            page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").wait_for()
            found[state, "sidebar"] = violations(page)
        with rerun(page):
            page.emulate_media(color_scheme="dark")
        found[state, "dark"] = violations(page)
    assert not any(found.values()), found


@pytest.mark.parametrize("path", [row.key for row in PAGES[1:]])
def test_axe_finds_nothing_serious_on_the_other_pages(page, path):
    found = {}
    page.emulate_media(color_scheme="light")
    page.goto(f"/{path}?mask=causal")
    idle(page)
    found["light"] = violations(page)
    with rerun(page):
        page.emulate_media(color_scheme="dark")
    found["dark"] = violations(page)
    assert not any(found.values()), found


def tab_stops(page):
    """What Tab reaches from the top until it leaves the page."""
    stops = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """(e => e === document.body ? null : [...e.classList].find(c => c.startsWith('st-key')) ?? e.ariaLabel
                ?? e.innerText.split('\\n')[0])(document.activeElement)"""
        )
        if stop is None:
            return stops
        stops.append(stop)
    raise AssertionError(f"Tab does not get out: {stops}")


def test_tab_reaches_every_control_in_order_and_leaves(page):
    page.goto("/?input=text&text=a+b+c&mask=window")
    settle(page)
    controls = [
        "Skip to main content", "English", "d_model", "h · heads", "Input", "Your text", "Weights", "Biases",
        "Positions", "Mask", "Window width", "Focus head", "Seed", "The whole calculation", "Key numbers as a table",
    ]  # fmt: skip
    assert [stop for stop in tab_stops(page) if stop in controls] == controls


def test_tab_reaches_a_picture_that_is_wider_than_the_screen_and_arrows_scroll_it(page):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/")
    settle(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # Skip to main content
    while not page.evaluate(f"!!document.activeElement.closest('{CANVAS}')"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement !== document.body"), "Tab passed the picture by"
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"document.querySelector('{CANVAS}').scrollLeft > 0")


def test_every_kind_of_control_works_from_the_keyboard(page):
    page.goto("/?input=text&text=a+b+c")
    settle(page)
    before = drawn(page)
    slide(page, "h · heads")
    slide(page, "h · heads", "ArrowLeft")
    assert drawn(page) == before
    page.get_by_role("combobox", name="Weights").focus()
    page.keyboard.press("ArrowDown")
    page.get_by_role("option", name="Random").wait_for()
    page.keyboard.press("ArrowDown")
    with rerun(page):
        page.keyboard.press("Enter")
    assert shown(page)["Weights"] == "Random"
    with rerun(page):
        page.get_by_role("spinbutton", name="Seed").press("ArrowUp")
    with rerun(page):
        page.get_by_role("switch", name="Biases").press("Space")
    assert (shown(page)["Seed"], shown(page)["Biases"]) == ("1", "true")
    page.get_by_role("radio", name="English").press("ArrowRight")
    with rerun(page):
        page.keyboard.press("Space")
    assert query(page)["lang"] == "zh"


@pytest.mark.parametrize("view", ["all", "versus"])
def test_the_picture_says_in_words_what_it_shows(page, view):
    page.goto(f"/?view={view}&h=8")
    settle(page)
    figure = page.get_by_role("figure")
    assert figure.count() == 1
    words = figure.get_attribute("aria-label")
    assert "10 tokens" in words or "10" in words
    assert "8" in words and len(words) > 80
