"""Syntax colors for signatures."""

from __future__ import annotations

import re

from textual.content import Content

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<arrow>->)|(?P<name>[\w.-]+)|(?P<space>\s+)|(?P<mark>.)""",
    re.DOTALL,
)
_OPENING, _CLOSING = "([{", ")]}"


def colored_signature(signature: str) -> Content:
    """Return a one-line signature with colors for the tool, its parameters, types and defaults.

    Args:
        signature: A signature, safe to display: `fs.read_file(*, path: str, max_bytes: int = 204800) -> str`.
    """
    parts: list[tuple[str, str]] = []
    depth, role = 0, "tool"
    for token in _TOKEN.finditer(signature):
        text, kind = token[0], token.lastgroup
        if text in _CLOSING:
            depth -= 1
        if kind == "arrow" or (text == ":" and depth == 1):
            role = "type"
        elif text == "=" and depth == 1:
            role = "default"
        elif (text == "," and depth == 1) or (text == "(" and depth == 0):
            role = "parameter"
        parts.append((text, _STYLES[role] if kind in {"name", "text"} else "$text-muted"))
        if text in _OPENING:
            depth += 1
    return Content.assemble(*parts)


_STYLES = {
    "tool": "$text-primary bold",
    "parameter": "$foreground",
    "type": "$text-secondary",
    "default": "$text-success",
}
