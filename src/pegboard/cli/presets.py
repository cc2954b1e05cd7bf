"""`pegboard presets list | show | save | delete | rename`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.arguments import (
    ArgOption,
    ArgsOption,
    ArgumentError,
    NameArgument,
    complete_presets,
    read_arguments,
)
from pegboard.cli.exit_codes import failure_code
from pegboard.cli.root import JsonOption, PacksOption, find, group, scanned

if TYPE_CHECKING:
    from pegboard.models import JsonObject, Preset, ToolSpec
    from pegboard.runtime import Runtime

presets = group("presets", "Save arguments of tools under names, to use them again.")

PresetArgument = Annotated[
    str, typer.Argument(metavar="PRESET", help="Name of the preset.", autocompletion=complete_presets)
]


@presets.command("list")
def list_(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="List only presets of this tool.")] = None,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """List the presets of a tool, or of all tools.

    Without --json the values are left out, because they may be secrets.
    """
    from pegboard.cli.output import print_json, print_table

    runtime = scanned(context, connects=True, tool=name)
    found = runtime.presets.list(name)
    _print_problems(runtime)
    if json:
        print_json(found)
        return
    of_tool = f" of {name}" if name else ""
    print_table(
        [(preset.tool, preset.name, ", ".join(preset.arguments)) for preset in found],
        ("TOOL", "PRESET", "ARGUMENTS"),
        empty=f"No presets{of_tool}. `pegboard presets save` saves arguments as one.",
    )


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

    runtime = scanned(context, connects=True, tool=name)
    with _exit_on_error():
        found = _get(runtime, name, preset)
    print_json(found if json else found.arguments)


@presets.command()
def save(
    context: typer.Context,
    name: NameArgument,
    preset: PresetArgument,
    args: ArgsOption = None,
    arg: ArgOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a preset of the same name.")] = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Save arguments under a name.

    They may be incomplete: --args and --arg of a call add to them.
    """
    from pegboard.cli.output import narrate, print_json

    runtime = scanned(context, connects=True, tool=name)
    spec = find(runtime, name)
    with _exit_on_error():
        arguments = read_arguments(runtime, spec, args, arg or [])
        saved = _save(runtime, name, preset, arguments, replace=force)
    for fault in _invalid(runtime, spec, arguments):
        narrate(f"note: calls with this preset fail: {fault}")
    _print_problems(runtime)
    if json:
        print_json(saved)


def _invalid(runtime: Runtime, spec: ToolSpec, arguments: JsonObject) -> list[str]:
    """Return the validation errors of the given arguments; missing ones may be added by the call."""
    from pegboard.data.pointer import steps
    from pegboard.errors import FormFaults

    try:
        runtime.tools.prepare(spec, arguments)
    except FormFaults as found:
        return [str(fault) for fault in found.faults if next(iter(steps(fault.path)), "") in arguments]
    return []


def _save(runtime: Runtime, name: str, preset: str, arguments: JsonObject, *, replace: bool) -> Preset:
    from pegboard.errors import PresetError

    try:
        return runtime.presets.save(name, preset, arguments, replace=replace)
    except PresetError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise PresetError(f"{error} Or replace it with --force.") from error
        raise


@presets.command()
def delete(
    context: typer.Context,
    name: NameArgument,
    preset: PresetArgument,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Delete a preset, even a damaged one."""
    from pegboard.cli.output import print_json

    runtime = scanned(context, connects=True, tool=name)
    with _exit_on_error():
        runtime.presets.delete(name, preset)
    if json:
        print_json({"tool": name, "deleted": preset})


@presets.command()
def rename(
    context: typer.Context,
    name: NameArgument,
    preset: PresetArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="New name.")],
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Rename a preset."""
    from pegboard.cli.output import print_json

    runtime = scanned(context, connects=True, tool=name)
    with _exit_on_error():
        runtime.presets.rename(name, preset, new)
    if json:
        print_json({"tool": name, "renamed": preset, "name": new})


def _get(runtime: Runtime, tool: str, name: str) -> Preset:
    from pegboard.errors import PresetError

    found = runtime.presets.list(tool)
    _print_problems(runtime)
    preset = next((preset for preset in found if preset.name == name), None)
    if preset is None:
        raise PresetError(f"{tool} has no preset {name!r}.")
    return preset


def _print_problems(runtime: Runtime) -> None:
    from pegboard.cli.output import narrate_problems

    narrate_problems(runtime.problems(packs=False))


@contextmanager
def _exit_on_error() -> Iterator[None]:
    """Print a preset error on stderr and exit."""
    from pegboard.cli.output import narrate
    from pegboard.errors import PresetError

    try:
        yield
    except (PresetError, ArgumentError) as error:
        narrate(str(error))
        raise typer.Exit(failure_code(error)) from error
