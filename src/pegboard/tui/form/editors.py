"""What a field is edited with: a line, a box of lines, a choice.

An editor shows its field and writes into it; it tells that it did with `Edited`. `sync` shows the field again after
somebody else has written into it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue
from rich.highlighter import Highlighter
from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, TextArea

from pegboard.data.json_text import write
from pegboard.forms import ChoiceField, Field, TextField
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.lines import Lines, pictured
from pegboard.tui.form.offers import Offering, has_offers, offer
from pegboard.tui.form.popups import PickOne, label
from pegboard.tui.widgets.paste import may_be_call
from pegboard.tui.widgets.pick_list import PickLine

_LONGEST_LINE = 10_000
"""Characters of a text in one line; a longer one gets a box."""
_SHOWN_AT_ONCE = 40
"""Choices that stand side by side at most."""
_OFFER = Command("field.offer", "ctrl+f", "offer", "Pick", "Pick the default, an example, a file or a folder.", True)


class Edited(Message):
    """Somebody changed a field."""

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field


class NeedsLines(Message):
    """A line was given text of several lines: it has to become a box."""

    def __init__(self, field: Field, text: str) -> None:
        super().__init__()
        self.field = field
        self.text = text


class Entered(Message):
    """Enter was pressed in a line."""

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field


class CallPasted(Message):
    """What may be a whole call was pasted into an editor that can't hold it.

    Args:
        text: What was pasted.
        take: What puts it into the editor, if it is no call after all.
    """

    def __init__(self, text: str, take: Callable[[str], object]) -> None:
        super().__init__()
        self.text = text
        self.take = take


class CallPastedAsText(Message):
    """What may be a whole call was pasted into an editor of text, which took it as it stands.

    Args:
        text: What was pasted.
        editor: What can offer to fill the form with it.
    """

    def __init__(self, text: str, editor: TextLine | TextBox) -> None:
        super().__init__()
        self.text = text
        self.editor = editor


class Pictures(Highlighter):
    """Shows stand-ins for characters that would steer the terminal."""

    def highlight(self, text: Text) -> None:
        """Puts stand-ins where the text has what would steer the terminal."""
        plain = pictured(text.plain).replace("\t", "␉").replace("\n", "⏎")
        if plain != text.plain:
            text.plain = plain


def hint(field: Field) -> str:
    """Gives what stands in an empty editor: what is sent, else the default, else an example."""
    if field.state == "null":
        return "null is sent"
    if field.state == "value":
        return "the empty text is sent"
    if isinstance(field, TextField) and field.secret:
        return ""
    if field.has_default:
        return "default " + clean_line(write(field.default))
    if field.examples:
        example = field.examples[0]
        return "e.g. " + clean_line(example if isinstance(example, str) else write(example))
    return ""


async def in_editor(app: App[object], text: str, suffix: str) -> str:
    """Has the user edit a text in their editor.

    Args:
        app: The app that gives its screen away meanwhile.
        text: The text.
        suffix: What the name of its file ends with.

    Returns:
        The text as it was left.
    """
    from pegboard.tui.widgets.external_editor import open_in_editor

    with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
        file = Path(folder) / f"value{suffix}"
        before = text.encode(errors="surrogatepass")
        file.write_bytes(before)
        await open_in_editor(app, str(file))
        after = file.read_bytes() if file.exists() else before
    if after == before:
        return text
    edited = after.decode(errors="replace")
    # Editors end a file with a newline whether one was meant or not.
    return edited if text.endswith("\n") else edited.removesuffix("\n")


class TextLine(Input, Offering):
    """One line: text or a number.

    Args:
        field: What it edits.
    """

    PAGE = "Line"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        _OFFER,
        Command("field.reveal", "ctrl+f", "reveal", "Reveal", "Show the secret, or hide it again.", True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    TextLine {
        height: 1;
        border: none;
        border-left: outer $border-blurred;
        padding: 0 1;
        background: $surface;
        &:focus { border: none; border-left: outer $border; background-tint: $foreground 5%; }
        &:ansi { border: none; border-left: outer ansi_default; }
        &:ansi:focus { border: none; border-left: outer ansi_bright_yellow; }
    }
    """

    def __init__(self, field: Field) -> None:
        self.is_secret = _is_secret(field)
        super().__init__(
            field.text,
            hint(field),
            highlighter=Pictures(),
            password=self.is_secret,
            suggester=_suggester(field),
            select_on_focus=False,
        )
        self.field = field
        self._shown = self.value

    def turn_to(self, field: Field) -> None:
        """Edits another field, as if it were new; what was typed last is in the one before."""
        if self.value != self._shown:
            self.field.write(self.value)
        self.field = field
        self.password = self.is_secret = _is_secret(field)
        self.suggester = _suggester(field)
        self.forget_call()
        self.sync()

    def sync(self) -> None:
        """Shows what is in the field."""
        self._shown = self.field.text
        self.value = self.field.text
        self.cursor_position = len(self.value)
        self.placeholder = hint(self.field)

    def put(self, text: str) -> None:
        """Takes text in the place of all there is, as if it were typed."""
        if self._needs_lines(text):
            self.post_message(NeedsLines(self.field, text))
        else:
            self.value = text
            self.cursor_position = len(text)

    def put_value(self, value: JsonValue) -> None:
        """Takes a value in the place of all there is."""
        if isinstance(value, str) and isinstance(self.field, TextField):
            self.put(value)
            return
        self.field.load(value)
        self.sync()
        self.post_message(Edited(self.field))

    def take(self, text: str) -> None:
        """Takes all of a text that is pasted, where an `Input` takes its first line."""
        line = text.removesuffix("\n").removesuffix("\r")
        start, end = sorted(self.selection)
        if self._needs_lines(line):
            self.post_message(NeedsLines(self.field, self.value[:start] + text + self.value[end:]))
        else:
            self.replace(line if isinstance(self.field, TextField) else line.strip(), start, end)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Writes what was typed."""
        event.stop()
        # What isn't there any more has been overtaken, be it by more that was typed or by another field.
        if event.value == self._shown or event.value != self.value:
            return
        self._shown = event.value
        self.field.write(event.value)
        self.placeholder = hint(self.field)
        self.post_message(Edited(self.field))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Passes Enter on."""
        event.stop()
        self.post_message(Entered(self.field))

    def on_blur(self) -> None:
        """Hides a secret that was revealed."""
        self.password = self.is_secret

    def _on_paste(self, event: events.Paste) -> None:
        """Takes what is pasted, unless it may be a whole call, which no number is."""
        event.prevent_default()
        event.stop()
        is_call = may_be_call(event.text) and not self.is_secret
        if is_call and not isinstance(self.field, TextField):
            self.post_message(CallPasted(event.text, self.take))
            return
        self.take(event.text)
        if is_call:
            self.post_message(CallPastedAsText(event.text, self))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers what there is to offer."""
        match action:
            case "offer":
                return self.offered_call is not None or has_offers(self.field)
            case "reveal":
                return self.is_secret
        return True

    def action_offer(self) -> None:
        """Fills the form with the call that was pasted, or lists what there is to pick."""
        if self.offered_call is not None:
            self.offered_call()
        else:
            offer(self)

    def action_reveal(self) -> None:
        """Shows the secret, or hides it again."""
        self.password = not self.password

    def action_paste(self) -> None:
        """Takes all of the clipboard."""
        self.take(self.app.clipboard)

    def _needs_lines(self, text: str) -> bool:
        """Whether a text needs a box: a secret doesn't get one, and nothing but text can be in one."""
        if not isinstance(self.field, TextField) or self.is_secret:
            return False
        return "\n" in text or "\r" in text or len(text) > _LONGEST_LINE


