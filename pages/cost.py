"""Cost: what do heads cost, and what runs in parallel? Exact counts, shared keys, and a race on this machine."""

import streamlit as st

from mha_core.figures.cost import cost
from mha_core.model_sizes import MODEL_SIZES
from mha_core.sizes import DTYPE_BYTES, kv_head_counts
from pages._ui import cost_notes, cost_race, cost_sharing, cost_steps, frame
from pages._ui.predict import predict

f = frame.require()
t, settings = f.t, f.settings

with f.page("cost") as calculation:
    seen = cost_notes.view(settings, calculation)
    sizes, names = seen.sizes, {row.key: row.name for row in MODEL_SIZES}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            t("cost.of"), ("", *names), format_func=lambda key: names.get(key) or t("cost.of_this"), width=190,
            help=t("cost.of_help"),
            **f.control("cost_of", taken=cost_notes.chosen),
        )  # fmt: skip
        with st.container(width=280):
            st.select_slider(
                "n", seen.lengths, help=t("cost.n_help"),
                **f.control("cost_n", sizes.n_q, taken=seen.unless_own("n_q", 0)),
            )  # fmt: skip
        st.selectbox(
            "h_kv", kv_head_counts(sizes.h), width=90, help=t("cost.kv_help"),
            **f.control("kv_heads", sizes.h_kv, taken=seen.unless_own("h_kv", 0)),
        )  # fmt: skip
        st.number_input(t("cost.batch"), 1, 1024, width=115, **f.control("cost_batch"))
        st.number_input(
            t("cost.layers"), 1, 200, width=115,
            **f.control("cost_layers", sizes.layers, taken=seen.unless_own("layers", 0)),
        )  # fmt: skip
        st.selectbox(
            t("cost.dtype"), tuple(DTYPE_BYTES), width=125,
            **f.control("cost_dtype", sizes.dtype, taken=seen.unless_own("dtype", "")),
        )  # fmt: skip
    if seen.model is not None:
        st.caption(cost_notes.priced(t, seen.model.source, sizes))

    told = seen.several is None
    if seen.several is not None:
        options, truth = ("parameters", "flops", "cells", "all", "none"), cost_notes.heads_truth(t, seen)
        told = predict(t, "cost.which", options, truth, h=seen.several)
    picture = cost(sizes, told=told, words=t.group("cost.fig"), theme=f.theme)
    f.draw(picture, key="cost", alt=cost_notes.alt(t, seen, told))
    st.markdown(cost_notes.notice(t, seen))
    if st.toggle(t("cost.steps"), **f.control("cost_steps")):
        st.table(cost_steps.steps(t, sizes))
        st.markdown(cost_steps.checks(t, sizes))
        st.caption(t("cost.conventions"))

    cost_sharing.draw(f, calculation)
    cost_race.draw(f)
