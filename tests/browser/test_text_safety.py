"""What a user types, uploads or puts into the address is shown as text, and is nothing else."""

import csv
import io
from urllib.parse import quote, urlencode

import pytest

from mha_core.inputs import MAX_CHARACTERS, tokenize
from pages._ui.settings import RULES, Text
from pages._ui.text import code
from tests.browser.conftest import idle, settle, upload, write

HTML = [
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<img src=http://evil.example/x.png>",
    "<svg onload=alert(1)>",
    "<a href=http://evil.example>a</a>",
    "<a href='javascript:alert(1)'>b</a>",
    "<iframe src=//evil.example>",
    "</div></script><b>bold</b>",
    "<br>",
    "<style>*{display:none}</style>",
    "&lt;i&gt; &#60;i&#62; &amp;",
]
MARKUP = [
    "[link](http://evil.example)",
    "[js](javascript:alert(1))",
    "![image](http://evil.example/y.png)",
    "http://evil.example",
    "**bold** _it_ ~~no~~",
    "# heading",
    "| a | b |",
    "`code` ``",
    "$x^2$",
    "$$\\frac{1}{2}$$",
    "\\(y\\) \\[z\\]",
    ":red[x]",
    ":blue-background[x]",
    ":material/home:",
    ":smile:",
    "%{z}",
    "%{customdata} %{y}<extra></extra>",
    "{h} {0} {n:>9}",
    "%s %(a)s",
]
VALUES = ["1e5", "2020-01-01", "nan", "inf", "-0.0", "null", "None", "true", "1,5", "0x10", "007"]
QUOTES = ["\"double\" 'single'", "back\\slash\\n", "'; DROP TABLE x;--", "../../etc/passwd", "=1+1", "a&h=2&mask=foo#b"]
ODD = [
    "nul\x00 esc\x1b[31m bell\x07",
    "rtl שלום مرحبا",
    "over\u202eride \u2066iso\u2069",
    "zero\u200bwidth\ufeff\u2060",
    "Z" + "\u0301\u0322" * 60,
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇨🇳",
    "same same Same SAME same",
    "\ue000 \ufffe \U000e0041",
    "soft\u00adhyphen line\u2028end",
    "W" * 10_000,
]
PAYLOADS = [*HTML, *MARKUP, *VALUES, *QUOTES, *ODD]
NASTIEST = [HTML[0], HTML[1], "$x^2$ and $y$", "%{customdata}", "W" * 10_000]
N = 20
"""Tokens that each have a label of their own on the picture."""

# Elements that text could become; Streamlit's own links are those to pages and to the page's beginning
MADE_OF_TEXT = """
    [...document.querySelectorAll(`[data-testid=stApp] :is(a, img, script, iframe, object, embed, link, meta, base,
        form, video, audio, math, mjx-container, .katex, .MathJax, [onerror], [onload],
        [data-testid=stAlert] [style*=color], [data-testid=stIconMaterial][aria-label=home])`)]
    .filter(element => !element.matches(`[data-testid=stSkipToContent], [data-testid=stSidebarNav] *,
        [data-testid=stPageLink] *`))
    .map(element => element.outerHTML.slice(0, 200))
"""
TEXTS = "[...document.querySelectorAll('.js-plotly-plot text')].map(text => text.textContent)"


def open_text(page, text):
    page.goto(f"/?d_model=8&h=2&weights=random&input=text&text={quote(text)}")
    idle(page)


def nothing_happened(page):
    assert page.evaluate("window.hacked") is None
    assert page.evaluate(MADE_OF_TEXT) == []


def size(page):
    box = page.locator(".js-plotly-plot").bounding_box()
    return box["width"], box["height"]


@pytest.fixture(scope="module")
def plain(context):
    """The picture of plain words: its size and how many texts are on it."""
    page = context.new_page()
    open_text(page, "word " * N)
    yield size(page), len(page.evaluate(TEXTS))
    page.close()


def is_plain(page, plain):
    nothing_happened(page)
    assert (size(page), len(page.evaluate(TEXTS))) == plain


def test_there_are_enough_payloads():
    assert len(set(PAYLOADS)) >= 40


def chunks():
    """All payloads as texts of exactly N tokens."""
    chunk = ""
    for payload in PAYLOADS:
        if len(tokenize(f"{chunk} {payload}")) > N:
            yield filled(chunk)
            chunk = ""
        chunk += f" {payload}"
    yield filled(chunk)


def filled(text):
    return f"{text} {'word ' * (N - len(tokenize(text)))}"


def test_typed_text_has_one_label_a_token_and_leaves_the_picture_its_size(page, plain):
    open_text(page, "a")
    for chunk in chunks():
        write(page, chunk)
        settle(page)
        is_plain(page, plain)


@pytest.mark.parametrize("payload", NASTIEST, ids=lambda payload: payload[:12])
def test_text_in_the_address_is_as_harmless(page, plain, payload):
    open_text(page, filled(payload))
    is_plain(page, plain)


