"""What can be wrong with an input, each in one sentence: the value, the rule, the remedy.

A page that speaks another language takes ``key`` and ``values`` and says it in its own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["SENTENCES", "InputError"]

SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "text_long": "the text has {length} characters; at most {most} are read: shorten it",
        "text_empty": "the text {text} holds no word; type at least one letter, digit or sign",
        "text_tokens": "the text has n={n} tokens; at most {most} are drawn: shorten it",
        "bound": "{name}={value} is outside {low} … {high}; choose one in between",
        "not_finite": "{name} holds {value} at row {row}, column {column} (counted from 0); "
        "every entry must be a finite number: correct or drop it",
        "overflow": "{name} overflows {dtype}: the largest |X| is {largest} and every number must stay below "
        "{limit}; divide X, the weights or the scale by a power of ten",
        "file_size": "{file} has {size} bytes; at most {most} are read: keep fewer rows or columns",
        "file_axes": "{file} holds an array of shape {shape}; X has two axes, (n, d_model)",
        "file_shape": "{file} has n={n} rows and d_model={d_model} columns of numbers; n must be 1 … {most} and "
        "d_model {low} … {high}: cut the table to size",
        "file_rows": "{file} has more than n={most} rows; cut the table to size",
        "file_cell": "{file}: row {row}, column {column} holds {value}; every cell must be a finite number that "
        "float32 can hold: correct it",
        "file_ragged": "{file}: row {row} has {cells} cells and row {first} has {width}; level them",
        "file_npy": "{file} is not an NPY file that can be read; save it with numpy.save",
        "file_dtype": "{file} holds dtype {dtype}; X holds real numbers: convert with array.astype('float32')",
        "file_short": "{file} ends too early for its shape {shape}; save it again",
        "file_text": "{file} is neither NPY nor UTF-8 text; save it as CSV or with numpy.save",
        "file_csv": "{file} cannot be read as CSV ({reason}); save it again as plain CSV",
        "file_empty": "{file} is empty; give at least one row of numbers",
        "toy_time": "the training has used {most} s of CPU at step {step} of {steps}; choose fewer steps, features or "
        "heads",
        "toy_diverged": "the loss is no longer a finite number at step {step}; choose a smaller learning rate",
        "weights_size": "{file} has {size} bytes; at most {most} are read: give the weights of a toy task",
        "weights_format": "{file} is not a safetensors file that can be read; give one that was downloaded here",
        "weights_task": "{file} names the task {task}; the tasks are {tasks}: give weights that were trained here",
        "weights_told": "{file} says {name}={value}, which no model of its task has; give one that was downloaded here",
        "weights_tensor": "{file}: {name} is {found}; a model of this task and size has {wanted}: give the weights "
        "as they were downloaded",
        "weights_finite": "{file}: {name} holds {value}; weights are finite numbers within ±{most}: give others",
    }
)
"""English, by key."""


class InputError(ValueError):
    """An input that cannot be used.

    Attributes:
        key: which of SENTENCES.
        values: what stands in it.

    >>> str(InputError("text_tokens", n=300, most=256))
    'the text has n=300 tokens; at most 256 are drawn: shorten it'
    """

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(SENTENCES[key].format(**values))
        self.key, self.values = key, values
