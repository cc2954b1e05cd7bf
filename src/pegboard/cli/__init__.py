"""The command line: every operation of the interface without a screen.

stdout is data, stderr is messages. Exit codes: 0 success, 1 the tool failed, 2 wrong usage or invalid arguments,
3 unknown tool, 4 the model's provider failed, 130 interrupted.
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
    "mcp",
    "new",
    "paths",
    "presets",
    "script",
    "sessions",
    "tools",
    "trust",
)
"""The commands and groups of commands; each has a module of the same name."""


def program(arguments: Sequence[str] = ()) -> Typer:
    """Return the command-line program.

    Args:
        arguments: The arguments of the program. If they start with a command, only that command is loaded, because
            building the others takes longer than most commands run. By default everything is loaded.
    """
    wanted = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    for name in wanted:
        import_module(f"pegboard.cli.{name}")
    from pegboard.cli.root import app

    return app
