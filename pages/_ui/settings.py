"""Settings: every control of the app, its default and its limits, in one place.

A control is a field of :class:`Settings`; its rule reads it from a URL and writes it back. Nothing
here knows Streamlit. What a URL cannot say is named in a :class:`Notice` and replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from mha_core.inputs import D_MODEL_RANGE, MAX_CHARACTERS, MAX_HEADS, MAX_TOKENS, POCKET, PRESETS
from mha_core.masks import MASKS
from mha_core.model_sizes import MODEL_SIZES
from mha_core.order import CASES as ORDER_CASES
from mha_core.random_queries import MOST_D_K
from mha_core.reorder import REORDERS
from mha_core.sizes import DTYPE_BYTES
from mha_core.toy_tasks import TOY_TASKS

__all__ = [
    "RULES", "Indices", "Name", "Notice", "OneOf", "Pairs", "Settings", "Switch", "Text", "Whole",
    "divisors", "nearest_divisor",
]  # fmt: skip


class Rule(Protocol):
    """What values a control takes. ``read`` raises ValueError for anything else."""

    def read(self, text: str) -> Any: ...
    def write(self, value: Any) -> str: ...
    @property
    def allowed(self) -> str: ...


@dataclass(frozen=True)
class Whole:
    """A whole number from low to high."""

    low: int
    high: int

    def read(self, text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,12}", text) or not self.low <= int(text) <= self.high:
            raise ValueError(text)
        return int(text)

    def write(self, value: int) -> str:
        return str(value)

    @property
    def allowed(self) -> str:
        return f"{self.low} … {self.high}"


@dataclass(frozen=True)
class OneOf:
    """One of some codes."""

    codes: tuple[str, ...]

    def read(self, text: str) -> str:
        if text not in self.codes:
            raise ValueError(text)
        return text

    def write(self, value: str) -> str:
        return value

    @property
    def allowed(self) -> str:
        return ", ".join(code for code in self.codes if code)


@dataclass(frozen=True)
class Switch:
    """On or off."""

    def read(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"

    def write(self, value: bool) -> str:
        return str(value).lower()

    @property
    def allowed(self) -> str:
        return "true, false"


@dataclass(frozen=True)
class Indices:
    """Some whole numbers from 0 to high, such as 0.3 for 0 and 3."""

    high: int

    def read(self, text: str) -> tuple[int, ...]:
        one = Whole(0, self.high)
        return tuple(sorted({one.read(part) for part in text.split(".")})) if text else ()

    def write(self, value: Iterable[int]) -> str:
        return ".".join(map(str, sorted(value)))

    @property
    def allowed(self) -> str:
        return f"0 … {self.high}, 0.{self.high}"


@dataclass(frozen=True)
class Pairs:
    """Some pairs of whole numbers from 0 to high, such as 0.3_2.1 for (0, 3) and (2, 1)."""

    high: int
    longest: int = 10_000

    def read(self, text: str) -> frozenset[tuple[int, int]]:
        if len(text) > self.longest:
            raise ValueError(text)
        one, pairs = Whole(0, self.high), set()
        for part in text.split("_") if text else ():
            first, second = part.split(".")
            pairs.add((one.read(first), one.read(second)))
        return frozenset(pairs)

    def write(self, value: Iterable[tuple[int, int]]) -> str:
        return "_".join(f"{first}.{second}" for first, second in sorted(value))

    @property
    def allowed(self) -> str:
        return f"0 … {self.high}: 0.1_{self.high}.0"


@dataclass(frozen=True)
class Text:
    """Any text up to a length."""

    longest: int

    def read(self, text: str) -> str:
        if len(text) > self.longest:
            raise ValueError(text)
        return text

    def write(self, value: str) -> str:
        return value

    @property
    def allowed(self) -> str:
        return f"≤ {self.longest}"


@dataclass(frozen=True)
class Name(Text):
    """A name that the app gave: nothing that an address separates settings with."""

    def read(self, text: str) -> str:
        if not re.fullmatch("[a-z0-9-]*", text):
            raise ValueError(text)
        return super().read(text)

    @property
    def allowed(self) -> str:
        return f"a … z, 0 … 9, -; {super().allowed}"


def control(default: Any, rule: Rule, *, view: bool = False) -> Any:
    """A row: its default, its rule, and whether it only changes what is looked at, not what is computed."""
    return field(default=default, metadata={"rule": rule, "view": view})


INPUTS = (*(preset.key for preset in PRESETS), "pocket", "text", "random", "upload", "trained")
WEIGHTS = ("designed", "random")
VIEWS = ("all", "versus")
LABS = ("", "ledger", "nudge", "times", "tie", "split", "bias")
ATTEND_LABS = ("divide", "values", "lines", "masking", "axis", "own", "cross")
TEMPERATURES = ("0.25", "0.5", "1", "2", "4")
FACTORS = ("0.33", "2", "3", "5")
RATES = ("0.1", "0.03", "0.01")
MAX_SEQUENCES = 16
TASKS = tuple(task.key for task in TOY_TASKS)
MAX_COMPARED, MOST_STEPS = 4, 1000


@dataclass(frozen=True)
class Settings:
    """Every control. Names are the URL's; indices count from 0."""

    lang: str = control("", OneOf(("", "en", "zh")), view=True)
    d_model: int = control(64, Whole(*D_MODEL_RANGE))
    h: int = control(4, Whole(1, MAX_HEADS))
    input: str = control("cat", OneOf(INPUTS))
    text: str = control("", Text(MAX_CHARACTERS))
    n: int = control(8, Whole(1, MAX_TOKENS))
    src: str = control("", Name(16))  # what no address can hold: an upload, a trained model
    sequence: int = control(0, Whole(0, MAX_SEQUENCES - 1))  # of a trained model's task
    layer: int = control(0, Whole(0, 1))  # of a trained model
    weights: str = control("designed", OneOf(WEIGHTS))
    seed: int = control(0, Whole(0, 9999))
    bias: bool = control(False, Switch())
    positions: bool = control(True, Switch())
    mask: str = control("none", OneOf(tuple(kind.key for kind in MASKS)))
    mask_size: int = control(0, Whole(0, MAX_TOKENS))  # 0: what the kind of mask proposes
    head: int = control(0, Whole(0, MAX_HEADS - 1), view=True)
    query: int = control(1, Whole(0, MAX_TOKENS - 1), view=True)  # the chosen cell: pages clamp it to what there is
    key: int = control(0, Whole(0, MAX_TOKENS - 1), view=True)
    feature: int = control(0, Whole(0, D_MODEL_RANGE[1] - 1), view=True)
    view: str = control("all", OneOf(VIEWS), view=True)
    table: bool = control(False, Switch(), view=True)
    which: str = control("Q", OneOf(("Q", "K", "V")), view=True)
    lab: str = control("", OneOf((*LABS, *ATTEND_LABS)), view=True)  # the experiment on screen
    nudged: int = control(D_MODEL_RANGE[1] - 1, Whole(0, D_MODEL_RANGE[1] - 1), view=True)  # a feature of X
    times: str = control("3", OneOf(FACTORS), view=True)
    off: tuple[int, ...] = control((), Indices(MAX_HEADS - 1), view=True)  # heads that are switched off
    average: bool = control(False, Switch(), view=True)  # one map, the mean, for all heads
    divide: str = control("sqrt", OneOf(("sqrt", "one", "d_k")), view=True)  # attend: what scores are divided by
    temperature: str = control("1", OneOf(TEMPERATURES), view=True)
    hand: str = control("score", OneOf(("score", "value")), view=True)  # which half is written out
    flipped: frozenset[tuple[int, int]] = control(frozenset(), Pairs(MAX_TOKENS - 1), view=True)  # (query, key)
    context: str = control("", Text(200), view=True)  # a second sentence, for cross-attention
    order_case: int = control(0, Whole(0, len(ORDER_CASES) - 1), view=True)  # what tells places apart: of ORDER_CASES
    reorder: str = control("shuffle", OneOf(REORDERS), view=True)
    reorder_seed: int = control(0, Whole(0, 99), view=True)
    task: str = control("copy", OneOf(TASKS), view=True)  # heads: what is learnt
    compared: tuple[int, ...] = control((), Indices(MAX_COMPARED - 1), view=True)  # rows of its sizes; none: all
    toy_seed: int = control(0, Whole(0, 9999), view=True)
    toy_steps: int = control(0, Whole(0, MOST_STEPS), view=True)  # 0: the task's own
    looked_at: int = control(-1, Whole(-1, MAX_COMPARED - 1), view=True)  # the model whose heads are taken away
    taken: tuple[int, ...] = control((), Indices(MAX_COMPARED * 2 - 1), view=True)  # its heads that are off
    slide: int = control(0, Whole(0, 100), view=True)  # faithfulness: % of the way to the other weights
    draw_d_k: int = control(0, Whole(0, MOST_D_K), view=True)  # scale: of the random queries; 0: the calculation's
    draw_n: int = control(16, Whole(1, MAX_TOKENS), view=True)  # keys of a random query
    draw_by: str = control("sqrt", OneOf(("sqrt", "one", "d_k")), view=True)  # what their scores are divided by
    race_rate: str = control("0.1", OneOf(RATES), view=True)  # the learning rate with and without √d_k
    cost_of: str = control("", OneOf(("", *(row.key for row in MODEL_SIZES))), view=True)  # "": this calculation
    cost_n: int = control(0, Whole(0, 2**17), view=True)  # 0: the calculation's, or the model's
    kv_heads: int = control(0, Whole(0, 128), view=True)  # heads that share keys; 0: the calculation's, or the model's
    cost_batch: int = control(1, Whole(1, 1024), view=True)
    cost_layers: int = control(0, Whole(0, 200), view=True)  # 0: the model's
    cost_dtype: str = control("", OneOf(("", *DTYPE_BYTES)), view=True)
    cost_steps: bool = control(False, Switch(), view=True)  # whether the table of steps is shown

    @classmethod
    def read(cls, query: Mapping[str, str]) -> tuple[Settings, tuple[Notice, ...]]:
        """From URL parameters; whatever does not fit falls back and is named. Others are ignored."""
        values: dict[str, Any] = {}
        notices = []
        for row in fields(cls):
            if row.name not in query:
                continue
            rule: Rule = row.metadata["rule"]
            try:
                values[row.name] = rule.read(query[row.name])
            except ValueError:
                taken = rule.write(row.default)
                notices.append(
                    Notice("url", {"name": row.name, "value": query[row.name], "allowed": rule.allowed, "taken": taken})
                )
        settings, more = cls(**values).consistent()
        return settings, (*notices, *more)

    def write(self) -> dict[str, str]:
        """The URL parameters; what equals its default is left out."""
        return {
            row.name: row.metadata["rule"].write(getattr(self, row.name))
            for row in fields(self)
            if getattr(self, row.name) != row.default
        }

    def consistent(self) -> tuple[Settings, tuple[Notice, ...]]:
        """Settle what one control asks of another: h divides d_model, the focus head exists."""
        settings, notices = self, []
        if settings.input == "pocket":
            settings = replace(settings, d_model=POCKET.d_model, h=POCKET.h)
        h = nearest_divisor(settings.d_model, settings.h)
        if h != settings.h:
            notices.append(Notice("h_snapped", {"h": settings.h, "d_model": settings.d_model, "taken": h}))
        if settings.head >= h:
            notices.append(Notice("head_gone", {"head": settings.head + 1, "h": h, "taken": h}))
        return replace(settings, h=h, head=min(settings.head, h - 1)), tuple(notices)

    def calculation(self) -> tuple[Any, ...]:
        """The values that decide what is computed, as a key for caches."""
        return tuple(getattr(self, row.name) for row in fields(self) if not row.metadata["view"])


