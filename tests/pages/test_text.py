"""Texts: both languages say the same things, and what users type is never markup."""

import re
import string
import unicodedata

import pytest

from mha_core.figures.words import WORDS
from mha_core.masks import MASKS
from mha_core.weights import ROLES
from pages._ui.catalog import PAGES
from pages._ui.layout import STRIP
from pages._ui.settings import INPUTS, WEIGHTS
from pages._ui.text import LANGUAGES, code, words

EN, ZH = (words(language).group_all() for language in LANGUAGES)


def placeholders(text):
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


def formulas(text):
    return sorted(re.findall(r"\$[^$]+\$|`[^`]+`", text))


def test_both_languages_have_the_same_keys():
    assert EN.keys() == ZH.keys()


@pytest.mark.parametrize("key", sorted(EN))
def test_both_languages_have_the_same_placeholders_and_formulas(key):
    assert placeholders(EN[key]) == placeholders(ZH[key])
    assert formulas(EN[key]) == formulas(ZH[key])


@pytest.mark.parametrize("key", sorted(EN))
def test_no_text_is_empty_or_left_in_the_other_language(key):
    assert EN[key].strip() and ZH[key].strip()
    assert not re.search(r"[\u4e00-\u9fff]", EN[key])


def apart(character):
    """What Markdown takes for a border of words: nothing, space, punctuation; a value may end with a % sign."""
    return not character or character.isspace() or unicodedata.category(character)[0] in "PS"


@pytest.mark.parametrize("key", sorted(EN))
def test_what_is_bold_is_rendered_so(key):
    """Between a full stop and a letter, ** stays two stars: so **你好**：…, not **你好：**…"""
    for text in (EN[key], ZH[key]):
        pieces = text.split("**")
        for before, bold, after in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
            assert not apart(bold[-1]) or apart(after[:1]), text
            assert not apart(bold[0]) or apart(before[-1:]), text


def test_every_row_of_a_registry_has_its_words():
    wanted = [
        *(f"{row.key}.title" for row in PAGES),
        *(f"{row.key}.nav" for row in PAGES),
        *(f"nav.{row.group}" for row in PAGES),
        *(f"figure.{key}" for key in WORDS),
        *(f"strip.{step.key}" for step in STRIP),
        *(f"role.{role.key}" for role in ROLES),
        *(f"mask.{kind.key}" for kind in MASKS),
        *(f"sidebar.mask_size.{kind.key}" for kind in MASKS if kind.default_size),
        *(f"input.{key}" for key in INPUTS if key in ("pocket", "text", "random", "upload")),
        *(f"weights.{key}" for key in WEIGHTS),
        *(f"origin.{key}" for key in (*WEIGHTS, "pocket")),
    ]
    assert set(wanted) <= EN.keys()


@pytest.mark.parametrize(
    "typed",
    [
        "<script>alert(1)</script>",
        "[a](http://b.c)",
        "![](http://b.c/x.png)",
        "`code`",
        "$x^2$",
        ":red[x]",
        "a\nb",
        "",
        "\x00",
    ],
)
def test_what_users_type_becomes_one_code_span(typed):
    shown = code(typed)
    assert shown.startswith("`") and shown.endswith("`")
    assert "`" not in shown[1:-1] and "\n" not in shown and len(shown) > 2


def test_the_pictures_speak_the_same_english_in_the_app_and_in_a_notebook():
    assert words("en").group("figure") == dict(WORDS)
