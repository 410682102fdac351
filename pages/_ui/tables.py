"""Key numbers as tables: what a picture shows, for those who cannot see it, and for taking home."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mha_core.metrics import METRICS
from pages._ui.calculation import Calculation
from pages._ui.text import Words

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["heads", "markdown"]


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown, its first column at the left, the others at the right.

    >>> print(markdown(["", "a"], [["x", "1"]]))
    |  | a |
    |---|--:|
    | x | 1 |
    """
    lines = [" | ".join(cells) for cells in (columns, *rows)]
    return "\n".join([f"| {lines[0]} |", f"|---{'|--:' * (len(columns) - 1)}|", *(f"| {line} |" for line in lines[1:])])


def heads(t: Words, calculation: Calculation) -> pd.DataFrame:
    """A row a head: what it was designed to look at, then every metric of a single head."""
    import pandas as pd  # 66 MB that a session without a table does not need

    h = calculation.trace.sizes["h"]
    columns: dict[str, list[str]] = {}
    if calculation.reports:
        columns[t("table.role")] = [t(f"role.{report.role}") for report in calculation.reports]
        columns[t("table.on_target")] = [f"{report.mass:.2f}" for report in calculation.reports]
    for metric in METRICS:
        if metric.axes == ("batch", "head"):
            values = metric.compute(calculation.trace, calculation.tokens)[0].tolist()
            columns[t(f"metric.{metric.key}")] = [f"{value:.2f}" for value in values]
    index = pd.Index([str(head + 1) for head in range(h)], name=t("table.head"))
    return pd.DataFrame(columns, index=index).replace("nan", "–")
