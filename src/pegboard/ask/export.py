"""Exports of a session: Markdown for reading, JSON for other programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic_core import to_json

from pegboard.models.conversation import ModelMessage, SystemMessage, ToolMessage, UserMessage
from pegboard.models.session import Session, SessionEntry
from pegboard.results.sizes import count


def as_markdown(session: Session, entries: Sequence[SessionEntry]) -> str:
    """Return a session as Markdown: messages unchanged, calls and results as code."""
    head = f"# {session.name or session.id}\n\nSession `{session.id}`, {session.created:%Y-%m-%d %H:%M} UTC"
    head += f", {session.model}" if session.model else ""
    return "\n\n".join([head, *(part for entry in entries for part in _parts(entry))]) + "\n"


def as_json(session: Session, entries: Sequence[SessionEntry]) -> str:
    """Return a session with all its messages as JSON."""
    return (
        to_json({**session.model_dump(mode="json"), "entries": list(entries)}, indent=2, by_alias=True).decode() + "\n"
    )


def shortened(entry: SessionEntry, longest: int) -> SessionEntry:
    """Return an entry without the ends of long texts; the same entry if none is long.

    Args:
        entry: Entry of a session.
        longest: Highest number of characters of a text or of a call's arguments.
    """
    message = entry.message
    changes: dict[str, object] = {}
    if len(message.text) > longest:
        changes["text"] = _cut(message.text, longest)
    if isinstance(message, ModelMessage) and any(len(call.arguments) > longest for call in message.calls):
        changes["calls"] = tuple(
            call.model_copy(update={"arguments": _cut(call.arguments, longest)}) for call in message.calls
        )
    return entry.model_copy(update={"message": message.model_copy(update=changes)}) if changes else entry


def _cut(text: str, longest: int) -> str:
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({count(left, 'more character')})"


def _parts(entry: SessionEntry) -> Iterator[str]:
    match entry.message:
        case SystemMessage(text=text):
            yield f"## System\n\n{text}"
        case UserMessage(text=text):
            yield f"## You\n\n{text}"
        case ModelMessage(text=text, calls=calls):
            yield f"## Model\n\n{text}".rstrip()
            for call in calls:
                yield f"Call of `{_name(call.name)}`:\n\n{_fenced(call.arguments, 'json')}"
        case ToolMessage(name=name, text=text, ok=ok):
            yield f"### {'Result' if ok else 'Failure'} of `{_name(name)}`\n\n{_fenced(text)}"


def _name(name: str) -> str:
    return re.sub(r"[`\s]", " ", name)


def _fenced(text: str, language: str = "") -> str:
    """Return a code block whose fence is longer than any in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
