"""Multi-head attention, step by step, with every intermediate tensor.

>>> import torch
>>> from mha_core import MultiHeadAttention
>>> trace = MultiHeadAttention(d_model=64, h=4).trace(torch.randn(1, 10, 64))
>>> trace["weights"].sel(batch=0, head=2, query=5).numpy().shape
(10,)
"""

from mha_core.attention import MultiHeadAttention, attend
from mha_core.explain import Explanation
from mha_core.trace import STEPS, AttentionTrace, Intermediate

__all__ = ["STEPS", "AttentionTrace", "Explanation", "Intermediate", "MultiHeadAttention", "attend"]
