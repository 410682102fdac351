"""The page "combine" in a real Chromium: a number chosen in the picture is the number explained below it."""

import re

import pytest

from tests.browser.conftest import pick, query, rerun, settle, visit, window

NEAREST = """([cx, cy]) => {
    const plot = document.querySelector('.js-plotly-plot');
    const box = plot.querySelector('.nsewdrag').getBoundingClientRect();
    const [width, height] = [plot.layout.xaxis.range[1], plot.layout.yaxis.range[0]];
    const values = typed => Array.isArray(typed) || ArrayBuffer.isView(typed) ? typed : typed._inputArray ?? [];
    let best = [Infinity];
    for (const trace of plot.data.filter(t => t.customdata)) {
        const [x, y, value] = [trace.x, trace.y, trace.customdata].map(values);
        x.forEach((_, i) => {
            const apart = Math.hypot(x[i] - cx, y[i] - cy);
            if (apart < best[0]) best = [apart, value[i]];
        });
    }
    return [box.x + cx / width * box.width, box.y + cy / height * box.height, best[1]];
}"""
"""For a place on the canvas: where it is on the page, and the value of the cell there that can be chosen."""
OUTPUT = 814, 1124, 40, 200  # px: left, right, top, bottom of the output


def cell_at(page, row, column, rows, columns):
    """A cell of the output, as it was drawn."""
    left, right, top, bottom = OUTPUT
    return page.evaluate(NEAREST, [left + (column + 0.5) * (right - left) / columns,
                                   top + (row + 0.5) * min(40, (bottom - top) / rows)])  # fmt: skip


def by_hand(page):
    """What the sum below the picture comes to, and what it is a sum for."""
    said = page.locator("[data-testid=stMarkdown]").filter(has=page.locator("annotation", has_text="y ="))
    formula = said.locator("annotation", has_text="y =").text_content()
    return float(re.split(r"=|\\approx", formula)[-1]), said.locator("code").first.text_content()


def open_at(page, address):
    page.goto(address)
    settle(page)
    return page


@pytest.mark.parametrize(
    ("where", "rows", "columns", "features"),
    [
        ("/combine", 10, 64, "3"),
        ("/combine?input=pocket&lang=zh", 3, 4, "3"),
        ("/combine?h=16&d_model=128", 10, 64, "67"),
    ],
)
def test_the_sum_below_is_for_the_number_that_was_clicked(page, where, rows, columns, features):
    open_at(page, where)
    x, y, value = cell_at(page, 2, 3, rows, columns)
    page.mouse.move(x, y)
    with rerun(page):
        page.mouse.click(x, y)
    settle(page)
    total, _ = by_hand(page)
    assert total == pytest.approx(value, abs=0.0051)
    assert query(page)["query"] == "2"
    assert query(page)["feature"] in features  # of 128, in blocks of two, the larger


def test_the_keyboard_chooses_the_same_and_another_browser_opens_it(page, browser, address):
    open_at(page, "/combine")
    pick(page, "Token (row)", "it")
    pick(page, "Output feature", "6")
    settle(page)
    total, token = by_hand(page)
    assert token == "it"
    assert (query(page)["query"], query(page)["feature"]) == ("7", "5")
    assert total == pytest.approx(cell_at(page, 7, 5, 10, 64)[2], abs=0.0051)
    with window(browser, address) as context, visit(context, address) as other:
        open_at(other, page.evaluate("location.href"))
        assert by_hand(other) == (total, token)


def test_a_head_goes_off_and_the_address_says_so(page):
    open_at(page, "/combine")
    with rerun(page):
        page.get_by_role("button", name="2", exact=True).click()
    settle(page)
    assert query(page)["off"] == "1"
    page.get_by_text("A head that is off brings zeros").wait_for()


def test_a_bar_chooses_its_head(page):
    open_at(page, "/combine")
    x, y, _ = page.evaluate(NEAREST, [24 + 2.5 * 636 / 5, 550])  # the third of five bars
    page.mouse.move(x, y)
    with rerun(page):
        page.mouse.click(x, y)
    settle(page)
    assert query(page) == {"head": "2"}
    page.get_by_text("Head 3's part is the strip above").wait_for()
