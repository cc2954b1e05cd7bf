"""The command line: every action of the screen without a screen.

stdout is data, stderr is narration. Exit codes: 0 done, 1 the tool failed, 2 wrong usage or invalid arguments,
3 no such tool, 4 the model's provider failed, 130 interrupted.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer import Typer

__all__ = ["COMMANDS", "program"]

COMMANDS: Final = (
    "ask",
    "auth",
    "config",
    "deps",
    "history",
    "new",
    "paths",
    "presets",
    "script",
    "sessions",
    "tools",
    "trust",
)
"""Every command and group of commands; each has a module of its name."""


def program(arguments: Sequence[str] = ()) -> Typer:
    """Gives the command line.

    Args:
        arguments: What it is about to be called with. Where they begin with a command, it may be all that is loaded:
            to build the others takes longer than most commands do. Everything is there unless given.
    """
    wanted = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    for name in wanted:
        import_module(f"pegboard.cli.{name}")
    from pegboard.cli.root import app

    return app
