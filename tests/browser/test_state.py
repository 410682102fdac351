"""The address is the state: it brings every setting back, whatever happens to the session."""

import io

import numpy as np
import pytest

from mha_core.figures.theme import theme_named
from tests.browser.conftest import (
    drawn,
    enter,
    idle,
    pick,
    query,
    rerun,
    settle,
    shown,
    slide,
    upload,
    visit,
    window,
    write,
)
from tests.browser.serve import free_port, serve

EVERYTHING = {
    "lang": "zh", "d_model": "80", "h": "5", "input": "text", "text": "a dog & a cat, 猫 <b> 100%!",
    "weights": "random", "seed": "7", "bias": "true", "positions": "false", "mask": "window", "mask_size": "2",
    "head": "1",
}  # fmt: skip


def open_at(page, address):
    page.goto(address)
    settle(page)
    return page


def choose_everything(page):
    slide(page, "d_model", times=2)
    slide(page, "h · heads")
    pick(page, "Input", "Your own text")
    write(page, EVERYTHING["text"])
    pick(page, "Weights", "Random")
    for switch in ("Biases", "Positions"):
        with rerun(page):
            page.get_by_role("switch", name=switch).press("Space")
    pick(page, "Mask", "sliding window")
    enter(page, "Window width", 2)
    slide(page, "Focus head")
    enter(page, "Seed", 7)
    with rerun(page):
        page.get_by_role("radio", name="中文").click()
    settle(page)


@pytest.fixture(scope="module")
def chosen(context, address):
    """A page where every control was moved, what they show and what is drawn."""
    with visit(context, address) as page:
        choose_everything(open_at(page, "/"))
        yield page, shown(page), drawn(page)


def test_the_address_says_every_control(chosen):
    page, controls, _ = chosen
    assert query(page) == EVERYTHING
    says = "false true 80 5 自己输入文本 TEXT 随机 true false 滑动窗口 2 2 7".replace("TEXT", EVERYTHING["text"])
    assert " ".join(controls.values()) == says


def test_f5_keeps_everything(chosen):
    page, controls, numbers = chosen
    page.reload()
    settle(page)
    assert (shown(page), drawn(page), query(page)) == (controls, numbers, EVERYTHING)


def test_another_browser_shows_the_same_at_the_copied_address(chosen, browser, address):
    page, controls, numbers = chosen
    with window(browser, address) as context, visit(context, address) as other:
        open_at(other, page.evaluate("location.href"))
        assert (shown(other), drawn(other)) == (controls, numbers)


def test_back_undoes_the_last_change_and_keeps_all_else(chosen):
    page, controls, numbers = chosen
    enter(page, "随机种子", 8)
    assert drawn(page) != numbers
    with rerun(page):
        page.go_back(wait_until="commit")
    settle(page)
    assert (shown(page), drawn(page), query(page)) == (controls, numbers, EVERYTHING)


def test_a_deep_link_opens_on_a_new_server_and_outlives_its_restart(chosen, context):
    page, controls, numbers = chosen
    port = free_port()
    with serve(port=port) as (address, _):
        other = context.new_page()  # a visit would count the lost connection as a problem
        open_at(other, address + "/overview" + page.evaluate("location.search"))
        assert other.evaluate("location.pathname") == "/overview"
        assert not other.get_by_text("Page not found").count()
        assert (shown(other), drawn(other)) == (controls, numbers)
    with serve(port=port):
        other.reload()
        settle(other)
        assert (shown(other), drawn(other), query(other)) == (controls, numbers, EVERYTHING)
    other.close()


def test_bad_values_in_the_address_are_named_until_dismissed(page):
    for lang, button in (("en", "Understood"), ("zh", "知道了")):
        open_at(page, f"/?lang={lang}&h=7&d_model=1e3&mask=foo&bias=maybe&seed=-1&head=99&input=&text=ok")
        notice = page.get_by_test_id("stAlert")
        for wrong in ("1e3", "foo", "maybe", "-1", "99", "␣", "h = 7"):
            assert wrong in notice.inner_text()
        with rerun(page):
            page.get_by_role("button", name=button).click()
        assert notice.count() == 0
        assert query(page) == {"lang": lang, "text": "ok", "h": "8"}


def test_changes_that_are_faster_than_a_run_are_all_kept(page):
    open_at(page, "/?input=text&text=a")
    page.locator("textarea").fill("one two")  # taken when it loses the focus
    page.locator("input[type=range][aria-label=d_model]").press("ArrowRight")
    for switch in ("Biases", "Positions"):
        page.get_by_role("switch", name=switch).press("Space")
    with rerun(page):
        page.get_by_role("radio", name="中文").click()
    page.wait_for_timeout(1000)  # there may be another run
    idle(page)
    assert query(page) == {
        "input": "text", "text": "one two", "d_model": "72", "bias": "true", "positions": "false", "lang": "zh",
    }  # fmt: skip


def test_h_is_snapped_while_d_model_moves_and_comes_back(page):
    open_at(page, "/?h=8")
    for d_model, h in (("60", "6"), ("48", "8")):
        slide(page, "d_model", "ArrowLeft")
        assert (shown(page)["d_model"], shown(page)["h · heads"]) == (d_model, h)


def test_back_also_undoes_which_h_was_wanted(page):
    open_at(page, "/")
    slide(page, "h · heads")
    with rerun(page):
        page.go_back(wait_until="commit")
    slide(page, "d_model")
    assert (shown(page)["d_model"], shown(page)["h · heads"]) == ("72", "4")


def test_the_dark_theme_redraws_the_picture_and_loses_nothing(page):
    colour = "document.querySelector('.js-plotly-plot').layout.font.color"
    open_at(page, "/?seed=3&weights=random&head=2")
    before = shown(page), drawn(page), query(page)
    assert page.evaluate(colour) == theme_named("light").ink
    with rerun(page):
        page.emulate_media(color_scheme="dark")
    settle(page)
    assert page.evaluate(colour) == theme_named("dark").ink
    assert (shown(page), drawn(page), query(page)) == before


def open_upload(page, name, data):
    open_at(page, "/?d_model=48&h=6")
    pick(page, "Input", "Upload X (CSV, NPY)")
    upload(page, name, data)
    settle(page)


def test_an_upload_is_drawn_survives_other_controls_and_is_missed_after_f5(page):
    open_upload(page, "x.csv", b"the,1,0,-1,0.5\ncat,0,2,0,1\nsat,-1,0,3,0\n")
    page.get_by_text("X 3×4").wait_for()
    assert shown(page)["d_model"] == "4"
    before = drawn(page)
    pick(page, "Weights", "Random")
    pick(page, "Weights", "Designed")
    pick(page, "Input", "Random X")
    assert (shown(page)["d_model"], shown(page)["h · heads"]) == ("48", "6")
    pick(page, "Input", "Upload X (CSV, NPY)")
    settle(page)
    assert drawn(page) == before
    page.reload()
    idle(page)
    assert "is gone" in page.get_by_test_id("stAlert").inner_text()


def test_an_npy_file_is_read_as_well(page):
    file = io.BytesIO()
    np.save(file, np.eye(5, 6))
    open_upload(page, "x.npy", file.getvalue())
    page.get_by_text("X 5×6").wait_for()
    assert shown(page)["d_model"] == "6"
