"""`pegboard sessions list | show | rename | export | delete`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pegboard.cli.completion import completions
from pegboard.cli.root import (
    MOST,
    TOOL_FAILED,
    USAGE,
    JsonOption,
    PacksOption,
    group,
    open_runtime,
    or_stdout,
    refuse_beside,
)

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_SHOWN: Final = 20
"""Messages that `show` prints unless `--limit` sets another number."""
_LONGEST_SHOWN: Final = 4_000
"""Characters of a message, or of a call's arguments, that `show` prints."""

sessions = group("sessions", "Show, rename, export and delete conversations with models.")


def complete_sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of sessions that start with the typed text."""
    return completions((session.id for session in open_runtime(context).sessions.list(limit=MOST)), incomplete)


SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the session, from pegboard sessions list.", autocompletion=complete_sessions
    ),
]


@sessions.command("list")
def list_(
    context: typer.Context,
    search: Annotated[
        str,
        typer.Option("--search", metavar="TEXT", help="List only sessions with this text in their name or messages."),
    ] = "",
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """List the sessions, the last changed first."""
    from pegboard.cli.output import print_json, print_table

    runtime = open_runtime(context)
    with _exit_on_error(runtime):
        found = runtime.sessions.list(search, limit=MOST)
    if json:
        print_json(found)
        return
    print_table(
        [
            (session.id, session.changed.astimezone().strftime("%Y-%m-%d %H:%M"), str(session.messages), session.name)
            for session in found
        ],
        ("ID", "CHANGED", "MESSAGES", "NAME"),
        empty=f"No session contains {search!r}." if search else "No sessions yet. `pegboard ask` starts one.",
    )


@sessions.command()
def show(
    context: typer.Context,
    session: SessionArgument,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, max=MOST, help=f"Show at most this many of the last messages; {_SHOWN} by default."
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show all messages, and long ones completely.")] = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Print the last messages of a session as Markdown, or the whole session as JSON.

    Long messages are shortened. A note on stderr counts the omitted messages.
    """
    if full or json:
        refuse_beside("--full" if full else "--json", {"--limit": limit}, "it prints all messages")
        export(context, session, "json" if json else "markdown")
        return
    from pegboard.cli.output import narrate, print_text
    from pegboard.results.sizes import count

    runtime = open_runtime(context)
    with _exit_on_error(runtime):
        excerpt = runtime.sessions.excerpt(session, limit or _SHOWN, _LONGEST_SHOWN)
    print_text(excerpt.text.removesuffix("\n"), end="\n")
    left_out = [
        *([f"{count(excerpt.omitted, 'earlier message')} not shown"] if excerpt.omitted else ()),
        *([f"{count(excerpt.shortened, 'long message')} shortened"] if excerpt.shortened else ()),
    ]
    if left_out:
        narrate(f"note: {', '.join(left_out)}. Add --full to see everything.")


@sessions.command()
def export(
    context: typer.Context,
    session: SessionArgument,
    format_: Annotated[Literal["markdown", "json"], typer.Option("--format", help="Format of the text.")] = "markdown",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this new file instead of stdout.", callback=or_stdout
        ),
    ] = None,
    packs: PacksOption = None,
) -> None:
    """Export a session as Markdown or JSON."""
    from pegboard import storage
    from pegboard.cli.output import narrate, print_json_text, print_text
    from pegboard.results.clean import without_halves

    runtime = open_runtime(context)
    with _exit_on_error(runtime):
        text = runtime.sessions.export(session, format_)
    if output is None:
        if format_ == "json":
            print_json_text(text)
        else:
            print_text(text.removesuffix("\n"), end="\n")
        return
    try:
        storage.write(output, without_halves(text).encode(), replace=False)
    except OSError as error:
        narrate(f"{output} was not written: {error.strerror or error}. Choose another file.")
        raise typer.Exit(USAGE) from error
    narrate(f"written: {output}")


@sessions.command()
def rename(
    context: typer.Context,
    session: SessionArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="New name.")],
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Rename a session; its id stays the same."""
    from pegboard.cli.output import print_json

    runtime = open_runtime(context)
    with _exit_on_error(runtime, "The session was not renamed"):
        runtime.sessions.rename(session, name)
        if json:
            print_json(runtime.sessions.get(session))


@sessions.command()
def delete(
    context: typer.Context, session: SessionArgument, json: JsonOption = False, packs: PacksOption = None
) -> None:
    """Delete a session with its messages; keep the record of its calls."""
    from pegboard.cli.output import print_json

    runtime = open_runtime(context)
    with _exit_on_error(runtime, "The session was not deleted"):
        runtime.sessions.delete(session)
    if json:
        print_json({"deleted": session})


@contextmanager
def _exit_on_error(runtime: Runtime, failed: str = "The sessions can't be read") -> Iterator[None]:
    """Print a session error on stderr and exit."""
    from pegboard.cli.output import narrate, narrate_problems
    from pegboard.errors import SessionError, StoreError, explained

    try:
        yield
    except SessionError as error:
        narrate(str(error))
        raise typer.Exit(USAGE) from error
    except StoreError as error:
        narrate(explained(error, failed))
        raise typer.Exit(TOOL_FAILED) from error
    finally:
        narrate_problems(runtime.problems(packs=False))
