"""The rules that approvals added since the start; the last one can be undone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.app import App
from textual.notifications import SeverityLevel

from pegboard.errors import RulesError
from pegboard.models.approval import AddedRule
from pegboard.results.clean import clean_line
from pegboard.tui.commands import key_of

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_TOAST_SECONDS = 10.0


class RuleUndo:
    """The added rules, the newest last.

    Args:
        app: The app that shows the toasts.
        runtime: The runtime that removes rules.
    """

    def __init__(self, app: App[None], runtime: Runtime) -> None:
        self._app = app
        self._runtime = runtime
        self._added: list[AddedRule] = []

    def added(self, added: AddedRule) -> None:
        """Show a toast for an added rule, with the key that undoes it, or the reason why it wasn't added."""
        if added.problem:
            self._notify(f"{added.problem} The call runs once.", severity="warning")
            return
        self._added.append(added)
        duration = "for this session" if added.session is not None else "permanently"
        key = key_of(self._app, "app.undo_rule")
        self._notify(f"Rule added {duration}: {added.rule}. {key or 'Undo the last rule'} undoes it.")

    async def undo(self) -> None:
        """Remove the newest rule."""
        if not self._added:
            self._notify("No rule was added since Pegboard started.")
            return
        added = self._added.pop()
        try:
            await asyncio.to_thread(self._runtime.rules.undo, added)
        except RulesError as error:
            self._notify(str(error), severity="error")
        else:
            self._notify(f"Rule removed: {added.rule}. Such calls ask again.")

    def _notify(self, text: str, severity: SeverityLevel = "information") -> None:
        self._app.notify(clean_line(text), severity=severity, timeout=_TOAST_SECONDS, markup=False)
