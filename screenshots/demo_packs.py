"""Sources of the packs that the screenshots show."""

# ruff: noqa: INP001 - part of a script, not of a package

NOTES = '''"""Notes, kept in a text file."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from pegboard.sdk import ToolFailed, hints, log, progress


@hints(read_only=True)
def find(*, words: str, kind: Literal["idea", "task", "quote"] | None = None, limit: int = 10) -> list[dict]:
    """Find notes that contain all the words.

    Case is ignored. The **newest** come first.

    Args:
        words: Words to search for.
        kind: Kind of the notes.
        limit: Maximum number of notes.
    """
    found = [
        {"id": 7, "kind": "task", "text": "Hang the new saw on the pegboard", "tags": ["shop"]},
        {"id": 5, "kind": "idea", "text": "A pegboard for tools that agents use", "tags": ["agents", "tools"]},
        {"id": 2, "kind": "quote", "text": "A place for every peg, and every peg in its place", "tags": []},
    ]
    for number, note in enumerate(found, 1):
        log(f"reading note {note['id']}")
        progress(number, len(found))
    return found[:limit]


@hints(destructive=True)
def clear(*, before: str) -> int:
    """Delete notes older than a day.

    Args:
        before: The day, as `2026-01-31`.
    """
    raise ToolFailed(f"There are no notes older than {before}.", code="not_found")


@hints(read_only=True)
def overview() -> str:
    """Summarize the notes in Markdown."""
    return "# Three notes\\n\\n- one *task*, for the shop\\n- one *idea*, on **agents**\\n- one *quote*\\n"


class Place(TypedDict):
    room: str
    shelf: NotRequired[int]


class Step(TypedDict):
    what: str
    minutes: NotRequired[int]


class Mail(TypedDict):
    by: Literal["mail"]
    address: str


class Sign(TypedDict):
    by: Literal["sign"]
    wall: str


def plan(
    *,
    title: str,
    place: Place,
    steps: list[Step],
    tell: Mail | Sign,
    tags: list[Literal["shop", "home", "loud"]] | None = None,
    labels: dict[str, str] | None = None,
) -> str:
    """Plan some work.

    Args:
        title: Title of the plan.
        place: Location of the work.
        steps: The steps, in order.
        tell: How to notify the others.
        tags: Topics.
        labels: Further notes by name.
    """
    return f"{title}, in {place['room']}: {len(steps)} steps"
'''


FILMS = '''"""Films from a camera."""

from pegboard.sdk import hints, requires_cli, requires_lib, requires_secret


@requires_cli("ffmpeg", version_flag="-version", min_version="6", install="apt install ffmpeg")
@hints(read_only=True)
def length(*, file: str) -> float:
    """Return the length of a film in seconds."""


@requires_cli("ffmpeg", version_flag="-version", min_version="6", install="apt install ffmpeg")
@requires_lib("whisper", install="pip install openai-whisper")
def subtitles(*, file: str) -> str:
    """Transcribe a film."""


@requires_secret("FILMS_KEY", hint="https://example.org/account")
def upload(*, file: str) -> str:
    """Publish a film."""
'''

LIBRARY = '''"""A library of books, as an MCP server."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

READ_ONLY = ToolAnnotations(read_only_hint=True)
server = MCPServer("Town library", version="2.1", instructions="Search before you lend: titles have many editions.")


@server.tool(annotations=READ_ONLY)
def search(words: str, year: int | None = None) -> list[str]:
    """Find books by words of their titles."""
    return [words]


@server.tool(annotations=READ_ONLY)
def loans(reader: str) -> list[str]:
    """List the books that a reader has borrowed."""
    return [reader]


@server.tool()
def lend(book: str, reader: str, weeks: int = 4) -> str:
    """Lend a book to a reader."""
    return book


@server.resource("library://hours", name="Opening hours", description="Opening hours of this week.")
def hours() -> str:
    return "10 to 18"


@server.resource("library://book/{isbn}", name="Book", description="All that is known about a book.")
def book(isbn: str) -> str:
    return isbn


@server.prompt(description="Recommend a book to a reader.")
def recommend(reader: str) -> str:
    return f"Recommend a book to {reader}."


server.run()
'''
