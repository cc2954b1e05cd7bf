"""Findings of the static analysis of a script. Independent of Textual."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.models import ScriptAnalysis
from pegboard.results.clean import clean_line
from pegboard.tui.script.bash import PLACEHOLDER, Scanned

_LINE: Final = re.compile(r"\bline (\d+)")
_MOST_TOOLS: Final = 20


@dataclass(frozen=True, slots=True)
class ScriptFinding:
    """A message about a script."""

    kind: Literal["calls", "unknown", "error"]
    text: str
    line: int | None = None
    """Line number from 1, if known."""


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
    lines = _lines_of(scanned, names)
    placeholders = [*_placeholders(script, {number for numbers in lines.values() for number in numbers})]
    unreadable = [] if placeholders or analysis.error is None else [_unreadable(analysis.error)]
    unknown = [] if placeholders else [ScriptFinding("unknown", clean_line(sentence)) for sentence in analysis.unknown]
    missing = [ScriptFinding("error", clean_line(str(command))) for command in analysis.missing]
    errors = sorted(
        [*placeholders, *unreadable, *missing, *_errors(analysis, lines)], key=lambda finding: finding.line or 0
    )
    return [*errors, *_calls(analysis), *unknown]


def _placeholders(script: str, lines: Collection[int]) -> Iterator[ScriptFinding]:
    """Yield the placeholders in calls, which bash would take for redirections."""
    for number, line in enumerate(script.split("\n"), 1):
        placeholders = [match[0] for match in PLACEHOLDER.finditer(line)] if number in lines else []
        if placeholders:
            yield ScriptFinding("error", clean_line(f"line {number}: fill in {', '.join(placeholders)}"), number)


def _unreadable(error: str) -> ScriptFinding:
    line = _LINE.search(error)
    return ScriptFinding("error", clean_line(error), int(line[1]) if line else None)


def _calls(analysis: ScriptAnalysis) -> Iterator[ScriptFinding]:
    calls = Counter(call.tool for call in analysis.calls)
    tools = [f"{clean_line(tool)}{f' ×{times}' if times > 1 else ''}" for tool, times in calls.items()]
    more = f" and {len(tools) - _MOST_TOOLS} more" if len(tools) > _MOST_TOOLS else ""
    if tools:
        yield ScriptFinding("calls", f"will call {', '.join(tools[:_MOST_TOOLS])}{more}")
    elif not analysis.unknown and analysis.error is None:
        yield ScriptFinding("calls", "calls no tools")


def _errors(analysis: ScriptAnalysis, lines: dict[str, list[int]]) -> Iterator[ScriptFinding]:
    """Yield the validation errors of calls, with the line if it is unambiguous."""
    calls = Counter(call.tool for call in analysis.calls)
    seen: Counter[str] = Counter()
    for call in analysis.calls:
        known = lines.get(call.tool, [])
        line = known[seen[call.tool]] if len(known) == calls[call.tool] else None
        seen[call.tool] += 1
        where = f"line {line}: " if line is not None else ""
        for fault in call.faults:
            yield ScriptFinding("error", clean_line(f"{where}{call.tool}: {fault}"), line)


def _lines_of(scanned: Iterable[Scanned], names: Mapping[str, str]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(scanned, 1):
        for word in line.words:
            if word.text in names:
                found[names[word.text]].append(number)
    return found
