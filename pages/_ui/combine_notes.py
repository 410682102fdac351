"""What the page "combine" says: the sum by hand, what to notice, and an exact example with two needs."""

from __future__ import annotations

from collections.abc import Sequence

from mha_core.combination import OutputByHand, extremes, move, one_less, row
from mha_core.one_head import one_head_averages
from mha_core.trace import AttentionTrace
from pages._ui.text import Words, code

__all__ = ["alt", "by_hand", "mean", "note", "percent", "take", "two_needs", "what_to_notice"]


LITTLE = 0.2
"""A move of the output that shows heads with much the same map."""


def percent(share: float) -> str:
    """A share of the output's size; what has none is "–"."""
    return f"{share:.0%}".replace("%", " %") if share < 100 else "–"


def note(t: Words, kept: Sequence[bool], average: bool) -> str | None:
    """What stands on the picture while it shows something else than the calculation."""
    values = {"on": sum(kept), "h": len(kept)}
    if average:
        return t("combine.note_average") if all(kept) else t("combine.note_both", **values)
    return None if all(kept) else t("combine.note_off", **values)


def by_hand(t: Words, trace: AttentionTrace, tokens: Sequence[str], number: OutputByHand) -> str:
    """One output number as the sum of the heads' parts."""
    at = number.head.cell
    kind = "exact" if number.exact else "rounded" if number.adds_up else "rounded_sum"
    digits = t(f"combine.{kind}") + (f" {t('combine.bias')}" if number.has_bias else "")
    return t(
        "combine.by_hand", token=code(tokens[at["query"]]), feature=at["feature"] + 1, numbers=number.numbers(),
        head=at["head"] + 1, d_v=trace.sizes["d_v"], digits=digits,
    )  # fmt: skip


def what_to_notice(
    t: Words, trace: AttentionTrace, tokens: Sequence[str], query: int, kept: Sequence[bool], average: bool
) -> str:
    """Why the product is a sum, and who adds most to the chosen token."""
    sizes, token = trace.sizes, code(tokens[query])
    if sizes["h"] == 1:
        sentences = [t("combine.notice_one", token=token)]
    else:
        most, largest, least, smallest = extremes(trace, query, kept)
        sentences = [
            t("combine.notice", h=sizes["h"], d_model=sizes["d_model"], token=token, most=most + 1, least=least + 1,
              largest=f"{largest:.2f}", smallest=f"{smallest:.2f}")
        ]  # fmt: skip
    if not all(kept):
        sentences.append(t("combine.notice_off"))
    if average and sizes["h"] > 1:
        sentences.append(t("combine.notice_average", h=sizes["h"]))
    return "  \n".join(sentences)


def alt(t: Words, trace: AttentionTrace, tokens: Sequence[str], number: OutputByHand) -> str:
    """The picture in words, with the numbers that are followed."""
    at, sizes = number.head.cell, trace.sizes
    return t(
        "combine.alt", h=sizes["h"], d_v=sizes["d_v"], d_model=sizes["d_model"], n=sizes["n_q"],
        token=tokens[at["query"]], feature=at["feature"] + 1, parts=number.numbers().replace(r"\approx", "≈"),
        head=at["head"] + 1, part=number.part,
    )  # fmt: skip


def take(t: Words, trace: AttentionTrace, head: int) -> tuple[str, dict[str, object]]:
    """What happens without one head, and the numbers that the question needs."""
    less = one_less(trace, head)
    values: dict[str, object] = {"head": head + 1, "h": trace.sizes["h"]}
    truth = t("combine.take_truth", moved=percent(less.moved), root=percent(less.square), **values)
    return truth, {**values, "share": percent(less.equal)}


def mean(t: Words, trace: AttentionTrace) -> str:
    """What happens with one mean map for all heads."""
    moved = move(trace, average=True)
    truth = t("combine.mean_truth", moved=percent(moved))
    return t.sentences(truth, t("combine.mean_alike")) if moved < LITTLE else truth


def two_needs(t: Words) -> tuple[str, str, str]:
    """One head and two with the same matrices: the text, the table, and what the one head brings."""
    found = one_head_averages()
    one, two = found.one, found.two
    lines = [
        [t("combine.two_module"), t("combine.two_weights"), t("combine.two_output"), t("combine.two_swapped")],
        ["---"] * 4,
    ]
    for name, trace, swapped in (("one", one, found.one_swapped), ("several", two, found.two_swapped)):
        heads = t("semicolon").join(
            t("combine.two_head", head=head + 1, weights=row(trace["weights"].sel(batch=0, head=head, query=0)))
            for head in range(trace.sizes["h"])
        )
        outputs = [row(each["output"].sel(batch=0, query=0)) for each in (trace, swapped)]
        lines.append([t(f"combine.two_{name}"), heads, *outputs])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    text = t("combine.two_text", a=row(found.a), b=row(found.b))
    return text, table, row(one["output"].sel(batch=0, query=0))
