"""Pictures of a calculation: pure functions from a trace to a Plotly figure.

>>> import torch
>>> from mha_core import MultiHeadAttention
>>> trace = MultiHeadAttention(d_model=8, h=2).trace(torch.randn(1, 3, 8))
>>> overview(trace, ["the", "cat", "sat"])
Picture(image, heatmap, heatmap, heatmap, heatmap, heatmap, heatmap, heatmap, scatter, scatter, scatter)
"""

from mha_core.figures.attend import attend
from mha_core.figures.combine import COMBINE_WORDS, combine
from mha_core.figures.labels import token_labels
from mha_core.figures.maps import scores_and_weights, weights
from mha_core.figures.overview import overview
from mha_core.figures.picture import Picture
from mha_core.figures.project import project
from mha_core.figures.theme import THEMES
from mha_core.figures.versus import versus
from mha_core.figures.words import WORDS

__all__ = [
    "COMBINE_WORDS",
    "THEMES",
    "WORDS",
    "Picture",
    "attend",
    "combine",
    "overview",
    "project",
    "scores_and_weights",
    "token_labels",
    "versus",
    "weights",
]
