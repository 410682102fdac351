"""The page "heads" in a real Chromium: train, watch, stop, take away, carry along; others' sliders stay quick."""

import re
import time
from contextlib import ExitStack
from statistics import median

from mha_core.toy_files import from_safetensors
from tests.browser.conftest import idle, query, rerun, runs, settle, slide, visit, window


def open_heads(page, **settings):
    page.goto("/heads?" + "&".join(f"{name}={value}" for name, value in settings.items()))
    settle(page)
    return page


def curves(page):
    """How many points each curve has."""
    return page.evaluate(
        """[...document.querySelectorAll('.js-plotly-plot')][0].data
            .filter(t => t.type == 'scatter' && t.mode == 'lines').map(t => t.x.length ?? t.x._inputArray.length)"""
    )


def stop(page):
    """The page's own button: Streamlit has one of this name in its header while a script runs."""
    return page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Stop")


def begin(page):
    page.get_by_role("button", name="Train here, now").click()
    stop(page).wait_for()


def ended(page):
    page.get_by_text("Trained here: ").wait_for(timeout=60_000)
    idle(page)


def test_curves_grow_while_it_trains_and_the_result_stays(page):
    open_heads(page, task="control")
    begin(page)
    seen = set()
    while stop(page).count():
        lengths = curves(page)
        if lengths:
            seen.add(lengths[0])
        page.wait_for_timeout(50)
    ended(page)
    assert len(seen) > 3
    assert curves(page) == [31, 31]


def test_it_can_be_stopped_and_ones_own_sliders_stay_alive(page):
    open_heads(page, toy_steps="1000")
    begin(page)
    page.get_by_text(re.compile(r"step [1-9]\d* of 1000")).wait_for(timeout=30_000)
    slide(page, "Focus head")
    assert query(page)["head"] == "1"
    assert stop(page).count() == 1
    with rerun(page):
        stop(page).click()
    page.get_by_text(re.compile(r"Stopped at step \d+ of 1000")).wait_for()
    page.get_by_role("button", name="Train here, now").wait_for()


def test_a_head_is_taken_away_with_a_click_and_the_address_knows(page):
    open_heads(page)
    with rerun(page):
        page.get_by_role("button", name="3", exact=True).click()
    assert query(page)["taken"] == "2"
    alt = page.locator("[aria-label*='head 3'], [alt*='head 3']")
    assert "← 1.00" in page.locator(".js-plotly-plot").nth(1).inner_text() or alt.count()


def test_weights_go_home_and_come_back_and_are_seen_in_attend(page):
    open_heads(page, task="recall")
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("Download the weights")).click()
    path = download.value.path()
    data = path.read_bytes()
    assert from_safetensors(data, "weights.safetensors").run.accuracy.joint >= 0.99
    with rerun(page):
        page.locator("input[type=file]").set_input_files(
            {"name": "mine.safetensors", "mimeType": "application/octet-stream", "buffer": data}
        )
    page.get_by_text("Read from your file").wait_for()
    with rerun(page):
        page.get_by_role("button", name="Use this model on every page").last.click()
    page.get_by_role("link", name="Open it in Attend").click()
    page.get_by_text("How does one head decide where to look").first.wait_for()
    settle(page)
    assert query(page)["input"] == "trained" and query(page)["src"].startswith("run-")
    assert page.get_by_text("Weights trained here").count() == 1


def test_a_file_of_something_else_is_refused_in_one_sentence(page):
    open_heads(page)
    with rerun(page):
        page.locator("input[type=file]").set_input_files(
            {"name": "x.safetensors", "mimeType": "application/octet-stream", "buffer": b"nothing of the kind"}
        )
    assert page.get_by_role("alert").count() == 1


def test_others_sliders_stay_quick_while_two_train(browser, address):
    with ExitStack() as stack:
        first, second, other = (
            stack.enter_context(visit(stack.enter_context(window(browser, address)), address)) for _ in range(3)
        )
        other.goto("/")
        settle(other)
        quiet = steps(other)
        for page in (first, second):
            open_heads(page, toy_steps="1000", task="recall")
            begin(page)
        busy = steps(other)
        for page in (first, second):
            assert stop(page).count() == 1
            with rerun(page):
                stop(page).click()
    alone, beside = (f"{1000 * median(taken):.0f} ms" for taken in (quiet, busy))
    print(f"the server answers a slider in {alone} alone, in {beside} with two trainings")


def steps(page, count=12):
    """Seconds from a key to the end of the server's run; measured and printed, never asserted."""
    taken = []
    for index in range(count):
        before, began = runs[page], time.perf_counter()
        key = "ArrowRight" if index % 2 == 0 else "ArrowLeft"
        page.locator("input[type=range][aria-label='Focus head']").press(key)
        while runs[page] == before:
            assert time.perf_counter() - began < 30, "the app did not run again"
            page.wait_for_timeout(5)
        taken.append(time.perf_counter() - began)
        idle(page)
    return taken
