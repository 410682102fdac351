"""Every text on the overview, so that a page may give them in another language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["WORDS"]

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "all_heads": "All heads: weights",
        "concat": "Concat",
        "output": "Output",
        "scores": "Scores",
        "weights": "Weights",
        "score": "score",
        "weight": "weight",
        "query": "query",
        "key": "key",
        "feature": "feature",
        "features": "features",
        "head": "head {head}",
        "head_named": "head {head}: {label}",
        "one_head": "One head",
        "several_heads": "{h} heads",
        "softmax": "softmax",
        "masked": "masked",
        "range": "{first} … {last}",
        "largest_of": "one stripe = the largest of {k} features",
        "largest_rows": "one row = the largest of {k} tokens",
        "largest_square": "largest of {rows}×{columns}",
    }
)
"""English; {head} counts from 1, {h}, {k}, {rows}, {columns} are numbers, {label}, {first}, {last} other texts."""