RULES: Mapping[str, Rule] = {row.name: row.metadata["rule"] for row in fields(Settings)}


@dataclass(frozen=True)
class Notice:
    """Something to tell: a key of the texts and what to put into it."""

    key: str
    values: Mapping[str, Any]


def divisors(d_model: int) -> tuple[int, ...]:
    """The numbers of heads that d_model allows, up to 16."""
    return tuple(h for h in range(1, MAX_HEADS + 1) if d_model % h == 0)


def nearest_divisor(d_model: int, h: int) -> int:
    """The allowed number of heads nearest to h; of two, the smaller."""
    return min(divisors(d_model), key=lambda candidate: abs(candidate - h))


TYPED = {"words": "text", "second": "context"}
"""The parameters that carry what users type, and the settings they carry."""
CARRIERS = ("set", *TYPED)
"""The parameters of an address. None is named as a setting: a session has an entry for each of both."""


def pack(written: Mapping[str, str]) -> dict[str, str]:
    """Settings as an address has them: ``set=d_model.128~h.8``, and beside it what users type.

    One parameter is one hidden field in the page, and thirty of them would cost a third of a slider's answer.

    >>> pack({"d_model": "128", "temperature": "0.5", "text": "a~b"})
    {'set': 'd_model.128~temperature.0.5', 'words': 'a~b', 'second': ''}
    """
    together = "~".join(f"{name}.{value}" for name, value in written.items() if name not in TYPED.values())
    return {"set": together, **{carrier: written.get(name, "") for carrier, name in TYPED.items()}}


def unpack(query: Mapping[str, str]) -> dict[str, str]:
    """The settings in an address, from its carriers or by their own names (``?h=8`` is understood as well).

    >>> unpack({"set": "d_model.128~temperature.0.5", "words": "a", "h": "8", "utm": "x"})
    {'d_model': '128', 'temperature': '0.5', 'text': 'a', 'h': '8', 'utm': 'x'}
    """
    parts = (part.partition(".") for part in query.get("set", "").split("~"))
    carried = {name: value for name, dot, value in parts if dot and name in RULES}
    carried |= {name: query[carrier] for carrier, name in TYPED.items() if carrier in query}
    return {**carried, **{name: value for name, value in query.items() if name not in CARRIERS}}
