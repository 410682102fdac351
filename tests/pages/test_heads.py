"""The page "heads" without a browser: recorded results first, then trained here; what it says is what was measured."""

import re
import time

import pytest
from safetensors.torch import load, save

from mha_core.toy_files import from_safetensors, to_safetensors
from mha_core.toy_model import ToyModel
from mha_core.toy_recording import recorded, recorded_model, recorded_name
from mha_core.toy_report import study
from mha_core.toy_tasks import TOY_TASKS, Size, task_named
from mha_core.toy_training import look_at
from pages._ui import heads_notes as notes
from pages._ui.calculation import Learnt, calculate
from pages._ui.settings import Settings
from pages._ui.text import LANGUAGES, words
from tests.pages.test_app import open_app


def open_heads(**query):
    return open_app(**query).switch_page("pages/heads.py").run()


def said(at):
    return "\n".join(element.value for element in at.main.markdown)


def tables(at):
    """The tables of the page, by the name of each column."""
    found = []
    for text in (element.value for element in at.main.markdown if element.value.startswith("| ")):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        found.append(dict(zip(lines[0], zip(*lines[2:], strict=True), strict=True)))
    return found


def train(at):
    at.button(key=next(key for key in keys(at) if key.startswith("start_"))).click().run()
    end = time.monotonic() + 60
    while any(key.startswith("stop_") for key in keys(at)):
        assert time.monotonic() < end and not at.exception
        time.sleep(0.2)
        at.run()
    return at


def keys(at):
    return [button.key for button in at.main.button if button.key]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("task", [task.key for task in TOY_TASKS])
def test_it_opens_on_recorded_results_of_every_task(task, language):
    at = open_heads(task=task, lang=language)
    assert not at.exception and not at.error
    recorded_word = {"en": "**Recorded**", "zh": "**这是录好的结果**"}[language]
    assert recorded_word in said(at)
    assert len(at.get("plotly_chart")) == 3


def test_nothing_trains_when_the_page_is_opened():
    at = open_heads()
    assert [key for key in keys(at) if key.startswith("start_")] == ["start_heads_copy"]
    assert not any(key.startswith("stop_") for key in keys(at))


def test_the_table_holds_the_recorded_numbers():
    at = open_heads()
    table = tables(at)[0]
    runs = [report.run for report in recorded().reports if report.run.task == "copy"]
    assert list(table["parameters"]) == [f"{run.parameters:,}" for run in runs] == ["20,648"] * 4
    assert [float(share) for share in table["all right"]] == pytest.approx(
        [run.accuracy.joint for run in runs], abs=0.01
    )


def test_every_head_has_its_measured_role_beside_its_map():
    at = open_heads(task="recall")
    table = tables(at)[1]
    roles = recorded().report("recall", task_named("recall").sizes[1]).roles
    assert [float(share) for share in table["same key"]] == pytest.approx(roles.mass[0, :, 0].tolist(), abs=0.006)
    moves = [float(value) for value in table["decided by the sequence, nats"]]
    assert sorted(moves) == [0.0, pytest.approx(1.76, abs=0.03)]  # of ln 6 = 1.79: any of six keys


@pytest.mark.parametrize("page", [{}, {"task": "induction"}])
def test_the_model_on_screen_passes_the_three_identities(page):
    (line,) = [text for text in said(open_heads(**page)).splitlines() if "equals torch.nn.MultiheadAttention" in text]
    assert line.count(":green[✓]") == 3 and ":red" not in line


LEARNT = {
    "copy": "averaging them", "recall": "one head follows the key", "control": "one head is enough",
    "induction": "head looks one back",
}  # fmt: skip


@pytest.mark.parametrize("task", TOY_TASKS, ids=lambda task: task.key)
def test_what_heads_have_learnt_is_told_only_of_heads_that_have(task):
    reports = [report for report in recorded().reports if report.run.task == task.key]
    told = notes.verdict(words("en"), task, reports)
    assert LEARNT[task.key] in told and "no verdict yet" not in told
    training = study(task, task.sizes, seed=0, steps=10)
    while True:
        try:
            next(training)
        except StopIteration as over:
            early = notes.verdict(words("en"), task, over.value)
            break
    assert LEARNT[task.key] not in early and "After 10 steps this is no verdict yet" in early


