"""Predict, then reveal: a question with a few answers; the truth stands beside the guess, and both stay."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages._ui import state
from pages._ui.text import Words

__all__ = ["predict"]


def predict(t: Words, key: str, options: Sequence[str], truth: str, **values: object) -> bool:
    """Ask, and once there is a guess, tell.

    Texts: ``<key>`` is the question, ``<key>_<option>`` an answer.

    Args:
        truth: what is so, for the calculation on screen: told beside the guess.
        values: for the placeholders of the question and the answers.

    Returns:
        Whether there is a guess: what would give the truth away may be shown.
    """
    guess = st.segmented_control(
        t(key, **values), options, format_func=lambda option: t(f"{key}_{option}", **values), **state.guess(key)
    )
    if guess is not None:
        st.markdown(t("predict.told", guess=t(f"{key}_{guess}", **values), truth=truth))
    return guess is not None
