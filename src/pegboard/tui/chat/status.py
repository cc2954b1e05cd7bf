"""Status line of the Chat page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from textual.content import Content
from textual.widgets import Static

from pegboard.models.conversation import Usage
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, duration, thousands
from pegboard.tui.state.approvals import ApprovalRequest

_MODEL_CELLS = 24
"""Minimum width of the model's name, in cells."""


@dataclass(frozen=True)
class ChatStatus:
    """Values shown in the status line."""

    model: str = ""
    session: str = ""
    """Name of the session; empty before its first message."""
    requests: tuple[ApprovalRequest, ...] = ()
    """Calls awaiting approval."""
    select_key: str = ""
    """Key that selects a call awaiting approval; empty if one is selected."""
    step: int = 0
    steps: int = 0
    seconds: float | None = None
    """Elapsed time of the running ask; None if nothing runs."""
    queued: int = 0
    """Number of queued messages."""
    weights: tuple[int, ...] = ()
    """Tokens of the tools that the model sees."""
    tools: int = 0
    """Number of all tools."""
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    """Cost in US dollars."""


class ChatStatusLine(Static):
    """One line with model, progress, queue, tools, tokens and cost."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._status = ChatStatus()

    def show(self, status: ChatStatus) -> None:
        """Show new values."""
        self._status = status
        self._refresh_text()

    def on_resize(self) -> None:
        """Truncate the line to the new width."""
        self._refresh_text()

    async def on_click(self) -> None:
        """Select a call awaiting approval, as its key in the line does."""
        if self._status.requests and self._status.select_key:
            await self.run_action("app.to_asking")

    def _refresh_text(self) -> None:
        if not self.is_attached:
            return
        width = self.screen.size.width
        pieces = [*self._progress(), *self._facts(width)]
        line = Content(" · ").join(Content.styled(text, style) for text, style in pieces)
        self.update(line.truncate(max(width - 2, 1), ellipsis=True), layout=False)

    def _progress(self) -> Iterator[tuple[str, str]]:
        status = self._status
        if status.requests:
            waiting = len(status.requests)
            which = f"{clean_line(status.requests[0].call.name)} awaits" if waiting == 1 else f"{waiting:,} calls await"
            key = f": {status.select_key}" if status.select_key else ""
            yield f"? {which} approval{key}", "bold $text-warning"
        elif status.seconds is not None:
            yield f"▶ step {status.step} of {status.steps}" if status.step else "▶ asking", "bold $text-primary"

    def _facts(self, width: int) -> Iterator[tuple[str, str]]:
        status = self._status
        model = Content(clean_line(status.model)).truncate(max(width // 4, _MODEL_CELLS), ellipsis=True)
        yield model.plain, "bold $foreground"
        if status.seconds is not None and not status.requests:
            yield duration(status.seconds * 1000), ""
        if status.queued:
            yield f"{count(status.queued, 'message')} queued", "$text-warning"
        yield f"{len(status.weights):,} of {status.tools:,} tools, {thousands(sum(status.weights))} tokens", ""
        if status.usage.input_tokens or status.usage.output_tokens:
            yield f"↑{thousands(status.usage.input_tokens)} ↓{thousands(status.usage.output_tokens)}", ""
        if status.cost:
            yield f"${status.cost:,.4f}", ""
        if status.session:
            yield clean_line(status.session), ""
