"""How heads become one output: Concat × W_O, the same head by head, one number as a waterfall, and by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mha_core.combination import OutputByHand
from mha_core.contributions import contribution_sizes
from mha_core.figures.canvas import Canvas
from mha_core.figures.combine_product import product
from mha_core.figures.combine_sum import by_head
from mha_core.figures.hues import head_hues
from mha_core.figures.labels import escape, fit, plain_labels
from mha_core.figures.output_cell import Cell, limits_of
from mha_core.figures.picture import Picture
from mha_core.figures.product_sheet import product_sheet
from mha_core.figures.scene import Scene
from mha_core.figures.sizes_map import sizes_map
from mha_core.figures.theme import theme_named
from mha_core.figures.waterfall import waterfall_bars
from mha_core.trace import AttentionTrace

__all__ = ["COMBINE_WORDS", "combine"]

WIDTH, HEIGHT = 1130, 640
_SHEET = 150  # px more for one head's products

COMBINE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "concat": "Concat",
        "output": "Output",
        "by_head": "The same output, head by head:",
        "one_limit": "all in one scale,",
        "one_number": "One number: output of {token}, feature {feature}",
        "sizes": "How much each head adds",
        "size": "size",
        "by_hand": "By hand: head {head}'s part of this number",
        "off": "off",
        "feature": "feature",
        "head": "head {head}",
        "largest_here": "the largest here:",
        "largest_square": "largest of {rows}×{columns}",
        "more": "+{count} more",
        "range": "{first} … {last}",
        "largest_of": "one stripe = the largest of {k} features",
        "largest_rows": "one row = the largest of {k} tokens",
    }
)
"""English; numbers count from 1."""


def combine(
    trace: AttentionTrace,
    tokens: Sequence[str],
    number: OutputByHand,
    *,
    kept: Sequence[bool] | None = None,
    labels: Sequence[str] | None = None,
    note: str | None = None,
    like: AttentionTrace | None = None,
    words: Mapping[str, str] = COMBINE_WORDS,
    theme: str = "light",
) -> Picture:
    """From Concat to the output, twice: as one product, and as a sum over heads.

    Args:
        trace: what is drawn; with heads off or averaged maps, the one of ``combination.recombine``.
        tokens: n_q of them, as given by a user.
        number: the number of the output that is followed, of the same trace.
        kept: for every head, whether it is on; all when None.
        labels: a short name for each head; None for heads that deserve none.
        note: a few words above the sum, such as what was changed.
        like: a trace whose colours have at least these limits, so that the pictures of both can be compared.
        words: see :data:`COMBINE_WORDS`.
        theme: "light" or "dark".

    Returns:
        A picture for a chart 1130 px wide (it stretches).

    Raises:
        ValueError: as many tokens, labels or entries of ``kept`` as there are not.
    """
    h = trace.sizes["h"]
    kept = [True] * h if kept is None else list(kept)
    for name, given, size in (("tokens", tokens, trace.sizes["n_q"]), ("kept", kept, h), ("labels", labels, h)):
        if given is not None and len(given) != size:
            raise ValueError(f"{len(given)} {name} for {size}; give one for each")
    queries, cell = plain_labels(tokens), _cell(number, kept)
    canvas = Canvas(WIDTH, HEIGHT + _SHEET, theme_named(theme))
    names = None if labels is None else tuple(labels)
    scene = Scene(canvas, trace, cell.head, queries, queries, names, words, feature_hover=False)
    limits = limits_of(trace) if like is None else limits_of(trace).at_least(limits_of(like))
    product(scene, cell, limits)
    by_head(scene, cell, limits.parts, note)

    values = [*number.parts, *([number.output.terms[-1].product] if number.has_bias else [])]
    middle = 660.0 if len(values) <= 9 else 770.0
    decimals = number.decimals if number.adds_up else None
    waterfall_bars(scene, cell, values, number.output.value, decimals, 24, middle)
    sizes_map(scene, cell, contribution_sizes(trace).numpy(), limits.sizes, middle + 92, 1124)

    hue, i = head_hues(canvas.theme, h)[cell.head], cell.head + 1
    canvas.text(0, HEIGHT + 14, words["by_hand"].format(head=i), size=17, bold=True)
    token = escape(fit(queries[cell.query], 60, 12))
    rows = (f"Z<sub>{i}</sub>, {token}", f"W<sub>{i}</sub><sup>O</sup>, {cell.feature + 1}", "Z × W")
    product_sheet(scene, HEIGHT + 26, number, rows, (hue, canvas.theme.output))
    return canvas.picture()


def _cell(number: OutputByHand, kept: Sequence[bool]) -> Cell:
    at = number.head.cell
    return Cell(at["head"], at["query"], at["feature"], tuple(kept))
