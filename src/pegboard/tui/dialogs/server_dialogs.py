"""The user's answers to what MCP servers ask. The dialogs are imported when a server asks, off the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from textual.app import App

from pegboard.results.clean import clean_line

if TYPE_CHECKING:
    from pegboard.models import Elicitation, ElicitationAnswer, SamplingRequest
    from pegboard.tui.dialogs.server_questions import ServerQuestion

_T = TypeVar("_T")


class ServerDialogs:
    """The user's answers to what MCP servers ask, one dialog at a time. A `pegboard.ports.ServerQuestions`.

    Args:
        app: The running app.
    """

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._one_at_a_time = asyncio.Lock()

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Show a form, or an address to visit."""
        await asyncio.to_thread(_import_modules)
        from pegboard.models import ElicitationAnswer
        from pegboard.tui.dialogs.server_questions import ElicitationScreen, VisitScreen, origin

        screen: ServerQuestion[ElicitationAnswer | None] = ElicitationScreen(elicitation)
        if elicitation.url is not None:
            who = origin(elicitation.server, elicitation.tool, "asks you to visit an address")
            title = f"{clean_line(elicitation.server)} asks you to visit an address"
            screen = VisitScreen(who, elicitation.message, elicitation.url, title)
        return await self._ask(screen) or ElicitationAnswer(action="cancel")

    async def log_in(self, server: str, url: str) -> bool:
        """Show the address of a login, and open it if the user agrees."""
        await asyncio.to_thread(_import_modules)
        from pegboard.tui.dialogs.server_questions import VisitScreen, origin

        message = "The browser returns to Pegboard after the login."
        who = origin(server, None, "requires a login")
        answer = await self._ask(VisitScreen(who, message, url, f"Log in to {clean_line(server)}"))
        return answer is not None and answer.action == "accept"

    async def approve_sampling(self, request: SamplingRequest) -> bool:
        """Show a prompt, and return whether the model may answer it."""
        await asyncio.to_thread(_import_modules)
        from pegboard.tui.dialogs.server_questions import SamplingScreen

        runtime = getattr(self._app, "runtime", None)
        model = runtime.settings.model.name if runtime is not None else None
        return await self._ask(SamplingScreen(request, model or "")) is True

    async def _ask(self, screen: ServerQuestion[_T]) -> _T | None:
        """Show a dialog and return its result; close it when this is cancelled."""
        async with self._one_at_a_time:
            answered: asyncio.Future[_T | None] = asyncio.get_running_loop().create_future()

            def answer(result: _T | None) -> None:
                if not answered.done():
                    answered.set_result(result)

            def show() -> None:
                if not answered.done():
                    self._app.push_screen(screen, answer)
                    self._app.bell()

            # Servers' questions come from another thread, whose context has no app.
            self._app.call_later(show)
            try:
                return await answered
            except asyncio.CancelledError:
                self._app.call_later(lambda: screen.end() if screen.is_attached else None)
                raise


def _import_modules() -> None:
    import pegboard.tui.dialogs.server_questions  # noqa: F401 - the caller uses it
