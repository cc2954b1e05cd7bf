"""Descriptions of tools as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_HEADING: Final = re.compile(r"(?![-*+>#|]|\d+[.)]\s)\S.*:\s*")
_EXAMPLE: Final = re.compile(r"(?:examples?|usage)\s*:\s*", re.IGNORECASE)
_ITEM: Final = re.compile(r"\s*(?:[-*+>#|]|\d+[.)]\s|```|~~~)")
"""Beginning of a line that is a block of its own in Markdown."""
_NAMED: Final = re.compile(r"\s*[\w*.`'\"-]+(?:\s*\([^()]*\))?:(?:\s|$)")
"""Beginning of the description of a parameter, an exception or a return type."""
_PAIR: Final = re.compile(r"\s*[^\s:][^:]{0,60}: +\S.*")
_CODE_INDENT: Final = 4
_DEEPER: Final = re.compile(r"\A {1,4}")


def as_markdown(description: str) -> str:
    r"""Return a description whose sections stay readable as Markdown, which joins lines.

    MCP servers in Python often send whole docstrings. Below a line with a colon at its end, such as `Args:`, indented
    lines that begin with a name and a colon become a list, and so do two or more lines such as `404: Not found`. Lines
    below `Example:` become code, as do objects and lists.

    Args:
        description: The description, without common indentation.
    """
    lines = description.splitlines()
    pairs = _runs_of_pairs(lines)
    made: list[str] = []
    at, in_code = 0, False
    while at < len(lines):
        line = lines[at]
        at += 1
        in_code ^= bool(_FENCE.match(line))
        body = [] if in_code or not _HEADING.fullmatch(line) else _body(lines, at, pairs)
        if body and made and made[-1].strip():
            made.append("")
        made.append(line)
        if body:
            made += ["", *_section(line, body), ""]
            at += len(body)
    return "\n".join(made)


def _runs_of_pairs(lines: Sequence[str]) -> Sequence[int]:
    """Return for each line the number of pairs from there on that end at an empty line, otherwise 0."""
    runs = [0] * len(lines)
    after, is_section = 0, True
    for at in reversed(range(len(lines))):
        is_pair = bool(_PAIR.fullmatch(lines[at]))
        is_section = is_section if is_pair else not lines[at].strip()
        after = after + 1 if is_pair and is_section else 0
        runs[at] = after
    return runs


def _body(lines: Sequence[str], start: int, pairs: Sequence[int]) -> Sequence[str]:
    """Return the lines of a section from `start` on; none if it isn't one, or has blocks of Markdown already."""
    first = lines[start] if start < len(lines) else ""
    if not first.strip() or _ITEM.match(first):
        return []
    if not _indent(first):
        return lines[start : start + pairs[start]] if pairs[start] > 1 else []
    body = list(takewhile(lambda line: not line.strip() or _indent(line), lines[start:]))
    while not body[-1].strip():
        body.pop()
    return body


def _section(heading: str, body: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a section as code, as a list, or as they are, without their common indentation."""
    level = min(_indent(line) for line in body if line.strip())
    if _EXAMPLE.fullmatch(heading) or body[0].lstrip().startswith(("{", "[")):
        yield from (" " * _CODE_INDENT + line[level:] for line in body)
    elif level and not _NAMED.match(body[0]):
        yield from (line[level:] for line in body)
    else:
        for line in filter(str.strip, body):
            is_item = not level or (_indent(line) == level and _NAMED.match(line))
            yield f"- {line[level:]}" if is_item else f"  {_DEEPER.sub('', line[level:], count=1)}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
