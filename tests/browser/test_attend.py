"""The page about one head, in a real Chromium."""

import pytest

from tests.browser.conftest import pick, query, rerun, settle

POINT = """([trace, point]) => {
    const plot = document.querySelector('.js-plotly-plot'), {xaxis, yaxis} = plot._fullLayout;
    const data = plot._fullData[trace], box = plot.getBoundingClientRect();
    return [box.x + xaxis._offset + xaxis.l2p(data.x[point]), box.y + yaxis._offset + yaxis.l2p(data.y[point]),
            data.customdata[point]];
}"""
PICKS = "document.querySelector('.js-plotly-plot')._fullData.findIndex(t => t.customdata)"
TEXTS = "document.querySelector('.js-plotly-plot')._fullData.filter(t => t.mode === 'text').flatMap(t => [...t.text])"


def click(page, point):
    """Click a cell; the number behind it."""
    x, y, value = page.evaluate(POINT, [page.evaluate(PICKS), point])
    with rerun(page):
        page.mouse.click(x, y)
    settle(page)
    return value


def total(page):
    return next(text for text in page.evaluate(TEXTS) if text.startswith("Σ"))


@pytest.fixture
def attend(page):
    page.goto("/attend?weights=random&seed=3")
    settle(page)
    return page


def test_a_click_writes_out_the_number_that_was_drawn(attend):
    value = click(attend, 7 * 10 + 6)
    assert total(attend) == f"Σ = {value:.2f}".replace("-", "−").replace(" 0.", " .").replace("−0.", "−.")
    assert (query(attend)["query"], query(attend)["key"]) == ("7", "6")


def test_the_lists_lead_to_the_same_cell_and_so_does_the_address(attend, page):
    click(attend, 7 * 10 + 6)
    by_mouse = attend.evaluate(TEXTS)
    attend.goto("/attend?weights=random&seed=3")
    settle(attend)
    pick(attend, "Query (row)", "8 · it")
    pick(attend, "Key (column)", "7 · because")
    settle(attend)
    assert attend.evaluate(TEXTS) == by_mouse
    attend.reload()
    settle(attend)
    assert attend.evaluate(TEXTS) == by_mouse


def test_a_click_in_ones_own_mask_forbids_the_cell_everywhere(page):
    page.goto("/attend?lab=own")
    settle(page)
    plots = page.locator(".js-plotly-plot")
    plots.nth(1).scroll_into_view_if_needed()
    second = ("querySelector('.js-plotly-plot')", "querySelectorAll('.js-plotly-plot')[1]")
    place = page.evaluate(POINT.replace(*second), [page.evaluate(PICKS.replace(*second)), 3 * 10 + 2])
    with rerun(page):
        page.mouse.click(*place[:2])
    settle(page)
    assert query(page)["flipped"] == "3.2"
    hidden = page.evaluate(
        "[...document.querySelector('.js-plotly-plot')._fullData.find(t => t.customdata).customdata]"
    )
    assert not all(number > -1e30 for number in hidden)  # −∞ in the third square
