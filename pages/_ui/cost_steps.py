"""The page "cost": every step's costs to the last digit, and the same counted on a real module."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from mha_core.cost import COST_STEPS, activation_bytes, flops, formula, measure, parameters, softmax_cells
from mha_core.counted import Counted, count
from mha_core.sizes import Sizes
from pages._ui.text import Words

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["checks", "steps"]


def steps(t: Words, sizes: Sizes) -> pd.DataFrame:
    """A row a step, of one layer: formula and numbers, to the last digit."""
    import pandas as pd  # only where there is a table

    rows, names, one = [], [], replace(sizes, layers=1)
    for step in COST_STEPS:
        weights, biases = measure(step.weights, sizes), sizes.bias * measure(step.biases, sizes)
        counts = (measure(step.flops, sizes), weights + biases, measure(step.cells, sizes))
        if not any(counts) and not activation_bytes(sizes, step):
            continue
        names.append(t(f"cost.step_{step.name}"))
        latex = formula(step.flops, batch=sizes.batch > 1)
        rows.append(
            [
                f"${latex}$" if latex else "",
                *(f"{n:,}" if n else "" for n in counts),
                f"{activation_bytes(sizes, step):,}",
            ]
        )
    totals = (total(one) for total in (flops, parameters, softmax_cells, activation_bytes))
    rows.append(["", *(f"{total:,}" for total in totals)])
    columns = [t(f"cost.column_{name}") for name in ("formula", "flops", "parameters", "cells", "bytes")]
    return pd.DataFrame(rows, columns=columns, index=pd.Index([*names, t("cost.total")], name=t("cost.column_step")))


@st.cache_data(max_entries=64, show_spinner=False)
def _counted(sizes: Sizes) -> Counted:
    return count(sizes)


def checks(t: Words, sizes: Sizes) -> str:
    """One layer's parameters and FLOPs beside those of a real module of these sizes."""
    one = replace(sizes, layers=1)
    found = _counted(replace(one, masked=False, cross=False))
    parts = []
    for name, ours, theirs in (
        ("parameters", parameters(one), found.parameters), ("flops", flops(one), found.flops),
    ):  # fmt: skip
        mark = ":green[✓]" if ours == theirs else ":red[✗]"
        parts.append(f"{mark} {t(f'cost.check_{name}', ours=f'{ours:,}', theirs=f'{theirs:,}')}")
    return " · ".join(parts)
