"""F1, the unit of ``python -m tests.bench app``: a slider and a heatmap, and nothing that the app has added."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st


def main() -> None:
    step = st.slider("step", 0, 1000, 0)
    st.plotly_chart(go.Figure(go.Heatmap(z=np.sin(np.add.outer(np.arange(16), np.arange(16)) * 0.2 + step))))


if __name__ == "__main__":  # in Streamlit; pytest only imports it
    main()
