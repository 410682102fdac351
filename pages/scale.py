"""Scale: why √d_k? Random queries at any d_k, two gradients, and two models that learn the same task."""

from functools import partial

import streamlit as st

from mha_core.figures.scale import scale
from mha_core.figures.scale_race import scale_race
from mha_core.figures.scale_trap import scale_trap
from mha_core.scale_race import EVERY, STEPS, race
from pages._ui import frame, scale_notes, scale_race_notes, working
from pages._ui.predict import predict
from pages._ui.settings import RATES

f = frame.require()
t, settings = f.t, f.settings

with f.page("scale") as calculation:
    seen = scale_notes.view(t, settings, calculation, f.head_names(calculation))
    with st.container(horizontal=True, gap="medium"):
        st.select_slider(
            t("scale.d_k"), seen.d_ks, width=420, help=t("scale.d_k_help", own=seen.own),
            **f.control("draw_d_k", seen.d_k, taken=lambda d_k: 0 if d_k == seen.own else d_k),
        )  # fmt: skip
        st.segmented_control(
            t("scale.divide"), ("sqrt", "one", "d_k"), format_func=lambda code: t(f"scale.by_{code}"),
            help=t("scale.divide_help"), **f.control("draw_by"),
        )  # fmt: skip
        st.selectbox(t("scale.n"), seen.ns, width=150, help=t("scale.n_help"), **f.control("draw_n"))

    picture = scale(
        seen.sweep, seen.draws, divisor=seen.divisor, heads=seen.heads, words=t.group("scale.fig"), theme=f.theme
    )
    f.draw(picture, key="scale", alt=scale_notes.alt(t, seen))
    st.markdown(scale_notes.notice(t, seen))
    st.markdown(scale_notes.table(t, seen))
    st.caption(t("scale.table_note", count=f"{seen.sweep.count:,}", seed=seen.sweep.seed))

    if seen.n > 1:
        st.markdown(f"#### {t('scale.trap_title')}")
        truth = scale_notes.trap_truth(t, seen.sweep)
        if predict(t, "scale.trap", ("falls", "same", "rises"), truth):
            picture = scale_trap(seen.sweep, words=t.group("scale.trap_fig"), theme=f.theme)
            f.draw(picture, key="scale_trap", alt=truth)
            st.markdown(t("scale.trap_notice"))

    st.markdown(f"#### {t('scale.race_title')}")
    st.markdown(scale_race_notes.text(t))
    row = st.container(horizontal=True, vertical_alignment="bottom")
    row.segmented_control(t("scale.rate"), RATES, **f.control("race_rate"))
    row.number_input(t("scale.seed"), 0, 9999, width=130, **f.control("toy_seed"))
    seed, rate = settings.toy_seed, settings.race_rate

    def show(laps, done, key):
        if laps:
            picture = scale_race(laps, steps=STEPS, words=t.group("scale.race_fig"), theme=f.theme)
            f.draw(picture, key="scale_race", alt=t("scale.race_alt", steps=laps[-1].step, limit=scale_notes.LIMIT))
        if laps and done:
            st.markdown(scale_race_notes.notice(t, laps, *key))

    working.work(
        t, "scale.race", partial(race, seed, rate=float(rate)), total=STEPS // EVERY + 1, show=show, key=(seed, rate),
        label=t("scale.race.start"), row=row,
    )  # fmt: skip