class JsonBox(Lines):
    """The whole argument object as JSON.

    Args:
        text: What it begins with.
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
        """The text when the form last took it."""

    def take(self, text: str) -> None:
        """Takes a text that is pasted."""
        result = self.replace(text, *self.selection, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def on_paste(self, event: events.Paste) -> None:
        """Takes what is pasted, unless it may be a call in other words than JSON."""
        event.stop()
        if may_be_call(event.text) and not event.text.lstrip().startswith("{"):
            event.prevent_default()
            self.post_message(CallPasted(event.text, self.take))

    async def action_editor(self) -> None:
        """Edits the JSON in the user's editor."""
        self.text = await in_editor(self.app, self.text, ".json")


class TextBox(Lines, Offering):
    """Several lines of one field: long text or JSON.

    Args:
        field: What it edits.
    """

    PAGE = "Box"
    ACTIONS: ClassVar[tuple[Command, ...]] = (_OFFER,)
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, field: Field) -> None:
        super().__init__(field.text, hint(field))
        self.field = field
        self._shown = self.text

    def turn_to(self, field: Field) -> None:
        """Edits another field, as if it were new; what was typed last is in the one before."""
        if self.text != self._shown:
            self.field.write(self.text)
        self.field = field
        self.forget_call()
        self.sync()

    def sync(self) -> None:
        """Shows what is in the field."""
        self.load_text(self.field.text)
        self.move_cursor(self.document.end)
        self._shown = self.text
        self.placeholder = Content(hint(self.field))

    def put(self, text: str) -> None:
        """Takes text in the place of all there is, as if it were typed."""
        self.load_text(text)
        self._take()

    def put_value(self, value: JsonValue) -> None:
        """Takes a value in the place of all there is."""
        self.field.load(value)
        self.sync()
        self.post_message(Edited(self.field))

    def on_paste(self, event: events.Paste) -> None:
        """Tells of what may be a whole call; it is taken as it stands all the same."""
        event.stop()
        if may_be_call(event.text):
            self.post_message(CallPastedAsText(event.text, self))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers what there is to offer."""
        return action != "offer" or self.offered_call is not None or has_offers(self.field)

    def action_offer(self) -> None:
        """Fills the form with the call that was pasted, or lists what there is to pick."""
        if self.offered_call is not None:
            self.offered_call()
        else:
            offer(self)

    def action_cursor_down(self, select: bool = False) -> None:
        """Goes a line down, from the last one to the next field."""
        if not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self.screen.focus_next()
        else:
            super().action_cursor_down(select)

    def action_cursor_up(self, select: bool = False) -> None:
        """Goes a line up, from the first one to the field before."""
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            self.screen.focus_previous()
        else:
            super().action_cursor_up(select)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Writes what was typed."""
        event.stop()
        if self.text != self._shown:
            self._take()

    def _take(self) -> None:
        self._shown = self.text
        self.field.write(self.text)
        self.placeholder = Content(hint(self.field))
        self.post_message(Edited(self.field))


