"""The page "cost" in a real Chromium: sizes by keyboard and address, a guess, and a race that is stopped."""

import pytest

from tests.browser.conftest import idle, pick, query, rerun, settle, slide

LINES = (
    """() => document.querySelector('.js-plotly-plot').data.filter(trace => trace.mode?.startsWith('lines')).length"""
)


def open_at(page, address):
    page.goto(address)
    settle(page)
    return page


def test_a_model_and_its_n_are_in_the_address(page):
    open_at(page, "/cost")
    pick(page, "Sizes of", "Llama 2 70B")
    settle(page)
    page.get_by_text("320 KiB a token, 1.25 GiB for 4,096 tokens").wait_for()
    slide(page, "n")
    assert query(page) == {"cost_of": "llama2", "cost_n": "8192"}
    page.reload()
    settle(page)
    page.get_by_text("320 KiB a token, 2.5 GiB for 8,192 tokens").wait_for()


@pytest.mark.parametrize(
    ("lang", "answer", "told"),
    [("en", "all three", "Only the softmax cells"), ("zh", "都不是", "只有 softmax 的格数")],
)
def test_the_curves_come_with_the_guess(page, lang, answer, told):
    open_at(page, f"/cost?lang={lang}")
    before = page.evaluate(LINES)
    with rerun(page):
        page.get_by_role("radio", name=answer).click()
    settle(page)
    page.get_by_text(told).wait_for()
    assert page.evaluate(LINES) == before + 3


def test_a_race_runs_can_be_stopped_and_other_controls_go_on(page):
    open_at(page, "/cost")
    page.get_by_role("button", name="Start the race").click()
    page.get_by_text("Running:").wait_for()
    slide(page, "n")  # while it runs
    assert query(page) == {"cost_n": "16"}
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Start the race").wait_for()
    idle(page)
    page.get_by_text("all three give the same").wait_for()
