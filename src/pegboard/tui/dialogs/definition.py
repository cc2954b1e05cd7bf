"""A dialog with the definition of a tool as JSON, as models receive it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from pegboard.models import ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.definition import definition, token_weight
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.highlighted import highlighted

_LONGEST = 200_000


class JsonScreen(Dialog[None]):
    """An object as JSON.

    Args:
        title: Title of the dialog; plain text.
        shown: The object, or a text.
        note: Text at the lower edge of the frame, before the keys.
    """

    PAGE = "Definition"
    AUTO_FOCUS = "#scroll"
    HAS_FOOTER = False

    DEFAULT_CSS = """
    JsonScreen {
        & > #box { width: 100; height: auto; }
        #scroll { height: auto; max-height: 100%; padding: 0 1; scrollbar-size-vertical: 1; }
        #json { height: auto; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("definition.copy", "c", "copy", "Copy", "Copy the JSON."),
        Command("definition.close", "escape,f2,q", "dismiss", "Close", "Close this dialog."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, shown: Mapping[str, object] | str, note: str = "") -> None:
        super().__init__(title, f"{note}{{definition.copy}} copies · {{definition.close}} closes")
        self._text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, indent=2)

    def compose_body(self) -> ComposeResult:
        """Compose the JSON."""
        with VerticalScroll(id="scroll"):
            yield Static(highlighted(self._text, "json", _LONGEST), id="json")

    def action_copy(self) -> None:
        """Copy the JSON."""
        self.post_message(Copy(self._text))


class DefinitionScreen(JsonScreen):
    """Name, description and schemas of a tool as JSON.

    Args:
        spec: The tool.
    """

    def __init__(self, spec: ToolSpec) -> None:
        shown = definition(spec)
        if spec.output_schema is not None:
            shown["outputSchema"] = spec.output_schema
        shown["annotations"] = spec.annotations
        super().__init__(clean_line(spec.name), shown, f"≈ {token_weight(spec):,} tokens · ")
