"""A form that closes while the user types in it, because its pack was removed, renamed or damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pegboard.results.clean import clean_line
from pegboard.tui.state.catalogue import CatalogueRow, ToolEntry
from pegboard.tui.widgets.toasts import dismiss

if TYPE_CHECKING:
    from textual.widget import Widget

    from pegboard.runtime import Runtime

_TOAST_SECONDS: Final = 15


def leave_lost_tool(form: Widget, before: CatalogueRow | None, after: CatalogueRow | None, runtime: Runtime) -> None:
    """Remove the focus from a form that closes because its tool no longer exists, and say so until it is back.

    Args:
        form: The form.
        before: The row to which it belongs.
        after: The row that is now selected.
        runtime: The core, which knows the tools that exist.
    """
    if isinstance(after, ToolEntry):
        dismiss(form.app, _message(after))
    if not isinstance(before, ToolEntry) or not form.has_focus_within or runtime.tools.get(before.spec.name):
        return
    if isinstance(after, ToolEntry):
        form.screen.set_focus(None)  # otherwise the form of the tool that is now selected receives what the user types
    form.app.notify(_message(before), severity="warning", timeout=_TOAST_SECONDS, markup=False)


def _message(lost: ToolEntry) -> str:
    return (
        f"The form of {clean_line(lost.spec.name)} was closed because the tool no longer exists. "
        "Keys go nowhere until you select a tool. If the tool exists again, the form has the values that you entered."
    )
