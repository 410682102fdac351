"""From text to X: tokens, codes and positions against their definitions."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_core import MultiHeadAttention
from mha_core.inputs import (
    D_MODEL_RANGE,
    MAX_HEADS,
    MAX_TOKENS,
    POCKET,
    PRESETS,
    Preset,
    check_bounds,
    content_size,
    embed,
    positions,
    random_input,
    tokenize,
    word_code,
)  # fmt: skip
from mha_core.weights import set_pocket

SIZES = [4, 5, 6, 7, 8, 15, 64, 99, 512]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the cat sat", "the cat sat"),
        ("  the \n cat ", "the cat"),
        ("Wait... what?!", "Wait . . . what ? !"),
        ("(see http://x.y/z_1)", "( see http : / / x . y / z _ 1 )"),
        ("猫坐在垫子上。𠮷々", "猫 坐 在 垫 子 上 。 𠮷 々"),
        ("かなカナ", "か な カ ナ"),
        ("한국어 문장", "한국어 문장"),
        ("I like猫very", "I like 猫 very"),
        ("Don't don’t rock'n'roll", "Don't don’t rock'n'roll"),
        ("'tis the dogs' 'x' don''t", "' tis the dogs ' ' x ' don ' ' t"),
        ("'hello'猫 x-猫", "' hello ' 猫 x - 猫"),
        ("well-known -x- self- a--b", "well-known - x - self - a - - b"),
        ("in 2024, 3.14 or 1,000; 50%", "in 2024 , 3 . 14 or 1 , 000 ; 50 %"),
        ("2024-01-02", "2024 - 01 - 02"),
        ("x2 H2O ½", "x2 H2O ½"),
        ("नमस्ते हिन्दी-भाषा", "नमस्ते हिन्दी-भाषा"),
        ("ภาษาไทย", "ภาษาไทย"),
        ("cafe\u0301", "caf\u00e9"),
        ("cafe\u200d\u0301 \u1100\u200b\u1161", "caf\u00e9 가"),
        ("q\u0323\u0307!", "q\u0323\u0307 !"),
        ("שלום, עולם", "שלום , עולם"),
        ("مُحَمَّد؟", "مُحَمَّد ؟"),
        ("\u202eabc\u202c \u200fdef", "abc def"),
        ("a👍b", "a 👍 b"),
        ("❤\ufe0f 1\ufe0f\u20e3", "❤\ufe0f 1\ufe0f\u20e3"),
        ("👨\u200d👩\u200d👧", "👨 👩 👧"),
        ("👍🏽", "👍 🏽"),
        ("a\x00b\x1bc\x7fd", "a b c d"),
        ("so\u00adft ze\u200bro \ufeffbom", "soft zero bom"),
        ("x\ud800y \udfff", "x y"),
        ("\u0301abc", "\u0301 abc"),
    ],
)
def test_words_marks_and_cjk_characters_are_tokens(text: str, tokens: str) -> None:
    assert tokenize(text) == tuple(tokens.split(" "))


@pytest.mark.parametrize("space", list(" \t\n\v\f\r\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"))
def test_every_whitespace_separates(space: str) -> None:
    assert tokenize(f"{space}a{space}{space}b{space}") == ("a", "b")


@pytest.mark.parametrize("text", ["", "  \n\u3000", "\x00\x1b", "\ud800", "\u200b"])
def test_a_text_without_a_token_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text)) + " holds no word; type at least one letter"):
        tokenize(text)


def test_256_tokens_are_read_and_257_refused() -> None:
    assert len(tokenize("猫" * 256)) == 256
    with pytest.raises(ValueError, match="n=257 tokens; at most 256 are drawn: shorten it"):
        tokenize("猫" * 257)


def test_20000_characters_are_read_and_20001_refused() -> None:
    assert len(tokenize("a" * 20_000)) == 1
    with pytest.raises(ValueError, match="20001 characters; at most 20000 are read: shorten it"):
        tokenize("a" * 20_001)


any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=300) | st.text(
    st.sampled_from("aé猫か한'’- .\u0301\u200d\ufe0f👩न्\ud800\x00\u202e"), max_size=400
)


@given(any_text)
def test_any_text_gives_tokens_or_one_sentence(text: str) -> None:
    try:
        tokens = tokenize(text)
    except ValueError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert 1 <= len(tokens) <= MAX_TOKENS
        assert all(token and not any(c.isspace() for c in token) for token in tokens)
        assert embed(tokens, 8).isfinite().all()


@given(any_text)
def test_tokens_set_apart_by_spaces_are_the_same_tokens(text: str) -> None:
    try:
        tokens = tokenize("a " + text)  # a mark goes to what stands before it
    except ValueError:
        return
    assert tokenize(" ".join(tokens)) == tokens


def test_a_word_s_code_is_the_same_in_another_process() -> None:
    script = "from mha_core.inputs import word_code; print(word_code('Straße猫', 64).tolist())"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    output = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert output.stdout.strip() == str(word_code("Straße猫", 64).tolist())


def test_a_word_s_code_stays_what_it_was() -> None:
    # SHAKE-256 of "cat" begins 89 52 fd 4b: two angles, in 2¹⁶ths of a turn
    angles = 2 * np.pi * np.array([0x8952, 0xFD4B]) / 2**16
    expected = np.stack([np.cos(angles), np.sin(angles)], -1).ravel()
    np.testing.assert_allclose(word_code("cat", 4).numpy(), expected, atol=1e-6)


@given(st.text(max_size=20), st.integers(1, 128))
def test_a_word_s_code_is_points_on_the_unit_circle(word: str, pairs: int) -> None:
    lengths = word_code(word, 2 * pairs).view(pairs, 2).norm(dim=-1)
    assert lengths.shape == (pairs,)
    assert (lengths - 1).abs().max() <= 1e-6


@given(st.text(max_size=20), st.integers(1, 32), st.integers(0, 32))
def test_a_longer_code_begins_with_the_shorter_one(word: str, pairs: int, more: int) -> None:
    assert torch.equal(word_code(word, 2 * (pairs + more))[: 2 * pairs], word_code(word, 2 * pairs))


def test_case_is_folded_and_other_words_differ() -> None:
    assert torch.equal(word_code("STRASSE", 16), word_code("straße", 16))
    words = [f"w{i}" for i in range(500)]
    assert len({tuple(word_code(word, 16).tolist()) for word in words}) == 500


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 32, 50, 256])
def test_positions_are_the_paper_s_sinusoids(size: int) -> None:
    expected = np.empty((256, size))
    for p in range(256):
        for feature in range(size):
            angle = p / 10000 ** (2 * (feature // 2) / size)
            expected[p, feature] = np.cos(angle) if feature % 2 else np.sin(angle)
    assert positions(256, size).dtype == torch.float32
    np.testing.assert_allclose(positions(256, size).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("d_model", SIZES)
def test_words_and_positions_have_a_half_of_X_each(d_model: int) -> None:
    size = content_size(d_model)
    assert size % 2 == 0
    assert abs(d_model - 2 * size) <= 3
    X, words = embed(("a", "b", "a"), d_model), embed(("a", "b", "a"), d_model, with_positions=False)
    other = embed(("p", "q", "r"), d_model)
    assert X.shape == (1, 3, d_model)
    assert X.dtype == torch.float32
    assert torch.equal(X[0, 0, :size], X[0, 2, :size])  # the same word
    assert torch.equal(X[..., size:], other[..., size:])  # the same place
    assert not torch.equal(X[..., :size], other[..., :size])
    assert torch.equal(X[..., :size], words[..., :size])
    assert words[..., size:].count_nonzero() == 0


@pytest.mark.parametrize("d_model", [4, 7, 64])
def test_random_input_goes_by_the_seed_and_keeps_its_rows_for_any_n(d_model: int) -> None:
    longest = random_input(MAX_TOKENS, d_model, seed=3)
    for n in (1, 2, 17, MAX_TOKENS):
        assert torch.equal(random_input(n, d_model, seed=3), longest[:, :n])
    assert not torch.equal(random_input(5, d_model, seed=4), longest[:, :5])


def test_random_input_is_standard_normal_and_leaves_torch_s_own_stream_alone() -> None:
    state = torch.get_rng_state()
    X = random_input(256, 512, seed=0)
    assert torch.equal(torch.get_rng_state(), state)
    assert abs(X.mean().item()) < 0.01
    assert abs(X.std().item() - 1) < 0.01


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_a_preset_is_a_sentence_of_up_to_40_tokens(preset: Preset) -> None:
    tokens = tokenize(preset.text)
    assert 8 <= len(tokens) <= 40
    assert any(len(token) > 1 for token in tokens) == (preset.language == "en")


def test_presets_have_their_own_keys_and_each_language_a_sentence_that_repeats_words() -> None:
    assert len({preset.key for preset in PRESETS}) == len(PRESETS)
    assert {preset.language for preset in PRESETS} == {"en", "zh"}
    for key in ("same", "zhidao"):
        (tokens,) = (tokenize(preset.text.casefold()) for preset in PRESETS if preset.key == key)
        assert len(set(tokens)) <= len(tokens) / 2 + 1


def pocket_by_hand() -> dict[str, list[np.ndarray]]:
    """The pocket calculation, head by head, in NumPy's integers up to the scores."""
    X, W_O = np.array(POCKET.X), np.array(POCKET.W_O)
    d_k = POCKET.d_model // POCKET.h
    steps: dict[str, list[np.ndarray]] = {"Q": [], "K": [], "V": [], "raw_scores": [], "weights": [], "output": []}
    output = np.zeros((len(X), POCKET.d_model))
    for i in range(POCKET.h):
        band = slice(i * d_k, (i + 1) * d_k)
        Q, K, V = (X @ np.array(W)[:, band] for W in (POCKET.W_Q, POCKET.W_K, POCKET.W_V))
        exponentials = np.exp(Q @ K.T / np.sqrt(2))
        weights = exponentials / exponentials.sum(-1, keepdims=True)
        output += weights @ V @ W_O[band]
        for name, value in zip(steps, (Q, K, V, Q @ K.T, weights), strict=False):
            steps[name].append(value)
    steps["output"] = [output]
    return steps


