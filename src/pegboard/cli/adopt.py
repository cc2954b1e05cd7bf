"""`pegboard adopt`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.root import CLIENTS_HELP, TOOL_FAILED, USAGE, JsonOption, app

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pegboard.watch.changed_files import AdoptedFile


@app.command()
def adopt(
    client: Annotated[str, typer.Argument(metavar="CLIENT|FILE", help=CLIENTS_HELP)],
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="NAME", help="Change only this entry; can be repeated.")
    ] = None,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="Watch the client's own tools through its hooks instead.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the entries that were adopted.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change without writing it.")] = False,
    json: JsonOption = False,
) -> None:
    """Run the MCP servers of another client behind `pegboard watch`.

    Changes the entries of its configuration, shows the difference and keeps a backup. Restart the client afterwards.
    --undo restores entries that are unchanged since, and keeps every other change of the file.

    With --hooks, Pegboard sees the client's own tools, such as its shell: claude-code, codex, copilot, gemini,
    opencode and qwen run `pegboard watch --hook` before and after each call.

    Examples: `pegboard adopt claude-code --dry-run`, `pegboard adopt .vscode/mcp.json --server github`,
    `pegboard adopt claude-code --hooks`.
    """
    from pegboard.cli.output import narrate
    from pegboard.config import Paths
    from pegboard.config.client_formats import listed_keys
    from pegboard.config.paths import PATH_VARIABLES
    from pegboard.results.clean import clean_line
    from pegboard.watch.adoption import BY_HAND, Adoption
    from pegboard.watch.changed_files import AdoptionError

    paths = Paths.from_environment()
    variables = {name: value for name, value in paths.variables().items() if name in PATH_VARIABLES}
    wanted = set(server or ())
    changes: list[AdoptedFile] = []
    try:
        if hooks:
            if wanted:
                narrate("--hooks and --server can't be combined because hooks are about the client's own tools.")
                raise typer.Exit(USAGE)
            _adopt_hooks(client, paths.state, variables, undo=undo, dry_run=dry_run, json=json)
            return
        adoption = Adoption(paths.state, variables)
        files = adoption.files(client)
        plans = [adoption.plan(file, wanted, undo=undo) for file in files]
        if not (undo or any(plan.entries for plan in plans) or any(adoption.plan(file).entries for file in files)):
            has = "has" if len(files) == 1 else "have"
            names = " and ".join(clean_line(str(file)) for file in files)
            narrate(f"Nothing was changed: {names} {has} no server in {listed_keys(files[0].name)}. {BY_HAND}")
            raise typer.Exit(TOOL_FAILED)
        unknown = wanted - {entry.server for plan in plans for entry in plan.entries}
        if unknown:
            what = "was adopted" if undo else "exists"
            narrate(f"Nothing was changed: no entry named {', '.join(sorted(map(clean_line, unknown)))} {what}.")
            raise typer.Exit(USAGE)
        changes += plans if dry_run else [adoption.apply(file, wanted, undo=undo) for file in files]
    except AdoptionError as error:
        narrate(str(error))
        raise typer.Exit(TOOL_FAILED) from error
    _report(changes, undo=undo, dry_run=dry_run, json=json)


def _adopt_hooks(
    client: str, state: Path, variables: Mapping[str, str], *, undo: bool, dry_run: bool, json: bool
) -> None:
    from pegboard.cli.output import narrate
    from pegboard.watch.hooks.adoption import HookAdoption

    adoption = HookAdoption(client, state, variables)
    change = adoption.plan(undo=undo) if dry_run else adoption.apply(undo=undo)
    _report([change], undo=undo, dry_run=dry_run, json=json, kind="event")
    if adoption.remark and not undo and change.after != change.before:
        narrate(adoption.remark)


def _report(changes: Sequence[AdoptedFile], *, undo: bool, dry_run: bool, json: bool, kind: str = "server") -> None:
    from pegboard.cli.output import narrate, print_json, print_text
    from pegboard.results.clean import clean, clean_line
    from pegboard.results.sizes import count

    if json:
        print_json(
            [
                {
                    "file": str(change.file),
                    "backup": str(change.backup) if change.backup else None,
                    "entries": [
                        {kind: one.server, "action": one.action, "reason": one.reason, "note": one.note}
                        for one in change.entries
                    ],
                }
                for change in changes
            ]
        )
        return
    for change in changes:
        if difference := change.diff():
            print_text(clean(difference), end="\n")
        for entry in change.entries:
            if entry.action == "skipped":
                narrate(f"Skipped {clean_line(entry.server)}: {entry.reason}.")
            elif entry.note:
                narrate(f"note: {clean_line(entry.server)}: {entry.note}.")
        entries = count(sum(entry.action != "skipped" for entry in change.entries), "entry", "entries")
        verb = ("restored" if undo else "adopted") if not dry_run else ("to restore" if undo else "to adopt")
        narrate(f"{change.file}: {entries} {verb}.")
        if change.backup is not None:
            narrate(f"The file as it was: {change.backup}")
