"""A dialog that asks for a value to redact in retrospect."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from pegboard.config.redaction import SHORTEST
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import Dialog

_EXPLANATION: Final = """\
Enter a value, such as a password that was sent by mistake. Pegboard replaces it in everything that it has stored: \
arguments and results of calls, result files, chat sessions, the search index, presets, scripts, checks, drafts, \
logs and caches.

This can't be undone. Text that is open in a form, the script editor or a chat stays there until you change it. To \
redact the value in future calls too, write it to the `.env` file beside the configuration file, under a name such as \
OLD_TOKEN."""

_TOO_SHORT: Final = f"Enter at least {SHORTEST} characters: a shorter value would match unrelated text."


class RedactScreen(Dialog[str | None]):
    """A dialog that returns the value to redact, or None."""

    PAGE = "Redact"
    AUTO_FOCUS = "Input"
    HAS_FOOTER = False

    DEFAULT_CSS = """
    RedactScreen {
        & > #box {
            width: 76; height: auto; padding: 1 2; border: round $error; border-title-color: $text-error;
            overflow-y: auto; scrollbar-size-vertical: 1;
        }
        #explanation { height: auto; }
        #entry { dock: bottom; height: auto; margin-top: 1; }
        #problem { color: $text-error; margin-top: 1; display: none; }
        Input, Input:focus { border: none; border-left: outer $border; height: 1; padding: 0 1; background: $panel; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("redact.close", "escape", "close", "Close", "Close without redacting anything."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self) -> None:
        super().__init__("Redact a value everywhere", "enter redacts · {redact.close} closes")

    def compose_body(self) -> ComposeResult:
        """Compose the explanation and the input, which hides the value."""
        yield Static(Content(_EXPLANATION), id="explanation")
        with Vertical(id="entry"):
            yield Input(password=True)
            yield Static(_TOO_SHORT, id="problem", markup=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if len(event.value.strip()) < SHORTEST:
            self.query_one("#problem").display = bool(event.value)
        else:
            self.dismiss(event.value)
