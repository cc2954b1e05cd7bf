"""A dialog that edits the arguments of a call awaiting approval."""

from __future__ import annotations

from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType

from pegboard.data.mask import moved_secret, restored, unrecorded_secret
from pegboard.models import JsonObject, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.dialogs.form_dialog import FormDialog


class EditCallScreen(FormDialog[JsonObject | None]):
    """A form that returns the edited arguments, or None to leave the call awaiting approval.

    Args:
        spec: The tool.
        arguments: The proposed arguments, without secrets.
        full: The same arguments with their secrets, which the edited ones get back; None if they aren't known.
        title: Title of the dialog; plain text. By default, it names the tool.
        note: Text at the lower edge of the frame.
    """

    PAGE = "Edit the call"

    DEFAULT_CSS = """
    EditCallScreen {
        & > #box { width: 100; max-width: 96%; height: 30; max-height: 92%; }
        FormPane { height: 1fr; scrollbar-size-vertical: 1; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "edit_call.run",
            "ctrl+r",
            "run",
            "Run with these",
            "Approve the call with these arguments.",
            True,
            priority=True,
        ),
        Command("edit_call.close", "escape", "close", "Back", "Close; the call still awaits approval.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(
        self,
        spec: ToolSpec,
        arguments: JsonObject,
        full: JsonObject | None = None,
        *,
        title: str = "",
        note: str = "the model sees your changes",
    ) -> None:
        super().__init__(title or f"Edit {clean_line(spec.name)} before it runs", note)
        self._spec = spec
        self._arguments = arguments
        self._full = full

    def compose_body(self) -> ComposeResult:
        """Compose the form."""
        yield self.form

    def on_mount(self) -> None:
        """Fill the form."""
        self.show_form(self._spec, self._arguments)

    def action_run(self) -> None:
        """Close with the arguments if they are valid and complete."""
        edited = self.form.submit()
        if edited is None:
            return
        if self._full is None:
            arguments, problem = edited, unrecorded_secret(edited)
            problem = problem and f"{problem} Enter the value."
        else:
            arguments = cast("JsonObject", restored(edited, self._arguments, self._full))
            problem = moved_secret(edited, self._arguments)
        if problem:
            self.notify(clean_line(problem), severity="warning", markup=False)
        else:
            self.dismiss(arguments)
