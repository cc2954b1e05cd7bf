"""Markdown as lines: independent of the pieces it arrives in, complete at any length, and sanitized."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from pegboard.results.markdown_lines import Marked, lines_of, rows_of

BLOCKS = (
    "A paragraph with *emphasis*, **strong** words and `code`.",
    "Two lines\nof one paragraph",
    "# A heading",
    "Underlined\n===",
    "- one\n- two\n  - inner\n- three",
    "1. first\n2. second",
    "3. third\n\n   more of it\n\n4. fourth",
    "- \n- after an empty one",
    "> quoted\n> on two lines",
    "> - a list\n> - in a quotation",
    "```python\ndef f(x: int) -> str:\n    return 'x'\n```",
    "```\nnot closed",
    "~~~\n\n~~~",
    "    indented code\n\n    goes on",
    "| a | b |\n|---|---|\n| 1 | `2` |",
    "---",
    "[a link](http://example.com/x) and <http://example.com>",
    "![an image](http://example.com/i.png)",
    "[label]: http://example.com/hidden",
    "see [label]",
    "<b>no HTML</b>",
    "&amp; &#27; &copy;",
    "hard\\\nbreak",
    "漢字 and 🙂 wide",
    "~~struck~~",
    "-",
    "1",
    "",
)
SIGNS = "ab *_`#>-1.|~[]()!<&;\\ \n\t\r\x1b\u200b\u202e\u0301漢🙂\u200d\ufe0f\ud800"


def texts(text: str) -> list[str]:
    """Return the rows of a text on a wide screen."""
    return [row.text for line in Marked(text).lines for row in rows_of(line, 200)]


@st.composite
def pieces(draw: st.DrawFn) -> list[str]:
    """Return Markdown in pieces."""
    blocks = draw(st.lists(st.one_of(st.sampled_from(BLOCKS), st.text(SIGNS, max_size=30)), max_size=6))
    text = draw(st.sampled_from(["\n\n", "\n"])).join(blocks)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.slow
@settings(max_examples=80)
@given(pieces())
def test_streamed_text_results_in_the_same_lines_as_complete_text(said: list[str]) -> None:
    marked = Marked()
    settled = 0
    for piece in said:
        marked.append(piece)
        now, _ = marked.read()
        assert len(now) >= settled, "what has settled stays"
        settled = len(now)
    assert marked.text == "".join(said)
    assert [(line.first + line.text, line.is_code) for line in marked.lines] == [
        (line.first + line.text, line.is_code) for line in Marked("".join(said)).lines
    ]


@settings(max_examples=100)
@given(pieces(), st.integers(8, 200))
def test_every_row_fits_and_is_sanitized_and_its_pieces_are_within_it(said: list[str], width: int) -> None:
    for line in Marked("".join(said)).lines:
        for row in rows_of(line, width):
            assert cell_len(row.text) <= width
            assert all(sign.isprintable() or sign in "\u200d\u0301" for sign in row.text)
            assert all(0 <= start <= end <= len(row.text) for start, end, _ in row.pieces)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(st.text("ab c*漢\n", min_size=1, max_size=60), min_size=20, max_size=200),
    st.sampled_from(["", "```\n", "- ", "> ", "1. "]),
    st.integers(1, 900),
)
def test_no_character_of_a_long_block_is_lost(words: list[str], lead: str, step: int) -> None:
    text = lead + "x".join(words) * 3
    marked = Marked()
    for start in range(0, len(text), step):
        marked.append(text[start : start + step])
        marked.read()
    seen = "".join(line.text for line in marked.lines)
    assert letters(seen) == letters(text)


def letters(text: str) -> str:
    return re.sub(r"[^abcx漢]", "", text)


def test_code_stays_code_after_a_long_block_is_split() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(2_000))
    marked = Marked()
    for start in range(0, len(code) + 10, 700):
        marked.append(f"```python\n{code}"[start : start + 700])
        marked.read()
    assert [line.text for line in marked.lines] == code.split("\n")
    assert all(line.is_code for line in marked.lines)


@pytest.mark.parametrize("step", [10**6, 90])
@pytest.mark.parametrize(
    ("lead", "line", "end", "rows"),
    [
        ("| a | b |\n|---|---|", "| x{} | y |", "\nEnd", ["x{} │ y", "", "End"]),
        ("1. Do:\n\n   ```sh", "   run *x{}* -y", "   ```\n2. Next", ["     run *x{}* -y", "2. Next"]),
        ("- one\n\n  > ```", "  > *x{}*", "  > ```\n\nEnd", ["  ▌   *x{}*", "", "End"]),
        ("1. Do:", "    - the *x{}*", "2. Next", ["   ◦ the x{}", "2. Next"]),
        ("- one\n  1. two\n\n     | a | b |\n     |---|---|", "     | x{} | y |", "- End", ["     x{} │ y", "• End"]),
    ],
)
def test_a_block_stays_the_same_after_a_long_one_is_split(
    lead: str, line: str, end: str, rows: list[str], step: int
) -> None:
    numbers = range(100, 400)
    text = "\n".join([lead, *map(line.format, numbers), end])
    marked = Marked()
    for start in range(0, len(text), step):
        marked.append(text[start : start + step])
        marked.read()
    seen = [row.text.rstrip() for one in marked.lines for row in rows_of(one, 200)]
    assert seen[-len(numbers) - len(rows) + 1 :] == [*map(rows[0].format, numbers), *rows[1:]]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("# Head\n\nText", ["# Head", "", "Text"]),
        ("## Head", ["Head"]),
        ("a\nb", ["a b"]),
        ("a  \nb", ["a", "b"]),
        ("- a\n- b\n  - c", ["• a", "• b", "  ◦ c"]),
        ("- a\n\n  b", ["• a", "", "  b"]),
        ("- a\n\n- b", ["• a", "", "• b"]),
        ("- \n- b", ["•", "• b"]),
        ("9. a\n10. b", ["9. a", "10. b"]),
        ("> a\n>\n> b", ["▌ a", "▌", "▌ b"]),
        ("```\nx\n```", ["  x"]),
        ("```\n```", ["  "]),
        ("    x", ["  x"]),
        ("---", ["─" * 24]),
        ("| a | b |\n|---|--:|\n| 1 | 22 |", ["a │ b", "──┼───", "1 │ 22"]),
        ("[a](http://x.y)", ["a (http://x.y)"]),
        ("<http://x.y>", ["http://x.y"]),
        ("[a](javascript:x)", ["[a](javascript:x)"]),
        ("![a](http://x.y)", ["[image: a http://x.y]"]),
        ("[a]: http://x.y", ["[a]: http://x.y"]),
        ("<b>a</b>", ["<b>a</b>"]),
        ("<!-- a -->", ["<!-- a -->"]),
        ("a &#27;[0m &amp;", ["a \ufffd[0m &"]),
        ("a\x1b[0m", ["a␛[0m"]),
        ("[bold]a[/bold]", ["[bold]a[/bold]"]),
        ("~~a~~", ["a"]),
        ("a\r\nb\r\n\r\nc", ["a b", "", "c"]),
        ("", []),
    ],
)
def test_every_construct_has_its_rows(text: str, rows: list[str]) -> None:
    assert [row.rstrip() for row in texts(text)] == [row.rstrip() for row in rows]


def test_deep_nesting_neither_hides_nor_overflows() -> None:
    deepest = "".join(f"{'  ' * level}- level{level}\n" for level in range(200)) + "  " * 50 + "> " * 500 + "last"
    for text in ("> " * 500 + "deep", "- " * 500 + "deep", "1. " * 500 + "deep", ">" * 5_000 + "deep", deepest):
        rows = [row.text for line in Marked(text).lines for row in rows_of(line, 40)]
        assert all(cell_len(row) <= 40 for row in rows)
        assert ("last" if text is deepest else "deep") in "".join(rows)
    seen = "".join(row.strip() for line in Marked(deepest).lines for row in (row.text for row in rows_of(line, 40)))
    assert all(f"level{level}" in seen for level in range(200))


def test_every_row_has_the_styles_of_its_own_text() -> None:
    (line,) = Marked("plain **strong words that are broken** plain").lines
    rows = rows_of(line, 20)
    strong = "".join(row.text[start:end] for row in rows for start, end, mark in row.pieces if mark == "strong")
    assert strong == "strong words that are broken"


def test_streaming_takes_time_proportional_to_the_length_of_the_text() -> None:
    marked = Marked()
    for number in range(3_000):
        marked.append(f"word{number} ")
        marked.read()
    assert " ".join(line.text for line in marked.lines).count("word") == 3_000


@pytest.mark.promise("SEC-8", "TUI-2")
@pytest.mark.parametrize("piece", ["[", "![a", "[[]", "![[] "], ids=["link", "image", "pair", "both"])
def test_a_paragraph_of_many_brackets_is_complete_and_its_links_are_read(piece: str) -> None:
    # If each bracket searched the rest of the paragraph, this would take minutes.
    text = f"{piece * 30_000}\n\n[last](http://example.com)"
    assert "".join(texts(text)).replace(" ", "") == f"{piece * 30_000}last(http://example.com)".replace(" ", "")


def test_links_between_many_other_brackets_are_read() -> None:
    [row] = [row for row in texts("[x] " * 40 + "[a](http://a.example) " + "[x] " * 80) if "a.example" in row]
    assert "a (http://a.example)" in row


@given(st.text(alphabet="abA1. ,;:-'()/\n\n*_#`", max_size=40))
@example("List a folder.\n\nA folder that can't be read is an entry with an error.")
@example("a\n\nb. c\n\n1. d")
def test_plain_paragraphs_have_the_lines_of_the_parser(text: str) -> None:
    assert lines_of(text) == Marked(text).lines
