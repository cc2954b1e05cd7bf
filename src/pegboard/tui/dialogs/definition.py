"""A tool's definition as JSON, just as a model gets it."""

from __future__ import annotations

import json
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from pegboard.models import ToolSpec
from pegboard.results.clean import clean, clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.state.definition import definition, token_weight
from pegboard.tui.widgets.dialog import Dialog

_LONGEST = 200_000


class DefinitionScreen(Dialog[None]):
    """Name, description and schemas of a tool, raw.

    Args:
        spec: The tool.
    """

    PAGE = "Definition"
    AUTO_FOCUS = "#scroll"

    DEFAULT_CSS = """
    DefinitionScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 100; max-width: 94%; height: auto; max-height: 90%;
            background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
        }
        #scroll { height: auto; max-height: 100%; padding: 0 1; scrollbar-size-vertical: 1; }
        #json { height: auto; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("definition.copy", "c", "copy", "Copy", "Copy the definition as JSON."),
        Command("definition.close", "escape,f2,q", "dismiss", "Close", "Go back to where you were."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__()
        shown = definition(spec)
        if spec.output_schema is not None:
            shown["outputSchema"] = spec.output_schema
        shown["annotations"] = spec.annotations
        self._text = json.dumps(shown, ensure_ascii=False, indent=2)
        self._spec = spec

    def compose(self) -> ComposeResult:
        """The JSON, to be scrolled."""
        with Vertical(id="box") as box:
            box.border_title = Content(clean_line(self._spec.name))
            box.border_subtitle = Content(f"≈ {token_weight(self._spec):,} tokens · c copies · esc closes")
            with VerticalScroll(id="scroll"):
                yield Static(_coloured(clean(self._text)), id="json")

    def action_copy(self) -> None:
        """Asks for the JSON to be copied."""
        self.post_message(Copy(self._text))


def _coloured(text: str) -> Content:
    if len(text) > _LONGEST:
        return Content(f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters")
    from textual.highlight import highlight

    return highlight(text, language="json")
