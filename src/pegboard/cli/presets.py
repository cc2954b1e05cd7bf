"""`pegboard presets list | show | save | delete | rename`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.arguments import (
    ArgOption,
    ArgsOption,
    NameArgument,
    UnreadableError,
    complete_presets,
    read_arguments,
)
from pegboard.cli.root import USAGE, JsonOption, PacksOption, find, group, scanned

if TYPE_CHECKING:
    from pegboard.models import Preset
    from pegboard.runtime import Runtime

presets = group("presets", "Keep arguments of tools under names, to call them again.")

PresetArgument = Annotated[
    str, typer.Argument(metavar="PRESET", help="The preset's name.", autocompletion=complete_presets)
]


@presets.command("list")
def list_(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only presets of this tool.")] = None,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """List the presets of a tool, or of all tools.

    The plain list leaves out the values, which may be secrets.
    """
    from pegboard.cli.output import print_json, print_table

    runtime = scanned(context)
    found = runtime.presets.list(name)
    _tell_problems(runtime)
    if json:
        print_json(found)
        return
    print_table([(preset.tool, preset.name, ", ".join(preset.arguments)) for preset in found])


@presets.command()
def show(
    context: typer.Context,
    name: NameArgument,
    preset: PresetArgument,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Print the arguments of a preset as JSON."""
    from pegboard.cli.output import print_json

    runtime = scanned(context)
    with _said():
        found = _get(runtime, name, preset)
    print_json(found if json else found.arguments)


@presets.command()
def save(
    context: typer.Context,
    name: NameArgument,
    preset: PresetArgument,
    args: ArgsOption = None,
    arg: ArgOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a preset that has the name.")] = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Keep arguments under a name.

    They needn't be complete: --args and --arg of a call add to them.
    """
    from pegboard.cli.output import print_json

    runtime = scanned(context)
    spec = find(runtime, name)
    with _said():
        arguments = read_arguments(runtime, spec, args, arg or [])
        saved = runtime.presets.save(name, preset, arguments, replace=force)
    _tell_problems(runtime)
    if json:
        print_json(saved)


@presets.command()
def delete(
    context: typer.Context,
    name: NameArgument,
    preset: PresetArgument,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Throw a preset away, a damaged one as well."""
    from pegboard.cli.output import print_json

    runtime = scanned(context)
    with _said():
        runtime.presets.delete(name, preset)
    if json:
        print_json({"tool": name, "deleted": preset})


@presets.command()
def rename(
    context: typer.Context,
    name: NameArgument,
    preset: PresetArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name it gets.")],
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Give a preset another name."""
    from pegboard.cli.output import print_json

    runtime = scanned(context)
    with _said():
        runtime.presets.rename(name, preset, new)
    if json:
        print_json({"tool": name, "renamed": preset, "name": new})


def _get(runtime: Runtime, tool: str, name: str) -> Preset:
    from pegboard.errors import PresetError

    found = runtime.presets.list(tool)
    _tell_problems(runtime)
    preset = next((preset for preset in found if preset.name == name), None)
    if preset is None:
        raise PresetError(f"{tool} has no preset {name!r}.")
    return preset


def _tell_problems(runtime: Runtime) -> None:
    from pegboard.cli.output import narrate_problems

    narrate_problems(runtime.problems(packs=False))


@contextmanager
def _said() -> Iterator[None]:
    """Tells what can't be done as a sentence on stderr, and exits."""
    from pegboard.cli.output import narrate
    from pegboard.errors import PresetError

    try:
        yield
    except (PresetError, UnreadableError) as error:
        narrate(str(error))
        raise typer.Exit(USAGE) from error
