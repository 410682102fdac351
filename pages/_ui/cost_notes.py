"""What the page "cost" is about and what it says: the sizes that are priced, and sentences about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mha_core.cost import (
    COST_STEPS,
    activation_bytes,
    cache_bytes,
    crossing,
    flops,
    measure,
    parameters,
    softmax_cells,
)
from mha_core.figures.quantity import bytes_text, count_text, percent_text
from mha_core.model_sizes import ModelSizes, model_sizes
from mha_core.sizes import Sizes, head_counts, kv_head_counts, with_heads
from pages._ui import state
from pages._ui.calculation import Calculation
from pages._ui.settings import Settings
from pages._ui.text import Words

__all__ = ["CostView", "alt", "chosen", "heads_truth", "notice", "priced", "view"]

_LONGEST = 131_072


@dataclass(frozen=True)
class CostView:
    """What is priced.

    Attributes:
        own: the sizes of the current calculation (one of its batch), or of a published model.
        sizes: those, with what the controls change.
        model: the published model, or None.
        lengths: the n that one may choose.
        several: a number of heads to ask about; None where no other is possible.
    """

    own: Sizes
    sizes: Sizes
    model: ModelSizes | None
    lengths: tuple[int, ...]
    several: int | None

    def unless_own(self, name: str, nothing: Any) -> Callable[[Any], Any]:
        """For a control: what is chosen, or "nothing chosen" where it is what the calculation has by itself."""
        return lambda value: nothing if value == getattr(self.own, name) else value


def view(settings: Settings, calculation: Calculation) -> CostView:
    """What the settings choose. Sizes that don't fit together fall back on the model's own."""
    model = model_sizes(settings.cost_of) if settings.cost_of else None
    own = model.sizes if model is not None else replace(Sizes.of(calculation.trace), batch=1)
    n = settings.cost_n or own.n_q
    sizes = replace(
        own, n_q=n, n_k=n, batch=settings.cost_batch, layers=settings.cost_layers or own.layers,
        dtype=settings.cost_dtype or own.dtype,
        h_kv=settings.kv_heads if settings.kv_heads in kv_head_counts(own.h) else own.h_kv,
    )  # fmt: skip
    lengths = {2**power for power in range(_LONGEST.bit_length())} | {own.n_q, n}
    counts = [h for h in head_counts(sizes) if h > 1]
    several = (8 if 8 in counts else counts[-1]) if counts else None
    return CostView(own, sizes, model, tuple(sorted(lengths)), several)


def chosen(key: str) -> str:
    """Of the list of models: a model brings its own n, key heads, layers and number type."""
    for name in ("cost_n", "kv_heads", "cost_layers"):
        state.choose(name, 0)
    state.choose("cost_dtype", "")
    return key


def priced(t: Words, source: str, sizes: Sizes) -> str:
    """A published model's sizes in a line."""
    values = {name: f"{getattr(sizes, name):,}" for name in ("d_model", "h", "d_k", "h_kv", "layers")}
    return t("cost.priced", source=source, **values)


def heads_truth(t: Words, seen: CostView) -> str:
    """One head against several of the same width."""
    assert seen.several is not None
    one, several = with_heads(seen.sizes, 1), with_heads(seen.sizes, seen.several)
    truth = t(
        "cost.which_truth", h=seen.several, parameters=count_text(parameters(one)), flops=count_text(flops(one)),
        one=count_text(softmax_cells(one)), several=count_text(softmax_cells(several)), d_k=several.d_k, width=one.d_k,
    )  # fmt: skip
    return truth if seen.sizes.h_kv == seen.sizes.h else t.sentences(truth, t("cost.which_own"))


def notice(t: Words, seen: CostView) -> str:
    """Where n² overtakes n, and what that means at the chosen n."""
    sizes, even = seen.sizes, crossing(seen.sizes)
    double = replace(sizes, n_q=2 * sizes.n_q, n_k=2 * sizes.n_k)
    pairs = sum(measure(step.flops, sizes) for step in COST_STEPS if step.name in ("raw_scores", "head_outputs"))
    at = f"{even.numerator:,}" if even.denominator == 1 else f"{float(even):,.1f}"
    standard = even == 2 * sizes.d_model
    sentences = [
        t("cost.notice", n=f"{sizes.n_q:,}", share=percent_text(pairs * sizes.layers / flops(sizes)), even=at,
          times=f"{flops(double) / flops(sizes):.2f}"),
        t("cost.notice_standard" if standard else "cost.notice_other", d_model=f"{sizes.d_model:,}", h=sizes.h,
          h_kv=sizes.h_kv),
        t("cost.notice_cache", size=bytes_text(cache_bytes(sizes)),
          all=bytes_text(sizes.batch * cache_bytes(sizes, sizes.n_k)), n=f"{sizes.n_k:,}", batch=sizes.batch),
    ]  # fmt: skip
    return t.sentences(*sentences)


def alt(t: Words, seen: CostView, told: bool) -> str:
    """The picture in words."""
    sizes = seen.sizes
    text = t(
        "cost.alt", parameters=count_text(parameters(sizes)), flops=count_text(flops(sizes)),
        cells=count_text(softmax_cells(sizes)), activations=bytes_text(activation_bytes(sizes)),
        cache=bytes_text(cache_bytes(sizes)), even=f"{float(crossing(sizes)):,.0f}",
    )  # fmt: skip
    return t.sentences(text, t("cost.alt_told")) if told else text
