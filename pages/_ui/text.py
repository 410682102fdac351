"""The app's words in English and Chinese.

Short ones stand side by side in ``_text/labels.toml``, errors in English in ``mha_core.errors``; a
page's sentences are sections (``## key``) of ``_text/en/<page>.md`` and ``_text/zh/<page>.md``.
Values go in by name, ``{n}``. Whatever a user typed goes through :func:`code` first: user text is
never markup.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path

from mha_core.errors import SENTENCES

__all__ = ["LANGUAGES", "Words", "code", "words"]

LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).parent.parent / "_text"


class Words:
    """One language's texts: ``t("sidebar.d_model")``, ``t("overview.caption", h=4)``.

    Raises:
        KeyError: there is no such text.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = _load(language)

    def __call__(self, key: str, /, **values: object) -> str:
        return self._texts[key].format(**values) if values else self._texts[key]

    def sentences(self, *said: str) -> str:
        """One after the other: Chinese has no space after a full stop."""
        return ("" if self.language == "zh" else " ").join(said)

    def __contains__(self, key: str) -> bool:
        return key in self._texts

    def group_all(self) -> dict[str, str]:
        """All texts, by key."""
        return dict(self._texts)

    def group(self, prefix: str) -> dict[str, str]:
        """All texts under a prefix, by the rest of their keys."""
        return {key[len(prefix) + 1 :]: text for key, text in self._texts.items() if key.startswith(f"{prefix}.")}


@cache
def words(language: str) -> Words:
    """The texts of a language, "en" or "zh"."""
    return Words(language)


def _load(language: str) -> dict[str, str]:
    texts = {f"error.{key}": sentence for key, sentence in SENTENCES.items()} if language == "en" else {}
    _flatten(tomllib.loads((_FOLDER / "labels.toml").read_text("utf-8")), "", language, texts)
    for page in sorted((_FOLDER / language).glob("*.md")):
        sections = re.split(r"^## +(\S+) *\n", page.read_text("utf-8"), flags=re.MULTILINE)
        for key, body in zip(sections[1::2], sections[2::2], strict=True):
            texts[f"{page.stem}.{key}"] = body.strip()
    return texts


def _flatten(tree: dict[str, object], prefix: str, language: str, texts: dict[str, str]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict) and not set(value) <= set(LANGUAGES):
            _flatten(value, f"{prefix}{key}.", language, texts)
        elif isinstance(value, dict):
            texts.update({prefix + key: value[language]} if language in value else {})


def code(text: object, longest: int = 40) -> str:
    """What a user typed, as Markdown that can only be read: a code span without line breaks.

    >>> code("[a](http://b) `x`")
    "`[a](http://b) 'x'`"
    """
    plain = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in str(text)[: longest + 1])
    plain = plain.replace("`", "'").strip() or "␣"
    return f"`{plain[:longest]}{'…' if len(plain) > longest else ''}`"
