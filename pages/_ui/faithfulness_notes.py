"""What the page "faithfulness" says: the case with a slider, and the maps of the calculation on screen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mha_core.faithfulness import Slide
from mha_core.figures.deviation import deviation_text
from mha_core.figures.labels import plain_labels
from mha_core.freedom import Freedom
from mha_core.importance import HeadRanking, Weighed, two_tokens
from pages._ui.combine_notes import percent
from pages._ui.text import Words, code

__all__ = [
    "alt_here", "alt_slide", "free", "heads", "lengths", "slid", "slide_truth", "two", "two_truth",
]  # fmt: skip


def slide_truth(t: Words, case: Slide) -> str:
    """That there are other weights, and how far they go."""
    n, d_v = case.values.shape
    return t(
        "faithfulness.other_truth", n=n, d_v=d_v, conditions=d_v + 1, free=n - d_v - 1, turn=_from(case.turn),
    )  # fmt: skip


def slid(t: Words, case: Slide, part: float) -> str:
    """What to notice while the weights slide."""
    first, last = case.top(0), case.top(1)
    return t(
        "faithfulness.slid", first=first + 1, last=last + 1, was=f"{case.weights[first]:.2f}",
        end=f"{case.other[first]:.2f}", most=f"{case.other[last]:.2f}", part=f"{100 * part:.0f}",
        moved=deviation_text(case.moved(part)), turn=_from(case.arrival),
    )  # fmt: skip


def _from(part: float) -> str:
    """The first whole percent at which it is so: the slider has no others."""
    return f"{math.ceil(100 * part)} %"


def alt_slide(t: Words, case: Slide, part: float) -> str:
    """The picture with the slider in words."""
    weights = ", ".join(f"{weight:.2f}" for weight in case.at(part))
    output = ", ".join(f"{value:.12f}" for value in case.output(part))
    return t("faithfulness.alt_slide", part=f"{100 * part:.0f}", weights=weights, output=output)


def two() -> dict[str, str]:
    """The numbers of the question with two keys."""
    case = two_tokens()
    names = ("alpha", "beta", "short", "long")
    return dict(zip(names, (f"{value:g}" for value in (*case.weights, *case.lengths)), strict=True))


def two_truth(t: Words) -> str:
    """Its answer, worked out."""
    case = two_tokens()
    parts = [weight * length for weight, length in zip(case.weights, case.lengths, strict=True)]
    return t(
        "faithfulness.two_truth", one=f"{parts[0]:.2f}", other=f"{parts[1]:.2f}", share=percent(case.shares[0]), **two()
    )  # fmt: skip


def free(t: Words, freedoms: Sequence[Freedom], tokens: Sequence[str], head: int, query: int) -> str:
    """How free the chosen row is, and why; then every head."""
    found = freedoms[head]
    values = {
        "head": head + 1, "query": code(plain_labels(tokens)[query]), "keys": found.keys, "rank": found.rank,
        "d_v": found.d_v, "conditions": found.d_v + 1, "free": found.directions,
    }  # fmt: skip
    if not found.keys:
        return t("faithfulness.free_empty", **values)
    kind = "none" if not found.directions else "sure" if found.directions == found.sure else "dependent"
    each = [one.directions for one in freedoms]
    alike = "alike" if len(set(each)) == 1 else "heads"
    every = str(each[0]) if alike == "alike" else t("list").join(map(str, each))
    return t.sentences(
        t(f"faithfulness.free_{kind}", **values),
        t(f"faithfulness.free_{alike}", every=every),
        t("faithfulness.free_why", size=deviation_text(found.tolerance)),
    )


def lengths(t: Words, parts: Weighed, tokens: Sequence[str], head: int, query: int) -> str:
    """Whether the longest part is the largest weight's."""
    names = plain_labels(tokens)
    if not parts.weights.any():
        return t("faithfulness.lengths_empty", query=code(names[query]))
    heavy, long = int(parts.weights.argmax()), int(parts.parts.argmax())
    values = {
        "head": head + 1, "query": code(names[query]), "heavy": code(names[heavy]), "long": code(names[long]),
        "alpha": f"{parts.weights[heavy]:.2f}", "share": percent(float(parts.parts[heavy])),
        "most": percent(float(parts.parts[long])), "shortest": f"{parts.lengths.min():.2f}",
        "longest": f"{parts.lengths.max():.2f}", "residual": deviation_text(parts.residual),
    }  # fmt: skip
    if len(parts.heaviest) > 1:
        least, top = (percent(float(end)) for end in parts.parts[list(parts.heaviest)].aminmax())
        values |= {"count": len(parts.heaviest), "least": least, "top": top}
        return t(f"faithfulness.lengths_tied{'' if long in parts.heaviest else '_other'}", **values)
    return t(f"faithfulness.lengths_{'same' if heavy == long else 'other'}", **values)


def heads(t: Words, ranking: HeadRanking) -> str:
    """Whether the sharpest head matters most."""
    if len(ranking.effect) == 1:
        return t("faithfulness.heads_one")
    sharpest, most = ranking.sharpest, ranking.weightiest
    if len(tied := ranking.equally_sharp) > 1:
        effects, names = [ranking.effect[head] for head in tied], t("list").join(str(head + 1) for head in tied)
        told = t(
            f"faithfulness.heads_tied{'' if most in tied else '_other'}", heads=names,
            sharp=f"{ranking.sharpness[sharpest]:.2f}", least=percent(min(effects)), top=percent(max(effects)),
            moved=percent(ranking.effect[most]), most=most + 1,
        )  # fmt: skip
        pairs = {"agreeing": ranking.agreeing, "pairs": ranking.pairs}
        return t.sentences(told, t("faithfulness.heads_pairs", **pairs)) if ranking.pairs else told
    return t(
        f"faithfulness.heads_{'same' if sharpest == most else 'other'}", sharpest=sharpest + 1, most=most + 1,
        sharp=f"{ranking.sharpness[sharpest]:.2f}", moved=percent(ranking.effect[most]),
        its=percent(ranking.effect[sharpest]), agreeing=ranking.agreeing, pairs=ranking.pairs,
    )  # fmt: skip


def alt_here(t: Words, freedoms: Sequence[Freedom], parts: Weighed, ranking: HeadRanking, head: int, query: int) -> str:
    """The picture of this calculation's maps in words."""
    return t(
        "faithfulness.alt_here", head=head + 1, query=query + 1,
        free=", ".join(str(each.directions) for each in freedoms), largest=f"{parts.weights.max():.2f}",
        share=f"{parts.parts.max():.2f}", sharpness=", ".join(f"{each:.2f}" for each in ranking.sharpness),
        effect=", ".join(f"{each:.2f}" for each in ranking.effect),
    )  # fmt: skip
