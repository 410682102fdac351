"""The parts that pages share: the strip of steps, the checks line, notices and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from mha_core.errors import InputError
from mha_core.figures.deviation import power_text
from pages._ui.calculation import Calculation
from pages._ui.catalog import PAGES
from pages._ui.settings import Notice
from pages._ui.text import Words, code

__all__ = ["checks", "error", "notices", "strip"]


@dataclass(frozen=True)
class StripStep:
    """A step of the strip: its text is ``strip.<key>``, its shape in the notation of STEPS, and the page about it."""

    key: str
    shape: tuple[str, ...]
    page: str


STRIP: tuple[StripStep, ...] = (
    StripStep("X", ("n_q", "d_model"), "project"),
    StripStep("QKV", ("n_q", "d_model"), "project"),
    StripStep("heads", ("h", "n_q", "d_k"), "project"),
    StripStep("scores", ("h", "n_q", "n_k"), "attend"),
    StripStep("softmax", ("h", "n_q", "n_k"), "attend"),
    StripStep("V", ("h", "n_q", "d_v"), "attend"),
    StripStep("concat", ("n_q", "d_model"), "combine"),
    StripStep("W_O", ("d_model", "d_model"), "combine"),
    StripStep("output", ("n_q", "d_model"), "combine"),
)


def strip(t: Words, sizes: Mapping[str, int], page: str) -> None:
    """X → … → output with live shapes: the steps of this page lit, the others links to theirs."""
    there = {row.key for row in PAGES}
    with st.container(key="strip", horizontal=True, gap="xsmall", vertical_alignment="center"):
        for step in STRIP:
            name, shape = t(f"strip.{step.key}"), "×".join(str(sizes[size]) for size in step.shape)
            if step.page == page:
                st.markdown(f":primary-background[**{name}** {shape}]", width="content")
            elif step.page in there:
                st.page_link(f"pages/{step.page}.py", label=f"{name} :gray[{shape}]", width="content")
            else:
                st.markdown(f"**{name}** :gray[{shape}]", width="content")


def checks(t: Words, calculation: Calculation) -> None:
    """Each identity with its deviation beside its bound, and where the weights come from."""
    parts = []
    for check in calculation.checks:
        mark = ":green[✓]" if check.holds else ":red[✗]"
        parts.append(f"{mark} {t(f'checks.{check.key}')} ({power_text(check.error)} ≤ {power_text(check.bound)})")
    st.markdown(" · ".join([*parts, f"**{t(f'origin.{calculation.origin}')}**"]))


def notices(t: Words, told: Sequence[Notice], dismiss: Callable[[], None]) -> None:
    """What was replaced and why; values come from a URL, so they are shown as code."""
    if not told:
        return
    sentences = []
    for notice in told:
        values = {name: code(value) for name, value in notice.values.items()}
        if notice.values.get("taken") == "":  # which stands for what the app would choose itself
            values["taken"] = t("notice.default")
        sentences.append(t(f"notice.{notice.key}", **values))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning("  \n".join(sentences), icon=":material/info:")
        st.button(t("notice.dismiss"), on_click=dismiss)


def error(t: Words, problem: Exception) -> None:
    """Why there is no picture, in one sentence; the values may be a user's, so they are shown as code."""
    if isinstance(problem, InputError):
        sentence = t(f"error.{problem.key}", **{name: code(value) for name, value in problem.values.items()})
    else:
        sentence = t(f"error.{problem.args[0]}")
    st.error(sentence, icon=":material/error:")
