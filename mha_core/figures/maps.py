"""Attention maps with ordinary Plotly axes, for notebooks: every cell and every name in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mha_core.figures.focus import score_limit
from mha_core.figures.labels import escape, fit, token_labels
from mha_core.figures.picture import Picture, typed
from mha_core.figures.theme import SANS, Theme, limit_text, theme_named
from mha_core.figures.words import WORDS
from mha_core.trace import AttentionTrace

__all__ = ["scores_and_weights", "weights"]

Array = np.ndarray[Any, Any]

_MOST_COLUMNS = 4  # heads side by side
_MOST_NAMES = 60  # on an axis; beyond that every k-th


def weights(
    trace: AttentionTrace,
    tokens: Sequence[str],
    *,
    context_tokens: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    words: Mapping[str, str] = WORDS,
    theme: str = "light",
) -> Picture:
    """All heads' weights as one heatmap with gaps, queries down and keys across, the first at the top left.

    Args:
        trace: of one sequence (the first of the batch is drawn).
        tokens: n_q of them; of the keys as well, unless ``context_tokens`` has n_k others.
        labels: a short name for each head, or None.
        words: see :data:`mha_core.figures.words.WORDS`.
        theme: "light" or "dark".

    Raises:
        ValueError: as many tokens or labels as there are not.
        KeyError: a theme that there is not; a step that the trace did not keep.
    """
    colours = theme_named(theme)
    h, n_q, n_k = (trace.sizes[size] for size in ("h", "n_q", "n_k"))
    queries, keys = _names(trace, tokens, context_tokens)
    if labels is not None and len(labels) != h:
        raise ValueError(f"{len(labels)} labels for h={h}; give one for each")
    columns = min(h, _MOST_COLUMNS)
    rows = math.ceil(h / columns)
    across, down = n_k + max(1, n_k // 8), n_q + max(1, n_q // 4)  # cells from one map to the next

    values = np.full((rows, down, columns, across), np.nan)
    masked = np.zeros(values.shape, bool)
    all_weights, all_masked = trace["weights"].sel(batch=0).numpy(), _masked(trace)
    for head in range(h):
        row, column = divmod(head, columns)
        values[row, :n_q, column, :n_k] = all_weights[head]
        masked[row, :n_q, column, :n_k] = all_masked[head]
    heads = np.broadcast_to(np.arange(rows * columns).reshape(rows, 1, columns, 1) + 1, values.shape)
    shape = (rows * down, columns * across)
    template = _template(words, "weight", "%{z:.4f}", head=words["head"].format(head="%{customdata}"))
    heatmap = {
        **_heatmap(np.where(masked, np.nan, values).reshape(shape), colours.weight, 0.0, 1.0, template),
        "customdata": typed(heads.reshape(shape), "u1"),
        "colorbar": _colour_bar(words["weights"], 1.01),
    }
    x = np.arange(columns)[:, None] * across + np.arange(n_k)
    y = np.arange(rows)[:, None] * down + np.arange(n_q)
    titles = {
        "type": "scatter", "mode": "text", "textposition": "top right", "hoverinfo": "skip", "cliponaxis": False,
        "x": typed(np.array([head % columns * across - 0.5 for head in range(h)])),
        "y": typed(np.array([head // columns * down - 0.5 for head in range(h)])),
        "text": [_head_name(words, labels, head, 700 / columns) for head in range(h)],
        "textfont": {"size": 14, "color": colours.ink},
    }  # fmt: skip
    layout = _layout(colours, height=150 + rows * max(190, 760 // columns))
    layout["xaxis"] = {"tickangle": -90} | _axis(
        colours, f"{words['key']} →", x, keys * columns, (-0.5, shape[1] - across + n_k - 0.5)
    )
    layout["yaxis"] = _axis(colours, f"← {words['query']}", y, queries * rows, (shape[0] - down + n_q - 0.5, -0.5))
    return Picture([heatmap, *_mask(masked.reshape(shape), colours, words), titles], layout)


def scores_and_weights(
    trace: AttentionTrace,
    tokens: Sequence[str],
    *,
    head: int = 0,
    context_tokens: Sequence[str] | None = None,
    words: Mapping[str, str] = WORDS,
    theme: str = "light",
) -> Picture:
    """One head's masked scores beside its weights, queries down and keys across.

    Args:
        trace, tokens, context_tokens, words, theme: as in :func:`weights`.
        head: from 0.

    Raises:
        ValueError: as many tokens as there are not; a head that there is not.
        KeyError: a theme that there is not; a step that the trace did not keep.
    """
    colours = theme_named(theme)
    queries, keys = _names(trace, tokens, context_tokens)
    if not 0 <= head < trace.sizes["h"]:
        raise ValueError(f"head={head} is out of range; choose 0 … {trace.sizes['h'] - 1}")
    scores = trace["masked_scores"].sel(batch=0).numpy()  # (h, n_q, n_k)
    limit, masked = score_limit(scores, head), np.isneginf(scores[head])
    shown = np.where(masked, np.nan, trace["weights"].sel(batch=0, head=head).numpy())
    left = {
        **_heatmap(
            np.where(masked, np.nan, scores[head]), colours.signed, -limit, limit,
            _template(words, "score", "%{z:.4g}", words["head"].format(head=head + 1)),
        ),
        "colorbar": {**_colour_bar(f"{words['scores']}<br>{limit_text(limit)}", 0.41), "tickvals": [-limit, 0, limit]},
    }  # fmt: skip
    right = {
        **_heatmap(
            shown, colours.weight, 0.0, 1.0, _template(words, "weight", "%{z:.4f}", words["head"].format(head=head + 1))
        ),
        "colorbar": _colour_bar(words["weights"], 1.01),
        "xaxis": "x2",
        "yaxis": "y2",
    }
    layout = _layout(colours, height=480)
    layout["title"] = {"text": words["head"].format(head=head + 1), "x": 0.01, "y": 0.97}
    layout["margin"]["t"] = 64
    x, y = np.arange(len(keys)), np.arange(len(queries))
    for suffix, domain in (("", [0.0, 0.4]), ("2", [0.6, 1.0])):
        across = _axis(colours, f"{words['key']} →", x, keys, (-0.5, len(keys) - 0.5))
        down = _axis(colours, f"← {words['query']}", y, queries, (len(queries) - 0.5, -0.5))
        layout[f"xaxis{suffix}"] = {**across, "tickangle": -90, "domain": domain, "anchor": f"y{suffix}"}
        layout[f"yaxis{suffix}"] = {**down, "anchor": f"x{suffix}"}
    grey = _mask(masked, colours, words)
    return Picture([left, right, *grey, *({**trace, "xaxis": "x2", "yaxis": "y2"} for trace in grey)], layout)


def _names(
    trace: AttentionTrace, tokens: Sequence[str], context_tokens: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The queries' and keys' labels, safe to print."""
    context = tokens if context_tokens is None else context_tokens
    for name, given, axis in (("tokens", tokens, "n_q"), ("context_tokens", context, "n_k")):
        if len(given) != trace.sizes[axis]:
            raise ValueError(f"{len(given)} {name} for {axis}={trace.sizes[axis]}; give one for each")
    return token_labels(tokens), token_labels(context)


