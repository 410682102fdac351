"""Trained weights out and in: the same numbers, and one clear sentence for everything that is wrong."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, save
from torch import Tensor

from mha_core.errors import InputError
from mha_core.toy_files import LARGEST, MAX_BYTES, from_safetensors, to_safetensors
from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import TOY_TASKS, Size, task_named
from mha_core.toy_training import MAX_FEATURES, Trained, look_at, train


def short_training(key: str = "induction", steps: int = 3, scale: float | None = None) -> Trained:
    task = task_named(key)
    training = train(task, 2, seed=7, steps=steps, scale=scale)
    while True:
        try:
            next(training)
        except StopIteration as end:
            result: Trained = end.value
            return result


@pytest.mark.parametrize("key", [task.key for task in TOY_TASKS])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_what_is_written_is_read(key: str, scale: float | None) -> None:
    before = short_training(key, scale=scale)
    after = from_safetensors(to_safetensors(before), "weights.safetensors")
    old, new = before.model.state_dict(), after.model.state_dict()
    assert old.keys() == new.keys() and all(torch.equal(old[name], new[name]) for name in old)
    assert after.model.scale == before.model.scale
    for name in ("task", "size", "seed", "steps", "parameters", "accuracy", "versions"):
        assert getattr(after.run, name) == getattr(before.run, name)
    (last,) = after.run.points
    assert last.step == 3 and (last.maps == before.run.points[-1].maps).all()
    assert last.accuracy == before.run.points[-1].accuracy
    assert not any(numbers.requires_grad for numbers in after.model.parameters())


def test_the_file_is_read_by_the_library_as_well(tmp_path: object) -> None:
    done = short_training("copy")
    data = to_safetensors(done)
    assert {name: tuple(tensor.shape) for name, tensor in load(data).items()}["layers.0.W_Q.weight"] == (64, 64)
    path = f"{tmp_path}/weights.safetensors"
    with open(path, "wb") as file:
        file.write(data)
    with safe_open(path, "pt") as opened:
        told = opened.metadata()
    versions = json.loads(told.pop("versions"))
    assert told == {"task": "copy", "h": "2", "layers": "1", "d_model": "64", "seed": "7", "steps": "3"}
    assert versions["torch"] == torch.__version__


def test_the_largest_model_fits() -> None:
    model = ToyModel(task_named("induction"), Size(4, 2, MAX_FEATURES), seed=0)
    data = to_safetensors(look_at(model, seed=0, steps=0))
    assert MAX_BYTES / 2 < len(data) < MAX_BYTES
    assert from_safetensors(data, "large").run.size.d_model == MAX_FEATURES


def parts() -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata that are right, to be made wrong."""
    data = to_safetensors(look_at(ToyModel(task_named("copy"), Size(2, 1, 8), seed=0), seed=0, steps=0))
    length = int.from_bytes(data[:8], "little")
    return load(data), json.loads(data[8 : 8 + length])["__metadata__"]


def test_the_parts_are_right_before_they_are_made_wrong() -> None:
    tensors, told = parts()
    assert from_safetensors(save(tensors, told), "f").run.size == Size(2, 1, 8)


def changed(name: str, change: Callable[[Tensor], Tensor]) -> Callable[[dict[str, Tensor], dict[str, str]], bytes]:
    return lambda tensors, told: save({**tensors, name: change(tensors[name])}, told)


def told_otherwise(**other: str) -> Callable[[dict[str, Tensor], dict[str, str]], bytes]:
    return lambda tensors, told: save(tensors, {**told, **other})


def without(name: str) -> Callable[[dict[str, Tensor], dict[str, str]], bytes]:
    return lambda tensors, told: save({key: value for key, value in tensors.items() if key != name}, told)


def set_first(value: float) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        tensor = tensor.clone()
        tensor.view(-1)[0] = value
        return tensor

    return change


def header(length: int, text: bytes) -> bytes:
    return struct.pack("<Q", length) + text