@pytest.mark.parametrize("task", TOY_TASKS, ids=lambda task: task.key)
def test_who_fails_in_every_run_is_named_and_nobody_else(task):
    recording = recorded()
    ends = [[result.accuracy.joint for result in recording.of(task.key, size)] for size in task.sizes]
    told = notes.runs(words("en"), task, ends)
    failing = [notes.size_name(words("en"), task, size) for size, joint in zip(task.sizes, ends, strict=True)
               if max(joint) < 0.99]  # fmt: skip
    assert (f"It fails in every run with {', '.join(failing)}." in told) == bool(failing)
    assert "impossible" not in told


def test_taking_a_head_away_shows_what_is_left():
    report = recorded().report("copy", task_named("copy").sizes[2])
    at = open_heads(taken="2")
    (alt,) = [chart.proto.alt for chart in at.get("plotly_chart") if "How" not in chart.proto.alt][1:2]
    left = report.ablations.without((0, 2))
    shares = [float(share) for share in re.findall(r": (1?\.\d\d)", alt)]
    assert shares == pytest.approx([*left.targets, left.joint], abs=0.01)
    assert sum(share > 0.99 for share in left.targets) == 3


def test_the_question_about_ablation_is_answered_with_the_measured_shares():
    at = open_heads()
    question = next(control for control in at.main.segmented_control if "taken away" in control.label)
    question.set_value("one").run()
    assert "Measured, head by head" in said(at)
    assert said(at).count("without head") == 4 and said(at).count("falls to .") == 4


def test_at_one_feature_a_head_there_are_at_most_two_favourites():
    for seed in range(5):
        count = int(re.search(r"Measured: (\d+)", notes.rank(words("en"), seed))[1])
        assert count <= 2


def test_training_here_replaces_what_was_recorded_and_stays():
    at = train(open_heads(task="control", toy_steps="30", compared="1"))
    assert "**Trained here**: seed 0, 30 steps" in said(at)
    table = tables(at)[0]
    assert table["model"] == ("h = 4",)
    at.switch_page("pages/overview.py").run().switch_page("pages/heads.py").run()
    assert "**Trained here**" in said(at)


def test_what_was_trained_can_be_seen_on_every_page():
    at = train(open_heads(task="control", toy_steps="30", compared="1"))
    at.button(key="ui_use").click().run()
    assert not at.exception
    assert "Attend" in "".join(link.label for link in at.get("page_link"))
    at.switch_page("pages/attend.py").run()
    assert not at.exception and not at.error
    assert "Weights trained here" in said(at)


@pytest.mark.parametrize("page", ["overview", "project", "attend", "combine", "order", "scale", "cost", "faithfulness"])
@pytest.mark.parametrize("name", ["copy-4x1", "induction-1x2"])
def test_every_page_shows_a_recorded_model(page, name):
    at = open_app(input="trained", src=name, layer=1, sequence=3).switch_page(f"pages/{page}.py").run()
    assert not at.exception and not at.error


def test_a_trained_model_that_is_gone_says_so():
    (error,) = open_app(input="trained", src="run-12345678").error
    assert "Train it again" in error.value


def test_the_calculation_of_a_trained_model_is_the_models_own():
    trained = recorded_model("induction-1x2")
    settings = Settings(input="trained", src="induction-1x2", d_model=64, h=1, layer=1, mask="causal", sequence=2)
    calculation = calculate(settings, Learnt(trained, recorded=True))
    from mha_core.toy_training import evaluation_batch

    tokens = evaluation_batch(trained.model.task, trained.run.seed).tokens[2:3]
    second = trained.model.traces(tokens)[1]
    assert (calculation.trace["output"].value == second["output"].value).all()
    assert calculation.origin == "recorded"
    assert calculation.reports[0].role == "trained.after" and calculation.reports[0].holds


def test_recorded_weights_come_for_one_size_of_every_task_and_solve_it():
    for task in TOY_TASKS:
        there = [size for size in task.sizes if recorded_model(recorded_name(task.key, size)) is not None]
        assert len(there) == 1
        assert recorded_model(recorded_name(task.key, there[0])).run.accuracy.joint >= 0.99


