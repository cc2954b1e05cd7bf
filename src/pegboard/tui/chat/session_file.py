"""Files of sessions: exports to the working directory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from textual.app import App

from pegboard.errors import SessionError, StoreError, explained
from pegboard.models.session import Session
from pegboard.results.clean import clean_line
from pegboard.results.new_file import write_new
from pegboard.tui.widgets.pick_list import PickLine

if TYPE_CHECKING:
    from textual.widget import Widget

    from pegboard.runtime import Runtime

_Kind: TypeAlias = Literal["markdown", "json"]

_EXPORTS: Final[tuple[tuple[_Kind, str, PickLine], ...]] = (
    ("markdown", ".md", PickLine("Markdown", "for reading")),
    ("json", ".json", PickLine("JSON", "all messages as stored")),
)
_FAILED: Final = "The session was not exported"
_ELSEWHERE: Final = "To write it to another folder, use `pegboard sessions export`."


async def export_open_session(
    app: App[object], runtime: Runtime, session: str, known: Session | None, beside: Widget
) -> None:
    """Export the open session, also before its first answer is complete; see `export_session`.

    Args:
        app: The running app.
        runtime: Runtime with the session.
        session: ID of the session.
        known: The session as it was last read; None if it wasn't read since its first message.
        beside: Widget next to which the list of formats opens.
    """
    try:
        stored = await asyncio.to_thread(runtime.sessions.get, session) or known
    except StoreError as error:
        app.notify(clean_line(explained(error, "The session can't be read")), severity="error", markup=False)
        return
    if stored is None:
        app.notify("The session is empty. Send a message first.", markup=False)
    else:
        await export_session(app, runtime, stored, beside)


async def export_session(app: App[object], runtime: Runtime, session: Session, beside: Widget) -> None:
    """Export a session to a new file in the working directory, in the format that the user picks.

    Args:
        app: The running app.
        runtime: Runtime with the session.
        session: The session.
        beside: Widget next to which the list of formats opens.
    """
    from pegboard.tui.form.popups import PickOne

    picked = await app.push_screen_wait(PickOne(beside, "Export as", [line for *_, line in _EXPORTS]))
    if picked is None:
        return
    kind, suffix, _ = _EXPORTS[picked]

    def write() -> Path:
        return write_new(Path.cwd(), session.name or session.id, suffix, runtime.sessions.export(session.id, kind))

    try:
        file = await asyncio.to_thread(write)
    except (SessionError, StoreError) as error:
        app.notify(clean_line(explained(error, _FAILED)), severity="error", markup=False)
    except OSError as error:
        reason = f"{_FAILED}: {error.strerror or error}. {_ELSEWHERE}"
        app.notify(clean_line(reason), severity="error", markup=False)
    else:
        app.notify(f"Exported to {clean_line(str(file))}", markup=False)