def test_the_pocket_holds_integers_from_minus_2_to_2() -> None:
    assert np.array(POCKET.X).shape == (3, 4) == (len(POCKET.tokens), POCKET.d_model)
    assert POCKET.h == 2
    for matrix in (POCKET.X, POCKET.W_Q, POCKET.W_K, POCKET.W_V, POCKET.W_O):
        assert np.array(matrix).dtype.kind == "i"
        assert np.abs(matrix).max() <= 2


@pytest.mark.parametrize("bias", [True, False])
def test_the_pocket_s_Q_K_V_and_raw_scores_are_exact_and_its_output_is_right(bias: bool) -> None:
    module = set_pocket(MultiHeadAttention(POCKET.d_model, POCKET.h, bias=bias))
    trace, steps = module.trace(POCKET.input()), pocket_by_hand()
    for name, here in (("Q", "Q_heads"), ("K", "K_heads"), ("V", "V_heads"), ("raw_scores", "raw_scores")):
        np.testing.assert_array_equal(trace[here].numpy()[0], np.array(steps[name]))
    np.testing.assert_allclose(trace["weights"].numpy()[0], np.array(steps["weights"]), atol=1e-6)
    np.testing.assert_allclose(trace["output"].numpy()[0], steps["output"][0], atol=1e-5)


