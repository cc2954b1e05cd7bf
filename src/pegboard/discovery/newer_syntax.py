"""Recognition of syntax that only a newer Python can read, for the problem of a file with a syntax error."""

from __future__ import annotations

import re
import sys
from typing import Final, NamedTuple

from pegboard.discovery.newer_strings import is_valid, without_newer_strings

_INNER: Final = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
"""Brackets that may contain others."""
_BRACKETS: Final = rf"\[(?:[^\[\]]|{_INNER})*\]"
_EXCEPTION: Final = r"(?:(?:\w+\.)+\w+|[A-Z]\w*)"
"""The name of an exception, unlike the `e` of Python 2's `except ValueError, e`."""
_TYPE_PARAMETERS: Final = re.compile(
    rf"^([ \t]*(?:async\s+)?(?:def|class)\s+\w+)\s*{_BRACKETS}(?=\s*[(:])", re.MULTILINE
)
_DEFAULTS: Final = re.compile(
    rf"^([ \t]*(?:(?:async\s+)?def|class|type)\s+\w+)\s*(?=\[(?:[^\[\]=]|{_INNER})*=){_BRACKETS}(?=\s*[(:=])",
    re.MULTILINE,
)


class _Syntax(NamedTuple):
    """Syntax of a newer Python, and how to write it for older ones."""

    version: tuple[int, int]
    pattern: re.Pattern[str]
    older: str
    """Replacement that is valid in older versions."""
    advice: str


_NEW: Final = (
    _Syntax((3, 13), _DEFAULTS, r"\1[T]", "remove the defaults of type parameters"),
    _Syntax(
        (3, 12),
        re.compile(rf"^([ \t]*)type\s+(\w+)\s*(?:{_BRACKETS})?\s*=", re.MULTILINE),
        r"\1\2 =",
        "write `X: TypeAlias = …` instead of `type X = …`",
    ),
    _Syntax((3, 12), _TYPE_PARAMETERS, r"\1", "use `TypeVar` instead of type parameters in brackets"),
    _Syntax(
        (3, 14),
        re.compile(rf"^([ \t]*except\*?\s+)({_EXCEPTION}(?:\s*,\s*{_EXCEPTION})+)\s*:", re.MULTILINE),
        r"\1(\2):",
        "put parentheses around the exceptions of `except`",
    ),
    _Syntax(
        (3, 14),
        re.compile(r"(?<![\w\"'])(?:[tT]([rR]?)|([rR])[tT])(?=[\"'])"),
        r"f\1\2",
        "use f-strings instead of template strings",
    ),
    _Syntax(
        (3, 15),
        re.compile(r"^([ \t]*)lazy\s+((?:import|from)\s)", re.MULTILINE),
        r"\1\2",
        "remove `lazy` from imports",
    ),
    _Syntax(
        (3, 15),
        re.compile(r"([\[({]\s*)\*{1,2}(?=[^\n,]{0,500}\sfor\s)"),
        r"\1",
        "use a second `for` instead of `*` in comprehensions",
    ),
)
"""Syntax by version, the oldest first, except for a part of another one."""
_SIMPLER_STRINGS: Final = "assign the part to a variable first"
"""Advice for an expression in an f-string that only Python 3.12 can read."""
_LONGEST: Final = 1_000_000
"""Limit of the sources to examine, in bytes."""


def newer_python(source: str | bytes, error: SyntaxError) -> str:
    """Return how to make a file with a syntax error readable, or an empty text if no newer Python is known to read it.

    A file is valid in a newer Python if it can be parsed once its newer syntax is replaced.

    Args:
        source: The source.
        error: The error of the running Python.
    """
    running = sys.version_info[:2]
    text = _decoded(source)
    if text is None:
        return ""
    if running < (3, 12) and (error.msg or "").startswith("f-string expression part cannot include"):
        return _sentence((3, 12), _SIMPLER_STRINGS)
    needed = running
    advice: list[str] = []
    if running < (3, 12) and (older := without_newer_strings(text)) != text:
        text, needed = older, (3, 12)
        advice.append(_SIMPLER_STRINGS)
        if is_valid(text):
            return _sentence(needed, _SIMPLER_STRINGS)
    for syntax in _NEW:
        if syntax.version <= running or not syntax.pattern.search(text):
            continue
        text = syntax.pattern.sub(syntax.older, text)
        needed = max(needed, syntax.version)
        advice.append(syntax.advice)
        if is_valid(text):
            return _sentence(needed, ", and ".join(advice))
    return ""


def _sentence(version: tuple[int, int], advice: str) -> str:
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    needed = ".".join(map(str, version))
    return (
        f"It needs Python {needed} or later, and Pegboard runs on Python {ours}."
        f" Install Pegboard with a newer Python, or {advice}."
    )


def _decoded(source: str | bytes) -> str | None:
    if len(source) > _LONGEST:
        return None
    if isinstance(source, str):
        return source
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
