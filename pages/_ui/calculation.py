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
from mha_core.toy_roles import leading, mass_on_places
from mha_core.toy_training import Trained, evaluation_batch
from mha_core.weights import HeadReport, design, randomize, report, set_pocket
from pages._ui.settings import Settings

__all__ = ["CLEAR", "Calculation", "Learnt", "calculate", "mask_kind"]

CLEAR = 0.5
"""The share of its attention that a trained head gives to one place before it is named after it."""


@dataclass(frozen=True, eq=False)
class Calculation:
    """What every page draws.

    Attributes:
        tokens: one a row of X.
        trace: batch of 1.
        reports: what each designed or trained head looks at, and whether it does; empty for other weights.
        checks: the identities, computed for this trace.
        origin: where the weights come from: "designed", "random", "pocket", "recorded" (trained, once) or "trained".
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


@dataclass(frozen=True, eq=False)
class Learnt:
    """A model of a toy task, trained on page "heads", or by the script that made the recorded results."""

    trained: Trained
    recorded: bool = False


def calculate(settings: Settings, brought: UploadedInput | Learnt | None = None) -> Calculation:
    """Compute it. ``brought`` is the X of the input "upload", or the model of the input "trained".

    Raises:
        InputError: the input cannot be used.
        LookupError: what was brought is not there.
    """
    if settings.input == "trained":
        if not isinstance(brought, Learnt):
            raise LookupError("trained_gone")
        return _trained(settings, brought)
    upload = brought if isinstance(brought, UploadedInput) else None
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


def _trained(settings: Settings, learnt: Learnt) -> Calculation:
    """One layer of a trained model, on a sequence of its task."""
    model = learnt.trained.model
    sequence = evaluation_batch(model.task, learnt.trained.run.seed).tokens[settings.sequence][None]  # (1, n, parts)
    tokens = tuple(model.task.label(tuple(at)) for at in sequence[0].tolist())
    layer = min(settings.layer, model.size.layers - 1)
    X = model.traces(sequence, keep=["X"])[layer]["X"].value
    kind, size = mask_kind(settings, len(tokens))
    with torch.no_grad():
        trace = model.attentions[layer].trace(X, mask=kind.build(len(tokens), size))
        maps = trace["weights"].value.unsqueeze(1)  # (1, 1, h, n, n): a layer
        places = mass_on_places(maps, model.task.places(sequence))
    roles = leading(places)
    reports = tuple(HeadReport(f"trained.{role.place}", role.mass, role.mass >= CLEAR) for role in roles)
    origin = "recorded" if learnt.recorded else "trained"
    return Calculation(tokens, trace, reports, checks(trace), origin)


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
