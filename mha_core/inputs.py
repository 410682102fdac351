"""From words, or from nothing, to X: (1, n, d_model).

X = content + position, in disjoint halves of d_model, so that each can be seen. (The paper adds
both in the same features; Vaswani et al. 2017, section 3.5.) Every pair of features is a point on
the unit circle: a word's pairs at angles that are a hash of the word, a position's at the angles
of the paper's sinusoids. So all words are equally long, in whole and in every even-sized prefix.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.errors import InputError

__all__ = [
    "D_MODEL_RANGE", "MAX_HEADS", "MAX_TOKENS", "POCKET", "PRESETS", "Pocket", "Preset",
    "check_bounds", "content_size", "embed", "positions", "random_input", "tokenize", "word_code",
]  # fmt: skip

MAX_TOKENS = 256
MAX_CHARACTERS = 20_000
MAX_HEADS = 16
D_MODEL_RANGE = 4, 512
_OWN_STREAM = 10**8
"""So that random X and random weights of the same seed (mha_core.weights) have nothing in common."""


@dataclass(frozen=True)
class Preset:
    """A row of PRESETS: a sentence to start from, and what it is good for."""

    key: str
    language: str
    text: str


PRESETS: tuple[Preset, ...] = (
    Preset("cat", "en", "The cat sat on the mat because it was tired"),
    Preset("same", "en", "the dog saw the cat and the cat saw the dog"),
    Preset("long", "en", "The keys that the old man who lived by the river had lost were found"),
    Preset("mao", "zh", "猫坐在垫子上因为它累了"),
    Preset("zhidao", "zh", "他知道我知道你不知道"),
    Preset("laoren", "zh", "那位住在河边的老人昨天丢的钥匙今天找到了"),
)
"""Default, repeated words, long range; in English, then in Chinese."""


@dataclass(frozen=True)
class Pocket:
    """A calculation small enough for paper: n = 3, d_model = 4, h = 2, integers from −2 to 2.

    Q, K, V and the raw scores are integers; nothing is rounded before the division by √2.
    Matrices are (in, out), as in the formulas.
    """

    tokens: tuple[str, ...]
    X: tuple[tuple[int, ...], ...]
    W_Q: tuple[tuple[int, ...], ...]
    W_K: tuple[tuple[int, ...], ...]
    W_V: tuple[tuple[int, ...], ...]
    W_O: tuple[tuple[int, ...], ...]
    h: int = 2

    @property
    def d_model(self) -> int:
        """Features of a token: 4."""
        return len(self.X[0])

    def input(self) -> Tensor:
        """X, (1, 3, 4), float32."""
        return torch.tensor(self.X, dtype=torch.float32).unsqueeze(0)


POCKET = Pocket(
    tokens=("A", "B", "C"),
    X=((-1, -1, -2, 2), (0, 0, 0, -2), (1, 1, 0, 0)),
    W_Q=((0, 0, -1, 0), (0, -1, 1, 1), (0, 0, 0, 0), (-1, 0, 0, 1)),
    W_K=((1, 0, 0, 0), (0, 0, 1, 1), (0, 1, 1, 0), (0, -1, 0, 0)),
    W_V=((1, 0, 0, 2), (0, 1, 1, 0), (-1, 0, 1, 0), (0, 1, 0, -1)),
    W_O=((1, 0, 0, 1), (0, 2, -1, 0), (1, 0, 1, 0), (0, -1, 0, 1)),
)
"""Head 1 looks one token on and from C back to A; head 2 looks from B back to A, else at C."""


def tokenize(text: str) -> tuple[str, ...]:
    """Words, each punctuation mark apart, each CJK character a token of its own.

    An apostrophe or hyphen between two letters stays in the word. Control and format characters,
    unassigned ones and lone surrogates are dropped.

    Raises:
        ValueError: no token, or more than MAX_TOKENS or MAX_CHARACTERS.

    >>> tokenize("Don't stop, 猫!")
    ("Don't", 'stop', ',', '猫', '!')
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError("text_long", length=len(text), most=MAX_CHARACTERS)
    tokens: list[str] = []
    inside = False  # the last token is a word that may go on
    characters = unicodedata.normalize("NFC", text)
    for place, c in enumerate(characters):
        kind = unicodedata.category(c)
        if kind in ("Cc", "Cs", "Co", "Cn", "Cf") or kind.startswith("Z"):
            inside = inside and kind == "Cf"
            continue
        joins = c in "'’-" and inside and _in_word(characters[place + 1 : place + 2], "L")
        word = _in_word(c, "LN")
        if (kind[0] == "M" and tokens) or joins or (word and inside):
            tokens[-1] += c
        else:
            tokens.append(c)
            inside = word
    if not tokens:
        raise InputError("text_empty", text=repr(text[:20]))
    if len(tokens) > MAX_TOKENS:
        raise InputError("text_tokens", n=len(tokens), most=MAX_TOKENS)
    return tuple(unicodedata.normalize("NFC", token) for token in tokens)  # a dropped character kept letters apart


