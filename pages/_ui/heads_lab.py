"""The page "heads" at work: what is trained, what is on screen of it, and which model is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from mha_core.figures.ablation import ablation
from mha_core.figures.heads_sweep import Swept, heads_sweep
from mha_core.figures.training import Learner, floor_share, training
from mha_core.toy_ablation import ENOUGH
from mha_core.toy_compare import Moment, probe, probe_roles
from mha_core.toy_files import MAX_BYTES, to_safetensors
from mha_core.toy_recording import recorded, recorded_model, recorded_name
from mha_core.toy_report import Report, study
from mha_core.toy_tasks import TOY_TASKS, Size, ToyTask, task_named
from mha_core.toy_training import CURVE_SEQUENCES, EVALUATED_SEQUENCES, Trained, point_count
from pages._ui import heads_notes as notes
from pages._ui import layout, state, working
from pages._ui.calculation import Learnt, calculate
from pages._ui.frame import Frame
from pages._ui.predict import predict
from pages._ui.settings import MAX_COMPARED, Settings
from pages._ui.text import Words

__all__ = ["Lab", "Shown", "carry", "lab", "look", "runs", "sweep", "take_away", "train"]

EVERY = 10  # steps between two points of a curve


@dataclass(frozen=True)
class Lab:
    """What the button would train.

    Attributes:
        compared: rows of the task's sizes: the models that are compared.
    """

    task: ToyTask
    compared: tuple[int, ...]
    seed: int
    steps: int

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Of the models that are compared."""
        return tuple(self.task.sizes[index] for index in self.compared)

    @property
    def key(self) -> tuple[Any, ...]:
        """Of everything that decides the numbers."""
        return self.task.key, self.sizes, self.seed, self.steps


@dataclass(frozen=True)
class Shown:
    """What is on screen of it: the reports of these very models, or those recorded."""

    reports: tuple[Report, ...]
    recorded: bool


def lab(settings: Settings) -> Lab:
    """From the settings: nothing chosen is everything, and 0 steps are the recipe's."""
    task = task_named(settings.task)
    every = tuple(range(len(task.sizes)))
    chosen = tuple(index for index in settings.compared if index in every) or every
    return Lab(task, chosen, settings.toy_seed, settings.toy_steps or task.steps)


def train(f: Frame, what: Lab, row: DeltaGenerator) -> Shown:
    """The button in its row, the progress, the growing picture; what there is to show when nothing is growing."""
    name = f"heads_{what.task.key}"
    outcome = working.work(
        f.t, name, partial(study, what.task, what.sizes, seed=what.seed, steps=what.steps, every=EVERY),
        total=point_count(what.steps, EVERY), show=partial(_show, f, what, name), key=what.key,
        label=f.t("heads.start"), row=row,
    )  # fmt: skip
    return _shown(what, outcome)


def _shown(what: Lab, outcome: working.Outcome | None) -> Shown:
    if outcome is not None and outcome.result is not None:
        return Shown(outcome.result, recorded=False)
    reports = tuple(report for report in recorded().reports if report.run.task == what.task.key)
    some = tuple(report for report in reports if report.run.size in what.sizes)
    return Shown(some or reports, recorded=True)


def _show(f: Frame, what: Lab, name: str, points: Sequence[Moment], done: bool, key: tuple[Any, ...]) -> None:
    t, task, outcome = f.t, what.task, working.outcome_of(name)
    if not done or (outcome is not None and outcome.stopped):
        _, sizes, seed, steps = key
        if not points:
            return
        names = [
            [notes.role_name(t, role) for role in probe_roles(task, seed, points[-1].points[index].maps)]
            for index in range(len(sizes))
        ]
        drawn, step = notes.growing(t, task, sizes, points, names), points[-1].step
        told = t("heads.stopped" if done else "heads.growing", step=step, steps=steps, curve=CURVE_SEQUENCES)
    else:
        shown = _shown(what, outcome)
        run = shown.reports[0].run
        steps, seed, drawn = run.steps, run.seed, notes.learners(t, task, shown.reports)
        seconds = f"{sum(report.run.seconds for report in shown.reports):.0f}"
        told = t(
            "heads.recorded" if shown.recorded else "heads.trained", seed=seed, steps=steps, seconds=seconds,
            evaluated=EVALUATED_SEQUENCES, **{name: run.versions.get(name, "?") for name in ("torch", "python")},
        )  # fmt: skip
        trained = (task.key, tuple(report.run.size for report in shown.reports), seed, steps)
        if trained != what.key:
            told += f" {t('heads.changed')}"
    st.markdown(told)
    _draw(f, task, drawn, seed, steps)


