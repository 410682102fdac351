"""Trained toy weights as bytes and back: the safetensors format, with what they were trained on as metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping

import torch
from safetensors import SafetensorError, deserialize
from safetensors.torch import save
from torch import Tensor

from mha_core.errors import InputError
from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import MAX_SEED, TOY_TASKS, Size, task_named
from mha_core.toy_training import MAX_FEATURES, MAX_HEADS, MAX_LAYERS, MAX_STEPS, Trained, look_at

__all__ = ["MAX_BYTES", "from_safetensors", "to_safetensors"]

MAX_BYTES = 4 * 2**20
"""Of a file that is read; the largest that can be written has 3 MB."""
LARGEST = 100.0
"""Of weights that are read, and of the scale: trained ones stay below 10, and with these nothing overflows."""
_BOUNDS = {
    "h": (1, MAX_HEADS),
    "d_model": (1, MAX_FEATURES),
    "seed": (0, MAX_SEED),
    "steps": (0, MAX_STEPS),
}


def to_safetensors(trained: Trained) -> bytes:
    """The weights under the names of ``ToyModel.state_dict``; task, sizes, seed, steps and versions as metadata.

    >>> from mha_core.toy_tasks import Size
    >>> new = look_at(ToyModel(task_named("copy"), Size(4, 1, 64), seed=0), seed=0, steps=0)
    >>> from_safetensors(to_safetensors(new), "new.safetensors").run.size
    Size(h=4, layers=1, d_model=64)
    """
    run, model = trained.run, trained.model
    told = {"task": run.task, "h": run.size.h, "layers": run.size.layers, "d_model": run.size.d_model}
    told |= {"seed": run.seed, "steps": run.steps, "versions": json.dumps(dict(run.versions))}
    if model.scale is not None:
        told["scale"] = repr(float(model.scale))
    return save(model.state_dict(), {name: str(value) for name, value in told.items()})


def from_safetensors(data: bytes, file: str) -> Trained:
    """Weights that :func:`to_safetensors` wrote, measured anew; the run has one point, the last.

    Args:
        data: the file's bytes.
        file: its name, for what there is to say about it.

    Raises:
        InputError: too large, not safetensors, of no toy task, of other names or shapes than its sizes ask for,
            holding NaN, ∞ or numbers beyond ±LARGEST.
    """
    if len(data) > MAX_BYTES:
        raise InputError("weights_size", file=file, size=len(data), most=MAX_BYTES)
    try:
        tensors = dict(deserialize(data))  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise InputError("weights_format", file=file) from error
    told: Mapping[str, str] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
    key = told.get("task", "")
    if key not in [task.key for task in TOY_TASKS]:
        raise InputError(
            "weights_task", file=file, task=repr(key[:20]), tasks=", ".join(task.key for task in TOY_TASKS)
        )
    task = task_named(key)
    bounds = {**_BOUNDS, "layers": (1, MAX_LAYERS if task.layered else 1)}
    whole = {name: _whole(file, told, name, *bounds[name]) for name in bounds}
    size = Size(whole["h"], whole["layers"], whole["d_model"])
    if size.d_model % size.h:
        raise InputError("weights_told", file=file, name="h", value=repr(told["h"]))
    model = ToyModel(task, size, whole["seed"], scale=_scale(file, told))
    model.load_state_dict(_weights(file, tensors, model.state_dict()))
    return look_at(model, seed=whole["seed"], steps=whole["steps"], versions=_versions(told))


def _whole(file: str, told: Mapping[str, str], name: str, low: int, high: int) -> int:
    value = told.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) <= 6 and low <= int(value) <= high):
        raise InputError("weights_told", file=file, name=name, value=repr(value[:20]))
    return int(value)


def _scale(file: str, told: Mapping[str, str]) -> float | None:
    if "scale" not in told:
        return None
    try:
        scale = float(told["scale"])
    except ValueError:
        scale = 0.0
    if not 0 < scale <= LARGEST:
        raise InputError("weights_told", file=file, name="scale", value=repr(told["scale"][:20]))
    return scale


def _versions(told: Mapping[str, str]) -> dict[str, str]:
    try:
        versions = json.loads(told.get("versions", "{}"))
    except (ValueError, RecursionError):
        return {}
    known = versions.items() if isinstance(versions, dict) else ()
    return {str(name)[:20]: str(value)[:40] for name, value in list(known)[:8]}


def _weights(file: str, tensors: Mapping[str, Mapping[str, object]], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    weights = {}
    for name in sorted(tensors.keys() | wanted.keys()):
        found = _kind(tensors[name]["dtype"], tensors[name]["shape"]) if name in tensors else "–"
        asked = _kind("F32", wanted[name].shape) if name in wanted else "–"
        if found != asked:
            raise InputError("weights_tensor", file=file, name=name[:40], found=found, wanted=asked)
        weights[name] = torch.frombuffer(tensors[name]["data"], dtype=torch.float32).view(wanted[name].shape).clone()
        if not bool((weights[name].abs() <= LARGEST).all()):  # NaN as well
            wrong = weights[name][~(weights[name].abs() <= LARGEST)][0].item()
            raise InputError("weights_finite", file=file, name=name, value=wrong, most=f"{LARGEST:g}")
    return weights


def _kind(dtype: object, shape: object) -> str:
    return f"{dtype} {tuple(shape)}" if isinstance(shape, list | tuple) else str(dtype)