def test_weights_survive_the_way_out_and_in_again():
    trained = recorded_model("copy-4x1")
    again = from_safetensors(to_safetensors(trained), "again.safetensors")
    assert again.run.accuracy == trained.run.accuracy


def pick(at, key, chosen):
    next(control for control in at.main.get("button_group") if control.key == key).set_value(chosen).run()


def bring(at, data):
    return at.file_uploader(key="ui_weights_file").set_value(("x.safetensors", data, "")).run()


def untrained(h, seed=0, d_model=64, scale=None):
    model = ToyModel(task_named("copy"), Size(h, 1, d_model), seed, scale=scale)
    return to_safetensors(look_at(model, seed=seed, steps=0))


def test_a_training_that_runs_is_drawn_as_it_was_started_whatever_is_chosen_meanwhile():
    at = open_heads(toy_steps="1000", compared="1")
    at.button(key="start_heads_copy").click().run()
    pick(at, "ui_page_compared", [0, 1, 2])
    at.number_input(key="ui_page_toy_steps").set_value(50).run()
    end = time.monotonic() + 30
    while not at.get("plotly_chart")[0].proto.alt.startswith("Curves"):
        assert time.monotonic() < end and not at.exception
        at.run()
    assert "over 1000 steps. At the end h = 2: ." in at.get("plotly_chart")[0].proto.alt
    assert "of 1000" in said(at)
    at.button(key="stop_heads_copy").click().run()


def test_the_chosen_sizes_are_kept_through_a_task_that_has_fewer():
    at = open_heads(compared="1.2.3")
    for task in ("control", "copy"):
        at.selectbox(key="ui_page_task").set_value(task).run()
    assert at.session_state.compared == "1.2.3"


@pytest.mark.parametrize("steps", [1, 9])
def test_a_training_of_a_few_steps_is_what_the_control_says(steps):
    at = train(open_heads(task="control", toy_steps=str(steps), compared="0"))
    control = at.number_input(key="ui_page_toy_steps")
    assert control.min <= control.value == steps and f"seed 0, {steps} steps" in said(at)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(untrained(32), "`h`=`32` is outside"), (untrained(1, d_model=2), "`d_model`=`2` is outside"),
     (untrained(4, scale=1.0), "`scale`=`1.0`"), (b"nothing", "`x.safetensors` is not")],
)  # fmt: skip
def test_weights_that_no_page_can_show_are_refused_in_a_sentence(data, sentence):
    at = bring(open_heads(), data)
    (error,) = at.error
    assert sentence in error.value and "ui_brought_use" not in keys(at)


def test_equal_weights_of_another_seed_are_another_model():
    at, names = open_heads(), set()
    told = {"task": "copy", "h": "4", "layers": "1", "d_model": "64", "steps": "0"}
    for seed in ("1", "2"):
        bring(at, save(load(untrained(4)), {**told, "seed": seed})).button(key="ui_brought_use").click().run()
        names.add(at.session_state.src)
    assert len(names) == 2


def test_pages_are_said_to_show_this_model_only_while_they_do():
    at = open_heads()
    at.button(key="ui_use").click().run()
    assert len(at.success) == 1
    at.selectbox(key="ui_page_task").set_value("recall").run()
    assert not at.success
    assert not open_heads(input="trained", src="run-12345678").success


def test_every_input_that_is_brought_keeps_its_own_source():
    at = open_app(input="upload")
    at.file_uploader(key="ui_upload").set_value(("x.csv", b"1,2,3,4\n", "text/csv")).run()
    at.selectbox(key="ui_input").set_value("trained").run()
    assert not at.error and at.session_state.d_model == "64"
    at.selectbox(key="ui_input").set_value("upload").run()
    assert not at.error and at.session_state.d_model == "4"


def test_after_a_model_that_is_gone_comes_the_first_recorded_one():
    at = open_app(input="trained", src="run-12345678")
    at.selectbox(key="ui_input").set_value("cat").run()
    at.selectbox(key="ui_input").set_value("trained").run()
    assert not at.error
