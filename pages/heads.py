"""Heads: why more than one? Models that learn a task side by side while one watches, then their heads one by one."""

import streamlit as st

from mha_core.toy_tasks import MAX_SEED, TOY_TASKS
from mha_core.toy_training import BATCH
from pages._ui import frame, heads_lab
from pages._ui import heads_notes as notes
from pages._ui.predict import predict
from pages._ui.settings import MOST_STEPS

f = frame.require()
t = f.t

f.head("heads")
lab = heads_lab.lab(f.settings)
controls = st.container(horizontal=True, vertical_alignment="bottom")
with controls:
    st.selectbox(
        t("heads.task"), [task.key for task in TOY_TASKS], format_func=lambda key: t(f"heads.task.{key}"), width=270,
        **f.control("task"),
    )  # fmt: skip
    every = range(len(lab.task.sizes))
    st.pills(
        t("heads.sizes"), every, format_func=lambda index: notes.size_name(t, lab.task, lab.task.sizes[index]),
        selection_mode="multi", width="content",
        **f.control("compared", list(lab.compared), taken=lambda on: () if len(on) == len(every) else on),
    )  # fmt: skip
    st.number_input(t("heads.seed"), 0, MAX_SEED, width=120, **f.control("toy_seed"))
    st.number_input(t("heads.steps"), 1, MOST_STEPS, step=50, width=130, **f.control("toy_steps", lab.steps))
st.markdown(t(f"heads.what.{lab.task.key}"))
shown = heads_lab.train(f, lab, controls)
st.caption(notes.about_model(t, lab.task, [report.run.parameters for report in shown.reports], BATCH))
st.markdown(notes.verdict(t, lab.task, shown.reports))
st.markdown(heads_lab.runs(t, lab.task))
st.markdown(notes.table(t, lab.task, shown.reports))

st.markdown(t("heads.take_away"))
report = heads_lab.look(f, lab, shown)
heads_lab.take_away(f, lab, report)
heads_lab.sweep(f)
st.markdown(t("heads.exact"))
st.markdown(notes.needs(t))
st.markdown(t("heads.rank", n=notes.RANK_N))
predict(t, "heads.rank_guess", ("many", "half", "two"), notes.rank(t, f.settings.seed), n=notes.RANK_N)
st.markdown(t("heads.weights"))
heads_lab.carry(f, report)
f.foot("heads")
