"""A Plotly figure that is nothing but its dict.

``go.Figure`` checks every property, which costs 8–12 ms a chart: half of a slider's answer. A
:class:`Picture` is accepted wherever Plotly takes a figure (``st.plotly_chart``, ``plotly.io``, a
notebook) and checks nothing; the tests check the same dict with ``go.Figure``.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import plotly.graph_objects as go
from plotly.basedatatypes import BaseFigure

if TYPE_CHECKING:
    from mha_core.figures.pick import Pickable

__all__ = ["Picture", "typed"]

_CODES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "i2": "<i2", "u2": "<u2", "u1": "u1", "i1": "i1"}


class Picture(BaseFigure):  # type: ignore[misc]  # Plotly has no types
    """A finished figure, drawn from ``{"data": […], "layout": {…}}``.

    ``picks`` says, by the number of a trace, what choosing one of its points means; see
    :mod:`mha_core.figures.pick`.

    >>> picture = Picture([{"type": "scatter", "y": typed(np.zeros(2))}], {})
    >>> picture.figure().data[0].type
    'scatter'
    """

    def __init__(
        self, data: list[dict[str, Any]], layout: dict[str, Any], picks: dict[int, tuple[Pickable, ...]] | None = None
    ) -> None:
        self.__dict__["_spec"] = {"data": data, "layout": layout}
        self.__dict__["picks"] = picks or {}

    def to_dict(self) -> dict[str, Any]:
        """The figure as Plotly's JSON has it, in new dicts down to the traces."""
        spec = self.__dict__["_spec"]
        return {"data": [dict(trace) for trace in spec["data"]], "layout": dict(spec["layout"])}

    def figure(self) -> go.Figure:
        """The same figure as a ``go.Figure``: checked, and open to changes.

        Raises:
            ValueError: a property that Plotly does not know, or a value that it does not take.
        """
        return go.Figure(self.to_dict())

    def __reduce__(self) -> tuple[type[Picture], tuple[Any, Any]]:
        spec = self.__dict__["_spec"]
        return Picture, (spec["data"], spec["layout"])  # for copy and pickle: BaseFigure's own wants all it lacks

    def __repr__(self) -> str:
        kinds = ", ".join(trace["type"] for trace in self.__dict__["_spec"]["data"])
        return f"Picture({kinds})"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Picture has no {name!r}; picture.figure() is a go.Figure that has all of Plotly's")

    @property
    def data(self) -> NoReturn:
        """Not here: a picture is finished. ``figure()`` has it."""
        raise AttributeError("a Picture is finished and has no 'data'; use picture.figure().data")

    @property
    def layout(self) -> NoReturn:
        """Not here: a picture is finished. ``figure()`` has it."""
        raise AttributeError("a Picture is finished and has no 'layout'; use picture.figure().layout")


def typed(array: np.ndarray[Any, Any], dtype: str = "f4") -> dict[str, str]:
    """An array as Plotly's base64 form: a quarter of the bytes of a list, and no parsing.

    Args:
        array: 1-D to 3-D.
        dtype: "f4", "f8", "i4", "i2", "u2", "u1" or "i1".

    >>> typed(np.zeros((8, 8)))["shape"]
    '8, 8'
    """
    packed = np.ascontiguousarray(array, _CODES[dtype])
    return {
        "dtype": dtype,
        "bdata": base64.b64encode(packed.tobytes()).decode("ascii"),
        "shape": ", ".join(map(str, packed.shape)),
    }
