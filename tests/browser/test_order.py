"""The page "order" in a real Chromium: the guess uncovers the picture, and a small matrix chooses its case."""

from tests.browser.conftest import pick, query, rerun, settle
from tests.browser.test_combine import NEAREST, open_at


def guess(page, answer):
    with rerun(page):
        page.get_by_role("radio", name=answer, exact=True).or_(
            page.get_by_role("button", name=answer, exact=True)
        ).click()
    settle(page)


def picture_says(page):
    return page.locator(".js-plotly-plot").first.text_content()


def test_a_guess_uncovers_and_a_click_chooses_case_and_token(page):
    open_at(page, "/order")
    assert "largest difference" not in picture_says(page)
    guess(page, "changes")
    assert "largest difference" in picture_says(page)

    x, y, _ = page.evaluate(NEAREST, [1000, 420])  # the third of the small matrices
    page.mouse.move(x, y)
    with rerun(page):
        page.mouse.click(x, y)
    settle(page)
    assert query(page) == {"order_case": "2"}
    page.get_by_text("the mask stays while the tokens move").wait_for()

    x, y, _ = page.evaluate(NEAREST, [200, 58 + 25 * 7 + 12])  # the eighth row: it
    page.mouse.move(x, y)
    with rerun(page):
        page.mouse.click(x, y)
    settle(page)
    assert query(page) == {"order_case": "2", "query": "7"}


def test_the_address_brings_the_same_order(page):
    open_at(page, "/order?order_case=1&reorder=swap&lang=zh")
    pick(page, "词元", "because")
    guess(page, "保持不变")
    page.get_by_text("原来在第 7 位，现在在第 8 位").wait_for()
    assert query(page) == {"order_case": "1", "reorder": "swap", "lang": "zh", "query": "6"}