def test_bytes_that_are_no_text_are_shown_as_replacements(page, plain):
    page.goto(f"/?d_model=8&h=2&weights=random&input=text&text=%ED%A0%80%FF%C0%AF{quote(' word' * (N - 6))}")
    settle(page)
    is_plain(page, plain)


def test_a_text_that_cannot_be_drawn_is_refused_with_a_sentence(page):
    open_text(page, "word " * 300)
    error = page.get_by_test_id("stAlert")
    assert error.inner_text().endswith("the text has n=300 tokens; at most 256 are drawn: shorten it")
    for blank in ("   ", "\u200b\u2060", "\x00\x07"):
        write(page, blank)
        assert "holds no word" in error.inner_text()
        nothing_happened(page)


def test_a_pasted_book_is_not_taken_and_loses_nothing(page):
    open_text(page, "short")
    page.locator("textarea").fill("x" * (MAX_CHARACTERS + 1))
    assert page.locator("textarea").input_value() == "short"


def named(names):
    """A CSV of X with these names."""
    file = io.StringIO()
    csv.writer(file).writerows([name, *(row % 3, 1, -1, 0.5)] for row, name in enumerate(names))
    return file.getvalue().encode("utf-8", "replace")


def test_names_in_a_table_are_only_text(page, plain):
    names = [*HTML, *MARKUP, *QUOTES, *ODD]
    page.goto("/?input=upload&weights=random")
    page.wait_for_selector("input[type=file]", state="attached")
    for start in range(0, len(names), N):
        shown = names[start : start + N]
        upload(page, f"{start}.csv", named(shown + ["word"] * (N - len(shown))))
        settle(page)
        nothing_happened(page)
        assert size(page) == plain[0]
        texts = [text.removesuffix("…") for text in page.evaluate(TEXTS) if len(text) > 3]
        for name in shown:
            if name.isascii() and name.isprintable():
                assert any(name.startswith(text) for text in texts), name


def test_a_name_is_only_text_under_the_pointer_too(page):
    page.goto("/?input=upload&weights=random&h=1")
    page.wait_for_selector("input[type=file]", state="attached")
    upload(page, "x.csv", named(["<b>x</b>%{z}", "$a$<br>"]))
    settle(page)
    box = page.locator(".js-plotly-plot").bounding_box()
    across, down = (
        page.evaluate(f"document.querySelector('.js-plotly-plot')._fullLayout.{a}axis._offset") for a in "xy"
    )
    heat = page.evaluate(
        """(() => {
            const plot = document.querySelector('.js-plotly-plot');
            const trace = plot._fullData.filter(t => t.type === 'heatmap' && t.hovertemplate.includes('query')).at(-1);
            const {xaxis, yaxis} = plot._fullLayout;
            const middle = edges => (edges[0] + edges[1]) / 2;
            return [xaxis.d2p(middle(trace.x)), yaxis.d2p(middle(trace.y))];
        })()"""
    )
    page.mouse.move(box["x"] + across + heat[0] - 3, box["y"] + down + heat[1])
    page.mouse.move(box["x"] + across + heat[0], box["y"] + down + heat[1])
    hover = page.wait_for_selector(".hoverlayer .hovertext")
    assert "<b>x</b>%{z}" in hover.text_content()
    nothing_happened(page)


@pytest.mark.parametrize("name", ["<img src=x onerror=window.hacked=1>.csv", ":red[$x$] [a](http://evil.example).csv"])
def test_a_file_name_in_an_error_is_only_text(page, name):
    page.goto("/?input=upload")
    page.wait_for_selector("input[type=file]", state="attached")
    upload(page, name, b"<script>window.hacked=1</script>,2,3,4\n1,2,3,4,5")
    error = page.get_by_test_id("stSidebar").get_by_test_id("stAlert")
    assert code(name)[1:-1] in [text.text_content() for text in error.locator("code").all()]
    nothing_happened(page)


def test_a_bad_cell_in_a_table_is_only_text(page):
    page.goto("/?input=upload")
    page.wait_for_selector("input[type=file]", state="attached")
    for cell in ("<img src=x>", "$x$ $y$", ":red[x]", "[a](//evil)"):
        upload(page, "x.csv", f"1,2,3,{cell}\n".encode())
        assert cell in page.get_by_test_id("stSidebar").get_by_test_id("stAlert").inner_text()
        nothing_happened(page)


def test_bad_values_in_the_address_are_only_text(page, plain):
    names = [name for name, rule in RULES.items() if name != "lang" and not isinstance(rule, Text)]
    wrong = [payload for payload in PAYLOADS if payload not in ("007", "true")]
    for start in range(0, len(wrong), len(names)):
        given = wrong[start : start + len(names)]
        page.goto("/?" + urlencode(dict(zip(names, given, strict=False)), errors="replace"))
        settle(page)
        nothing_happened(page)
        codes = [element.text_content() for element in page.get_by_test_id("stAlert").locator("code").all()]
        shown = [code(value)[1:-1].replace(":material/", ":material_") for value in given]  # Streamlit's doing
        assert set(shown) <= set(codes)
        assert size(page) == plain[0]
