"""The controls, the same on every page."""

from __future__ import annotations

from functools import partial

import streamlit as st

from mha_core.arrays import MAX_BYTES
from mha_core.inputs import MAX_CHARACTERS, MAX_TOKENS, PRESETS
from mha_core.masks import MASKS
from pages._ui import layout, state
from pages._ui.calculation import mask_kind
from pages._ui.settings import INPUTS, MAX_SEQUENCES, WEIGHTS, Settings, divisors
from pages._ui.text import Words

__all__ = ["draw"]

D_MODELS = (4, 6, 8, 10, 12, 16, 18, 20, 24, 30, 32, 36, 40, 48, 60, 64, 72, 80, 96, 120, 128,
            144, 160, 192, 240, 256, 288, 320, 384, 448, 512)  # fmt: skip
"""Where the d_model slider stops; an address may name any number in between, which then joins them."""

FACES = {"en": "English", "zh": "中文"}


def draw(settings: Settings, t: Words) -> None:
    """Language, sizes, input, weights, mask, focus head, seed: in the order of the calculation."""
    control = partial(state.control, settings)
    given = settings.input if settings.input in ("pocket", "trained") else None  # it brings its weights

    st.segmented_control(
        t("sidebar.language"), tuple(FACES), format_func=FACES.__getitem__, label_visibility="collapsed",
        **control("lang", shown=t.language),
    )  # fmt: skip
    stops = sorted({*D_MODELS, settings.d_model})
    fixed = settings.input in ("pocket", "upload", "trained")
    st.select_slider("d_model", stops, disabled=fixed, help=t("help.d_model"), **control("d_model"))
    heads = divisors(settings.d_model)
    if len(heads) > 1:
        st.select_slider(t("sidebar.h"), heads, disabled=given is not None, help=t("help.h"), **control("h"))
    sizes = {"d_model": settings.d_model, "h": settings.h, "d_k": settings.d_model // settings.h}
    st.markdown(t("sidebar.one_head" if len(heads) == 1 else "sidebar.d_k", **sizes))

    _input(settings, t)
    st.selectbox(
        t("sidebar.weights"), (given,) if given else WEIGHTS, format_func=lambda key: t(f"weights.{key}"),
        disabled=given is not None, help=t("help.weights"), **control("weights", shown=given),
    )  # fmt: skip
    with st.container(horizontal=True):
        worded = settings.input not in ("random", "upload", "pocket", "trained")
        st.toggle(t("sidebar.bias"), disabled=given is not None, help=t("help.bias"), **control("bias"))
        st.toggle(t("sidebar.positions"), disabled=not worded, help=t("help.positions"), **control("positions"))
    _mask(settings, t)
    if settings.h > 1:
        st.select_slider(
            t("sidebar.head"), range(settings.h), format_func=lambda i: str(i + 1), help=t("help.head"),
            **control("head"),
        )  # fmt: skip
    st.number_input(t("sidebar.seed"), 0, 9999, help=t("help.seed"), **control("seed"))


def _input(settings: Settings, t: Words) -> None:
    control = partial(state.control, settings)
    sentences = {preset.key: preset.text for preset in PRESETS}
    st.selectbox(
        t("sidebar.input"), INPUTS, format_func=lambda key: sentences.get(key) or t(f"input.{key}"),
        help=t("help.input"), **control("input"),
    )  # fmt: skip
    if settings.input == "text":
        hint = t("sidebar.text_hint")
        st.text_area(
            t("sidebar.text"), height=84, max_chars=MAX_CHARACTERS, placeholder=hint, help=t("help.text"),
            **control("text"),
        )  # fmt: skip
    elif settings.input == "random":
        st.number_input("n", 1, MAX_TOKENS, help=t("help.n"), **control("n"))
    elif settings.input == "trained":
        _trained(settings, t)
    elif settings.input == "upload":
        st.file_uploader(
            t("sidebar.upload"), ["csv", "npy", "txt"], max_upload_size=MAX_BYTES // 2**20, help=t("help.upload"),
            key="ui_upload", on_change=state.receive_upload,
        )  # fmt: skip
        if (problem := state.upload_problem()) is not None:
            layout.error(t, problem)


def _trained(settings: Settings, t: Words) -> None:
    control = partial(state.control, settings)
    sequences = range(MAX_SEQUENCES)
    st.select_slider(
        t("sidebar.sequence"), sequences, format_func=lambda index: str(index + 1), **control("sequence")
    )  # fmt: skip
    learnt = state.learnt_of(settings)
    if learnt is not None and (layers := learnt.trained.model.size.layers) > 1:
        st.segmented_control(
            t("sidebar.layer"), range(layers), format_func=lambda index: str(index + 1), **control("layer")
        )  # fmt: skip


def _mask(settings: Settings, t: Words) -> None:
    control = partial(state.control, settings)
    kinds = {kind.key: kind for kind in MASKS}
    st.selectbox(
        t("sidebar.mask"), kinds, format_func=lambda key: t(f"mask.{key}"), help=t("help.mask"), **control("mask")
    )
    if kinds[settings.mask].default_size is not None and (n := state.token_count(settings)):
        _, size = mask_kind(settings, n)
        label = t(f"sidebar.mask_size.{settings.mask}")
        st.number_input(label, 1, n, help=t("help.mask_size"), **control("mask_size", shown=size))
