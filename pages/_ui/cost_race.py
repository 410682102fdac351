"""The page "cost": heads one after the other, in one product, fused, timed on this machine, on a button."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from mha_core.figures.cost_race import race_lines
from mha_core.figures.deviation import deviation_text
from mha_core.figures.quantity import bytes_text, seconds_text
from mha_core.machine import devices, machine
from mha_core.race import METHODS, SWEEPS, Times, cells_of, race
from pages._ui.predict import predict
from pages._ui.text import Words
from pages._ui.working import work

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["D_MODEL", "NAME", "draw"]

NAME = "cost.race"
D_MODEL = 256
BOUND = 1e-5  # float32, numbers of size 1
CLEARLY = 1.2  # so many times as long is worth a sentence
_WIDE = next(sweep for sweep in SWEEPS if sweep.key == "n")


def draw(f: Any) -> None:
    """A guess, the button, the curves, the table.

    Args:
        f: the page's frame.
    """
    t = f.t
    st.markdown(f"#### {t('cost.parallel')}")
    st.markdown(t("cost.parallel_text", d_model=D_MODEL))
    st.markdown(_machines(t))
    question = st.container()  # above the button, but its truth is known only below
    cells = cells_of()

    def show(points: tuple[Times, ...], done: bool, key: tuple[Any, ...]) -> None:
        picture = race_lines(points, devices(), words=t.group("cost.lines"), theme=f.theme)
        f.draw(picture, key="cost_race", alt=t("cost.race_alt", cells=len(points), total=len(cells)))

    outcome = work(
        t, NAME, lambda: race(cells, d_model=D_MODEL), total=len(cells), show=show, key=(D_MODEL,), slots=2,
        label=t("cost.race.start"),
    )  # fmt: skip
    longest = _cell(outcome.points if outcome is not None else (), "cpu")
    with question:
        predict(t, "cost.slowest", tuple(METHODS), _slowest(t, longest), n=f"{_WIDE.values[-1]:,}", h=_WIDE.h)
    if outcome is None or not outcome.points:
        return
    st.markdown(_notice(t, outcome.points))
    if left := len(cells) - len(outcome.points):
        st.markdown(t("cost.race_left", left=left, total=len(cells)))
    with st.expander(t("cost.race_table")):
        st.table(_table(t, outcome.points))


def _machines(t: Words) -> str:
    names = []
    for device in devices():
        facts = machine(device)
        names.append(t("cost.machine", device=device.upper(), name=facts.device, threads=facts.threads))
    return t("cost.machines", names=t("semicolon").join(names), torch=facts.torch, dtype=facts.dtype)


def _cell(points: Sequence[Times], device: str, n: int = _WIDE.values[-1]) -> Times | None:
    found = [p for p in points if (p.cell.device, p.cell.h, p.cell.n) == (device, _WIDE.h, n)]
    return found[0] if found else None


def _slowest(t: Words, longest: Times | None) -> str:
    """Which method took longest where the maps are largest, with the memory that each holds."""
    if longest is None:
        return t("cost.slowest_wait")
    cell, median = longest.cell, longest.median
    second, first = sorted(median, key=median.__getitem__)[-2:]
    clear = longest.high[second] < longest.low[first]
    one = 4 * cell.n**2
    times = {method: seconds_text(seconds) for method, seconds in median.items()}
    return t(
        "cost.slowest_truth" if clear else "cost.slowest_close", method=t(f"cost.lines.{first}"),
        second=t(f"cost.lines.{second}"), one=bytes_text(one), all=bytes_text(cell.h * one), h=cell.h, **times,
    )  # fmt: skip


def _notice(t: Words, points: Sequence[Times]) -> str:
    """What the loop costs where heads are small, and whether all results are the same."""
    sentences = []
    small = _cell(points, "cpu", _WIDE.values[0])
    if small is not None:
        ratio = small.median["loop"] / small.median["batched"]
        if ratio >= CLEARLY:
            sentences.append(t("cost.race_small", n=small.cell.n, h=small.cell.h, ratio=f"{ratio:.1f}"))
    if devices() == ("cpu",) and machine().threads == 1:
        sentences.append(t("cost.race_one_thread"))
    difference = max(point.difference for point in points)
    mark = ":green[✓]" if difference <= BOUND else ":red[✗]"
    same = t("cost.race_same", difference=deviation_text(difference), bound=deviation_text(BOUND))
    return f"{t.sentences(*sentences)}\n\n{mark} {same}"


def _table(t: Words, points: Sequence[Times]) -> pd.DataFrame:
    """A row a cell: each method's median and quartiles."""
    import pandas as pd  # only where there is a table

    rows, names = [], []
    for point in sorted(points, key=lambda point: (point.cell.device, point.cell.n, point.cell.h)):
        names.append(f"{point.cell.device.upper()}, h = {point.cell.h}, n = {point.cell.n:,}")
        rows.append([
            f"{seconds_text(point.median[name])} ({seconds_text(point.low[name])} … {seconds_text(point.high[name])})"
            for name in METHODS
        ])  # fmt: skip
        rows[-1] += [str(point.rounds), deviation_text(point.difference)]
    columns = [*(t(f"cost.lines.{name}") for name in METHODS), t("cost.column_rounds"), t("cost.column_difference")]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(names, name=t("cost.column_cell")))
