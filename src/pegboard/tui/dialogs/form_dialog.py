"""The base class of dialogs with a form."""

from __future__ import annotations

from textual import work

from pegboard.models import JsonObject, ToolSpec
from pegboard.tui.form import FormPane
from pegboard.tui.widgets.dialog import Dialog, ResultT


class FormDialog(Dialog[ResultT]):
    """A dialog with a form, which asks before it discards changes.

    Args:
        title: Title of the frame; plain text.
        subtitle: Text at the lower edge of the frame; plain text.
        form: The form.
    """

    def __init__(self, title: str = "", subtitle: str = "", form: FormPane | None = None) -> None:
        super().__init__(title, subtitle)
        self.form = form or FormPane()
        """The form; subclasses compose it."""
        self._unchanged = ""

    def show_form(self, spec: ToolSpec, arguments: JsonObject | None = None, path: str | None = None) -> None:
        """Fill the form and focus a field.

        Args:
            spec: Describes the fields.
            arguments: Initial values.
            path: JSON Pointer to the field, or None for the first one.
        """
        self.form.show(spec, arguments)
        self._unchanged = self._text()
        self.form.focus_field(path)

    def action_close(self) -> None:
        """Close without a result; ask first if the form was changed."""
        self._discard()

    @work(exclusive=True, group="discard")
    async def _discard(self) -> None:
        from pegboard.tui.dialogs.confirm import Confirm

        confirm = Confirm("Discard the changes?", "The changes to this form will be lost.", "Discard")
        if self._text() == self._unchanged or await self.app.push_screen_wait(confirm):
            self.dismiss(None)

    def _text(self) -> str:
        self.form.settle()
        return self.form.form.text() if self.form.form is not None else ""
