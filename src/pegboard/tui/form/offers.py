"""Values offered for a field: its default, its examples, recently used ones, files and folders, or a pasted call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from pydantic import JsonValue
from textual.widget import Widget

from pegboard.data.json_text import same, write
from pegboard.data.mask import masked_secret
from pegboard.data.pointer import steps
from pegboard.forms import Field, TextField
from pegboard.models import JsonObject
from pegboard.tui.form.popups import PickOne, label
from pegboard.tui.widgets.pick_list import PickLine

_MOST_RECENT = 8
"""Most recently used values that are offered for a field."""


class RecentArguments(Protocol):
    """Form with the arguments of recent calls."""

    recent: Sequence[JsonObject]
    """Arguments of the user's last calls of the tool, the newest first."""


class OfferEditor(Widget):
    """Base class of editors that offer values for their field, or to fill the form with a call pasted as text."""

    field: Field
    """The field that it edits."""
    _pasted_call: tuple[str, Callable[[], object]] | None = None
    """The text with the call, and what fills the form with it."""

    def replace_text(self, text: str) -> None:
        """Replace the whole text."""
        raise NotImplementedError

    def set_value(self, value: JsonValue) -> None:
        """Replace the whole value."""
        raise NotImplementedError

    def offer_call(self, fill: Callable[[], object]) -> None:
        """Offer to fill the form with the pasted call until the text changes."""
        self._pasted_call = self.field.text, fill

    def forget_call(self) -> None:
        """Withdraw the offer to fill the form."""
        self._pasted_call = None

    @property
    def has_offers(self) -> bool:
        """Whether a call is offered, or values can be picked for the field."""
        return self._fill is not None or bool(_picks(self.field) or _values(self.field) or self.recent_values())

    def action_offer(self) -> None:
        """Fill the form with the pasted call, or list the values to pick from."""
        if self._fill is not None:
            self._fill()
        else:
            _offer(self)

    def recent_values(self) -> list[JsonValue]:
        """Return the values that were used in the field recently, without those that are offered anyway."""
        form: RecentArguments | None = next((node for node in self.ancestors if hasattr(node, "recent")), None)
        return [] if form is None else _recent(self.field, form.recent)

    @property
    def _fill(self) -> Callable[[], object] | None:
        text, fill = self._pasted_call or ("", None)
        return fill if text == self.field.text else None


def _offer(editor: OfferEditor) -> None:
    """Open a list of the values offered for a field, next to its editor."""
    recent = editor.recent_values()
    values, title = [*_values(editor.field), *recent], label(editor.field.label)
    if not values:
        _browse(editor)
        return
    used = range(len(values) - len(recent), len(values))
    lines = [
        PickLine(label(text), "recent" if index in used else note)
        for index, (text, note) in enumerate(_line(editor.field, value) for value in values)
    ]
    if _picks(editor.field):
        lines.append(PickLine("browse…", pinned=True))

    def pick(index: int | None) -> None:
        if index is not None and index < len(values):
            editor.set_value(values[index])
        elif index is not None:
            _browse(editor)

    current = next((at for at, value in enumerate(values) if _written(editor.field, value) == editor.field.text), 0)
    editor.app.push_screen(PickOne(editor, title, lines, current), pick)


def _picks(field: Field) -> str:
    return field.picks if isinstance(field, TextField) else ""


def _values(field: Field) -> list[JsonValue]:
    """Return the default and the examples without duplicates; those of secrets are never shown."""
    if isinstance(field, TextField) and field.secret:
        return []
    found: list[JsonValue] = []
    for value in (*([field.default] if field.has_default else []), *field.examples):
        if value is not None and not any(same(value, other) for other in found):
            found.append(value)
    return found


def _recent(field: Field, calls: Sequence[JsonObject]) -> list[JsonValue]:
    """Return the values of a field in the arguments of calls, without those that are offered anyway."""
    if isinstance(field, TextField) and field.secret:
        return []
    found: list[JsonValue] = []
    known = _values(field)
    for arguments in calls:
        for value in _values_at(arguments, field):
            is_new = value not in (None, "") and not any(same(value, other) for other in (*known, *found))
            if is_new and masked_secret(value) is None:
                found.append(value)
                if len(found) == _MOST_RECENT:
                    return found
    return found


def _values_at(arguments: JsonObject, field: Field) -> Iterator[JsonValue]:
    """Yield the values of a field in arguments; for the row of a list, those of all rows."""
    values: list[JsonValue] = [arguments]
    for step in steps(field.path):
        inner: list[JsonValue] = []
        for value in values:
            if isinstance(value, dict) and step in value:
                inner.append(value[step])
            elif isinstance(value, list):
                inner += value
        values = inner
    yield from values


def _line(field: Field, value: JsonValue) -> tuple[str, str]:
    written = _written(field, value)
    note = "default" if field.has_default and same(field.default, value) else ""
    return (written if written.strip() else write(value)), note


def _written(field: Field, value: JsonValue) -> str:
    return value if isinstance(value, str) and isinstance(field, TextField) else write(value)


def _browse(editor: OfferEditor) -> None:
    from pegboard.tui.form.files import FilePicker

    def pick(path: str | None) -> None:
        if path is not None:
            editor.replace_text(path)

    title = label(editor.field.label)
    picker = FilePicker(editor, title, editor.field.text, folders_only=_picks(editor.field) == "folder")
    editor.app.push_screen(picker, pick)
