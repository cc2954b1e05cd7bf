"""Lines of the card of a tool call: arguments, and what a script is expected to call."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Final

from pegboard.models import ScriptAnalysis
from pegboard.results.arguments import BAR
from pegboard.results.clean import clean_line
from pegboard.results.markdown_lines import MarkdownLine
from pegboard.results.marks import Mark
from pegboard.results.sizes import count
from pegboard.results.text import json_parts

EXPECTED_LINES: Final = 50
LINE_CHARACTERS: Final = 2_000


def text_line(text: str, mark: Mark) -> MarkdownLine:
    """Return a line in one style; leading spaces indent all its rows."""
    indent = len(text) - len(text.lstrip())
    return MarkdownLine(text[indent:], ((0, len(text) - indent, mark),), " " * indent, " " * indent)


def argument_lines(text: str, most: int | None) -> Iterator[MarkdownLine]:
    """Yield the lines of `arguments_text`, at most `most` of them."""
    lines = text.split("\n")
    for line in lines if most is None else lines[:most]:
        shown = clean_line(line if most is None else line[:LINE_CHARACTERS])
        indent, is_text, text = shown.partition(BAR)
        if indent.strip() or not is_text:
            yield MarkdownLine(shown, tuple(json_parts(shown)), "  ", "    ")
        else:
            yield MarkdownLine(text, ((0, len(text), "string"),), f"  {indent}{BAR}", f"  {indent}{BAR}  ")
    if most is not None and len(lines) > most:
        yield text_line(f"  … {count(len(lines) - most, 'more line')}", "muted")


def script_lines(script: str, most: int | None) -> Iterator[MarkdownLine]:
    """Yield the lines of a script, at most `most` of them."""
    lines = script.rstrip("\n").split("\n")
    for line in lines if most is None else lines[:most]:
        yield MarkdownLine(clean_line(line if most is None else line[:LINE_CHARACTERS]), (), "  │ ", "  │   ")
    if most is not None and len(lines) > most:
        yield text_line(f"  … {count(len(lines) - most, 'more line')}", "muted")


def expected_lines(analysis: ScriptAnalysis | None) -> Iterator[MarkdownLine]:
    """Yield the calls of a script, as far as static analysis finds them."""
    if analysis is None:
        yield text_line("  Analyzing the script…", "muted")
        return
    if analysis.error is not None:
        yield text_line(f"  The script has an error: {clean_line(analysis.error)}", "error")
    calls = Counter((call.tool, call.words, call.faults) for call in analysis.calls)
    yield text_line("  It calls:" if calls else "  No tool calls found.", "muted")
    for (tool, words, faults), times in list(calls.items())[:EXPECTED_LINES]:
        name = clean_line(tool)
        text = clean_line(" ".join("…" if word is None else shlex.quote(word) for word in words))
        often = f"  ×{times}" if times > 1 else ""
        end = len(name) + len(text) + 1
        yield MarkdownLine(
            f"{name} {text}{often}", ((0, len(name), "strong"), (end, end + len(often), "muted")), "  • ", "    "
        )
        for fault in faults:
            yield text_line(f"    {clean_line(fault)}", "error")
    if len(calls) > EXPECTED_LINES:
        yield text_line(f"  … {count(len(calls) - EXPECTED_LINES, 'more call')}, all in the script below", "muted")
    for sentence in analysis.unknown:
        yield text_line(f"  ! {clean_line(sentence)}", "warning")
    if analysis.unknown:
        yield text_line("  ! It may call other tools too.", "warning")
