"""Values offered for a field: its default, its examples, files and folders, or a call that was pasted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pydantic import JsonValue
from textual.app import App
from textual.geometry import Region

from pegboard.data.json_text import same, write
from pegboard.forms import Field, TextField
from pegboard.tui.form.popups import PickOne, label
from pegboard.tui.widgets.pick_list import PickLine


class OfferEditor(Protocol):
    """Editor that accepts an offered value."""

    field: Field
    """The field that it edits."""

    @property
    def app(self) -> App[object]:
        """The running app."""

    @property
    def region(self) -> Region:
        """Its region on the screen."""

    def replace_text(self, text: str) -> None:
        """Replace the whole text."""

    def set_value(self, value: JsonValue) -> None:
        """Replace the whole value."""


class PastedCall:
    """Call that was pasted into an editor as text; it can fill the form until the text changes."""

    def __init__(self) -> None:
        self._text = ""
        self._fill: Callable[[], object] | None = None

    def offer(self, text: str, fill: Callable[[], object]) -> None:
        """Offer `fill` while the editor contains `text`."""
        self._text, self._fill = text, fill

    def forget(self) -> None:
        """Withdraw the offer."""
        self._fill = None

    def fill_for(self, text: str) -> Callable[[], object] | None:
        """Return the function that fills the form, or None if the text changed."""
        return self._fill if text == self._text else None


def has_offers(field: Field) -> bool:
    """Return whether values can be picked for a field."""
    return bool(_picks(field)) or bool(_values(field))


def offer(editor: OfferEditor) -> None:
    """Open a list of the values offered for a field, next to its editor."""
    values, title = _values(editor.field), label(editor.field.label)
    if not values:
        _browse(editor)
        return
    lines = [PickLine(label(text), note) for text, note in (_line(editor.field, value) for value in values)]
    if _picks(editor.field):
        lines.append(PickLine("browse…", pinned=True))

    def pick(index: int | None) -> None:
        if index is not None and index < len(values):
            editor.set_value(values[index])
        elif index is not None:
            _browse(editor)

    current = next((at for at, value in enumerate(values) if _written(editor.field, value) == editor.field.text), 0)
    editor.app.push_screen(PickOne(editor.region, title, lines, current), pick)


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
    picker = FilePicker(editor.region, title, editor.field.text, folders_only=_picks(editor.field) == "folder")
    editor.app.push_screen(picker, pick)
