"""Faithfulness: can the map be believed? Other weights with the same output, lengths of values, and lost heads."""

import streamlit as st

from mha_core.faithfulness import slide
from mha_core.figures.believed import believed
from mha_core.figures.labels import plain_labels
from mha_core.figures.slide import slide_picture
from mha_core.freedom import freedom_by_h, freedom_of_heads
from mha_core.importance import head_ranking, weighed
from pages._ui import faithfulness_notes, frame
from pages._ui.predict import predict

f = frame.require()
t, settings = f.t, f.settings

with f.page("faithfulness") as calculation:
    case, part = slide(settings.seed), settings.slide / 100
    predict(t, "faithfulness.other", ("no", "nearly", "yes"), faithfulness_notes.slide_truth(t, case))
    st.slider(t("faithfulness.slide"), 0, 100, format="%d %%", help=t("faithfulness.slide_help"), **f.control("slide"))
    picture = slide_picture(case, part, words=t.group("faithfulness.slide_fig"), theme=f.theme)
    f.draw(picture, key="faithfulness", alt=faithfulness_notes.alt_slide(t, case, part))
    if part:
        st.markdown(faithfulness_notes.slid(t, case, part))
    st.caption(t("faithfulness.case", seed=settings.seed))

    trace, tokens, head = calculation.trace, calculation.tokens, settings.head
    names, roles = plain_labels(tokens), f.head_names(calculation)
    query = min(settings.query, len(names) - 1)
    st.markdown(f"#### {t('faithfulness.here')}")
    predict(
        t, "faithfulness.two", ("seventy", "half", "fifth"), faithfulness_notes.two_truth(t), **faithfulness_notes.two()
    )  # fmt: skip
    with st.container(horizontal=True):
        st.selectbox(
            t("faithfulness.head"), range(settings.h),
            format_func=lambda i: f"{i + 1} · {roles[i]}" if roles else str(i + 1), width=190, **f.control("head"),
        )  # fmt: skip
        st.selectbox(
            t("faithfulness.query"), range(len(names)), format_func=names.__getitem__, width=140,
            **f.control("query", query),
        )  # fmt: skip
    freedoms, parts, ranking = freedom_of_heads(trace, query), weighed(trace, head, query), head_ranking(trace)
    picture = believed(
        freedom_by_h(trace), parts, ranking, tokens, head=head, query=query, words=t.group("faithfulness.fig"),
        theme=f.theme,
    )  # fmt: skip
    alt = faithfulness_notes.alt_here(t, freedoms, parts, ranking, head, query)
    f.draw(picture, key="faithfulness_here", alt=alt)
    st.markdown(faithfulness_notes.free(t, freedoms, tokens, head, query))
    st.markdown(faithfulness_notes.lengths(t, parts, tokens, head, query))
    st.markdown(faithfulness_notes.heads(t, ranking))
    st.markdown(t("faithfulness.sources"))
