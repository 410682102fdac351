"""Random queries for the page "scale": drawn once in the process, whatever moves."""

from __future__ import annotations

import streamlit as st

from mha_core.random_queries import D_KS, Draws, Sweep, draw, sweep

__all__ = ["draws_at", "swept"]


@st.cache_resource(max_entries=4, show_spinner=False)
def swept(n: int) -> Sweep:
    """With n keys, at all of D_KS: 4 MB and most of a second."""
    return sweep(n)


@st.cache_resource(max_entries=8, show_spinner=False)
def _between(n: int, d_k: int) -> Draws:
    return draw(n, [d_k])[d_k]


def draws_at(n: int, d_k: int) -> Draws:
    """The same queries at one d_k, which need not be one of D_KS."""
    return swept(n).at[d_k] if d_k in D_KS else _between(n, d_k)
