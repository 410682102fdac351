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

__all__ = [
    "RULES", "Indices", "Notice", "OneOf", "Pairs", "Settings", "Switch", "Text", "Whole",
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


def control(default: Any, rule: Rule, *, view: bool = False) -> Any:
    """A row: its default, its rule, and whether it only changes what is looked at, not what is computed."""
    return field(default=default, metadata={"rule": rule, "view": view})


INPUTS = (*(preset.key for preset in PRESETS), "pocket", "text", "random", "upload")
WEIGHTS = ("designed", "random")
VIEWS = ("all", "versus")
LABS = ("", "ledger", "nudge", "times", "tie", "split", "bias")
ATTEND_LABS = ("divide", "values", "lines", "masking", "axis", "own", "cross")
TEMPERATURES = ("0.25", "0.5", "1", "2", "4")
FACTORS = ("0.33", "2", "3", "5")


@dataclass(frozen=True)
class Settings:
    """Every control. Names are the URL's; indices count from 0."""

    lang: str = control("", OneOf(("", "en", "zh")), view=True)
    d_model: int = control(64, Whole(*D_MODEL_RANGE))
    h: int = control(4, Whole(1, MAX_HEADS))
    input: str = control("cat", OneOf(INPUTS))
    text: str = control("", Text(MAX_CHARACTERS))
    n: int = control(8, Whole(1, MAX_TOKENS))
    src: str = control("", Text(16))
    weights: str = control("designed", OneOf(WEIGHTS))
    seed: int = control(0, Whole(0, 9999))
    bias: bool = control(False, Switch())
    positions: bool = control(True, Switch())
    mask: str = control("none", OneOf(tuple(kind.key for kind in MASKS)))
    mask_size: int = control(0, Whole(0, MAX_TOKENS))  # 0: what the kind of mask proposes
    head: int = control(0, Whole(0, MAX_HEADS - 1), view=True)
    query: int = control(0, Whole(0, MAX_TOKENS - 1), view=True)  # the chosen cell: pages clamp it to what there is
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
