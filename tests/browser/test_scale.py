"""The page "scale" in a real Chromium: the slider of d_k, its address, and two trainings that run beside it."""

from tests.browser.conftest import query, rerun, settle, slide

TITLES = "[...document.querySelector('.js-plotly-plot').data.filter(t => t.mode == 'text').flatMap(t => t.text)]"


def open_at(page, address):
    page.goto(address)
    settle(page)


def test_the_slider_moves_the_draws_and_the_address_brings_them_back(page):
    open_at(page, "/scale")
    assert "1  Scores at d<sub>k</sub> = 16" in page.evaluate(TITLES)
    slide(page, "d_k of the random queries", "ArrowRight", 2)
    assert query(page)["draw_d_k"] == "64"
    with rerun(page):
        page.locator("[data-testid=stMain]").get_by_role("radio", name="1", exact=True).click()
    page.reload()
    settle(page)
    titles = page.evaluate(TITLES)
    assert "1  Scores at d<sub>k</sub> = 64" in titles and "<b>64</b>" in titles
    assert query(page) == {"draw_d_k": "64", "draw_by": "one"}
    page.get_by_text("The dots", exact=True).wait_for()


def test_two_trainings_grow_while_the_slider_stays_alive_and_stop(page):
    open_at(page, "/scale")
    start = page.get_by_role("button", name="Train both", exact=True)
    with rerun(page):
        start.click()
    grown = "document.querySelectorAll('.js-plotly-plot').length > 1"
    page.wait_for_function(grown)
    page.locator("input[type=range][aria-label='d_k of the random queries']").press("ArrowRight")
    page.wait_for_function(f"{TITLES}.includes('<b>32</b>')")
    page.get_by_role("button", name="Stop", exact=True).click()
    start.wait_for()
    page.get_by_text("Seed 0, learning rate 0.1.").wait_for()
    assert page.evaluate(grown)
