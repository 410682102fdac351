"""Attend: how does one head decide where to look, and what does it bring back?"""

import streamlit as st

from mha_core import figures
from pages._ui import attend_lab, attending, frame
from pages._ui.settings import TEMPERATURES

f = frame.require()
t, settings = f.t, f.settings

with f.page("attend") as calculation:
    seen = attending.view(settings, calculation)
    sizes, heads = seen.trace.sizes, f.head_names(calculation)
    queries, keys = seen.query_names, seen.key_names

    with st.container(horizontal=True, gap="small"):
        name = (lambda i: f"{i + 1} · {heads[i]}") if heads else (lambda i: str(i + 1))
        st.selectbox(t("attend.head"), range(sizes["h"]), format_func=name, width=160, **f.control("head", seen.head))
        st.selectbox(
            t("attend.query"), range(len(queries)), format_func=queries.__getitem__, width=130,
            **f.control("query", seen.query),
        )  # fmt: skip
        st.selectbox(
            t("attend.key"), range(len(keys)), format_func=keys.__getitem__, width=130, **f.control("key", seen.key)
        )
        st.segmented_control(
            t("attend.divide"), ("sqrt", "one", "d_k"), format_func=lambda code: t(f"attend.divide_{code}"),
            help=t("attend.divide_help"), **f.control("divide"),
        )  # fmt: skip
        st.selectbox(
            t("attend.temperature"), TEMPERATURES, width=100, help=t("attend.temperature_help"),
            **f.control("temperature"),
        )  # fmt: skip
        st.segmented_control(
            t("attend.hand"), ("score", "value"), format_func=lambda code: t(f"attend.hand_{code}"),
            **f.control("hand"),
        )  # fmt: skip
        if settings.hand == "value":
            st.selectbox(
                t("attend.feature"), range(sizes["d_v"]), format_func=lambda i: str(i + 1), width=84,
                **f.control("feature", seen.feature),
            )  # fmt: skip
    for what in attending.changed(settings, seen):
        st.caption(t(f"attend.changed_{what}"))

    picture = figures.attend(
        seen.trace, seen.tokens, context_tokens=seen.context, mode=settings.hand,
        words=attending.figure_words(t, settings, seen), theme=f.theme, **seen.cell,
    )  # fmt: skip
    f.draw(picture, key="attend", alt=attending.alt(t, seen))
    if settings.hand == "score":
        st.markdown(attending.formulas(settings, seen))
    st.markdown(attending.notice(t, seen))
    st.caption(attending.rounding(t, settings, seen))
    attend_lab.draw(f, seen)
