"""A dialog with the definition of a tool as JSON, as models receive it."""

from __future__ import annotations

import json
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
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
    """Name, description and schemas of a tool as JSON."""

    PAGE = "Definition"
    AUTO_FOCUS = "#scroll"
    HAS_FOOTER = False

    DEFAULT_CSS = """
    DefinitionScreen {
        & > #box { width: 100; height: auto; }
        #scroll { height: auto; max-height: 100%; padding: 0 1; scrollbar-size-vertical: 1; }
        #json { height: auto; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("definition.copy", "c", "copy", "Copy", "Copy the definition as JSON."),
        Command("definition.close", "escape,f2,q", "dismiss", "Close", "Close this dialog."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__(clean_line(spec.name), f"≈ {token_weight(spec):,} tokens · c copies · esc closes")
        shown = definition(spec)
        if spec.output_schema is not None:
            shown["outputSchema"] = spec.output_schema
        shown["annotations"] = spec.annotations
        self._text = json.dumps(shown, ensure_ascii=False, indent=2)

    def compose_body(self) -> ComposeResult:
        """Compose the JSON."""
        with VerticalScroll(id="scroll"):
            yield Static(_coloured(clean(self._text)), id="json")

    def action_copy(self) -> None:
        """Copy the JSON."""
        self.post_message(Copy(self._text))


def _coloured(text: str) -> Content:
    if len(text) > _LONGEST:
        return Content(f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters")
    from textual.highlight import highlight

    return highlight(text, language="json")
