"""The app: page config, navigation, sidebar, then the page. Run with ``streamlit run app.py``."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small tensors: more threads only wait for each other

import streamlit as st

from pages._ui import frame, sidebar, state

frame.configure()
# Navigation comes before any widget: on a session's first run Streamlit takes app.py for a page until then, and a
# widget drawn earlier would have another identity from the second run on, and lose what was chosen.
page = frame.navigate(state.language())
frame.style(state.language())
settings = state.load()
t = frame.words_for(settings)
with st.sidebar:
    sidebar.draw(settings, t)
frame.run(page, settings, t)
