"""Descriptions of commands as JSON, for programs and agents: `pegboard --help --json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import typer
from typer.main import get_command

import pegboard
from pegboard.cli.root import EXIT_CODES, USAGE

if TYPE_CHECKING:
    from pegboard.models import JsonObject

_OWN_CODES: Final = {
    "approve": {3: "no such call waits"},
    "batch": {1: "a row failed"},
    "check ask": {1: "a model didn't make an expected call, or a question couldn't be asked"},
    "check compat": {1: "a schema change is breaking, or something couldn't be compared"},
    "check run": {1: "a check failed, or couldn't run"},
    "deps": {1: "a requirement is missing or unsuitable"},
    **{f"history {name}": {3: "unknown call"} for name in ("delete", "diff", "pin", "restore", "show")},
    "history redact": {1: "the value may remain somewhere"},
    "history rerun": {3: "unknown call or tool"},
    "history stats": {3: "unknown session"},
    "script run": {1: "the script can't run; otherwise the script's own code"},
    "script check": {2: "a call of the script can't work"},
    "trust": {1: "the folder is not trusted"},
}
"""Command → its exit codes whose meaning differs from the general one."""


def print_description(program: typer.Typer, words: Sequence[str]) -> None:
    """Print a command with its commands, options and exit codes as JSON.

    Args:
        program: The command-line program, completely loaded.
        words: The words of a command line; the ones at its start select the command.

    Raises:
        SystemExit: The first word is neither a command nor an option.
    """
    from pegboard.cli.output import narrate, print_json

    # typer has its own copy of click, or uses click, depending on its version; both have the same attributes.
    found: Any = get_command(program)
    path: list[str] = []
    for word in words:
        commands = getattr(found, "commands", None)
        if commands is None or word.startswith("-"):
            break
        if word not in commands:
            narrate(f"Unknown command {' '.join([*path, word])!r}. `pegboard --help --json` describes all commands.")
            raise SystemExit(USAGE)
        path.append(word)
        found = commands[word]
    described: JsonObject = {
        "name": " ".join(["pegboard", *path]),
        "version": pegboard.__version__,
        "help": _help(found),
        "options": _options(found),
        "commands": list(_commands(found, path)),
        "exitCodes": {str(code): meaning for code, meaning in EXIT_CODES.items()},
        "output": "Data goes to stdout, messages go to stderr.",
    }
    if not hasattr(found, "commands"):
        described |= _command(found, path)
    print_json(described)


def _commands(found: Any, path: list[str]) -> Iterator[JsonObject]:  # noqa: ANN401 - see above
    for name, command in sorted(getattr(found, "commands", {}).items()):
        inner = [*path, name]
        if hasattr(command, "commands"):
            yield from _commands(command, inner)
        elif not command.hidden:
            yield _command(command, inner)


def _command(command: Any, path: list[str]) -> JsonObject:  # noqa: ANN401 - see above
    described: JsonObject = {
        "name": " ".join(["pegboard", *path]),
        "help": _help(command),
        "arguments": [
            {
                "name": (one.metavar or one.name).strip("[]"),
                "required": one.required,
                "repeatable": one.nargs == -1,
                "help": getattr(one, "help", None) or "",
                **_values(one),
            }
            for one in command.params
            if one.param_type_name == "argument"
        ],
        "options": _options(command),
    }
    if own := _OWN_CODES.get(" ".join(path)):
        described["exitCodes"] = {str(code): meaning for code, meaning in own.items()}
    return described


def _options(command: Any) -> list[Any]:  # noqa: ANN401 - see above
    return [
        {
            "names": [*one.opts, *one.secondary_opts],
            "value": None if one.is_flag else (one.metavar or one.name.strip("_").upper()),
            "required": one.required,
            "repeatable": one.multiple,
            "help": one.help or "",
            **_values(one),
        }
        for one in command.params
        if one.param_type_name == "option" and not one.hidden
    ]


def _values(parameter: Any) -> JsonObject:  # noqa: ANN401 - see above
    """Return the choices and the default of a parameter, if it has any."""
    values: JsonObject = {}
    if choices := _choices(parameter):
        values["choices"] = [str(choice) for choice in choices]
    if isinstance(parameter.default, str | int | float) and parameter.default is not False:
        values["default"] = parameter.default
    return values


def _choices(parameter: Any) -> Sequence[object]:  # noqa: ANN401 - see above
    """Return the values that a parameter accepts; newer versions of typer keep the annotation, older ones a type."""
    if not hasattr(parameter, "type_descriptor"):
        return tuple(getattr(parameter.type, "choices", ()))
    annotation = parameter.type_descriptor.annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _help(command: Any) -> str:  # noqa: ANN401 - see above
    return " ".join((command.help or "").split())
