"""Text editors of a form: a line, a box of several lines, and the JSON of all arguments.

An editor writes every change into its field and posts `Edited`. Its `sync` shows a value that was set elsewhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue
from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, TextArea

from pegboard.data.json_text import write
from pegboard.forms import Field, MapField, TextField
from pegboard.results.clean import clean_line
from pegboard.storage import no_temporary_file
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.lines import SELECT_ALL, LineInput, Lines, needs_box
from pegboard.tui.form.messages import ConvertToBox, Edited, LineSubmitted
from pegboard.tui.form.offers import OfferEditor
from pegboard.tui.widgets.control_pictures import ControlPictures
from pegboard.tui.widgets.paste import may_be_call

_OFFER = Command(
    "field.offer", "ctrl+f", "offer", "Pick", "Pick the default, an example, a recent value, a file or a folder.", True
)


class CallPasted(Message):
    """A text that may be a whole call was pasted into an editor that doesn't accept such text.

    Args:
        text: The pasted text.
        insert: Insert the text into the editor after all, because it isn't a call.
    """

    def __init__(self, text: str, insert: Callable[[str], object]) -> None:
        super().__init__()
        self.text = text
        self.insert = insert


class CallPastedAsText(Message):
    """A text that may be a whole call was inserted into a text editor.

    Args:
        text: The pasted text.
        editor: The editor, which can offer to fill the form with the call.
    """

    def __init__(self, text: str, editor: TextLine | TextBox) -> None:
        super().__init__()
        self.text = text
        self.editor = editor


def placeholder_for(field: Field) -> str:
    """Return the placeholder of an empty editor: the value that is sent, else the default, else an example."""
    if field.state == "null":
        return "null is sent"
    if field.state == "value":
        return "an empty string is sent"
    if isinstance(field, TextField) and field.secret:
        return ""
    if field.has_default:
        return "default " + clean_line(write(field.default))
    if field.examples:
        example = field.examples[0]
        return "e.g. " + clean_line(example if isinstance(example, str) else write(example))
    return ""


async def in_editor(app: App[object], text: str, suffix: str) -> str:
    """Open a text in the user's editor and return the edited text.

    Args:
        app: The app, which is suspended meanwhile.
        text: The text.
        suffix: The suffix of the temporary file.
    """
    from pegboard.tui.widgets.external_editor import open_in_editor

    with ExitStack() as stack:
        before = text.encode(errors="surrogatepass")
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pegboard-"))
            file = Path(folder) / f"value{suffix}"
            file.write_bytes(before)
        except OSError as error:
            app.notify(no_temporary_file("The editor was not opened", error), severity="error", markup=False)
            return text
        await open_in_editor(app, str(file))
        after = file.read_bytes() if file.exists() else before
    if after == before:
        return text
    edited = after.decode(errors="replace")
    # Most editors append a newline to the last line.
    return edited if text.endswith("\n") else edited.removesuffix("\n")


def can_be_json(app: App[object], fields: Iterable[Field]) -> bool:
    """Return whether JSON can hold all entries of maps among the fields; if not, say why."""
    clashes = (one.clash() for one in fields if isinstance(one, MapField))
    clash = next((found for found in clashes if found is not None), None)
    if clash is not None:
        reason = f"JSON can't hold all entries. {clean_line(str(clash))}. Rename or remove the entry first."
        app.notify(reason, severity="warning", markup=False)
    return clash is None


class TextLine(LineInput, OfferEditor):
    """Editor of a text or a number in one line.

    Args:
        field: The field that it edits.
    """

    PAGE = "Text field"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        _OFFER,
        Command("field.reveal", "ctrl+f", "reveal", "Reveal", "Show or hide the secret.", True, meaning="Pick"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [SELECT_ALL, *bindings(ACTIONS)]

    def __init__(self, field: Field) -> None:
        self.is_secret = _is_secret(field)
        super().__init__(
            field.text,
            placeholder_for(field),
            highlighter=ControlPictures(),
            password=self.is_secret,
            suggester=_suggester(field),
            select_on_focus=False,
        )
        self.field = field
        self._shown = self.value

    def show_field(self, field: Field) -> None:
        """Edit another field; text that was typed last is still written into the previous one."""
        if self.value != self._shown:
            self.field.write(self.value)
        self.field = field
        self.password = self.is_secret = _is_secret(field)
        self.suggester = _suggester(field)
        self.forget_call()
        self.sync()

    def update_secrecy(self) -> None:
        """Hide the text if the field became secret, and show it if it became readable."""
        if self.is_secret != _is_secret(self.field):
            self.password = self.is_secret = _is_secret(self.field)
            self.suggester = _suggester(self.field)
            self.refresh_bindings()

    def sync(self) -> None:
        """Show the current value of the field."""
        self._shown = self.field.text
        self.value = self.field.text
        self.cursor_position = len(self.value)
        self.placeholder = placeholder_for(self.field)

    def replace_text(self, text: str) -> None:
        """Replace the whole text, as if it were typed."""
        if self._needs_lines(text):
            self.post_message(ConvertToBox(self.field, text))
        else:
            self.value = text
            self.cursor_position = len(text)

    def set_value(self, value: JsonValue) -> None:
        """Replace the whole value."""
        if isinstance(value, str) and isinstance(self.field, TextField):
            self.replace_text(value)
            return
        self.field.load(value)
        self.sync()
        self.post_message(Edited(self.field))

    def insert_text(self, text: str) -> None:
        """Insert a whole pasted text, of which `Input` would insert only the first line."""
        line = text.removesuffix("\n").removesuffix("\r")
        start, end = sorted(self.selection)
        if self._needs_lines(line):
            self.post_message(ConvertToBox(self.field, self.value[:start] + text + self.value[end:]))
        else:
            self.replace(line if isinstance(self.field, TextField) else line.strip(), start, end)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Write the typed text into the field."""
        event.stop()
        # The event is outdated if the text or the field changed since.
        if event.value == self._shown or event.value != self.value:
            return
        self._shown = event.value
        self.field.write(event.value)
        self.placeholder = placeholder_for(self.field)
        self.post_message(Edited(self.field))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Announce Enter to the form."""
        event.stop()
        self.post_message(LineSubmitted(self.field))

    def on_blur(self) -> None:
        """Hide a revealed secret."""
        self.password = self.is_secret

    def _on_paste(self, event: events.Paste) -> None:
        """Insert the pasted text; in a field that isn't text, announce a possible call instead."""
        event.prevent_default()
        event.stop()
        is_call = may_be_call(event.text) and not self.is_secret
        if is_call and not isinstance(self.field, TextField):
            self.post_message(CallPasted(event.text, self.insert_text))
            return
        self.insert_text(event.text)
        if is_call:
            self.post_message(CallPastedAsText(event.text, self))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands that apply to the field."""
        match action:
            case "offer":
                return self.has_offers
            case "reveal":
                return self.is_secret
        return True

    def action_reveal(self) -> None:
        """Show or hide the secret."""
        self.password = not self.password

    def action_paste(self) -> None:
        """Insert the whole clipboard."""
        self.insert_text(self.app.clipboard)

    def _needs_lines(self, text: str) -> bool:
        """Return whether a text needs a box; only fields of text that isn't secret have one."""
        return isinstance(self.field, TextField) and not self.is_secret and needs_box(text)


