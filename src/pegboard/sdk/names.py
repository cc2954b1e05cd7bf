"""Names of tools that aren't there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MOST = 3


def not_found(tool: str, packs: Mapping[str, Sequence[str]]) -> ValueError:
    """Builds the error for a name that is no tool's.

    Args:
        tool: The name.
        packs: The packs there are, each with the names of its tools.
    """
    pack, dot, function = tool.partition(".")
    if not dot:
        close = [
            f"{pack}.{near}"
            for near in nearest(tool, [function for functions in packs.values() for function in functions])
            for pack, functions in packs.items()
            if near in functions
        ]
        return ValueError(f"A tool is called by its full name, pack.tool: {tool} has no dot.{question(close)}")
    if pack not in packs:
        return ValueError(f"Pack not found: {pack}")
    close = [f"{pack}.{near}" for near in nearest(function, packs[pack])]
    known = "" if close else f" The pack has: {', '.join(packs[pack]) or 'no tools'}."
    return ValueError(f"Tool not found: {tool}.{question(close)}{known}")


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Gives those of the known names that someone who wrote `name` may have meant, the nearest first."""
    from difflib import get_close_matches

    return get_close_matches(name, dict.fromkeys(known), n=_MOST)


def question(close: Sequence[str]) -> str:
    """Asks whether one of the near names was meant; nothing where there is none."""
    return f" Did you mean {' or '.join(close)}?" if close else ""
