"""Arguments of a tool from the command line: `--preset`, `--args` and `--arg`."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.completion import completions
from pegboard.cli.root import open_runtime, scanned
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from pegboard.models import Fault, JsonObject, ToolSpec
    from pegboard.runtime import Runtime

_PREFILLING = {"required", "allOf", "$ref"}
"""Root keywords of schemas whose untouched form has values. Building the form costs a tenth of such a command."""


def complete_tools(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of tools that start with the typed text."""
    runtime = scanned(context)
    return completions((spec.name for spec in runtime.tools.all()), incomplete)


def complete_presets(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the tool's presets that start with the typed text."""
    runtime = scanned(context)
    presets = runtime.presets.list(_tool_name(context))
    return completions((preset.name for preset in presets), incomplete)


def complete_scripts(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of saved scripts that start with the typed text."""
    from pegboard.errors import SavedScriptError

    try:
        saved = open_runtime(context).scripts.saved.list()
    except SavedScriptError:
        return []
    return completions((script.name for script in saved), incomplete)


def complete_checks(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of checks that start with the typed text."""
    from pegboard.checks import Checks

    checks, _ = Checks(open_runtime(context).paths).list()
    return completions(dict.fromkeys(check.name for check in checks), incomplete)


def complete_settings(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of settings that start with the typed text."""
    from pegboard.config import Redactor, shown_settings

    settings = shown_settings(open_runtime(context).settings, Redactor({}))
    return completions((setting.key for setting in settings), incomplete)


def _complete_keys(context: typer.Context, incomplete: str) -> list[str]:
    from pegboard.forms.pairs import keys

    runtime = scanned(context)
    spec = runtime.tools.get(_tool_name(context))
    return [] if spec is None else completions(keys(spec.input_schema, incomplete), incomplete)


def _tool_name(context: typer.Context) -> str:
    """Return the tool in an unfinished command line; it may be among the extra arguments."""
    return str(context.params.get("name") or next(iter(context.args), ""))


NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A tool, such as fs.read_file.", autocompletion=complete_tools)
]

ArgsOption = Annotated[
    str | None,
    typer.Option("--args", metavar="JSON", help="Arguments as a JSON object; - reads them from stdin."),
]

ArgOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arg",
        metavar="KEY=VALUE",
        help="Set one argument; can be repeated. Digits stay text if the tool expects text; a repeated key appends to"
        " its list; a.b=1 sets a key of the object a, a.0=1 an item of the list a. Changes only this value of --args.",
        autocompletion=_complete_keys,
    ),
]


class ArgumentError(PegboardError):
    """Arguments on a command line that can't be read; the message is one or more sentences."""

    faults: tuple[Fault, ...]
    """The validation errors among the reasons, with their paths."""
    arguments: JsonObject
    """The arguments, as far as they can be read; values of `--arg` that can't be are text."""

    def __init__(self, message: str, *faults: Fault, arguments: JsonObject | None = None) -> None:
        super().__init__(message)
        self.faults = faults
        self.arguments = arguments or {}


def read_arguments(
    runtime: Runtime, spec: ToolSpec, text: str | None, pairs: list[str], preset: str | None = None
) -> JsonObject:
    """Combine the arguments of a tool from the command line.

    A preset comes first, `--args` replaces whole arguments of it, and each `--arg` changes one value of the result.
    Without preset and `--args`, it changes the untouched form with its constants and defaults.

    Args:
        runtime: The runtime with the presets.
        spec: The tool.
        text: Value of `--args`.
        pairs: Values of `--arg`.
        preset: Value of `--preset`.

    Raises:
        ArgumentError: The preset doesn't exist, or a value can't be read.
    """
    found = _combined(runtime, spec, text, pairs, preset)
    _report_misspelled(spec, found)
    return found


def read_arguments_of_unknown(text: str | None, pairs: list[str]) -> JsonObject:
    """Combine the arguments of a tool that isn't known, for the record of the call.

    Args:
        text: Value of `--args`.
        pairs: Values of `--arg`; text unless they are JSON.

    Raises:
        ArgumentError: A value can't be read.
    """
    from pegboard.forms.pairs import read_pairs

    given = read_object(text)
    for pair in pairs:
        _check_text("--arg", pair)
    found, faults = read_pairs({"type": "object"}, pairs, given=given) if pairs else (given, ())
    if faults:
        raise ArgumentError("; ".join(f"--arg {fault}" for fault in faults), *faults, arguments=found)
    return found


def _combined(runtime: Runtime, spec: ToolSpec, text: str | None, pairs: list[str], preset: str | None) -> JsonObject:
    given: JsonObject | None = None
    if preset is not None:
        given = _preset(runtime, spec, preset)
    if text is not None:
        given = {**(given or {}), **read_object(text)}
    if not pairs and (given is not None or spec.input_schema.keys().isdisjoint(_PREFILLING)):
        return given or {}
    from pegboard.forms import Form
    from pegboard.forms.pairs import read_pairs

    for pair in pairs:
        _check_text("--arg", pair)
    found, faults = read_pairs(spec.input_schema, pairs, given=given, aliases=spec.parameter_aliases)
    if not faults:
        return found
    # Report all other errors too, except those that only follow from a value that couldn't be read.
    reported = {fault.path for fault in faults}
    form = Form(spec.input_schema)
    form.load(found)
    others = [one for one in form.faults() if not _is_reported(one.path, reported)]
    messages = [*(f"--arg {fault}" for fault in faults), *map(str, others)]
    raise ArgumentError("; ".join(messages), *faults, *others, arguments=found)


def _report_misspelled(spec: ToolSpec, arguments: JsonObject) -> None:
    """Print the parameter that was probably meant by an argument that a tool accepts although it has no such parameter.

    Schemas of most MCP servers allow any further argument, and the servers ignore it.
    """
    properties = spec.input_schema.get("properties")
    known = {*(properties if isinstance(properties, dict) else ()), *spec.parameter_aliases}
    unknown = [name for name in arguments if name not in known]
    if not unknown or not known or spec.input_schema.get("additionalProperties", True) is not True:
        return
    from difflib import get_close_matches

    from pegboard.cli.output import narrate
    from pegboard.results.clean import clean_line

    for name in unknown:
        if near := get_close_matches(name, known - arguments.keys(), n=1, cutoff=0.8):
            text = f"{spec.name} has no parameter {name!r}. Did you mean {near[0]!r}? It is passed on as it is."
            narrate(clean_line(f"note: {text}"))


def read_object(text: str | None) -> JsonObject:
    """Return the JSON object of `--args`; empty without it.

    Raises:
        ArgumentError: It is not a JSON object.
    """
    from pegboard.data.json_text import JsonTextError, parse

    if text is None:
        return {}
    source = "--args"
    _check_text(source, text)
    try:
        if text == "-":
            source = "--args from stdin"
            text = sys.stdin.buffer.read().decode()
        value = parse(text)
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{source} is not UTF-8.") from error
    except JsonTextError as error:
        hint = " To read arguments from a file, write `--args - < FILE`." if _names_file(text) else ""
        raise ArgumentError(f"{source} {error}.{hint}") from error
    if not isinstance(value, dict):
        example = '{"path": "."}'
        raise ArgumentError(f"{source} must be a JSON object such as '{example}', not {_kind_of(value)}.")
    return value


def _names_file(text: str) -> bool:
    """Return whether the text is the path of a file, also after `@` as for curl, instead of JSON."""
    try:
        return Path(text.removeprefix("@")).is_file()
    except (OSError, ValueError):  # it is longer than a path, or contains a null character
        return False


def _preset(runtime: Runtime, spec: ToolSpec, name: str) -> JsonObject:
    presets = {preset.name: preset.arguments for preset in runtime.presets.list(spec.name)}
    if name not in presets:
        known = ", ".join(presets)
        raise ArgumentError(f"{spec.name} has no preset {name!r}." + (f" It has: {known}." if known else ""))
    return presets[name]


def _check_text(source: str, text: str) -> None:
    """Reject lone surrogates, by which Python represents bytes that aren't UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{source} is not UTF-8.") from error


def _kind_of(value: object) -> str:
    kinds = {list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _is_reported(path: str, reported: Collection[str]) -> bool:
    """Return whether an error was reported for a path, one of its parents or one of its children."""
    return any(not one or f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for one in reported)
