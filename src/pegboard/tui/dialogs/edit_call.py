"""A dialog that edits the arguments of a call awaiting approval."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

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
        is_waiting: Returns whether the call still awaits approval; called when the app's waiting calls change. None if
            it doesn't.
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
        is_waiting: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(title or f"Edit {clean_line(spec.name)} before it runs", note)
        self._spec = spec
        self._arguments = arguments
        self._full = full
        self._is_waiting = is_waiting
        self._is_over = False

    def compose_body(self) -> ComposeResult:
        """Compose the form."""
        yield self.form

    def on_mount(self) -> None:
        """Fill the form, and watch whether the call still awaits approval."""
        self.show_form(self._spec, self._arguments)
        if self._is_waiting is not None:
            for waiting in ("requests", "agent_calls"):
                self.watch(self.app, waiting, self._update)

    def _update(self) -> None:
        """Run a call that has ended no longer; the arguments stay so that they can be copied."""
        if self._is_waiting is not None and not self._is_waiting():
            self._is_over = True
            subtitle = Content.styled("The call has ended; your changes don't apply", "$text-error")
            self.query_one("#box").border_subtitle = subtitle
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable running a call that has ended."""
        return not (self._is_over and action == "run") and super().check_action(action, parameters)

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
