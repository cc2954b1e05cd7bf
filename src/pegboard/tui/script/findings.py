"""Findings of the static analysis of a script. Independent of Textual."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.models import ScriptAnalysis
from pegboard.results.clean import clean_line
from pegboard.tui.script.bash import PLACEHOLDER, Scanned, Word

_LINE: Final = re.compile(r"\bline (\d+)")
_COLUMN: Final = re.compile(r"\bcolumn (\d+)")
_FLAG: Final = re.compile(r"(?:unknown flag )?(--[\w-]+)(\.[\w.-]+)?")
_MOST_TOOLS: Final = 20


@dataclass(frozen=True, slots=True)
class ScriptFinding:
    """A message about a script."""

    kind: Literal["calls", "unknown", "error"]
    text: str
    line: int | None = None
    """Line number from 1, if known."""
    columns: tuple[int, int] | None = None
    """First column and the column after the last, from 0, if known."""

    @property
    def place(self) -> tuple[int, int] | None:
        """Line and column, from 0; None if the line is unknown."""
        return None if self.line is None else (self.line - 1, 0 if self.columns is None else self.columns[0])


def _at(line: int, columns: tuple[int, int], text: str) -> ScriptFinding:
    """Return a finding that starts with its line and column, from 1."""
    return ScriptFinding("error", clean_line(f"line {line}, column {columns[0] + 1}: {text}"), line, columns)


def findings(
    analysis: ScriptAnalysis, scanned: Iterable[Scanned], names: Mapping[str, str], script: str
) -> Sequence[ScriptFinding]:
    """Return errors first, then the calls, then what the analysis can't determine.

    Args:
        analysis: Analysis of the script.
        scanned: Scanned lines of the script.
        names: Main names of commands by all their names.
        script: Text of the script.
    """
    lines = [*scanned]
    words = _words_of(lines, names)
    texts = script.split("\n")
    placeholders = [*_placeholders(texts, {number for places in words.values() for number, _ in places})]
    unreadable = [] if placeholders or analysis.error is None else [_unreadable(analysis.error, texts)]
    unknown = [] if placeholders else [ScriptFinding("unknown", clean_line(sentence)) for sentence in analysis.unknown]
    missing = [_missing(str(command), command.name, lines) for command in analysis.missing]
    errors = sorted(
        [*placeholders, *unreadable, *missing, *_errors(analysis, words, texts)],
        key=lambda finding: (finding.line or 0, finding.columns or (0, 0)),
    )
    return [*errors, *_calls(analysis), *unknown]


def _placeholders(texts: Sequence[str], lines: Collection[int]) -> Iterator[ScriptFinding]:
    """Yield the placeholders in calls, which bash would take for redirections."""
    for number, line in enumerate(texts, 1):
        found = [*PLACEHOLDER.finditer(line)] if number in lines else []
        if found:
            yield _at(number, found[0].span(), f"fill in {', '.join(match[0] for match in found)}")


def _unreadable(error: str, texts: Sequence[str]) -> ScriptFinding:
    line = _LINE.search(error)
    if line is None:
        return ScriptFinding("error", clean_line(error))
    number = int(line[1])
    column = _COLUMN.search(error)
    text = texts[number - 1] if 0 < number <= len(texts) else ""
    start = int(column[1]) - 1 if column else len(text) - len(text.lstrip())
    return ScriptFinding("error", clean_line(error), number, (max(0, min(start, len(text))), max(len(text), 1)))


def _missing(text: str, name: str, lines: Sequence[Scanned]) -> ScriptFinding:
    for number, line in enumerate(lines, 1):
        for word in line.words:
            if word.text == name:
                return _at(number, (word.start, word.end), text)
    return ScriptFinding("error", clean_line(text))


def _calls(analysis: ScriptAnalysis) -> Iterator[ScriptFinding]:
    calls = Counter(call.tool for call in analysis.calls)
    tools = [f"{clean_line(tool)}{f' ×{times}' if times > 1 else ''}" for tool, times in calls.items()]
    more = f" and {len(tools) - _MOST_TOOLS} more" if len(tools) > _MOST_TOOLS else ""
    if tools:
        yield ScriptFinding("calls", f"will call {', '.join(tools[:_MOST_TOOLS])}{more}")
    elif not analysis.unknown and analysis.error is None:
        yield ScriptFinding("calls", "calls no tools")


def _errors(
    analysis: ScriptAnalysis, words: Mapping[str, Sequence[tuple[int, Word]]], texts: Sequence[str]
) -> Iterator[ScriptFinding]:
    """Yield the validation errors of calls, with line and column if they are unambiguous."""
    calls = Counter(call.tool for call in analysis.calls)
    seen: Counter[str] = Counter()
    for call in analysis.calls:
        known = words.get(call.tool, [])
        place = known[seen[call.tool]] if len(known) == calls[call.tool] else None
        seen[call.tool] += 1
        for fault in call.faults:
            text = f"{call.tool}: {fault}"
            if place is None:
                yield ScriptFinding("error", clean_line(text))
            else:
                number, word = place
                yield _at(number, _span(fault, word, texts[number - 1]), text)


def _span(fault: str, word: Word, line: str) -> tuple[int, int]:
    """Return the columns of the flag that an error names, else those of the command."""
    flag = _FLAG.match(fault)
    if flag is not None:
        names = [f"{flag[1]}{flag[2] or ''}", flag[1]]
        for name in (*names, *(name.replace("_", "-") for name in names)):
            found = re.compile(rf"(?<!\S){re.escape(name)}(?=[\s=]|$)").search(line, word.end)
            if found is not None:
                return found.span()
    return word.start, word.end


def _words_of(scanned: Iterable[Scanned], names: Mapping[str, str]) -> dict[str, list[tuple[int, Word]]]:
    """Return the lines and words of the calls of each tool."""
    found: defaultdict[str, list[tuple[int, Word]]] = defaultdict(list)
    for number, line in enumerate(scanned, 1):
        for word in line.words:
            if word.text in names:
                found[names[word.text]].append((number, word))
    return found
