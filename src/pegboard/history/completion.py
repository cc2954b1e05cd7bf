"""Completion of history queries."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.history.query import KEYS, SOURCES, STATES

_VALUES: dict[str, Sequence[str]] = {
    "parent": ("none",),
    "since": ("30m", "2h", "1d", "7d"),
    "before": ("30m", "2h", "1d", "7d"),
    "slower": ("500ms", "1s", "10s", "1m"),
    "source": SOURCES,
    "status": STATES,
}


def completions(text: str, tools: Sequence[str], agents: Sequence[str]) -> tuple[str, ...]:
    """Return what can replace the last word of a query, the best first; a key ends with `:`.

    Args:
        text: The query up to the cursor.
        tools: Names of the tools in the history.
        agents: Names of agents.
    """
    word = text.rpartition(" ")[2]
    if text.count('"') % 2:
        return ()
    key, colon, value = word.partition(":")
    if not colon:
        return tuple(f"{one}:" for one in KEYS if one.startswith(word.lower()))
    done, comma, last = value.rpartition(",")
    packs = dict.fromkeys(f"{tool.partition('.')[0]}.*" for tool in tools)
    known = {**_VALUES, "agent": agents, "tool": (*tools, *packs)}.get(key.lower(), ())
    found = [one for one in known if one.startswith(last) and one != last]
    if key.lower() == "tool" and last:
        found += [one for one in tools if last in one and one not in found and one != last]
    return tuple(f"{key}:{_quoted(f'{done}{comma}{one}')}" for one in found)


def _quoted(value: str) -> str:
    """Return the value of a filter, in quotes if white space would end it."""
    return f'"{value}"' if value.split() != [value] and '"' not in value else value
