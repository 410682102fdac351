"""The page "faithfulness" in a real Chromium: the slider moves bars and no digit; a head is chosen by its bars."""

import re

from tests.browser.conftest import query, rerun, settle, slide
from tests.browser.test_combine import NEAREST, open_at

LABEL = "Slide the weights towards others with the same output"
IN_THE_SECOND = NEAREST.replace("querySelector('.js-plotly-plot')", "querySelectorAll('.js-plotly-plot')[1]")


def digits(page):
    return re.findall(r"−?\d\.\d{12}", page.locator(".js-plotly-plot").first.text_content())


def test_the_slider_moves_the_weights_and_no_digit_of_the_output(page):
    open_at(page, "/faithfulness")
    before, bars = digits(page), page.locator(".js-plotly-plot image").first.get_attribute("href")
    assert len(before) == 6
    slide(page, LABEL, times=2)
    assert query(page) == {"slide": "2"}
    slide(page, LABEL, key="End")
    assert query(page) == {"slide": "100"}
    assert digits(page) == before
    assert page.locator(".js-plotly-plot image").first.get_attribute("href") != bars
    page.get_by_text("At 100 % z has moved by").wait_for()


def test_a_bar_chooses_its_head(page):
    open_at(page, "/faithfulness?weights=random")
    plot = page.locator(".js-plotly-plot").nth(1)
    plot.scroll_into_view_if_needed()
    x, y, _ = page.evaluate(IN_THE_SECOND, [806 + 2.5 * 322 / 4, 200])  # the third of four
    page.mouse.move(x, y)
    with rerun(page):
        page.mouse.click(x, y)
    settle(page)
    assert query(page) == {"weights": "random", "head": "2"}
    page.get_by_text("Head 3, row of").first.wait_for()
