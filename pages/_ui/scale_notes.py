"""What the page "scale" shows and says of random queries: at one d_k, along it, and of the two gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mha_core.figures.divisors import DIVISOR_NAMES
from mha_core.figures.labels import escape
from mha_core.figures.scale import HeadDots
from mha_core.random_queries import D_KS, Draws, Sweep
from mha_core.saturation import DEAD, head_saturation
from pages._ui import tables
from pages._ui.calculation import Calculation
from pages._ui.scale_draws import draws_at, swept
from pages._ui.settings import Settings
from pages._ui.text import Words

__all__ = ["LIMIT", "View", "alt", "notice", "number", "percent", "table", "trap_truth", "view"]

HARM = 0.02
"""A share of saturated queries that is worth a word."""
EVEN = 0.05
"""Nats that an entropy may lack of the largest possible and be called even."""
NS = (4, 16, 64, 256)
LIMIT = f"{DEAD:g}".removeprefix("0")


@dataclass(frozen=True, eq=False)
class View:
    """What the page looks at.

    Attributes:
        own: d_k of the calculation.
        d_k, n: of the random queries.
        d_ks, ns: to choose from.
        divisor: what their scores are divided by.
        heads: the calculation's, under the same divisor.
    """

    own: int
    d_k: int
    n: int
    d_ks: tuple[int, ...]
    ns: tuple[int, ...]
    divisor: str
    sweep: Sweep
    draws: Draws
    heads: HeadDots


def view(t: Words, settings: Settings, calculation: Calculation, names: Sequence[str] | None) -> View:
    """From the settings: the random queries follow the calculation's d_k until another is chosen."""
    own = calculation.trace.sizes["d_k"]
    d_k, n = settings.draw_d_k or own, settings.draw_n
    labels = [t("scale.fig.head", head=head + 1) for head in range(calculation.trace.sizes["h"])]
    if names:
        labels = [f"{label}: {escape(name)}" for label, name in zip(labels, names, strict=True)]
    heads = HeadDots(own, head_saturation(calculation.trace, settings.draw_by), labels)
    d_ks = tuple(sorted({*D_KS, own, d_k}))
    ns = tuple(sorted({*NS, n, calculation.trace.sizes["n_k"]}))
    return View(own, d_k, n, d_ks, ns, settings.draw_by, swept(n), draws_at(n, d_k), heads)


def number(value: float) -> str:
    """As it is said: two digits.

    >>> number(0.9382), number(22.61), number(0.00054), number(1.6102), number(0)
    ('.94', '22.6', '.00054', '1.61', '0')
    """
    if value == 0:
        return "0"
    if value >= 9.95:
        return f"{value:.1f}"
    if value < 5e-5:
        return "< .0001"
    return (f"{value:.2f}" if value >= 0.095 else f"{value:.2g}").removeprefix("0")


def percent(share: float) -> str:
    """A share; "–" where there is none.

    >>> percent(0.254), percent(0.0003), percent(0.9997), percent(0), percent(float("nan"))
    ('25 %', '< 1 %', '> 99 %', '0 %', '–')
    """
    if math.isnan(share):
        return "–"
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 < share < 1 else f"{share:.0%}".replace("%", " %")


def table(t: Words, seen: View) -> str:
    """All divisors at this d_k, in numbers."""
    head = [t("scale.table_divisor", d_k=seen.d_k), *(t(f"scale.table_{column}", limit=LIMIT) for column in _COLUMNS)]
    rows = []
    for divisor in DIVISOR_NAMES:
        drawn = seen.draws.by_divisor[divisor]
        medians = [number(drawn.median(quantity)) for quantity in ("largest", "entropy", "jacobian", "gradient")]
        cells = [t(f"scale.by_{divisor}"), number(drawn.spread), *medians, percent(drawn.dead)]
        rows.append([f"**{cell}**" for cell in cells] if divisor == seen.divisor else cells)
    return tables.markdown(head, rows)


_COLUMNS = ("spread", "largest", "entropy", "jacobian", "gradient", "dead")


