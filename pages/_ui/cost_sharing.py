"""The page "cost": the same calculation with fewer key heads, its maps and its KV cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from mha_core.cost import cache_bytes
from mha_core.figures.cost_sharing import Shared, sharing
from mha_core.figures.quantity import bytes_text, percent_text
from mha_core.grouped import output_change, share_keys
from mha_core.model_sizes import model_sizes
from mha_core.sizes import Sizes, kv_head_counts
from mha_core.trace import AttentionTrace
from pages._ui.calculation import Calculation
from pages._ui.text import Words

__all__ = ["draw"]

_SMALL = 2**17  # cells of all maps together: larger ones are computed each time, so that they take no memory


def draw(f: Any, calculation: Calculation) -> None:
    """MHA, a group size, MQA side by side.

    Args:
        f: the page's frame.
    """
    t, trace = f.t, calculation.trace
    st.markdown(f"#### {t('cost.sharing')}")
    h = trace.sizes["h"]
    if trace.sizes["h_kv"] < h or h == 1 or trace.cross:
        st.markdown(t("cost.sharing_one"))
        return
    counts = _columns(h, f.settings.kv_heads)
    sizes = Sizes.of(trace)
    full = cache_bytes(sizes)
    columns = []
    for h_kv in counts:
        shared = _shared(f.settings.calculation(), trace, h_kv)
        cache = cache_bytes(replace(sizes, h_kv=h_kv))
        moved = "" if h_kv == h else percent_text(output_change(shared, trace))
        columns.append(Shared(shared, bytes_text(cache), cache / full, moved))
    picture = sharing(columns, calculation.tokens, words=t.group("cost.shared"), theme=f.theme)
    f.draw(picture, key="cost_sharing", alt=_alt(t, columns))
    last = columns[-1]
    differ = t("cost.sharing_differ" if _differ(last.trace) else "cost.sharing_alike")
    values = {"h": h, "moved": last.moved, "cache": last.cache, "full": columns[0].cache}
    st.markdown(t("cost.sharing_notice", differ=differ, **values))
    st.markdown(_published(t))


def _columns(h: int, wanted: int) -> tuple[int, ...]:
    """MHA, one in between if there is any, MQA.

    >>> _columns(8, 0), _columns(8, 4), _columns(2, 0)
    ((8, 2, 1), (8, 4, 1), (2, 1))
    """
    between = kv_head_counts(h)[1:-1]
    middle = (wanted,) if wanted in between else between[len(between) // 2 :][:1]
    return (h, *middle, 1)


def _differ(trace: AttentionTrace) -> bool:
    """Whether heads that read the same keys look elsewhere all the same."""
    weights = trace["weights"].sel(batch=0).numpy()
    return bool(np.ptp(weights, axis=0).max() > 0.01)


def _shared(key: tuple[Any, ...], trace: AttentionTrace, h_kv: int) -> AttentionTrace:
    cells = trace.sizes["h"] * trace.sizes["n_q"] * trace.sizes["n_k"]
    return _cached(key, h_kv, trace) if cells <= _SMALL else _share(trace, h_kv)


def _share(trace: AttentionTrace, h_kv: int) -> AttentionTrace:
    return share_keys(trace, h_kv, keep=("weights", "masked_scores", "output"))


@st.cache_resource(max_entries=16, show_spinner=False)
def _cached(key: tuple[Any, ...], h_kv: int, _trace: AttentionTrace) -> AttentionTrace:
    return _share(_trace, h_kv)


def _alt(t: Words, columns: list[Shared]) -> str:
    parts = [f"h_kv = {column.trace.sizes['h_kv']}: {column.cache}" for column in columns]
    return t("cost.sharing_alt", h=columns[0].trace.sizes["h"], parts=t("semicolon").join(parts))


def _published(t: Words) -> str:
    """A model of the table: what sharing saves it."""
    row = model_sizes("llama2")
    sizes = row.sizes
    shared, full = cache_bytes(sizes), cache_bytes(replace(sizes, h_kv=sizes.h))
    return t(
        "cost.sharing_model", name=row.name, source=row.source, layers=sizes.layers, h=sizes.h, h_kv=sizes.h_kv,
        d_k=sizes.d_k, bytes=sizes.bytes_a_number, size=f"{shared:,}", full=f"{full:,}", n=f"{sizes.n_k:,}",
        all=bytes_text(cache_bytes(sizes, sizes.n_k)), all_full=bytes_text(full * sizes.n_k),
    )  # fmt: skip
