"""What is said of a script before it runs. Knows nothing of Textual."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.models import ScriptAnalysis
from pegboard.results.clean import clean_line
from pegboard.tui.script.bash import GAP, Scanned

_LINE: Final = re.compile(r"\bline (\d+)")
_MOST_TOOLS: Final = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence about a script."""

    kind: Literal["calls", "unknown", "fault"]
    text: str
    line: int | None = None
    """Which line it is about, from 1."""


def findings(
    analysis: ScriptAnalysis, scanned: Iterable[Scanned], names: Mapping[str, str], script: str
) -> Sequence[Finding]:
    """Says what a script will call, what is wrong with that, which comes first, and what can't be known.

    Args:
        analysis: What was found in it.
        scanned: What is in each of its lines.
        names: The commands' own names by all of their names.
        script: The script.
    """
    lines = _lines_of(scanned, names)
    gaps = [*_gaps(script, {number for numbers in lines.values() for number in numbers})]
    unreadable = [] if gaps or analysis.error is None else [_unreadable(analysis.error)]
    unknown = [] if gaps else [Finding("unknown", clean_line(sentence)) for sentence in analysis.unknown]
    missing = [Finding("fault", clean_line(str(command))) for command in analysis.missing]
    faults = sorted([*gaps, *unreadable, *missing, *_faults(analysis, lines)], key=lambda finding: finding.line or 0)
    return [*faults, *_calls(analysis), *unknown]


def _gaps(script: str, lines: Collection[int]) -> Iterator[Finding]:
    """Gives what is still to be filled in where a tool is called, which bash can't read or takes for files."""
    for number, line in enumerate(script.split("\n"), 1):
        gaps = [match[0] for match in GAP.finditer(line)] if number in lines else []
        if gaps:
            yield Finding("fault", clean_line(f"line {number}: fill in {', '.join(gaps)}"), number)


def _unreadable(error: str) -> Finding:
    line = _LINE.search(error)
    return Finding("fault", clean_line(error), int(line[1]) if line else None)


def _calls(analysis: ScriptAnalysis) -> Iterator[Finding]:
    calls = Counter(call.tool for call in analysis.calls)
    said = [f"{clean_line(tool)}{f' ×{times}' if times > 1 else ''}" for tool, times in calls.items()]
    more = f" and {len(said) - _MOST_TOOLS} more" if len(said) > _MOST_TOOLS else ""
    if said:
        yield Finding("calls", f"will call {', '.join(said[:_MOST_TOOLS])}{more}")
    elif not analysis.unknown and analysis.error is None:
        yield Finding("calls", "will call no tool")


def _faults(analysis: ScriptAnalysis, lines: dict[str, list[int]]) -> Iterator[Finding]:
    """Gives what is wrong with calls, each with its line where there is no doubt which call it is."""
    calls = Counter(call.tool for call in analysis.calls)
    seen: Counter[str] = Counter()
    for call in analysis.calls:
        places = lines.get(call.tool, [])
        line = places[seen[call.tool]] if len(places) == calls[call.tool] else None
        seen[call.tool] += 1
        where = f"line {line}: " if line is not None else ""
        for fault in call.faults:
            yield Finding("fault", clean_line(f"{where}{call.tool}: {fault}"), line)


def _lines_of(scanned: Iterable[Scanned], names: Mapping[str, str]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(scanned, 1):
        for word in line.words:
            if word.text in names:
                found[names[word.text]].append(number)
    return found
