import json

import pytest

from mha_core.figures.labels import LONGEST, escape, fit, plain_labels, text_width, token_labels


def test_repeated_words_are_numbered_whatever_their_case():
    assert token_labels(["The", "cat", "the", "the"]) == ("The·1", "cat", "the·2", "the·3")
    assert token_labels(["他", "知道", "我", "知道"]) == ("他", "知道·1", "我", "知道·2")


def test_a_token_that_looks_like_a_number_of_another_stays_different():
    labels = token_labels(["the", "the·1", "the", "The·1"])
    assert len(set(labels)) == 4


def test_different_tokens_never_look_alike_by_truncation():
    long = ["a" * 40 + ending for ending in "xyz"]
    labels = token_labels(long)
    assert len(set(labels)) == 3
    assert all(label.startswith("a" * (LONGEST - 1) + "…·") for label in labels)


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("", "␣"),
        (" ", "␣"),
        ("\n", "␣"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("$x$", "&#36;x&#36;"),
        ("a\u202eb\u2066c\u200f", "abc"),
        ("\ud800ok\x00\x1b", "ok"),
        ("%{z}", "%{z}"),
        ("2020-01-01", "2020-01-01"),
        ("\u200b", "␣"),
    ],
)
def test_text_of_a_user_is_made_harmless(token, label):
    assert token_labels([token]) == (label,)


def test_every_label_can_be_sent():
    labels = token_labels([chr(code) * 2 for code in range(0, 0x3000, 7)] + ["\ud83d", "🙂"])
    json.dumps(labels).encode()
    "".join(labels).encode("utf-8")
    assert len(set(labels)) == len(labels)
    assert not any("$" in label or "<" in label for label in labels)


def test_fit_keeps_the_number_and_the_width():
    for label in plain_labels(["internationalisation", "internationalisation", "猫" * 30, "iiii"]):
        shorter = fit(label, 60, 15)
        assert text_width(shorter, 15) <= 60
        assert shorter.rpartition("·")[2] == label.rpartition("·")[2] or "·" not in label


def test_escaping_is_what_plotly_undoes():
    assert escape("a<b") == "a&lt;b"
