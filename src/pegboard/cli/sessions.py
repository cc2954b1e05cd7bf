"""`pegboard sessions list | show | rename | export | delete`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pegboard.cli.root import TOOL_FAILED, USAGE, JsonOption, PacksOption, group, open_runtime

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

sessions = group("sessions", "Look at conversations with models, and keep or drop them.")


def complete_sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Gives the ids of sessions that begin like what is typed."""
    found = (session.id for session in open_runtime(context).sessions.list())
    return [id_ for id_ in found if id_.startswith(incomplete) and id_.isprintable()]


SessionArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The session's id, as the list has it.", autocompletion=complete_sessions)
]


@sessions.command("list")
def list_(
    context: typer.Context,
    search: Annotated[
        str, typer.Option("--search", metavar="TEXT", help="Only sessions with this in their name or in what was said.")
    ] = "",
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """List the sessions, those that changed last first."""
    from pegboard.cli.output import print_json, print_table

    runtime = open_runtime(context)
    with _said(runtime):
        found = runtime.sessions.list(search)
    if json:
        print_json(found)
        return
    print_table(
        [
            (session.id, session.changed.astimezone().strftime("%Y-%m-%d %H:%M"), str(session.messages), session.name)
            for session in found
        ]
    )


@sessions.command()
def show(context: typer.Context, session: SessionArgument, json: JsonOption = False, packs: PacksOption = None) -> None:
    """Print what was said in a session, as Markdown or JSON."""
    export(context, session, "json" if json else "markdown")


@sessions.command()
def export(
    context: typer.Context,
    session: SessionArgument,
    format_: Annotated[Literal["markdown", "json"], typer.Option("--format", help="What to write.")] = "markdown",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A file that isn't there yet, not stdout.")
    ] = None,
    packs: PacksOption = None,
) -> None:
    """Write a session as Markdown or JSON."""
    from pegboard.cli.output import narrate, print_json_text, print_text
    from pegboard.results.clean import without_halves

    runtime = open_runtime(context)
    with _said(runtime):
        text = runtime.sessions.export(session, format_)
    if output is None:
        if format_ == "json":
            print_json_text(text)
        else:
            print_text(text.removesuffix("\n"), end="\n")
        return
    try:
        with output.open("x", encoding="utf-8") as opened:
            opened.write(without_halves(text))
    except OSError as error:
        narrate(f"{output}: {error.strerror or error}")
        raise typer.Exit(USAGE) from error
    narrate(f"written: {output}")


@sessions.command()
def rename(
    context: typer.Context,
    session: SessionArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name it gets.")],
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Give a session another name; its id stays."""
    from pegboard.cli.output import print_json

    runtime = open_runtime(context)
    with _said(runtime):
        runtime.sessions.rename(session, name)
        if json:
            print_json(runtime.sessions.get(session))


@sessions.command()
def delete(
    context: typer.Context, session: SessionArgument, json: JsonOption = False, packs: PacksOption = None
) -> None:
    """Throw a session away with all that was said; the record of its calls stays."""
    from pegboard.cli.output import print_json

    runtime = open_runtime(context)
    with _said(runtime):
        runtime.sessions.delete(session)
    if json:
        print_json({"deleted": session})


@contextmanager
def _said(runtime: Runtime) -> Iterator[None]:
    """Tells what can't be done as a sentence on stderr, and exits."""
    from pegboard.cli.output import narrate, narrate_problems
    from pegboard.errors import SessionError, StoreError

    try:
        yield
    except SessionError as error:
        narrate(str(error))
        raise typer.Exit(USAGE) from error
    except StoreError as error:
        narrate(f"Sessions can't be reached: {error}")
        raise typer.Exit(TOOL_FAILED) from error
    finally:
        narrate_problems(runtime.problems(packs=False))