def _in_word(c: str, kinds: str) -> bool:
    return c != "" and unicodedata.category(c)[0] in kinds and not _is_cjk(c)


def _is_cjk(c: str) -> bool:
    # Han, kana and their extensions; Korean separates its words by spaces
    code = ord(c)
    return (
        0x2E80 <= code <= 0x31FF or 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x3FFFF
    )


def embed(tokens: Sequence[str], d_model: int, *, with_positions: bool = True) -> Tensor:
    """X = content + position for a sequence of words: (1, n, d_model), float32.

    The first ``content_size(d_model)`` features are the word's and zero in the position, the rest
    the other way round. "The" and "the" share a code: case is folded.

    >>> X = embed(("the", "cat", "The"), 8)
    >>> X.shape, bool((X[0, 0, :4] == X[0, 2, :4]).all())
    (torch.Size([1, 3, 8]), True)
    """
    size = content_size(d_model)
    content = torch.stack([word_code(token, size) for token in tokens])  # (n, size)
    position = positions(len(tokens), d_model - size)  # (n, d_model − size)
    return torch.cat([content, position if with_positions else torch.zeros_like(position)], -1).unsqueeze(0)


def content_size(d_model: int) -> int:
    """How many features of X are the word's: half of d_model, rounded down to whole pairs."""
    return d_model // 4 * 2


def word_code(word: str, size: int) -> Tensor:
    """A word's code, (size,): pairs (cos θ, sin θ) with angles that are a hash of the word.

    The hash is SHAKE-256 of the case-folded word: the same in every process, and a longer code
    begins with the shorter one.

    >>> torch.equal(word_code("cat", 8), word_code("CAT", 16)[:8])
    True
    """
    digest = hashlib.shake_256(word.casefold().encode("utf-8", "replace")).digest(size)
    angles = torch.tensor([int.from_bytes(digest[i : i + 2]) for i in range(0, size, 2)]) * (2 * math.pi / 2**16)
    return torch.stack([angles.cos(), angles.sin()], -1).flatten()


def positions(n: int, size: int) -> Tensor:
    """The paper's sinusoids, (n, size): sin and cos of p / 10000^(2j / size).

    Source: Vaswani et al. 2017, section 3.5. An odd ``size`` ends in a sine without its cosine.

    >>> positions(2, 2)
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    angles = torch.arange(n).unsqueeze(1) * frequencies(size)  # (n, ⌈size / 2⌉)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :size].float()


def frequencies(size: int) -> Tensor:
    """The angle that each pair of ``positions`` turns by from one token to the next, (⌈size / 2⌉,)."""
    return 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)


def random_input(n: int, d_model: int, seed: int) -> Tensor:
    """X ~ N(0, 1), (1, n, d_model); a row's numbers do not depend on n, which is at most MAX_TOKENS.

    >>> torch.equal(random_input(3, 4, seed=0), random_input(5, 4, seed=0)[:, :3])
    True
    """
    check_bounds(n, n, d_model, 1)
    return torch.randn(MAX_TOKENS, d_model, generator=torch.Generator().manual_seed(_OWN_STREAM + seed))[:n].unsqueeze(
        0
    )


def check_bounds(n_q: int, n_k: int, d_model: int, h: int) -> None:
    """Refuse what is too large to be drawn (the calculation itself has no such bounds).

    Together they keep h·n_q·n_k within 2²⁰ and h·n_q·d_model within 2²¹.

    Raises:
        ValueError: names the bound.
    """
    bounds = (
        ("d_model", d_model, *D_MODEL_RANGE),
        ("h", h, 1, MAX_HEADS),
        ("n_q", n_q, 1, MAX_TOKENS),
        ("n_k", n_k, 1, MAX_TOKENS),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise InputError("bound", name=name, value=value, low=low, high=high)