def test_the_pocket_s_heads_look_where_its_docstring_says() -> None:
    first, second = (weights.argmax(-1).tolist() for weights in pocket_by_hand()["weights"])
    A, B, C = range(3)
    assert first == [B, C, A]  # one token on, and from C back to A
    assert second == [C, A, C]  # from B back to A, else at C
    for weights in pocket_by_hand()["weights"]:
        top = np.sort(weights, -1)
        assert (top[:, -1] - top[:, -2]).min() > 0.05  # no ties


@pytest.mark.parametrize("sizes", [(1, 1, 4, 1), (256, 256, 512, 16), (1, 256, 4, 4), (256, 1, 512, 1)])
def test_sizes_up_to_the_bounds_are_drawn(sizes: tuple[int, int, int, int]) -> None:
    check_bounds(*sizes)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((3, 3, 3, 1), "d_model=3 is outside 4 … 512; choose"),
        ((3, 3, 513, 1), "d_model=513 is outside 4 … 512; choose"),
        ((3, 3, 8, 0), "h=0 is outside 1 … 16; choose"),
        ((3, 3, 34, 17), "h=17 is outside 1 … 16; choose"),
        ((0, 3, 8, 2), "n_q=0 is outside 1 … 256; choose"),
        ((3, 0, 8, 2), "n_k=0 is outside 1 … 256; choose"),
        ((257, 3, 8, 2), "n_q=257 is outside 1 … 256; choose"),
        ((3, 257, 8, 2), "n_k=257 is outside 1 … 256; choose"),
    ],
)
def test_sizes_beyond_a_bound_are_refused_by_name(sizes: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_bounds(*sizes)


def test_the_bounds_keep_every_tensor_small() -> None:
    assert MAX_HEADS * MAX_TOKENS**2 <= 2**20  # weights
    assert MAX_HEADS * MAX_TOKENS * D_MODEL_RANGE[1] <= 2**21  # head_contributions
