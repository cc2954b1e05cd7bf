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

__all__ = ["COMMANDS", "program", "run"]

COMMANDS: Final = {
    "adopt": "Run the MCP servers of another client behind `pegboard watch`.",
    "approve": "List the calls of other agents that wait for approval, and answer them.",
    "ask": "Ask a language model, which can use the tools.",
    "auth": "Store secrets in the keyring and show where each one comes from.",
    "batch": "Call a tool with every row of a JSON Lines or CSV file.",
    "check": "Keep calls as checks, run them, and compare the schemas of tools.",
    "config": "Show and change settings, and show where each one is set.",
    "deps": "Check the requirements of tools (programs, libraries, secrets, servers), and show which tools have each"
    " one.",
    "guide": "Read the guide: without PAGE, list its pages.",
    "history": "List past calls from every source, the newest first.",
    "mcp": "Add, test and use MCP servers, whose tools are listed with the others.",
    "new": "Create a pack and its test, ready to edit.",
    "paths": "Show where Pegboard keeps its files and looks for packs.",
    "pause": "Hold all calls from watched agents and clients of `pegboard serve` until `pegboard resume`.",
    "presets": "Save arguments of tools under names, to use them again.",
    "resume": "Let calls through again after `pegboard pause` or `pegboard stop`.",
    "rules": "Decide which calls of models and other agents run, ask first, or are rejected.",
    "script": "Run bash scripts whose commands are tools.",
    "serve": "Serve the tools to MCP clients, over stdio or HTTP.",
    "sessions": "Show, rename, export and delete conversations with models.",
    "stop": "Reject all waiting and new calls from watched agents and clients of `pegboard serve` until"
    " `pegboard resume`.",
    "tools": "List, describe and call tools.",
    "trust": "Trust the pegboard.toml and .env of a folder, so that they take effect.",
    "watch": "Watch the calls of an agent: a transparent proxy between an MCP client and a server.",
    "web": "Serve the app in a browser on this machine.",
}
"""Commands and groups of commands, in alphabetical order, with the first sentence of their help.

Each has a module of the same name.
"""

_HELP: Final = ("-h", "--help")
_ALONE: Final = (*_HELP, "--version")
"""Options that need no command."""


def program(arguments: Sequence[str] = ()) -> Typer:
    """Return the command-line program.

    Args:
        arguments: The arguments of the program. If they start with a command, only that command is loaded, because
            building the others takes longer than most commands run. If they are only `--help` or `--version`, no
            command is loaded. By default everything is loaded.
    """
    from pegboard.cli.root import app

    if len(arguments) == 1 and arguments[0] in _ALONE:
        for name, help_ in COMMANDS.items():
            app.command(name, help=help_)(_not_loaded)
        return app
    wanted = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    for name in wanted:
        import_module(f"pegboard.cli.{name}")
    return app


def _not_loaded() -> None:
    """Do nothing: a command that is listed but never runs."""


def run(arguments: Sequence[str]) -> None:
    """Run a command line and exit; with both `--help` and `--json`, print the description of its command as JSON."""
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in words and any(flag in words for flag in _HELP):
        from pegboard.cli.description import print_description

        print_description(program(), [word for word in words if word not in ("--json", *_HELP)])
        return
    if arguments[:2] == ["tools", "list"] and arguments[2:] in ([], ["--json"]):
        from pegboard.cli.listing import list_without_parser

        if list_without_parser(json=bool(arguments[2:])):
            return
    if not (len(arguments) == 1 and arguments[0] in _ALONE):
        from pegboard.cli import crash

        crash.follow_tasks()
    program(arguments)(prog_name="pegboard")
