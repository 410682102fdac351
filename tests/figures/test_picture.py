import copy
import json
import pickle

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
import pytest
from plotly.basedatatypes import BaseFigure

from mha_core.figures import Picture
from mha_core.figures.picture import typed

PICTURE = Picture([{"type": "heatmap", "z": typed(np.eye(3))}], {"height": 300})


NAMES = ("layout", "data", "_foo")


def test_it_is_a_figure_for_plotly_and_its_json_is_the_dict():
    assert isinstance(PICTURE, BaseFigure)
    assert json.loads(pio.to_json(PICTURE, validate=False)) == PICTURE.to_dict()
    assert isinstance(PICTURE.figure(), go.Figure)
    assert PICTURE.figure().layout.height == 300


def test_what_it_hands_out_does_not_change_it():
    PICTURE.to_dict()["data"][0]["type"] = "bar"
    PICTURE.to_dict()["layout"]["height"] = 1
    assert PICTURE.to_dict()["data"][0]["type"] == "heatmap"
    assert PICTURE.to_dict()["layout"] == {"height": 300}


def test_it_can_be_copied_and_pickled():
    assert copy.deepcopy(PICTURE).to_dict() == PICTURE.to_dict()
    assert pickle.loads(pickle.dumps(PICTURE)).to_dict() == PICTURE.to_dict()


def test_a_notebook_shows_it():
    renderer = pio.renderers.default
    try:
        pio.renderers.default = "plotly_mimetype"
        bundle = PICTURE._repr_mimebundle_()
        assert bundle["application/vnd.plotly.v1+json"]["data"][0]["type"] == "heatmap"
    finally:
        pio.renderers.default = renderer
    assert '"heatmap"' in PICTURE.to_html(include_plotlyjs=False)


def test_a_finished_picture_says_how_to_change_it():
    for change in (
        lambda: PICTURE.update_layout(height=1),
        lambda: PICTURE.layout,
        lambda: PICTURE.data,
        lambda: PICTURE._foo,
    ):
        with pytest.raises(AttributeError, match="figure"):
            change()


def test_typed_arrays_come_back():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    spec = typed(array)
    assert spec["shape"] == "3, 4"
    np.testing.assert_array_equal(
        go.Figure([{"type": "heatmap", "z": spec}]).to_dict()["data"][0]["z"]["bdata"], spec["bdata"]
    )


def test_streamlit_takes_it():
    pytest.importorskip("streamlit")
    from streamlit.testing.v1 import AppTest

    def app():
        import numpy as np
        import streamlit as st

        from mha_core.figures.picture import Picture, typed

        st.plotly_chart(
            Picture([{"type": "heatmap", "z": typed(np.eye(3))}], {"height": 321}), theme=None, height="content"
        )

    at = AppTest.from_function(app).run()
    assert not at.exception
    chart = at.get("plotly_chart")[0].proto
    assert json.loads(chart.spec)["layout"]["height"] == 321
