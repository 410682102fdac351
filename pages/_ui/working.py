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

EVERY = 0.8  # seconds between two looks at running work: each costs as much as a slider's step


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


@dataclass(frozen=True)
class _Begun:
    """Work that was started, with what it was started with: the controls may say something else by now."""

    job: Job
    key: tuple[Any, ...]
    total: int


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
    show: Callable[[tuple[Any, ...], bool, tuple[Any, ...]], None],
    key: tuple[Any, ...] = (),
    slots: int = 1,
    label: str = "",
    row: DeltaGenerator | None = None,
) -> Outcome | None:
    """A button that starts work, what is to be seen while it runs, and what came of it.

    Nothing starts by itself. While it runs, only this part of the page is drawn again and again;
    all other controls stay alive. Who leaves the page ends it.

    Args:
        name: tells it from other work.
        make: makes the work, a generator; called in a thread, so it closes over plain values.
        total: how many points it will yield.
        show: draws the points there are so far: those of the running work, or of the last, or none;
            and is told whether there will be no more, and the key that their work was started with.
        key: the settings it is started with, to tell later whether they have changed since.
        slots: 2 to run alone in the process.
        label: of the button.
        row: where the button goes; a row of its own when None.

    Returns:
        What came of the last work that ended; None before the first.
    """
    session = st.session_state
    begun: _Begun | None = session.get(f"work_{name}")
    if begun is not None and not (status := begun.job.status()).live:
        _end(name, begun, status)
        begun = None
    with row or st.container(horizontal=True, vertical_alignment="center"):
        if begun is None:
            begin = name, make, slots, key, total
            st.button(label or t("work.start"), key=f"start_{name}", type="primary", on_click=_start, args=begin)
        else:
            st.button(t("work.stop"), key=f"stop_{name}", on_click=_stop, args=(name,))
    _say_failed(t, session.get(f"failed_{name}"))

    @st.fragment(run_every=EVERY if begun is not None else None)
    def look() -> None:
        last = outcome_of(name)
        if begun is None:
            show(*((last.points, True, last.key) if last is not None else ((), True, key)))
            return
        now = begun.job.status()
        if not now.live:
            st.rerun()
        if now.state == "waiting":
            st.progress(0.0, t("work.waiting", before=now.before))
        else:
            share = min(len(now.points) / begun.total, 1.0)
            st.progress(share, t("work.running", share=f"{share:.0%}"))
        show(now.points, False, begun.key)

    look()
    return outcome_of(name)


def _start(
    name: str, make: Callable[[], Generator[Any, None, Any]], slots: int, key: tuple[Any, ...], total: int
) -> None:
    session = st.session_state
    if session.get(f"work_{name}") is not None:  # the second of two quick clicks
        return
    session[f"failed_{name}"] = None
    try:
        session[f"work_{name}"] = _Begun(_jobs().start(make, slots), key, total)
    except OverflowError as error:
        session[f"failed_{name}"] = error


def _stop(name: str) -> None:
    begun: _Begun | None = st.session_state.get(f"work_{name}")
    if begun is not None:
        begun.job.stop()


def _end(name: str, begun: _Begun, status: Status) -> None:
    session = st.session_state
    session[f"work_{name}"] = None
    if status.state == "failed":
        session[f"failed_{name}"] = status.error
    elif status.points or status.state == "done":  # stopped before it began: what was there before stays
        stopped = status.state == "stopped"
        session[f"outcome_{name}"] = Outcome(begun.key, status.points, status.result, stopped)


def _say_failed(t: Words, error: Exception | None) -> None:
    if isinstance(error, InputError):
        layout.error(t, error)
    elif error is not None:
        full = isinstance(error, OverflowError)
        st.error(t("work.full" if full else "work.failed"), icon=":material/error:")