WRONG: Mapping[str, tuple[Callable[[dict[str, Tensor], dict[str, str]], bytes], str]] = {
    "empty": (lambda tensors, told: b"", "f is not a safetensors file that can be read"),
    "text": (lambda tensors, told: b"a,b\n1,2\n" * 20, "f is not a safetensors file"),
    "pickle": (lambda tensors, told: b"\x80\x04\x95" + bytes(40), "f is not a safetensors file"),
    "cut": (lambda tensors, told: save(tensors, told)[:-1], "f is not a safetensors file"),
    "header too long": (lambda tensors, told: header(2**62, b"{}"), "f is not a safetensors file"),
    "header no JSON": (lambda tensors, told: header(2, b"{["), "f is not a safetensors file"),
    "header a list": (lambda tensors, told: header(2, b"[]"), "f is not a safetensors file"),
    "too large": (lambda tensors, told: bytes(MAX_BYTES + 1), f"f has {MAX_BYTES + 1} bytes; at most {MAX_BYTES}"),
    "no metadata": (lambda tensors, told: save(tensors), "f names the task ''; the tasks are copy, recall"),
    "no tensor": (lambda tensors, told: save({}, told), "f: layers.0.W_K.bias is –; a model .* has F32 \\(8,\\)"),
    "metadata null": (
        lambda tensors, told: header(22, b'{"__metadata__": null}'),
        "f names the task ''; the tasks are",
    ),
    "other task": (told_otherwise(task="T1"), "f names the task 'T1'; the tasks are"),
    "task with other symbols": (told_otherwise(task="recall"), r"f: positions|f: readout.bias is F32 \(40,\)"),
    "h a word": (told_otherwise(h="two"), "f says h='two', which no model of its task has"),
    "h superscript": (told_otherwise(h="²"), "f says h='²'"),
    "h too large": (told_otherwise(h="65"), "f says h='65'"),
    "h does not divide": (told_otherwise(h="3"), "f says h='3', which no model"),
    "two layers": (told_otherwise(layers="2"), "f says layers='2', which no model"),
    "d_model huge": (told_otherwise(d_model="99999999999"), "f says d_model='99999999999'"),
    "other d_model": (told_otherwise(d_model="16"), r"f: layers.0.W_K.bias is F32 \(8,\); .* has F32 \(16,\)"),
    "seed": (told_otherwise(seed="-1"), "f says seed='-1'"),
    "steps": (told_otherwise(steps="2001"), "f says steps='2001'"),
    "scale no number": (told_otherwise(scale="nan"), "f says scale='nan'"),
    "scale a word": (told_otherwise(scale="big"), "f says scale='big'"),
    "one missing": (without("positions"), "f: positions is –; a model of this task and size has F32"),
    "one too many": (lambda t, told: save({**t, "x" * 99: torch.zeros(1)}, told), r"f: x{40} is F32 \(1,\); .* has –"),
    "shape": (changed("positions", lambda t: t[:-1].clone()), r"f: positions is F32 \(11, 8\); .* has F32 \(12, 8\)"),
    "dtype": (changed("positions", lambda t: t.double()), r"f: positions is F64 \(12, 8\)"),
    "integers": (changed("positions", lambda t: t.int()), r"f: positions is I32 \(12, 8\)"),
    "NaN": (changed("readout.weight", set_first(math.nan)), "f: readout.weight holds nan; weights are finite"),
    "infinite": (changed("readout.weight", set_first(-math.inf)), "f: readout.weight holds -inf; .* within ±100"),
    "huge": (changed("readout.weight", set_first(1e6)), "f: readout.weight holds 1000000.0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(name: str) -> None:
    make, sentence = WRONG[name]
    with pytest.raises(InputError, match=sentence):
        from_safetensors(make(*parts()), "f")


def test_versions_that_make_no_sense_are_left_out() -> None:
    tensors, told = parts()
    for versions in ("", "{", "[1]", "null", "[" * 10_000):
        assert from_safetensors(save(tensors, {**told, "versions": versions}), "f").run.versions == {}
    many = json.dumps({f"name{i}" * 9: "x" * 99 for i in range(50)})
    found = from_safetensors(save(tensors, {**told, "versions": many}), "f").run.versions
    assert len(found) <= 8 and all(len(key) <= 20 and len(value) <= 40 for key, value in found.items())


def test_with_the_largest_weights_nothing_overflows() -> None:
    model = ToyModel(task_named("induction"), Size(2, 2, MAX_FEATURES), seed=0, scale=LARGEST)
    data = to_safetensors(look_at(model, seed=0, steps=0))
    told = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    with torch.no_grad():
        for numbers in model.parameters():
            numbers.fill_(LARGEST)
    assert math.isfinite(from_safetensors(save(model.state_dict(), told), "f").run.accuracy.loss)
