"""Overview: what happens from X to the output? All steps of the calculation on one screen."""

import streamlit as st

from mha_core import figures, metrics
from pages._ui import frame, notes
from pages._ui.settings import VIEWS, nearest_divisor

f = frame.require()
t, settings = f.t, f.settings

with f.page("overview") as calculation:
    several = settings.h if settings.h > 1 else nearest_divisor(settings.d_model, 4)
    st.segmented_control(
        t("overview.view"),
        VIEWS,
        format_func=lambda view: t(f"overview.view_{view}", h=several),
        label_visibility="collapsed",
        **f.control("view"),
    )
    sizes = calculation.trace.sizes
    shown = {"n": sizes["n_q"], "d_model": sizes["d_model"], "h": several, "d_k": sizes["d_model"] // several}
    words = t.group("figure")

    if settings.view == "all":
        names = f.head_names(calculation)
        picture = figures.overview(
            calculation.trace, calculation.tokens, head=settings.head, labels=names,
            caption=notes.caption(t, calculation), words=words, theme=f.theme,
        )  # fmt: skip
        f.draw(picture, key="overview", alt=t("overview.alt", head=settings.head + 1, **{**shown, "h": settings.h}))
        remark = notes.what_to_notice(t, calculation, settings.head)
    elif several == 1:
        remark = t("overview.only_one", d_model=settings.d_model)
    else:
        one, many = f.with_heads(1), f.with_heads(several)
        favourites = metrics.favourites(many.trace["weights"].value)[0].item()
        captions = t("overview.caption_one"), t("overview.caption_many", favourites=f"{favourites:.1f}")
        picture = figures.versus(
            one.trace, many.trace, many.tokens, labels=f.head_names(many), captions=captions, words=words, theme=f.theme
        )
        f.draw(picture, key="versus", alt=t("overview.alt_versus", **shown))
        remark = t("overview.notice_versus", parameters=f"{4 * settings.d_model**2:,}", **shown)
st.markdown(remark)
