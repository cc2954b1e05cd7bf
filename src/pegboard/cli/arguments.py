"""Arguments of a tool as a command line has them: `--preset`, `--args` and `--arg`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.root import open_runtime, scanned

if TYPE_CHECKING:
    from pegboard.models import Fault, JsonObject, ToolSpec
    from pegboard.runtime import Runtime

_DEEPEST = 150
"""Levels of lists and objects that arguments may have; results have the same limit."""
_PREFILLING = {"required", "allOf", "$ref"}
"""What a schema has at its root if its untouched form sends something; the form costs a tenth of such a command."""


def complete_tools(context: typer.Context, incomplete: str) -> list[str]:
    """Gives the names of the tools that begin like what is typed."""
    runtime = scanned(context)
    return _completions((spec.name for spec in runtime.tools.all()), incomplete)


def complete_presets(context: typer.Context, incomplete: str) -> list[str]:
    """Gives the names of the tool's presets that begin like what is typed."""
    runtime = scanned(context)
    presets = runtime.presets.list(_named(context))
    return _completions((preset.name for preset in presets), incomplete)


def complete_scripts(context: typer.Context, incomplete: str) -> list[str]:
    """Gives the names of the saved scripts that begin like what is typed."""
    from pegboard.errors import SavedScriptError

    try:
        saved = open_runtime(context).scripts.saved.list()
    except SavedScriptError:
        return []
    return _completions((script.name for script in saved), incomplete)


def _completions(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin with what is typed; the shell prints them as they are, so printable ones only."""
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


def _complete_keys(context: typer.Context, incomplete: str) -> list[str]:
    from pegboard.forms.pairs import keys

    runtime = scanned(context)
    spec = runtime.tools.get(_named(context))
    return [] if spec is None else _completions(keys(spec.input_schema, incomplete), incomplete)


def _named(context: typer.Context) -> str:
    """Gives the tool that an unfinished command line names: behind an option without its value, it is left over."""
    return str(context.params.get("name") or next(iter(context.args), ""))


NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A tool, such as fs.read_file.", autocompletion=complete_tools)
]

ArgsOption = Annotated[
    str | None,
    typer.Option("--args", metavar="JSON", help="The arguments as a JSON object; - reads them from stdin."),
]

ArgOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arg",
        metavar="KEY=VALUE",
        help="One argument; may be repeated. Digits stay text where the tool takes text; a key given again adds to its"
        " list; a.b=1 goes into the object a, a.0=1 into the list a. It changes what --args gives, in that place only.",
        autocompletion=_complete_keys,
    ),
]


class UnreadableError(Exception):
    """The arguments of a command line can't be read; the message is a sentence or more.

    Args:
        message: What is wrong.
        faults: The same, each with its path, where it is at a place in the arguments.
    """

    def __init__(self, message: str, *faults: Fault) -> None:
        super().__init__(message)
        self.faults = faults


def read_arguments(
    runtime: Runtime, spec: ToolSpec, text: str | None, pairs: list[str], preset: str | None = None
) -> JsonObject:
    """Puts together the arguments of a tool.

    A preset comes first, `--args` replaces whole arguments of it, and each `--arg` changes what is then there, in its
    place. Without preset and `--args` it is the untouched form that is changed, with its constants and defaults.

    Args:
        runtime: Where the presets are.
        spec: The tool.
        text: What `--args` says.
        pairs: What each `--arg` says.
        preset: What `--preset` says.

    Raises:
        UnreadableError: There is no such preset, or something can't be read.
    """
    given: JsonObject | None = None
    if preset is not None:
        given = _preset(runtime, spec, preset)
    if text is not None:
        given = {**(given or {}), **read_object(text)}
    if not pairs and (given is not None or spec.input_schema.keys().isdisjoint(_PREFILLING)):
        return given or {}
    from pegboard.forms import Form
    from pegboard.forms.pairs import read_pairs

    found, faults = read_pairs(spec.input_schema, pairs, given=given, aliases=spec.parameter_aliases)
    if not faults:
        return found
    # What else is wrong is told at once, but not what only follows from a word that couldn't be read.
    told = {fault.path for fault in faults}
    form = Form(spec.input_schema)
    form.load(found)
    others = [one for one in form.faults() if not _is_told(one.path, told)]
    said = [*(f"--arg {fault}" for fault in faults), *map(str, others)]
    raise UnreadableError("; ".join(said), *faults, *others)


def read_object(text: str | None) -> JsonObject:
    """Reads the JSON object of `--args`; none is an empty one.

    Raises:
        UnreadableError: It is no JSON object.
    """
    from pegboard.data.json_text import JsonTextError, parse

    if text is None:
        return {}
    source = "--args"
    try:
        if text == "-":
            source, text = "--args from stdin", sys.stdin.buffer.read().decode()
        value = parse(text)
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{source} is not UTF-8.") from error
    except JsonTextError as error:
        raise UnreadableError(f"{source} {error}.") from error
    if not isinstance(value, dict):
        example = '{"path": "."}'
        raise UnreadableError(f"{source} must be a JSON object such as '{example}', not {_kind(value)}.")
    if _is_deeper(value, _DEEPEST):
        raise UnreadableError(f"{source} is nested deeper than {_DEEPEST} levels.")
    return value


def _preset(runtime: Runtime, spec: ToolSpec, name: str) -> JsonObject:
    presets = {preset.name: preset.arguments for preset in runtime.presets.list(spec.name)}
    if name not in presets:
        known = ", ".join(presets)
        raise UnreadableError(f"{spec.name} has no preset {name!r}." + (f" It has: {known}." if known else ""))
    return presets[name]


def _is_deeper(value: object, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(layer)


def _kind(value: object) -> str:
    kinds = {list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _is_told(path: str, told: Collection[str]) -> bool:
    """Whether something is wrong already with what a path leads to, or with what it is in or has in it."""
    return any(not one or f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for one in told)
