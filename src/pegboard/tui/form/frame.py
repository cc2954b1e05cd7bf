"""How an item of the form looks around its editor: what stands above it and beneath it, line by line.

Lines are counted without drawing them, so that a form knows how long it is before most of it is mounted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from rich.cells import cell_len
from textual.content import Content

from pegboard.data.json_text import write
from pegboard.forms import (
    ChoiceField,
    ConstField,
    Container,
    Field,
    JsonField,
    ListField,
    MapField,
    MultiChoiceField,
    SectionField,
    TextField,
    VariantField,
)
from pegboard.results.clean import clean, clean_line
from pegboard.tui.form.items import Item
from pegboard.tui.form.ticks import Ticks

Words: TypeAlias = Sequence[tuple[str, str]]
"""Pieces of one paragraph, each with its style."""

STEP = 2
"""Columns by which what is in a container is moved to the right."""
_NARROWEST = 30
"""Columns that are left to an editor however deep it is."""
_LONGEST_DEFAULT = 30
_LONGEST_SUMMARY = 60
_EDGES = 3
"""Columns of an editor beside its text."""
_AROUND_CHOICE = 5
"""Columns of a choice of one beside its text."""
_MOST_TOLD = 8
"""How many of the values in a container are told in its line."""
_MOST_NOTES = 8
"""How many lines of what is said of a field are shown while it has the focus."""
_MUTED = "$text-muted"
_STATE = "$text-muted italic"
_SENT = "$text-accent bold"
_GUIDE = "$foreground 20%"


@dataclass(frozen=True)
class Room:
    """What an item has to draw in.

    Args:
        width: The columns of the whole form.
        notes: How many lines of what is said of a field are shown while it has no focus.
        has_gaps: Whether an empty line stands before a field.
    """

    width: int
    notes: int = 3
    has_gaps: bool = True


def indent(item: Item, room: Room) -> int:
    """Gives how many columns an item is moved to the right; the deepest share the last of them."""
    return min(item.depth * STEP, max(room.width - _NARROWEST, 0) // STEP * STEP)


def number(item: Item) -> str:
    """Gives the number that stands before a row; empty where there is none."""
    if item.part not in ("field", "choice") or item.holder is None or item.entry is not None or item.is_named:
        return ""
    return f"{item.index + 1} ".rjust(len(str(len(item.holder.children))) + 1)


def guides(item: Item, room: Room) -> Content:
    """Draws the lines that lead down to an item from the containers around it."""
    columns = indent(item, room)
    if not columns:
        return Content("")
    shown = columns // STEP
    text = "│ " * shown if shown == item.depth else "│ " * (shown - 1) + "┆ "
    return Content.styled(text, _GUIDE)


def above(item: Item, room: Room, *, has_focus: bool) -> list[Content]:
    """Gives the lines above the editor of an item."""
    width = max(room.width - indent(item, room), 1)
    lines = [Content("")] if _has_gap(item, room) else []
    if item.is_named and item.part in ("field", "choice"):
        label = _label(item)
        if sum(cell_len(text) for text, _ in label) > width and _tells_default(item.field):
            label = [*label[:-1], ("  unset", _STATE)]
        lines += _fitted([label], width, _MOST_NOTES)
        lines += _fitted(_notes(item, has_focus=has_focus), width, _most(room, has_focus=has_focus))
    return lines


def beside(item: Item, room: Room) -> tuple[int, int, int] | None:
    """Says where beside its label the value of a constant stands, which nobody edits.

    Returns:
        Its column from the label's on, its line, and its width; None where it has a line of its own.
    """
    one = item.field
    if item.part != "field" or not item.is_named or not isinstance(one, ConstField) or item.is_stop:
        return None
    column = sum(cell_len(text) for text, _ in _label(item)) + 2
    width = max((cell_len(clean_line(option.label)) for option in one.options), default=0) + _AROUND_CHOICE
    fits = column + width <= room.width - indent(item, room)
    return (column, int(_has_gap(item, room)), width) if fits else None


def below(item: Item, room: Room, *, has_focus: bool) -> list[Content]:
    """Gives the lines beneath the editor of an item."""
    width = max(room.width - indent(item, room) - STEP, 1)
    lines: list[Content] = []
    if item.is_named and (item.part == "add" or (item.part == "header" and (item.is_open or has_focus))):
        lines += _fitted(_notes(item, has_focus=has_focus), width, _most(room, has_focus=has_focus))
    elif item.part == "choice" and isinstance(item.field, VariantField) and item.field.state != "null":
        said = item.field.inner.description.strip()
        if said and said != item.field.description.strip():
            lines += _fitted([[(clean(said), _MUTED)]], width, _most(room, has_focus=has_focus))
    lines += _fitted([[(f"✗ {message}", "$text-error")] for message in item.messages], width, 1000)
    around = Content.styled("│ ", _GUIDE) if item.part == "header" and item.is_open else Content("  ")
    return [around + line for line in lines]


def header(item: Item, width: int) -> Content:
    """Draws the line of a container: what it is, and what is in it where that is folded away."""
    marker = "▾ " if item.is_open else "▸ "
    pieces = [Content.styled(marker, _MUTED), *(Content.styled(*piece) for piece in _label(item))]
    faults = f"  ✗ {item.hidden_faults} {'fault' if item.hidden_faults == 1 else 'faults'}"
    tail = Content.styled(faults, "$text-error bold") if item.hidden_faults else Content("")
    line = Content("").join(pieces)
    if not item.is_open or item.holder is not None:
        room = width - line.cell_length - tail.cell_length - 2
        said = clean_line(summary(item.field, item.holder is not None))
        if said and room > len("{…}"):
            line += Content.styled("  " + _cut(said, room), _STATE)
    return line.truncate(max(width - tail.cell_length, 1), ellipsis=True) + tail


def add_line(item: Item, width: int) -> Content:
    """Draws the line that adds a row; where there is none yet, with what the list or map is."""
    add = Content.styled("+ add", "$text-primary")
    if not item.is_named and item.holder is None:
        return add
    label = Content("").join(Content.styled(*piece) for piece in _label(item))
    return label.truncate(max(width - 7, 1), ellipsis=True) + Content("  ") + add


def summary(one: Field, as_row: bool = False) -> str:
    """Says in a few words what a container holds.

    Args:
        one: The container.
        as_row: Whether it is one of several, which are told from each other by what they hold.
    """
    if one.state == "null":
        return ""
    if isinstance(one, Container) and one.is_raw:
        return one.text
    match one:
        case VariantField():
            inner = summary(one.inner, as_row)
            return f"{one.variants[one.chosen]} {inner}".rstrip() if one.is_settled else inner
        case SectionField() if as_row and one.state == "value":
            return ", ".join(islice(_told_values(one), _MOST_TOLD)) or "{}"
        case SectionField():
            fields = len(one.names)
            filled = sum(inner.state != "unset" for inner in one.built) if one.is_built else 0
            return f"{{{filled} of {fields} set}}" if fields else "{}"
        case ListField() if any(isinstance(row, Container) for row in one.rows):
            return _counted(len(one.rows), "row", "rows")
        case ListField():
            return ", ".join(told_value(row) for row in one.rows[:_MOST_TOLD] if row.state != "unset")
        case MapField() if any(isinstance(entry.field, Container) for entry in one.entries):
            return _counted(len(one.entries), "entry", "entries")
        case MapField():
            told = one.entries[:_MOST_TOLD]
            return ", ".join(f"{clean_line(entry.key)}: {told_value(entry.field)}" for entry in told)
    return ""


def lines_of(item: Item, room: Room) -> int:
    """Counts the lines of an item without the focus, as it will be once it is mounted."""
    known = (room, item.messages)
    if item.lines[0] != known:
        count = len(above(item, room, has_focus=False)) + len(below(item, room, has_focus=False))
        item.lines = known, count + _editor_lines(item, room)
    return item.lines[1]


def told_value(one: Field) -> str:
    """Gives a value in a few words; dots for a secret."""
    drafted = one.draft(masked=True) if one.state != "unset" else ""
    return _cut(clean_line(drafted if isinstance(drafted, str) else write(drafted)), _LONGEST_DEFAULT)


def is_secret(one: Field) -> bool:
    """Whether what is typed in a field is masked."""
    return isinstance(one, TextField) and one.secret


def _editor_lines(item: Item, room: Room) -> int:
    if beside(item, room) is not None:
        return 0
    width = max(room.width - indent(item, room) - len(number(item)) - _EDGES, 1)
    if item.part == "field" and isinstance(item.field, MultiChoiceField) and not item.field.is_raw:
        return Ticks(item.field).lines(width)
    if item.part not in ("field", "raw") or not _is_box(item):
        return 1
    lines = sum(max(-(-cell_len(line) // width), 1) for line in item.field.text.splitlines()[:10]) or 1
    return min(max(lines, 2), 10)


def _is_box(item: Item) -> bool:
    one = item.field
    if item.part == "raw" or isinstance(one, JsonField):
        return True
    return isinstance(one, TextField) and not one.secret and (one.multiline or "\n" in one.text)


def _told_values(section: SectionField) -> Iterator[str]:
    """Names what is set in a section, what can be read at a glance first."""
    filled = [inner for inner in section.built if inner.state != "unset"]
    for inner in sorted(filled, key=lambda one: isinstance(one, Container)):
        yield f"{clean_line(inner.name)}: {told_value(inner)}"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _has_gap(item: Item, room: Room) -> bool:
    """Whether an empty line stands before an item."""
    if not room.has_gaps or item.follows_header or item.is_first:
        return False
    return item.is_named and item.holder is None


def _label(item: Item) -> Words:
    one = item.field
    name, title = _name(item)
    pieces = [
        (name, "bold"),
        (" *" if one.required and item.holder is None else "", "$text-warning bold"),
        (f"  {title}" if title else "", ""),
    ]
    if item.part != "header" or (item.is_open and item.holder is None):
        facts = " · ".join(filter(None, (one.type_label, clean_line(one.limits))))
        pieces.append((f"  {facts}", _MUTED))
    return [*pieces, _state(one)]


def _name(item: Item) -> tuple[str, str]:
    """Gives what a field is called, and its title."""
    one = item.field
    title = clean_line(one.label) if one.label != one.name else ""
    if item.entry is not None:
        return "", title
    if item.holder is not None:
        return str(item.index + 1), title
    return (clean_line(one.name), title) if one.name else (title or '""', "")


def _state(one: Field) -> tuple[str, str]:
    default = ""
    if one.has_default and not is_secret(one):
        default = f"default {_cut(clean_line(write(one.default)), _LONGEST_DEFAULT)}"
    match one.state:
        case "unset" if isinstance(one, VariantField) and one.required and not one.can_recall:
            return "  choose one", _STATE
        case "unset":
            said = f"unset, {default}" if default else "unset"
            return f"  {said}" if not one.required or one.can_recall else "", _STATE
        case "null":
            return "  null", _SENT
    empty = _empty(one)
    if empty:
        return f"  {empty}", _SENT
    return f"  {default}" if default else "", _STATE


def _tells_default(one: Field) -> bool:
    """Whether the editor of an unset field shows its default anyway."""
    if one.state != "unset" or not one.has_default or one.required or is_secret(one):
        return False
    return not isinstance(one, Container | ChoiceField)


def _empty(one: Field) -> str:
    """Says that an empty value is sent, where one is."""
    if isinstance(one, VariantField):
        return "" if one.is_raw else _empty(one.inner)
    if isinstance(one, TextField):
        return "empty text" if one.state == "value" and not one.text and not one.in_list else ""
    if not isinstance(one, Container) or one.state != "value" or one.is_filled:
        return ""
    if isinstance(one, ListField | MultiChoiceField):
        return "empty list"
    return "empty object" if one.draft() == {} else ""


def _notes(item: Item, *, has_focus: bool) -> list[Words]:
    """Gives what is said of a field beside its label, a paragraph each."""
    one = item.field
    notes: list[Words] = []
    if one.description.strip():
        notes.append([(clean(one.description.strip()), _MUTED)])
    if one.reason:
        notes.append([(f"As JSON: {clean_line(one.reason)}.", _STATE)])
    if has_focus and one.examples and _hides_examples(one):
        examples = ", ".join(_cut(clean_line(write(example)), _LONGEST_SUMMARY) for example in one.examples[:4])
        notes.append([(f"e.g. {examples}", _MUTED)])
    return notes


def _hides_examples(one: Field) -> bool:
    """Whether no editor shows an example while it is empty."""
    return isinstance(one, Container | ChoiceField) or one.has_default or one.state != "unset"


def _most(room: Room, *, has_focus: bool) -> int:
    return _MOST_NOTES if has_focus else room.notes


def _fitted(paragraphs: Iterable[Words], width: int, most: int) -> list[Content]:
    """Wraps paragraphs into so many lines at most; the last one shows that there is more."""
    lines: list[Content] = []
    for words in paragraphs:
        plain = "".join(text for text, _ in words)
        content = Content("").join(Content.styled(text, style) for text, style in words if text)
        if "\n" not in plain and cell_len(plain) <= width:
            lines.append(content)
        else:
            lines += [line.rstrip() for line in content.wrap(width)]
        if len(lines) > most:
            last = lines[most - 1]
            room = last.truncate(width - 1) if last.cell_length >= width else last
            return [*lines[: most - 1], room + Content.styled("…", _MUTED)]
    return lines


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"
