"""`pegboard adopt`."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard.cli.root import CLIENTS_HELP, TOOL_FAILED, USAGE, JsonOption, app


@app.command()
def adopt(
    client: Annotated[str, typer.Argument(metavar="CLIENT|FILE", help=CLIENTS_HELP)],
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="NAME", help="Change only this entry; can be repeated.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the entries that were adopted.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change without writing it.")] = False,
    json: JsonOption = False,
) -> None:
    """Run the MCP servers of another client behind `pegboard watch`.

    Changes the entries of its configuration, shows the difference and keeps a backup. Restart the client afterwards.
    --undo restores entries that are unchanged since, and keeps every other change of the file.

    Examples: `pegboard adopt claude-code --dry-run`, `pegboard adopt .vscode/mcp.json --server github`.
    """
    from pegboard.cli.output import narrate, print_json, print_text
    from pegboard.config import Paths
    from pegboard.config.client_formats import listed_keys
    from pegboard.config.paths import PATH_VARIABLES
    from pegboard.results.clean import clean, clean_line
    from pegboard.watch.adoption import BY_HAND, AdoptedFile, Adoption, AdoptionError

    paths = Paths.from_environment()
    variables = {name: value for name, value in paths.variables().items() if name in PATH_VARIABLES}
    adoption = Adoption(paths.state, variables)
    wanted = set(server or ())
    changes: list[AdoptedFile] = []
    try:
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
    if json:
        print_json(
            [
                {
                    "file": str(change.file),
                    "backup": str(change.backup) if change.backup else None,
                    "entries": [
                        {"server": one.server, "action": one.action, "reason": one.reason, "note": one.note}
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
        count = sum(entry.action != "skipped" for entry in change.entries)
        verb = ("restored" if undo else "adopted") if not dry_run else ("to restore" if undo else "to adopt")
        narrate(f"{change.file}: {count} {'entry' if count == 1 else 'entries'} {verb}.")
        if change.backup is not None:
            narrate(f"The file as it was: {change.backup}")