def _masked(trace: AttentionTrace) -> Array:
    """Which pairs may not attend: (h, n_q, n_k)."""
    masked: Array = np.isneginf(trace["masked_scores"].sel(batch=0).numpy())
    return masked


def _head_name(words: Mapping[str, str], labels: Sequence[str] | None, head: int, room: float) -> str:
    if labels is None or not labels[head]:
        return words["head"].format(head=head + 1)
    return escape(fit(f"{head + 1} {labels[head]}", room, 14))


def _template(words: Mapping[str, str], value: str, number: str, head: str) -> str:
    return f"{head}<br>{words['query']} %{{y}} → {words['key']} %{{x}}<br>{words[value]} <b>{number}</b><extra></extra>"


def _heatmap(values: Array, scale: Sequence[str], low: float, high: float, template: str) -> dict[str, Any]:
    stops = [[i / (len(scale) - 1), colour] for i, colour in enumerate(scale)]
    return {
        "type": "heatmap", "z": typed(values), "zmin": low, "zmax": high, "colorscale": stops,
        "hoverongaps": False, "hovertemplate": template, "xgap": 1, "ygap": 1,
    }  # fmt: skip


def _mask(masked: Array, colours: Theme, words: Mapping[str, str]) -> list[dict[str, Any]]:
    """Masked cells in their grey, which is no value of any scale."""
    if not masked.any():
        return []
    template = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br>{words['masked']}<extra></extra>"
    values = np.where(masked, 1.0, np.nan)
    return [
        {**_heatmap(values, (colours.hatch, colours.hatch), 0.0, 1.0, template), "showscale": False, "opacity": 0.55}
    ]


def _colour_bar(title: str, x: float) -> dict[str, Any]:
    return {"title": {"text": title}, "x": x, "thickness": 12, "len": 0.7, "outlinewidth": 0}


def _axis(colours: Theme, title: str, at: Array, names: Sequence[str], ends: tuple[float, float]) -> dict[str, Any]:
    """Numeric positions with names: equal tokens stay apart, and a token such as "2020" stays text."""
    every = math.ceil(len(names) / _MOST_NAMES)
    return {
        "title": {"text": title}, "tickmode": "array", "tickvals": typed(at.ravel()[::every]),
        "ticktext": list(names[::every]), "range": list(ends), "showgrid": False, "zeroline": False, "ticks": "",
        "constrain": "domain", "tickfont": {"size": 13 if len(names) <= 24 else 10}, "color": colours.ink,
        "automargin": True,
    }  # fmt: skip


def _layout(colours: Theme, height: int) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 20, "r": 20, "t": 40, "b": 20},
        "paper_bgcolor": colours.background,
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": SANS, "size": 14, "color": colours.ink},
        "hoverlabel": {
            "bgcolor": colours.tint,
            "align": "left",
            "font": {"family": SANS, "color": colours.ink, "size": 15},
        },
        "showlegend": False,
    }
