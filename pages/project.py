"""Project: what are Q, K, V, and what does a head own? X × W = Q, its bands, and one number by hand."""

import streamlit as st

from mha_core import figures
from mha_core.worksheet import worksheet
from pages._ui import frame, project_lab, project_notes
from pages._ui.choice import project_cell

f = frame.require()
t, settings = f.t, f.settings

with f.page("project") as calculation:
    cell = project_cell(settings, calculation)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(t("project.which"), ("Q", "K", "V"), **f.control("which"))
        heads = [f"{i + 1} · {name}" for i, name in enumerate(f.head_names(calculation) or ())]
        st.selectbox(
            t("project.head"), range(settings.h), format_func=lambda i: heads[i] if heads else str(i + 1),
            **f.control("head"),
        )  # fmt: skip
        st.selectbox(t("project.token"), range(len(cell.names)), format_func=cell.names.__getitem__,
                     **f.control("query", cell.query))  # fmt: skip
        st.selectbox(t("project.feature"), range(cell.d_k), format_func=lambda c: str(c + 1),
                     **f.control("feature", cell.feature))  # fmt: skip

    words = {**t.group("figure"), **t.group("project.fig")}
    picture = figures.project(
        calculation.trace, calculation.tokens, which=settings.which, head=settings.head, query=cell.query,
        feature=cell.feature, words=words, theme=f.theme,
    )  # fmt: skip
    by_hand = calculation.trace.explain(settings.which, **cell.place)
    f.draw(picture, key="project", alt=project_notes.alt(t, calculation, cell, by_hand))
    st.markdown(project_notes.by_hand(t, by_hand, worksheet(by_hand)))
    st.markdown(project_notes.what_to_notice(t, calculation, cell, by_hand))
    st.caption(project_notes.orientation(t, calculation, cell))
    project_lab.draw(f, calculation)