class JsonBox(Lines):
    """Editor of all arguments as JSON.

    Args:
        text: The initial text.
    """

    PAGE = "JSON"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("form.text_editor", "f4", "editor", "Editor", "Edit the JSON in $EDITOR."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    JsonBox { height: 1fr; min-height: 4; max-height: 100%; }
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.shown = self.text
        """The text that was last loaded into the form."""

    def insert_text(self, text: str) -> None:
        """Insert a pasted text."""
        result = self.replace(text, *self.selection, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def on_paste(self, event: events.Paste) -> None:
        """Insert the pasted text, unless it may be a call in a format other than JSON."""
        event.stop()
        if may_be_call(event.text) and not event.text.lstrip().startswith("{"):
            event.prevent_default()
            self.post_message(CallPasted(event.text, self.insert_text))

    async def action_editor(self) -> None:
        """Edit the JSON in the user's editor."""
        before = self.text
        after = await in_editor(self.app, before, ".json")
        if after != before:
            self.text = after


class TextBox(Lines, OfferEditor):
    """Editor of a text of several lines, or of JSON.

    Args:
        field: The field that it edits.
    """

    PAGE = "Text area"
    ACTIONS: ClassVar[tuple[Command, ...]] = (_OFFER,)
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, field: Field) -> None:
        super().__init__(field.text, placeholder_for(field))
        self.field = field
        self._shown = self.text

    def show_field(self, field: Field) -> None:
        """Edit another field; text that was typed last is still written into the previous one."""
        if self.text != self._shown:
            self.field.write(self.text)
        self.field = field
        self.forget_call()
        self.sync()

    def sync(self) -> None:
        """Show the current value of the field."""
        self.load_text(self.field.text)
        self.move_cursor(self.document.end)
        self._shown = self.text
        self.placeholder = Content(placeholder_for(self.field))

    def replace_text(self, text: str) -> None:
        """Replace the whole text, as if it were typed."""
        self.load_text(text)
        self._write()

    def set_value(self, value: JsonValue) -> None:
        """Replace the whole value."""
        self.field.load(value)
        self.sync()
        self.post_message(Edited(self.field))

    def on_paste(self, event: events.Paste) -> None:
        """Announce a possible call; the text is inserted anyway."""
        event.stop()
        if may_be_call(event.text):
            self.post_message(CallPastedAsText(event.text, self))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands that apply to the field."""
        return action != "offer" or self.has_offers

    def action_cursor_down(self, select: bool = False) -> None:
        """Move the cursor down; from the last line, focus the next field."""
        if not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self.screen.focus_next()
        else:
            super().action_cursor_down(select)

    def action_cursor_up(self, select: bool = False) -> None:
        """Move the cursor up; from the first line, focus the previous field."""
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            self.screen.focus_previous()
        else:
            super().action_cursor_up(select)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Write the typed text into the field."""
        event.stop()
        if self.text != self._shown:
            self._write()

    def _write(self) -> None:
        self._shown = self.text
        self.field.write(self.text)
        self.placeholder = Content(placeholder_for(self.field))
        self.post_message(Edited(self.field))


def _is_secret(field: Field) -> bool:
    return isinstance(field, TextField) and field.secret


def _suggester(field: Field) -> SuggestFromList | None:
    examples = [example for example in field.examples if isinstance(example, str) and example.isprintable()]
    return SuggestFromList(examples) if examples and not _is_secret(field) else None