def notice(t: Words, seen: View) -> str:
    """Two or three sentences about these random queries, and one about the calculation's heads."""
    by, values = seen.draws.by_divisor, {"d_k": seen.d_k, "n": seen.n}
    bare, scaled, squared = by["one"], by["sqrt"], by["d_k"]
    if seen.n == 1:
        return f"{t('scale.notice_one')}  \n{_heads(t, seen)}"
    sentences = [
        t("scale.notice", spread=number(bare.spread), largest=_share(bare.median("largest")),
          scaled=_share(scaled.median("largest")), **values)
    ]  # fmt: skip
    curves = seen.sweep.curves
    if bare.dead - scaled.dead >= HARM:
        sentences.append(t("scale.notice_harm", dead=percent(bare.dead), scaled=percent(scaled.dead), limit=LIMIT))
    else:
        jacobians = {"bare": number(bare.median("jacobian")), "scaled": number(scaled.median("jacobian"))}
        more = curves["one"].dead - curves["sqrt"].dead
        harmed = (d_k for d_k, share in zip(D_KS, more, strict=True) if share >= HARM and d_k > seen.d_k)
        sentences.append(t("scale.notice_small", start=next(harmed, D_KS[-1]), **jacobians, **values))
    if seen.divisor == "d_k":
        kind = "notice_d_k" if math.log(seen.n) - squared.median("entropy") < EVEN else "notice_d_k_small"
        sentences.append(
            t(f"scale.{kind}", spread=number(squared.spread), entropy=number(squared.median("entropy")),
              top=number(math.log(seen.n)), **values)
        )  # fmt: skip
    return "  \n".join([*sentences, _heads(t, seen), t("scale.notice_learnt")])


def _share(largest: float) -> str:
    """Of several keys none gets all the attention, though float32 may say so."""
    return percent(min(largest, 1 - 1e-7))


def _heads(t: Words, seen: View) -> str:
    spreads = [measured.spread for measured in seen.heads.measured if math.isfinite(measured.spread)]
    if not spreads:
        return t("scale.heads_empty")
    drawn = seen.draws if seen.d_k == seen.own else draws_at(seen.n, seen.own)
    return t(
        "scale.heads", h=len(seen.heads.measured), d_k=seen.own, divisor=t(f"scale.by_{seen.divisor}"),
        low=number(min(spreads)), high=number(max(spreads)), drawn=number(drawn.by_divisor[seen.divisor].spread),
    )  # fmt: skip


def trap_truth(t: Words, sweep: Sweep) -> str:
    """Which way the mean of ‖∂p/∂q‖ goes from d_k = 4 to 512, undivided, with the numbers beside it."""
    small, large = (sweep.at[d_k].by_divisor["one"] for d_k in (4, 512))
    before, after = small.mean("gradient"), large.mean("gradient")
    way = "same" if abs(after / before - 1) < 0.1 else "rises" if after > before else "falls"
    numbers = {"before": before, "after": after, "error": float(large.gradient.std()) / math.sqrt(sweep.count)}
    for name, quantity in (("q", "gradient"), ("j", "jacobian")):
        for place, drawn in (("before", small), ("after", large)):
            numbers[f"{name}_median_{place}"] = drawn.median(quantity)
            numbers[f"{name}_mean_{place}"] = drawn.mean(quantity)
    said = {name: number(value) for name, value in numbers.items()}
    return t.sentences(t(f"scale.trap_{way}_said"), t("scale.trap_truth", count=f"{sweep.count:,}", **said))


def alt(t: Words, seen: View) -> str:
    """The picture in words."""
    if seen.n == 1:
        return t("scale.notice_one")
    bare, scaled = (seen.draws.by_divisor[divisor] for divisor in ("one", "sqrt"))
    return t(
        "scale.alt", d_k=seen.d_k, n=seen.n, count=seen.sweep.count, bare=number(bare.spread),
        scaled=number(scaled.spread), largest=number(bare.median("largest")),
        tamed=number(scaled.median("largest")), dead=percent(bare.dead),
        dead_512=percent(float(seen.sweep.curves["one"].dead[-1])),
    )  # fmt: skip
