"""What a field has to offer to whoever doesn't want to type: its default, its examples, files and folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import JsonValue

from pegboard.data.json_text import same, write
from pegboard.forms import Field, TextField
from pegboard.tui.form.popups import PickOne, label
from pegboard.tui.widgets.pick_list import PickLine

if TYPE_CHECKING:
    from pegboard.tui.form.editors import TextBox, TextLine


def has_offers(field: Field) -> bool:
    """Whether there is something to pick for a field."""
    return bool(_picks(field)) or bool(_values(field))


def offer(editor: TextLine | TextBox) -> None:
    """Lists what there is to pick for a field, beside its editor, which is given what is picked."""
    values, title = _values(editor.field), label(editor.field.label)
    if not values:
        _browse(editor)
        return
    lines = [PickLine(label(text), note) for text, note in (_line(editor.field, value) for value in values)]
    if _picks(editor.field):
        lines.append(PickLine("browse…", pinned=True))

    def take(index: int | None) -> None:
        if index is not None and index < len(values):
            editor.put_value(values[index])
        elif index is not None:
            _browse(editor)

    now = next((place for place, value in enumerate(values) if _written(editor.field, value) == editor.field.text), 0)
    editor.app.push_screen(PickOne(editor.region, title, lines, now), take)


class Offering:
    """What an editor of a text remembers of a call that was pasted into it: it can fill the whole form instead."""

    field: Field
    """What is edited."""
    _call: tuple[str, Callable[[], object]] | None = None

    def offer_call(self, fill: Callable[[], object]) -> None:
        """Offers `fill` as long as the text stays as it is."""
        self._call = (self.field.text, fill)

    def forget_call(self) -> None:
        """Offers none any more."""
        self._call = None

    @property
    def offered_call(self) -> Callable[[], object] | None:
        """What fills the form with the call that was pasted; None if there is none, or was something typed since."""
        return self._call[1] if self._call is not None and self._call[0] == self.field.text else None


def _picks(field: Field) -> str:
    return field.picks if isinstance(field, TextField) else ""


def _values(field: Field) -> list[JsonValue]:
    """Gives the default and the examples, none twice; a secret's are nobody's business."""
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


def _browse(editor: TextLine | TextBox) -> None:
    from pegboard.tui.form.files import FilePicker

    def take(path: str | None) -> None:
        if path is not None:
            editor.put(path)

    title = label(editor.field.label)
    picker = FilePicker(editor.region, title, editor.field.text, folders_only=_picks(editor.field) == "folder")
    editor.app.push_screen(picker, take)
