"""Steps with the selected MCP server, or that of the selected tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.state.catalogue import CatalogueRow, ToolEntry

if TYPE_CHECKING:
    from textual.screen import Screen

    from pegboard.models import ServerStatus
    from pegboard.runtime import Runtime
    from pegboard.tui.tools.server_page import ServerPage

ServerStep: TypeAlias = Literal["reconnect", "messages", "log_in", "log_out", "remove_server"]


class SelectedServer(NamedTuple):
    """The MCP server to which a selected row belongs, if any."""

    name: str
    """Its name; empty if there is none."""
    page: ServerPage | None
    """Its page, if the row is the server itself."""

    @classmethod
    def of(cls, row: CatalogueRow | None, server: ServerStatus | None, page: ServerPage | None) -> SelectedServer:
        """Return the server of a row.

        Args:
            row: The row.
            server: Status of the server if the row is a server.
            page: The page that shows it then.
        """
        if server is not None and page is not None:
            return cls(server.name, page)
        if not isinstance(row, ToolEntry):
            return cls("", None)
        from pegboard.models.spec import McpHandler  # the first frame is painted without it

        handler = row.spec.handler
        return cls(handler.server if isinstance(handler, McpHandler) else "", None)

    def may_take(self, step: ServerStep) -> bool:
        """Return whether a step is possible."""
        if not self.name or self.page is None:
            return bool(self.name) and step in {"reconnect", "messages"}
        match step:
            case "reconnect":
                return self.page.is_enabled
            case "log_in":
                return self.page.needs_login
            case "log_out":
                return self.page.has_login
            case "remove_server":
                return self.page.is_removable
            case "messages":
                return True

    def take(self, step: ServerStep, screen: Screen[None], runtime: Runtime) -> None:
        """Take a step that is possible.

        Args:
            step: The step.
            screen: The screen with the row.
            runtime: Runtime with the servers.
        """
        if step == "messages":
            from pegboard.tui.dialogs.server_messages import MessagesScreen

            screen.app.push_screen(MessagesScreen(runtime, self.name))
        elif self.page is not None:
            getattr(self.page, step)()
        else:
            screen.run_worker(_reconnect(screen, runtime, self.name), group="server connection", exclusive=True)


async def _reconnect(screen: Screen[None], runtime: Runtime, server: str) -> None:
    """Connect to a server again, and show whether that succeeded."""
    await runtime.servers.reconnect(server)
    status = runtime.servers.status(server)
    if status is None:
        return
    if status.state.is_usable:
        screen.notify(clean_line(f"Reconnected to {server}: {count(status.tools, 'tool')}."), markup=False)
        return
    text = clean_line(f"{server} is not connected. {status.reason} {status.fix}".strip())
    screen.notify(text, title="MCP server", severity="error", markup=False)
