"""Order: does attention know word order? The same tokens in another order, and what each of them gets then."""

import streamlit as st

from mha_core.figures.order import order
from mha_core.order import CASES
from mha_core.reorder import REORDERS
from pages._ui import frame, order_notes
from pages._ui.predict import predict
from pages._ui.text import code

f = frame.require()
t, settings = f.t, f.settings

with f.page("order") as calculation:
    seen = order_notes.view(settings, calculation)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            t("order.case"), range(len(seen.cases)), format_func=lambda i: t(f"order.case_{CASES[i]}"),
            help=t("order.case_help"), **f.control("order_case", CASES.index(seen.case)),
        )  # fmt: skip
        st.segmented_control(
            t("order.reorder"), REORDERS, format_func=lambda way: t(f"order.reorder_{way}"), **f.control("reorder")
        )
        if settings.reorder == "shuffle":
            st.number_input(t("order.seed"), 0, 99, width=110, **f.control("reorder_seed"))
        st.selectbox(
            t("order.token"), range(len(seen.names)), format_func=seen.names.__getitem__, width=124,
            **f.control("query", seen.token),
        )  # fmt: skip

    if seen.learned:
        st.caption(t("order.learned"))
    covered = False
    if len(seen.names) > 1:
        token = code(seen.names[seen.token])
        covered = not predict(t, "order.guess", ("same", "changes"), order_notes.truth(t, seen), token=token)
    picture = order(
        calculation.trace, calculation.tokens, seen.cases, case=seen.case, head=settings.head, token=seen.token,
        covered=covered, words=t.group("order.fig"), theme=f.theme,
    )  # fmt: skip
    f.draw(picture, key="order", alt=order_notes.alt(t, seen, covered))
    if not covered:
        st.markdown(order_notes.notice(t, seen))
        st.markdown(order_notes.side_by_side(t, seen))
        st.caption(t("order.sources"))