def _draw(f: Frame, task: ToyTask, drawn: Sequence[Learner], seed: int, steps: int) -> None:
    t = f.t
    labels = notes.token_names(task, probe(task, seed)[0])
    picture = training(
        drawn, notes.targets(t, task), labels, steps=steps, words=t.group("heads.fig"), theme=f.theme
    )  # fmt: skip
    f.draw(picture, key="heads", alt=notes.training_alt(t, drawn, steps))


def runs(t: Words, task: ToyTask) -> str:
    """How the recorded trainings of this task ended, over all their seeds."""
    recording = recorded()
    ends = [[result.accuracy.joint for result in recording.of(task.key, size)] for size in task.sizes]
    return notes.runs(t, task, ends)


def sweep(f: Frame) -> None:
    """More and more heads, down to d_k = 1: recorded, over all seeds."""
    t, recording = f.t, recorded()
    swept = []
    for task in TOY_TASKS:
        sizes = sorted(
            {result.size for result in recording.results if result.task == task.key}, key=lambda size: size.h
        )
        if task.layered or len(sizes) <= MAX_COMPARED:
            continue
        ends = [[result.accuracy.joint for result in recording.of(task.key, size)] for size in sizes]
        swept.append(Swept(t(f"heads.task.{task.key}"), [size.h for size in sizes], task.d_model, ends))
    most = max(max(one.heads) for one in swept)
    st.markdown(t("heads.sweep"))
    st.markdown(
        t("heads.sweep_lead", d_model=swept[0].d_model, most=most, least=swept[0].d_model // most,
          seeds=len(swept[0].ends[0]))
    )  # fmt: skip
    f.draw(heads_sweep(swept, words=t.group("heads.fig"), theme=f.theme), key="sweep", alt=notes.sweep_alt(t, swept))
    st.markdown(notes.sweep_notice(t, swept))


def look(f: Frame, what: Lab, shown: Shown) -> Report:
    """Which of the models, and which of its heads are on; the report of that model."""
    t, reports = f.t, shown.reports
    solving = [index for index, report in enumerate(reports) if report.run.accuracy.joint >= ENOUGH]
    usual = min(solving, key=lambda index: reports[index].run.size.h * (reports[index].run.size.layers), default=0)
    chosen = f.settings.looked_at if 0 <= f.settings.looked_at < len(reports) else usual
    if len(reports) > 1:
        st.segmented_control(
            t("heads.model_choice"), range(len(reports)),
            format_func=lambda index: notes.size_name(t, what.task, reports[index].run.size),
            **f.control("looked_at", chosen),
        )  # fmt: skip
    return reports[chosen]