class Choices(Widget, can_focus=True):
    """One of several values, unset and null among them where they may be: side by side, or the chosen one of a list.

    Args:
        field: What it edits.
    """

    PAGE = "Choice"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("choice.previous", "left", "step(-1)", "Previous", "Choose what stands before."),
        Command("choice.next", "right", "step(1)", "Next", "Choose what comes next."),
        Command(
            "choice.open", "enter,space,ctrl+f", "open", "Choose", "List all choices, or take the next one of a few."
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"choices--chosen", "choices--other"}
    DEFAULT_CSS = """
    Choices {
        height: 1;
        border-left: outer $border-blurred;
        padding: 0 1;
        background: $surface;
        .choices--chosen { color: $text-primary; text-style: bold; }
        .choices--other { color: $text-muted; }
        &:focus { border-left: outer $border; background-tint: $foreground 5%; }
        &:ansi { border-left: outer ansi_default; }
        &:ansi:focus { border-left: outer ansi_bright_yellow; }
    }
    """

    def __init__(self, field: ChoiceField) -> None:
        super().__init__()
        self.field = field
        self.entries = _entries(field)
        """Label and option; null's is -1, and unset's None. A text of that name stands in quotes."""
        self.can_focus = self._has_choice()

    def turn_to(self, field: ChoiceField) -> None:
        """Edits another field."""
        self.field = field
        self.entries = _entries(field)
        self.sync()

    @property
    def current(self) -> int | None:
        """The index of the entry that the field has; None if it has none of them."""
        wanted = {"unset": None, "null": -1, "value": self.field.chosen}[self.field.state]
        if self.field.state == "value" and wanted is None:
            return None
        return next((place for place, entry in enumerate(self.entries) if entry[1] == wanted), None)

    def sync(self) -> None:
        """Shows what is in the field."""
        self.can_focus = self._has_choice()
        self.refresh()

    def take(self, place: int) -> None:
        """Chooses the entry at `place`."""
        match self.entries[place][1]:
            case None:
                self.field.unset()
            case -1:
                self.field.set_null()
            case index:
                self.field.choose(index)
        self.refresh()
        self.post_message(Edited(self.field))

    def action_step(self, by: int) -> None:
        """Chooses a neighbour of the chosen one."""
        current = self.current
        first = 0 if by > 0 else len(self.entries) - 1
        self.take(first if current is None else min(max(current + by, 0), len(self.entries) - 1))

    def action_open(self) -> None:
        """Lists the choices; where all are in sight, chooses the next one around."""
        if self._fits():
            self.take(0 if self.current is None else (self.current + 1) % len(self.entries))
        else:
            self._list()

    def on_key(self, event: events.Key) -> None:
        """Goes to the next choice that begins with the letter typed; of many, lists those that have it."""
        letter = (event.character or "").lower()
        if not event.is_printable or letter.isspace():
            return
        event.stop()
        if not self._fits():
            self._list(event.character or "")
            return
        start = -1 if self.current is None else self.current
        for offset in range(1, len(self.entries) + 1):
            place = (start + offset) % len(self.entries)
            if self.entries[place][0].lower().startswith(letter):
                self.take(place)
                return

    def on_click(self, event: events.Click) -> None:
        """Chooses what was clicked."""
        if not self._fits():
            self._list()
            return
        x = event.get_content_offset_capture(self).x
        for place, (text, _) in enumerate(self.entries):
            width = Content(text).cell_length + 4
            if x < width:
                self.take(place)
                return
            x -= width

    def render(self) -> Content:
        """Draws the choices in a line, or the chosen one."""
        chosen, other = self.get_visual_style("choices--chosen"), self.get_visual_style("choices--other")
        current = self.current
        if self._fits():
            parts = [
                Content.styled(f"{'●' if place == current else '○'} {text}", chosen if place == current else other)
                for place, (text, _) in enumerate(self.entries)
            ]
            return Content("  ").join(parts)
        if current is None:
            said = clean_line(self.field.text) if self.field.state == "value" else "choose one"
            return Content.styled(f"▾ {said}  ({len(self.entries):,})", other)
        return Content.assemble(
            Content.styled(f"▾ {self.entries[current][0]}", chosen),
            Content.styled(f"  {current + 1:,} of {len(self.entries):,}", other),
        )

    def _list(self, sought: str = "") -> None:
        def take(place: int | None) -> None:
            if place is not None:
                self.take(place)

        lines = [PickLine(text, "" if index is not None and index >= 0 else "state") for text, index in self.entries]
        title = label(self.field.label)
        self.app.push_screen(PickOne(self.region, title, lines, self.current or 0, sought), take)

    def _has_choice(self) -> bool:
        return len(self.entries) > 1 or self.current is None

    def _fits(self) -> bool:
        width = sum(Content(text).cell_length + 4 for text, _ in self.entries[:_SHOWN_AT_ONCE]) - 2
        # A key may come before the first layout.
        room = self.content_size.width or self.app.size.width
        return len(self.entries) <= _SHOWN_AT_ONCE and width <= max(room, 20)


def _entries(field: ChoiceField) -> list[tuple[str, int | None]]:
    states = {"unset", "null"}
    entries: list[tuple[str, int | None]] = [
        (label(write(option.value) if option.label in states else option.label), index)
        for index, option in enumerate(field.options)
    ]
    if field.nullable:
        entries.append(("null", -1))
    if not field.required:
        entries.insert(0, ("unset", None))
    return entries


def _is_secret(field: Field) -> bool:
    return isinstance(field, TextField) and field.secret


def _suggester(field: Field) -> SuggestFromList | None:
    examples = [example for example in field.examples if isinstance(example, str) and example.isprintable()]
    return SuggestFromList(examples) if examples and not _is_secret(field) else None
