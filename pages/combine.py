"""Combine: how do heads become one output? Concat × W_O, the same head by head, and one number by hand."""

import streamlit as st

from mha_core import combination, figures
from pages._ui import combine_notes, frame
from pages._ui.choice import output_cell
from pages._ui.predict import predict

f = frame.require()
t, settings = f.t, f.settings

with f.page("combine") as calculation:
    full, tokens, h = calculation.trace, calculation.tokens, settings.h
    cell = output_cell(settings, calculation)
    names = f.head_names(calculation)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            t("combine.head"), range(h), format_func=lambda i: f"{i + 1} · {names[i]}" if names else str(i + 1),
            width=190, **f.control("head"),
        )  # fmt: skip
        st.selectbox(
            t("combine.token"), range(len(tokens)), format_func=cell.names.__getitem__, width=140,
            **f.control("query", cell.query),
        )  # fmt: skip
        st.selectbox(
            t("combine.feature"), range(settings.d_model), format_func=lambda m: str(m + 1), width=110,
            **f.control("feature", cell.feature),
        )  # fmt: skip
        st.pills(
            t("combine.on"), range(h), format_func=lambda i: str(i + 1), selection_mode="multi", width="content",
            **f.control("off", cell.on, taken=lambda on: set(range(h)) - set(on)),
        )  # fmt: skip
        with st.container(horizontal=h > 8, width="content", gap=None if h <= 8 else "small"):
            st.toggle(t("combine.average"), help=t("combine.average_help"), **f.control("average"))
            share = combination.move(full, cell.kept, average=settings.average)
            st.markdown(t("combine.moved", share=combine_notes.percent(share)), help=t("combine.moved_help"))

    trace = combination.recombine(full, cell.kept, average=settings.average)
    number = combination.output_by_hand(trace, settings.head, cell.query, cell.feature)
    picture = figures.combine(
        trace, tokens, number, kept=cell.kept, labels=None if settings.average else names, like=full,
        note=combine_notes.note(t, cell.kept, settings.average), words=t.group("combine.fig"), theme=f.theme,
    )  # fmt: skip
    f.draw(picture, key="combine", alt=combine_notes.alt(t, trace, cell.names, number))
    st.markdown(combine_notes.by_hand(t, trace, tokens, number))
    st.markdown(combine_notes.what_to_notice(t, trace, tokens, cell.query, cell.kept, settings.average))

    st.markdown(f"#### {t('combine.predict')}")
    if h > 1:
        truth, values = combine_notes.take(t, full, settings.head)
        predict(t, "combine.take", ("less", "share", "more"), truth, **values)
        predict(t, "combine.mean", ("none", "little", "some", "lot"), combine_notes.mean(t, full), h=h)
    st.markdown(f"**{t('combine.two')}**")
    text, table, average = combine_notes.two_needs(t)
    st.markdown(text)
    predict(t, "combine.swap", ("yes", "no"), f"{t('combine.swap_truth', average=average)}\n\n{table}")