def take_away(f: Frame, what: Lab, report: Report) -> None:
    """The heads of a model one by one: on or off, and what becomes of the targets."""
    t, task, run, tried = f.t, what.task, report.run, report.ablations
    if tried is None:
        return
    every = range(len(tried.heads))
    off = [index for index in f.settings.taken if index in every]
    st.pills(
        t("heads.on"), every, format_func=lambda index: notes.head_label(t, tried.heads[index], run.size.layers),
        selection_mode="multi",
        **f.control("taken", [index for index in every if index not in off], taken=lambda on: set(every) - set(on)),
    )  # fmt: skip
    now = tried.without(*(tried.heads[index] for index in off))
    names = [notes.role_name(t, role) for role in notes.all_roles(report.roles)]
    target_names = [*notes.targets(t, task), t("heads.target.joint")]
    shares = [*now.targets, now.joint]
    maps = run.points[-1].maps[0]
    picture = ablation(
        maps.reshape(-1, task.n, task.n), names, off, target_names, [*run.accuracy.targets, run.accuracy.joint], shares,
        notes.token_names(task, run.probes[0]),
        numbers=[notes.head_label(t, head, run.size.layers) for head in tried.heads],
        words=t.group("heads.fig"), theme=f.theme,
    )  # fmt: skip
    f.draw(picture, key="ablation", alt=notes.ablation_alt(t, names, target_names, shares))
    st.caption(t("heads.table.lead", evaluated=EVALUATED_SEQUENCES))
    st.markdown(notes.heads_table(t, report))
    if len(every) > 1 and len(task.targets) > 1:
        size, told = notes.size_name(t, task, run.size), notes.take(t, task, report)
        predict(t, "heads.take", ("all", "one", "none"), told, model=size, targets=len(task.targets))
    if len(every) > 1:
        st.markdown(notes.redundant(t, report))


def carry(f: Frame, report: Report) -> None:
    """Weights to take home, to bring back, and to see on every other page."""
    t = f.t
    trained = report.trained or recorded_model(recorded_name(report.run.task, report.run.size))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if trained is None:
            st.markdown(t("heads.no_weights"))
        else:
            _offer(f, trained, recorded=report.trained is None)
    _say_used(f, trained)
    st.file_uploader(
        t("heads.upload"), ["safetensors"], max_upload_size=MAX_BYTES // 2**20, help=t("heads.upload_help"),
        key="ui_weights_file", on_change=state.receive_weights,
    )  # fmt: skip
    brought = state.brought_weights()
    if (problem := state.weights_problem()) is not None:
        layout.error(t, problem)
    elif brought is not None:
        run, name = brought.run, notes.size_name(t, brought.model.task, brought.run.size)
        st.markdown(
            t("heads.uploaded", task=t(f"heads.task.{run.task}"), name=name, seed=run.seed,
              share=floor_share(run.accuracy.joint), evaluated=EVALUATED_SEQUENCES)
        )  # fmt: skip
        _offer(f, brought, recorded=False, place="brought_")
        _say_used(f, brought)
    if trained is not None:
        _check(f, trained, recorded=report.trained is None)


def _say_used(f: Frame, trained: Trained | None) -> None:
    """That it is this model that every page shows, and the way to it."""
    used = state.learnt_of(f.settings) if f.settings.input == "trained" else None
    if used is not None and used.trained is trained:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.success(f.t("heads.using"), icon=":material/check:")
            st.page_link("pages/attend.py", label=f.t("heads.open"), icon=":material/visibility:")


def _check(f: Frame, trained: Trained, *, recorded: bool) -> None:
    """The identities, for the last layer of this very model on a sequence of its task."""
    layers = trained.run.size.layers
    settings = Settings(input="trained", mask="causal" if trained.model.task.layered else "none", layer=layers - 1)
    layout.checks(f.t, calculate(settings, Learnt(trained, recorded)))


def _offer(f: Frame, trained: Trained, *, recorded: bool, place: str = "") -> None:
    t, run = f.t, trained.run
    name = notes.size_name(t, trained.model.task, run.size)
    st.button(
        t("heads.use"), key=f"ui_{place}use", icon=":material/open_in_new:", on_click=state.use_trained,
        args=(trained, recorded),
    )  # fmt: skip
    st.download_button(
        t("heads.download", name=name), partial(to_safetensors, trained),
        f"{run.task}-h{run.size.h}-layers{run.size.layers}-seed{run.seed}.safetensors", "application/octet-stream",
        key=f"ui_{place}download", on_click="ignore", icon=":material/download:",
    )  # fmt: skip
