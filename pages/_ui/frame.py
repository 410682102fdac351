"""What every page stands in: configuration, the way in, title, strip, notices and checks."""

from __future__ import annotations

import gc
import math
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
import torch

from mha_core.errors import InputError
from mha_core.figures import Picture
from pages._ui import layout, state, tables
from pages._ui.calculation import Calculation
from pages._ui.catalog import PAGES
from pages._ui.settings import Settings
from pages._ui.text import Words, words

__all__ = ["Frame", "configure", "navigate", "require", "run", "style", "words_for"]

_APP = Path(__file__).parents[2] / "app.py"
_HERE = Path(__file__).parent
_STYLE = (_HERE / "style.css").read_text("utf-8")
_ICON = (_HERE / "icon.svg").read_text("utf-8")  # a Material icon would be fetched from the network
_watch_theme = st.components.v2.component("theme_watch", js=(_HERE / "theme_watch.js").read_text("utf-8"))
_frame: ContextVar[Frame | None] = ContextVar("frame", default=None)


@dataclass(frozen=True)
class Frame:
    """What a page gets: the settings, the words, the theme, and the calculation."""

    settings: Settings
    t: Words
    theme: str

    @property
    def calculation(self) -> Calculation:
        """The current calculation; where the input can't be used, says why and ends the page."""
        try:
            return state.calculation(self.settings)
        except (InputError, LookupError) as error:
            layout.error(self.t, error)
            st.stop()

    def head_names(self, calculation: Calculation) -> list[str] | None:
        """What each designed head looks at; a head that does not, with a question mark and its measured share."""
        names = []
        for report in calculation.reports:
            role = self.t(f"role.{report.role}")
            share = "–" if math.isnan(report.mass) else f"{report.mass:.0%}"
            names.append(role if report.holds else self.t("role_missed", role=role, share=share))
        return names or None

    def draw(self, picture: Picture, *, key: str, alt: str, on_pick: Callable[[str], None] = state.picked) -> None:
        """A picture across the page; on a narrow screen it scrolls sideways instead of shrinking.

        A click on a cell that can be chosen chooses it: head, query, key, feature are settings; or does ``on_pick``,
        which is given the chart's key.
        """
        chosen: dict[str, Any] = {}
        if picture.picks:
            st.session_state[f"picks_{key}"] = picture.picks
            chosen = {"on_select": partial(on_pick, key), "selection_mode": "points"}
        with st.container(key=f"canvas_{key}"):
            st.plotly_chart(picture, theme=None, key=key, alt=alt, config={"displayModeBar": False}, **chosen)

    def control(self, name: str, shown: Any = None, *, taken: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """Arguments that tie a page's own widget to a setting.

        ``shown`` is what it shows instead of the setting, ``taken`` makes the setting of what it says.
        """
        return state.control(self.settings, name, shown, place="page_", taken=taken)

    def with_heads(self, h: int) -> Calculation:
        """The current calculation with another number of heads."""
        return state.calculation(replace(self.settings, h=h))

    def head(self, key: str) -> None:
        """Title and notices: all that a page has above it that does not show the calculation."""
        st.subheader(self.t(f"{key}.title"), anchor=False)
        layout.notices(self.t, state.notices(), state.dismiss)

    @contextmanager
    def page(self, key: str) -> Iterator[Calculation]:
        """Title, notices and strip above the page's own picture; below it the checks and a table of key numbers."""
        self.head(key)
        calculation = self.calculation
        layout.strip(self.t, calculation.trace.sizes, key)
        yield calculation
        layout.checks(self.t, calculation)
        if st.toggle(self.t("table.show"), **self.control("table")):
            st.table(tables.heads(self.t, calculation))
        self.foot(key)

    def foot(self, key: str) -> None:
        """The way on to the next page: the last thing of every page but the last."""
        keys = [row.key for row in PAGES]
        for following in keys[keys.index(key) + 1 :][:1]:
            label = self.t("nav.next", page=self.t(f"{following}.nav"))
            st.page_link(f"pages/{following}.py", label=label, icon=":material/arrow_forward:")


def configure() -> None:
    """Page configuration; once a process, one thread for torch, and freeze what was imported (a collection: 130 ms)."""
    _freeze()
    st.set_page_config(page_title="Multi-head attention", page_icon=_ICON, layout="wide")


def style(language: str) -> None:
    """The style sheet, the page's language for the browser, and a rerun when the theme changes."""
    with st.container(key="style"):
        background = st.get_option(f"theme.{state.theme()}.backgroundColor").upper()
        st.html(f"<style>:root {{ --background: {background}; }}\n{_STYLE}</style>")
        data = {"drawnFor": background, "language": {"zh": "zh-CN"}.get(language, language)}
        _watch_theme(key="theme_watch", data=data, on_changed_change=lambda: None)


@st.cache_resource
def _freeze() -> None:
    torch.set_num_threads(1)  # a server opened at a page's address has imported torch before app.py could say so
    gc.collect()
    gc.freeze()


def navigate(language: str) -> Any:
    """The navigation, in a language; returns the current page."""
    t = words(language)
    groups: dict[str, list[Any]] = {}
    for row in PAGES:
        page = partial(st.Page, f"pages/{row.key}.py", title=t(f"{row.key}.nav"), icon=row.icon)
        group = groups.setdefault(t(f"nav.{row.group}"), [])
        if row is PAGES[0]:  # Streamlit opens the first page at / only: a hidden twin answers at its own address
            group += [page(url_path="home", default=True), page(url_path=row.key, visibility="hidden")]
        else:
            group.append(page(url_path=row.key))
    return st.navigation(groups, position="top")


def words_for(settings: Settings) -> Words:
    """The words of the language on screen."""
    return words(settings.lang or state.language())


def run(page: Any, settings: Settings, t: Words) -> None:
    """Run the page inside the frame."""
    token = _frame.set(Frame(settings, t, state.theme()))
    try:
        page.run()
    finally:
        _frame.reset(token)


def require() -> Frame:
    """The frame, for a page's first line.

    A server that was just started runs a page's file by itself when its address is opened, before
    any run of app.py: then app.py is run instead, and comes back here.
    """
    frame = _frame.get()
    if frame is None:
        runpy.run_path(str(_APP), run_name="__main__")
        st.stop()
    return frame
