"""Error messages for unknown tools, with suggestions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MOST = 3


def not_found(tool: str, packs: Mapping[str, Sequence[str]]) -> ValueError:
    """Build the error for an unknown tool.

    Args:
        tool: Requested name.
        packs: Available packs, each with the names of its tools.
    """
    pack, dot, function = tool.partition(".")
    if not dot:
        close = [
            f"{pack}.{near}"
            for near in nearest(tool, [function for functions in packs.values() for function in functions])
            for pack, functions in packs.items()
            if near in functions
        ]
        return ValueError(f"Tool not found: {tool}. Write its full name, pack.tool.{suggestion(close)}")
    if pack not in packs:
        hint = (
            " It needs `offer = true` under `[scripts]`." if pack == "script" else suggestion(nearest(pack, [*packs]))
        )
        return ValueError(f"Pack not found: {pack}{hint and '.'}{hint}")
    close = [f"{pack}.{near}" for near in nearest(function, packs[pack])]
    known = "" if close else f" The pack has: {', '.join(packs[pack]) or 'no tools'}."
    return ValueError(f"Tool not found: {tool}.{suggestion(close)}{known}")


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Return the known names that are similar to `name`, most similar first."""
    from difflib import get_close_matches

    return get_close_matches(name, dict.fromkeys(known), n=_MOST)


def suggestion(close: Sequence[str]) -> str:
    """Return the sentence that suggests similar names; empty if `close` is."""
    return f" Did you mean {' or '.join(close)}?" if close else ""
