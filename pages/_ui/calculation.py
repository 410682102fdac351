"""From settings to one calculation: tokens, trace, what the heads do, and whether it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from mha_core import AttentionTrace, MultiHeadAttention
from mha_core.arrays import UploadedInput
from mha_core.checks import Check, checks
from mha_core.inputs import POCKET, PRESETS, check_bounds, embed, random_input, tokenize
from mha_core.masks import MASKS
from mha_core.weights import HeadReport, design, randomize, report, set_pocket
from pages._ui.settings import Settings

__all__ = ["Calculation", "calculate", "mask_kind"]


@dataclass(frozen=True, eq=False)
class Calculation:
    """What every page draws.

    Attributes:
        tokens: one a row of X.
        trace: batch of 1.
        reports: what each designed head was to look at and does; empty for other weights.
        checks: the identities, computed for this trace.
        origin: where the weights come from: "designed", "random" or "pocket".
    """

    tokens: tuple[str, ...]
    trace: AttentionTrace
    reports: tuple[HeadReport, ...]
    checks: tuple[Check, ...]
    origin: str

    @property
    def bytes(self) -> int:
        """Memory of the trace and its weights, for the cache's bound."""
        kept = (self.trace[name].value for name in self.trace)
        return sum(tensor.nbytes for tensor in (*kept, *self.trace.module.parameters()))


def calculate(settings: Settings, upload: UploadedInput | None = None) -> Calculation:
    """Compute it. ``upload`` is the X of the input "upload".

    Raises:
        InputError: the input cannot be used.
        LookupError: the upload is not there.
    """
    tokens, X = INPUT_KINDS.get(settings.input, _preset)(settings, upload)
    check_bounds(len(tokens), len(tokens), settings.d_model, settings.h)
    module = MultiHeadAttention(settings.d_model, settings.h)
    roles, origin = (), settings.weights
    if settings.input == "pocket":
        set_pocket(module)
        origin = "pocket"
    elif settings.weights == "random":
        randomize(module, settings.seed, with_bias=settings.bias)
    else:
        roles = design(module, settings.seed, with_bias=settings.bias)
    kind, size = mask_kind(settings, len(tokens))
    with torch.no_grad():
        trace = module.trace(X, mask=kind.build(len(tokens), size))
        return Calculation(tokens, trace, report(trace, tokens, roles), checks(trace), origin)


def mask_kind(settings: Settings, n: int):
    """The row of MASKS and its size: the setting's, or what the kind proposes, at most n."""
    kind = next(kind for kind in MASKS if kind.key == settings.mask)
    proposed = kind.default_size(n) if kind.default_size else 0
    return kind, min(settings.mask_size or proposed, n)


def _preset(settings: Settings, upload: UploadedInput | None):
    tokens = tokenize(next(preset.text for preset in PRESETS if preset.key == settings.input))
    return tokens, embed(tokens, settings.d_model, with_positions=settings.positions)


def _own_text(settings: Settings, upload: UploadedInput | None):
    tokens = tokenize(settings.text)
    return tokens, embed(tokens, settings.d_model, with_positions=settings.positions)


def _random(settings: Settings, upload: UploadedInput | None):
    tokens = tuple(f"x{row + 1}" for row in range(settings.n))
    return tokens, random_input(settings.n, settings.d_model, settings.seed)


def _pocket(settings: Settings, upload: UploadedInput | None):
    return POCKET.tokens, POCKET.input()


def _upload(settings: Settings, upload: UploadedInput | None):
    if upload is None:
        raise LookupError("upload_gone")
    return upload.tokens, upload.X


INPUT_KINDS: dict[str, Callable] = {"text": _own_text, "random": _random, "pocket": _pocket, "upload": _upload}
