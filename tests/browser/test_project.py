"""The page about Q, K and V, in a real Chromium."""

import pytest

from tests.browser.conftest import pick, query, rerun, settle

MARKER = """([trace, point]) => {
    const plot = document.querySelector('.js-plotly-plot'), {xaxis, yaxis} = plot._fullLayout;
    const found = plot._fullData.find(each => (each.hovertemplate ?? '').startsWith(trace));
    const box = plot.getBoundingClientRect();
    return [box.x + xaxis._offset + xaxis.l2p(found.x[point]), box.y + yaxis._offset + yaxis.l2p(found.y[point]),
            found.customdata[point]];
}"""
TEXTS = "document.querySelector('.js-plotly-plot')._fullData.filter(t => t.mode === 'text').flatMap(t => [...t.text])"
START = "/project?weights=random&seed=3&which=V"


def click(page, matrix, point):
    """Click a cell; the number behind it."""
    x, y, value = page.evaluate(MARKER, [matrix, point])
    with rerun(page):
        page.mouse.click(x, y)
    settle(page)
    return value


def total(page):
    text = next(text for text in page.evaluate(TEXTS) if text.startswith("Σ"))
    return float(text.split()[-1].replace("−", "-"))


@pytest.fixture
def project(page):
    page.goto(START)
    settle(page)
    return page


def cell(head, token, feature):
    """The marker of V's cell: bands one after the other, 10 tokens of 16 features each."""
    return head * 160 + token * 16 + feature


def test_a_click_on_v_writes_out_the_number_that_was_drawn(project):
    value = click(project, "V, ", cell(2, 7, 11))
    assert abs(total(project) - value) < 6e-3
    address = query(project)
    assert (address["head"], address["query"], address["feature"]) == ("2", "7", "11")


def test_x_chooses_the_token_w_the_column_and_a_head_below_itself(project):
    click(project, "X, ", 3 * 64 + 20)
    click(project, "W", 16 * 8 + 5)
    assert {"query": "3", "head": "1", "feature": "5"}.items() <= query(project).items()
    click(project, "choose head", 3 * 3 + 1)
    assert query(project)["head"] == "3"


def test_the_lists_and_the_address_lead_to_the_same_cell(project):
    click(project, "V, ", cell(2, 7, 11))
    by_mouse = project.evaluate(TEXTS)
    project.goto(START)
    settle(project)
    pick(project, "Head", "3")
    pick(project, "Token (row)", "it")
    pick(project, "Feature of the head (column)", "12")
    settle(project)
    assert project.evaluate(TEXTS) == by_mouse
    project.reload()
    settle(project)
    assert project.evaluate(TEXTS) == by_mouse


def test_a_guess_brings_the_experiment_s_picture(project):
    project.goto("/project?lab=nudge&h=8")
    settle(project)
    with rerun(project):
        project.get_by_role("radio", name="Only in head 8").click()
    project.get_by_text("In all that read it").wait_for()
    assert project.locator(".js-plotly-plot").count() == 2
