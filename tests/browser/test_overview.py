"""The overview in a real Chromium."""

from tests.browser.conftest import drawn, settle, slide


def test_the_page_loads_and_asks_nobody_else(page):
    page.goto("/")
    settle(page)
    page.get_by_text("What happens from X to the output?").wait_for()


def test_a_slider_changes_the_drawn_numbers(page):
    page.goto("/?weights=random")
    settle(page)
    before = drawn(page)
    slide(page, "d_model")
    assert drawn(page) != before
    slide(page, "d_model", "ArrowLeft")
    assert drawn(page) == before


def test_what_scrolls_under_the_navigation_is_covered(page):
    page.goto("/")
    settle(page)
    colour = "getComputedStyle(document.querySelector('[data-testid={}]')).backgroundColor"
    assert page.evaluate(colour.format("stHeader")) == page.evaluate(colour.format("stApp"))
