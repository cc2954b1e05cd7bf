"""Minimal app that contains a form pane, for tests."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest
from headless import TIMEOUT_SECONDS, compose_frame
from pydantic import JsonValue
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from pegboard.forms import Form
from pegboard.models import Fault, JsonObject, PackHandler, ToolSpec
from pegboard.tui.form import FormPane
from pegboard.tui.form.body import FormBody
from pegboard.tui.form.field_view import FieldView
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.widgets.keys_line import KeysLine

SIZE = (80, 24)


class FormApp(App[None]):
    """App with one form pane, which records the announced validation errors."""

    def __init__(self) -> None:
        super().__init__()
        self.announced: list[tuple[Fault, ...]] = []

    def get_default_screen(self) -> Screen[None]:
        """Return a page screen, as in the real app."""
        return PageScreen()

    def compose(self) -> ComposeResult:
        """Compose the pane and the footer."""
        yield FormPane()
        yield KeysLine()

    @property
    def pane(self) -> FormPane:
        """The pane."""
        return self.query_one(FormPane)

    @property
    def body(self) -> FormBody:
        """The fields of the displayed form."""
        assert self.pane.body is not None
        return self.pane.body

    @property
    def path(self) -> str | None:
        """JSON Pointer to the focused field, or None."""
        node = self.focused
        while node is not None and not isinstance(node, FieldView):
            node = node.parent if isinstance(node.parent, Widget) else None
        return node.item.field.path if node is not None else None

    @property
    def form(self) -> Form:
        """The displayed form."""
        assert self.pane.form is not None
        return self.pane.form

    @property
    def text(self) -> str:
        """The text on the screen."""
        return "\n".join(compose_frame(self))

    def on_form_pane_changed(self, event: FormPane.Changed) -> None:
        """Record the validation errors."""
        self.announced.append(event.faults)


def spec_of(properties: JsonObject, *required: str, name: str = "pack.tool", **more: JsonValue) -> ToolSpec:
    """Return the spec of a tool with these properties."""
    schema: JsonObject = {"type": "object", "properties": properties, "required": [*required], **more}
    handler = PackHandler(pack="pack", function="tool", file="/pack.py", line=1)
    return ToolSpec(name=name, pack="pack", input_schema=schema, handler=handler)


async def settled(pilot: Pilot[None]) -> None:
    """Wait until the viewport of the displayed form is mounted."""
    app = pilot.app
    assert isinstance(app, FormApp)
    body = app.pane.body
    if body is not None:
        await until(pilot, lambda: body.views and all(view.is_mounted for view in body.views))
    await pilot.pause()


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Wait until `condition` holds."""
    end = monotonic() + TIMEOUT_SECONDS
    while not condition():
        if monotonic() > end:
            app = pilot.app
            assert isinstance(app, FormApp)
            pytest.fail(f"the condition never held; on the screen:\n{app.text}")
        await pilot.pause(0.01)


async def show(pilot: Pilot[None], spec: ToolSpec, *, focus: bool = True) -> None:
    """Show the form of `spec` and focus its first field."""
    app = pilot.app
    assert isinstance(app, FormApp)
    app.pane.show(spec)
    await settled(pilot)
    if focus:
        await pilot.press("tab")
