"""Text that a figure may show: tokens made safe and distinct, and how wide a text will be."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

__all__ = ["LONGEST", "cut", "escape", "fit", "plain_labels", "text_width", "token_labels"]

LONGEST = 24
"""Characters of a token that are shown, the … included."""

_JOINER = "\u200d"  # holds an emoji of several parts together
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})
_WIDE = frozenset("mwMW@%…—√")
_NARROW = frozenset("iljtfrI.,:;'|!()[]{}/ ·`")


def token_labels(tokens: Sequence[str]) -> tuple[str, ...]:
    """One label a token, safe in any Plotly text and different from every other label.

    Control characters, surrogates and direction overrides are dropped, the rest is cut to 24
    characters and escaped ("$" as well, or two of them would be set as a formula). Tokens that would look
    alike are numbered in their order, whatever their case.

    >>> token_labels(["The", "cat", "<b>", "the", ""])
    ('The·1', 'cat', '&lt;b&gt;', 'the·2', '␣')
    """
    return tuple([escape(label) for label in plain_labels(tokens)])


def plain_labels(tokens: Sequence[str]) -> tuple[str, ...]:
    """As :func:`token_labels`, not escaped yet: to be measured and cut, then escaped."""
    shown = [cut(clean(token), LONGEST) for token in tokens]
    words = [text.casefold() for text in shown]
    repeated = {word for word, count in Counter(words).items() if count > 1}
    taken = {text for text, word in zip(shown, words, strict=True) if word not in repeated}
    numbers: Counter[str] = Counter()
    labels = []
    for text, word in zip(shown, words, strict=True):
        label = text
        while word in repeated and (label == text or label in taken):  # "the·1" may be a token itself
            numbers[word] += 1
            label = f"{text}·{numbers[word]}"
        taken.add(label)
        labels.append(label)
    return tuple(labels)


def clean(text: str) -> str:
    """Visible characters only; a token with nothing to see is shown as ␣, one for each space.

    >>> clean("a\\u202eb\\n"), clean(" "), clean("\\ud800")
    ('ab', '␣', '␣')
    """
    kept = []
    for character in str(text):
        category = unicodedata.category(character)
        if category in ("Zl", "Zp") or (category != "Zs" and character.isspace()):
            continue
        if category in ("Cc", "Cs") or (category == "Cf" and character != _JOINER):
            continue
        kept.append(" " if category == "Zs" else character)
    visible = "".join(kept)
    return visible if visible.strip(f" {_JOINER}") else "␣" * max(1, visible.count(" "))


def cut(text: str, longest: int) -> str:
    """At most ``longest`` characters, the last of them … when something was left out."""
    return text if len(text) <= longest else text[: longest - 1].rstrip(f" {_JOINER}") + "…"


def escape(text: str) -> str:
    """Plotly's pseudo-HTML and its formulas switched off.

    >>> escape("<i>$x$ & y")
    '&lt;i&gt;&#36;x&#36; &amp; y'
    """
    return text.translate(_ENTITIES)


def text_width(text: str, size: float) -> float:
    """About how many pixels a text takes in Source Sans, rather too many than too few."""
    if text.isascii() and text.islower():  # most tokens
        return size * sum([0.3 if c in _NARROW else 0.82 if c in _WIDE else 0.53 for c in text])
    return size * sum([_em(character) for character in text])


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.3
    if unicodedata.east_asian_width(character) in "WF" or character in _WIDE:
        return 1.0
    if unicodedata.combining(character):
        return 0.0
    return 0.63 if character.isupper() else 0.54


def fit(label: str, width: float, size: float) -> str:
    """A label cut to about ``width`` pixels; its number is kept, being what tells it from its like.

    >>> fit("internationalisation·2", 60, 15)
    'inter…·2'
    """
    if text_width(label, size) <= width:
        return label
    stem, dot, number = label.rpartition("·")
    tail = dot + number if stem and number.isdigit() else ""
    stem = stem if tail else label
    while stem and text_width(stem + "…" + tail, size) > width:
        stem = stem[:-1]
    return (stem.rstrip(f" {_JOINER}") + "…" if stem else "") + tail
