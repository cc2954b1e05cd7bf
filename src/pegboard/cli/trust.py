"""`pegboard trust`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.root import USAGE, JsonOption, app, refuse_beside

if TYPE_CHECKING:
    from pegboard.config import Paths, TrustFile

_FAILED = 1


@app.command()
def trust(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder; the working directory by default.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust without asking.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Stop trusting the folder.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the trusted folders.")] = False,
    json: JsonOption = False,
) -> None:
    """Trust the pegboard.toml and .env of a folder, so that they take effect.

    Shows the settings of the folder and asks. After any later change of one of the two files, it asks again.
    """
    from pegboard.cli.output import narrate
    from pegboard.config import Paths, TrustError, TrustFile

    if sum((yes, remove, list_)) > 1:
        narrate("--yes, --remove and --list can't be combined.")
        raise typer.Exit(USAGE)
    if list_:
        refuse_beside("--list", {"DIR": folder}, "it lists all trusted folders")
    if json and not list_:
        narrate("--json needs --list.")
        raise typer.Exit(USAGE)
    paths = Paths.from_environment()
    try:
        if list_:
            _list(TrustFile(paths.trust), as_json=json)
        elif remove:
            was_trusted = TrustFile(paths.trust).remove(folder or Path())
            shown = os.fsdecode(os.path.realpath(folder or "."))
            narrate(f"{shown} is no longer trusted." if was_trusted else f"{shown} was not trusted.")
        else:
            _trust(paths, folder or Path(), yes=yes)
    except TrustError as error:
        narrate(str(error))
        raise typer.Exit(_FAILED) from None


def _list(file: TrustFile, *, as_json: bool) -> None:
    from pegboard.cli.output import narrate_problems, print_json, print_table
    from pegboard.config.files import shown
    from pegboard.models import Problem

    records = file.read()
    if isinstance(records, Problem):
        narrate_problems([records])
        raise typer.Exit(_FAILED)
    folders = sorted(map(shown, records))
    if as_json:
        print_json(folders)
    else:
        print_table([(folder,) for folder in folders], empty="No trusted folders. `pegboard trust` trusts one.")


def _trust(paths: Paths, folder: Path, *, yes: bool) -> None:
    from pegboard.cli.approval import ask_line
    from pegboard.cli.output import narrate
    from pegboard.config import TrustFile, review_folder, trust_folder
    from pegboard.results.clean import clean_line

    os.stat(os.curdir)  # noqa: PTH116 - since Python 3.14, pathlib hides that the user may not enter it
    if not folder.is_dir():
        narrate(clean_line(f"{folder} is not a folder."))
        raise typer.Exit(USAGE)
    request = review_folder(paths, folder)
    if request.trust.problem is not None:
        narrate(clean_line(f"warning: {request.trust.problem}"))
    narrate(clean_line(request.folder))
    for line in request.lines():
        narrate(clean_line(line))
    if not request.files.exist and request.trust.state == "changed":
        TrustFile(paths.trust).remove(folder)
        narrate("The trusted files no longer exist. The folder is no longer trusted.")
        return
    if request.obstacle:
        narrate(request.obstacle)
        raise typer.Exit(_FAILED if request.files.exist else 0)
    if request.trust.state == "trusted":
        narrate("This folder is already trusted.")
        return
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            narrate("The folder was not trusted because there is no terminal to ask on. Review it and pass --yes.")
            raise typer.Exit(USAGE)
        if asyncio.run(ask_line("Trust this folder? [y/N] ")).strip().casefold() not in {"y", "yes"}:
            narrate("The folder was not trusted.")
            raise typer.Exit(_FAILED)
    trust_folder(paths, request)
    narrate("The folder is trusted until one of these files changes.")
