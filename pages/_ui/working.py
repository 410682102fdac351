"""Long work on a page: start and stop, the place in the queue, the progress, and what grows meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from mha_core.errors import InputError
from pages._ui import layout
from pages._ui.jobs import Job, Jobs, Status
from pages._ui.text import Words

__all__ = ["Outcome", "outcome_of", "work"]

EVERY = 0.4  # seconds between two looks at running work


@dataclass(frozen=True)
class Outcome:
    """What came of work that has ended, kept for the session.

    Attributes:
        key: the settings it was started with.
        points: what it yielded.
        result: what it returned; None when it was stopped.
        stopped: whether it was.
    """

    key: tuple[Any, ...]
    points: tuple[Any, ...]
    result: Any
    stopped: bool


@st.cache_resource
def _jobs() -> Jobs:
    return Jobs()


def outcome_of(name: str) -> Outcome | None:
    """What came of the last work of this name, on whatever page we are."""
    outcome: Outcome | None = st.session_state.get(f"outcome_{name}")
    return outcome


def work(
    t: Words,
    name: str,
    make: Callable[[], Generator[Any, None, Any]],
    *,
    total: int,
    show: Callable[[tuple[Any, ...], bool], None],
    key: tuple[Any, ...] = (),
    slots: int = 1,
    label: str = "",
    row: DeltaGenerator | None = None,
) -> Outcome | None:
    """A button that starts work, what is to be seen while it runs, and what came of it.

    Nothing starts by itself. While it runs, only this part of the page is drawn again and again;
    all other controls stay alive. Who leaves the page ends it.

    Args:
        name: tells it from other work; ``<name>.start`` is the button's text where there is one.
        make: makes the work, a generator; called in a thread, so it closes over plain values.
        total: how many points it will yield.
        show: draws the points there are so far: those of the running work, or of the last, or none;
            and is told whether there will be no more.
        key: the settings it is started with, to tell later whether they have changed since.
        slots: 2 to run alone in the process.
        label: another text for it.
        row: where the button goes; a row of its own when None.

    Returns:
        What came of the last work that ended; None before the first.
    """
    session = st.session_state
    job: Job | None = session.get(f"job_{name}")
    status = job.status() if job is not None else None
    if status is not None and not status.live:
        _end(name, status)
        status = None
    with row or st.container(horizontal=True, vertical_alignment="center"):
        if status is None:
            label = label or _own_label(t, name)
            begin = name, make, key, slots
            st.button(label, key=f"start_{name}", type="primary", on_click=_start, args=begin)
        else:
            st.button(t("work.stop"), key=f"stop_{name}", on_click=_stop, args=(name,))
    _say_failed(t, session.get(f"failed_{name}"))

    @st.fragment(run_every=EVERY if status is not None else None)
    def look() -> None:
        last = outcome_of(name)
        if status is None or job is None:
            show(last.points if last is not None else (), True)
            return
        now = job.status()
        if not now.live:
            st.rerun()
        if now.state == "waiting":
            st.progress(0.0, t("work.waiting", before=now.before))
        else:
            done = min(len(now.points), total)
            st.progress(done / total, t("work.running", share=f"{done / total:.0%}"))
        show(now.points, False)

    look()
    return outcome_of(name)


def _own_label(t: Words, name: str) -> str:
    return t(f"{name}.start") if f"{name}.start" in t else t("work.start")


def _start(name: str, make: Callable[[], Generator[Any, None, Any]], key: tuple[Any, ...], slots: int) -> None:
    session = st.session_state
    session[f"failed_{name}"] = None
    try:
        session[f"job_{name}"], session[f"key_{name}"] = _jobs().start(make, slots), key
    except OverflowError as error:
        session[f"failed_{name}"] = error


def _stop(name: str) -> None:
    if (job := st.session_state.get(f"job_{name}")) is not None:
        job.stop()


def _end(name: str, status: Status) -> None:
    session = st.session_state
    session[f"job_{name}"] = None
    if status.state == "failed":
        session[f"failed_{name}"] = status.error
    elif status.points or status.state == "done":  # stopped before it began: what was there before stays
        session[f"outcome_{name}"] = Outcome(
            session[f"key_{name}"], status.points, status.result, stopped=status.state == "stopped"
        )


def _say_failed(t: Words, error: Exception | None) -> None:
    if isinstance(error, InputError):
        layout.error(t, error)
    elif error is not None:
        full = isinstance(error, OverflowError)
        st.error(t("work.full" if full else "work.failed"), icon=":material/error:")
