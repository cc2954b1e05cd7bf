"""Problems as styled text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.content import Content

from pegboard.results.clean import clean_line

if TYPE_CHECKING:
    from pegboard.models import Problem

_SYMBOLS: Final = {
    "error": ("✖ ", "$text-error bold"),
    "warning": ("! ", "$text-warning bold"),
    "hint": ("· ", "$text-muted"),
}


def problem_heading(problem: Problem) -> Content:
    """Return the message of a problem with a symbol for its severity."""
    return Content.assemble(_SYMBOLS[problem.severity], clean_line(problem.message))


def problem_line(problem: Problem) -> Content:
    """Return a problem as one paragraph: symbol, message, fix and location."""
    return Content.assemble(
        problem_heading(problem),
        (f" {clean_line(problem.fix)}" if problem.fix else "", "$text-muted"),
        (f" ({place(problem)})" if problem.file else "", "$text-muted"),
    )


def place(problem: Problem) -> str:
    """Return the location of a problem as `NAME:LINE`, or an empty string."""
    if problem.file is None:
        return ""
    name = clean_line(Path(problem.file).name)
    return f"{name}:{problem.line}" if problem.line else name
