"""Text above and below each editor. Heights are computed without mounting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from rich.cells import cell_len
from textual.content import Content

from pegboard.data.json_text import write
from pegboard.data.unicode import beginning
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
from pegboard.results.sizes import count
from pegboard.tui.form.items import FormItem
from pegboard.tui.form.lines import needs_box
from pegboard.tui.form.ticks import Ticks

Pieces: TypeAlias = Sequence[tuple[str, str]]
"""Parts of one paragraph, each a text and its style."""

STEP = 2
"""Columns by which the content of a container is indented."""
_NARROWEST = 30
"""Minimum width of an editor, at any depth."""
_LONGEST_DEFAULT = 30
_LONGEST_SUMMARY = 60
_EDGES = 3
"""Columns of an editor's border and padding."""
_AROUND_CHOICE = 5
"""Columns of a one-line choice in addition to its text."""
_MOST_VALUES = 8
"""Maximum number of values in the summary of a container."""
_MOST_NOTES = 8
"""Maximum number of description lines of the focused field."""
_MUTED = "$text-muted"
_STATE = "$text-muted italic"
_SENT = "$text-accent bold"
_GUIDE = "$foreground 20%"


@dataclass(frozen=True)
class Space:
    """Space available to an item.

    Args:
        width: Width of the form in columns.
        notes: Maximum number of description lines of a field that isn't focused.
        has_gaps: Whether fields are separated by an empty line.
    """

    width: int
    notes: int = 3
    has_gaps: bool = True


def indent(item: FormItem, space: Space) -> int:
    """Return the indentation of an item in columns, limited so that its editor stays usable."""
    return min(item.depth * STEP, max(space.width - _NARROWEST, 0) // STEP * STEP)


def number(item: FormItem) -> str:
    """Return the number shown before a row, or an empty string."""
    if item.part not in ("field", "choice") or item.holder is None or item.entry is not None or item.is_named:
        return ""
    return f"{item.index + 1} ".rjust(len(str(item.holder.part_count)) + 1)


def guides(item: FormItem, space: Space) -> Content:
    """Return the vertical guide lines of the containers around an item."""
    columns = indent(item, space)
    if not columns:
        return Content("")
    shown = columns // STEP
    text = "│ " * shown if shown == item.depth else "│ " * (shown - 1) + "┆ "
    return Content.styled(text, _GUIDE)


def above(item: FormItem, space: Space, *, has_focus: bool) -> list[Content]:
    """Return the lines above the editor of an item."""
    width = max(space.width - indent(item, space), 1)
    lines = [Content("")] if _has_gap(item, space) else []
    if item.is_named and item.part in ("field", "choice"):
        label = _label(item)
        if _editor_shows_default(item.field):
            label = [*label[:-1], ("  unset", _STATE)]
        lines += _wrap([label], width, _MOST_NOTES)
        lines += _wrap(_notes(item, has_focus=has_focus), width, _note_limit(space, has_focus=has_focus))
    return lines


def beside(item: FormItem, space: Space) -> tuple[int, int, int] | None:
    """Return the position of a constant's value beside its label.

    Returns:
        The column relative to the label, the line, and the width; None if the value has its own line.
    """
    one = item.field
    if item.part != "field" or not item.is_named or not isinstance(one, ConstField) or item.is_stop:
        return None
    column = sum(cell_len(text) for text, _ in _label(item)) + 2
    width = max((cell_len(clean_line(option.label)) for option in one.options), default=0) + _AROUND_CHOICE
    fits = column + width <= space.width - indent(item, space)
    return (column, int(_has_gap(item, space)), width) if fits else None


def below(item: FormItem, space: Space, *, has_focus: bool) -> list[Content]:
    """Return the lines below the editor of an item."""
    width = max(space.width - indent(item, space) - STEP, 1)
    lines: list[Content] = []
    if item.is_named and (item.part == "add" or (item.part == "header" and (item.is_open or has_focus))):
        lines += _wrap(_notes(item, has_focus=has_focus), width, _note_limit(space, has_focus=has_focus))
    elif item.part == "choice" and isinstance(item.field, VariantField) and item.field.state != "null":
        description = item.field.inner.description.strip()
        if description and description != item.field.description.strip():
            lines += _wrap([[(clean(description), _MUTED)]], width, _note_limit(space, has_focus=has_focus))
    elif item.part == "field" and not item.is_named and (sent := _converted(item.field)):
        lines += _wrap([[(f"sends {sent}", _SENT)]], width, 1)
    lines += _wrap([[(f"✗ {message}", "$text-error")] for message in item.messages], width, 1000)
    around = Content.styled("│ ", _GUIDE) if item.part == "header" and item.is_open else Content("  ")
    return [around + line for line in lines]


def header(item: FormItem, width: int) -> Content:
    """Return the header of a container: its label, and a summary of its content while it is collapsed."""
    marker = "▾ " if item.is_open else "▸ "
    pieces = [Content.styled(marker, _MUTED), *(Content.styled(*piece) for piece in _label(item))]
    errors = f"  ✗ {count(item.hidden_errors, 'error')}"
    tail = Content.styled(errors, "$text-error bold") if item.hidden_errors else Content("")
    line = Content("").join(pieces)
    if not item.is_open or item.holder is not None:
        space = width - line.cell_length - tail.cell_length - 2
        content = clean_line(summary(item.field, item.holder is not None))
        if content and space > len("{…}"):
            line += Content.styled("  " + beginning(content, space), _STATE)
    return line.truncate(max(width - tail.cell_length, 1), ellipsis=True) + tail


def add_line(item: FormItem, width: int) -> Content:
    """Return the line that adds a row, with the label of the list or map if it is empty."""
    add = Content.styled("+ add", "$text-primary")
    if not item.is_named and item.holder is None:
        return add
    label = Content("").join(Content.styled(*piece) for piece in _label(item))
    return label.truncate(max(width - 7, 1), ellipsis=True) + Content("  ") + add


def summary(one: Field, as_row: bool = False) -> str:
    """Return a short summary of a container's content.

    Args:
        one: The container.
        as_row: Whether it is a row, which is recognized by its values.
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
            return ", ".join(islice(_section_values(one), _MOST_VALUES)) or "{}"
        case SectionField():
            fields = len(one.names)
            filled = sum(inner.state != "unset" for inner in one.built) if one.is_built else 0
            return f"{{{filled} of {fields} set}}" if fields else "{}"
        case ListField() if any(isinstance(row, Container) for row in one.rows):
            return count(len(one.rows), "row")
        case ListField():
            return ", ".join(short_value(row) for row in one.rows[:_MOST_VALUES] if row.state != "unset")
        case MapField() if any(isinstance(entry.field, Container) for entry in one.entries):
            return count(len(one.entries), "entry", "entries")
        case MapField():
            entries = one.entries[:_MOST_VALUES]
            return ", ".join(f"{clean_line(entry.key)}: {short_value(entry.field)}" for entry in entries)
    return ""


def lines_of(item: FormItem, space: Space) -> int:
    """Return the height that an item without the focus will have once it is mounted."""
    known = (space, item.messages)
    if item.cached_lines[0] != known:
        count = len(above(item, space, has_focus=False)) + len(below(item, space, has_focus=False))
        item.cached_lines = known, count + _editor_lines(item, space)
    return item.cached_lines[1]


def short_value(one: Field) -> str:
    """Return a value, shortened; secrets are masked."""
    drafted = one.draft(masked=True) if one.state != "unset" else ""
    return beginning(clean_line(drafted if isinstance(drafted, str) else write(drafted)), _LONGEST_DEFAULT)


def is_secret(one: Field) -> bool:
    """Return whether the text of a field is masked."""
    return isinstance(one, TextField) and one.secret


def _editor_lines(item: FormItem, space: Space) -> int:
    if beside(item, space) is not None:
        return 0
    width = max(space.width - indent(item, space) - len(number(item)) - _EDGES, 1)
    if item.part == "field" and isinstance(item.field, MultiChoiceField) and not item.field.is_raw:
        return Ticks(item.field).lines(width)
    if item.part not in ("field", "raw") or not _is_box(item):
        return 1
    lines = sum(max(-(-cell_len(line) // width), 1) for line in item.field.text.split("\n", 10)[:10])
    return min(max(lines, 2), 10)


def _is_box(item: FormItem) -> bool:
    one = item.field
    if item.part == "raw" or isinstance(one, JsonField):
        return True
    return isinstance(one, TextField) and not one.secret and (one.multiline or needs_box(one.text))


def _section_values(section: SectionField) -> Iterator[str]:
    """Yield `name: value` of the fields that are set in a section, containers last."""
    filled = [inner for inner in section.built if inner.state != "unset"]
    for inner in sorted(filled, key=lambda one: isinstance(one, Container)):
        yield f"{clean_line(inner.name)}: {short_value(inner)}"


def _has_gap(item: FormItem, space: Space) -> bool:
    """Return whether an item is preceded by an empty line."""
    if not space.has_gaps or item.follows_header or item.is_first:
        return False
    return item.is_named and item.holder is None


def _label(item: FormItem) -> Pieces:
    one = item.field
    name, title = _name(item)
    pieces = [
        (name, "bold"),
        (" *" if one.required and item.holder is None else "", "$text-warning bold"),
        (f"  {title}" if title else "", ""),
    ]
    if item.part != "header" or (item.is_open and item.holder is None):
        type_and_limits = " · ".join(filter(None, (one.type_label, clean_line(one.limits))))
        pieces.append((f"  {type_and_limits}", _MUTED))
    return [*pieces, _state(one)]


def _name(item: FormItem) -> tuple[str, str]:
    """Return the displayed name of a field, and its title if it differs."""
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
        default = f"default {beginning(clean_line(write(one.default)), _LONGEST_DEFAULT)}"
    match one.state:
        case "unset" if isinstance(one, VariantField) and one.required and not one.can_recall:
            return "  choose one", _STATE
        case "unset":
            text = f"unset, {default}" if default else "unset"
            return f"  {text}" if not one.required or one.can_recall else "", _STATE
        case "null":
            return "  null", _SENT
    empty = _empty(one)
    if empty:
        return f"  {empty}", _SENT
    if sent := _converted(one):
        return f"  sends {sent}", _SENT
    return f"  {default}" if default else "", _STATE


def _converted(one: Field) -> str:
    """Return the text that a field sends instead of the typed one; empty if it is the same or secret."""
    return one.converted if isinstance(one, TextField) and not one.secret else ""


def _editor_shows_default(one: Field) -> bool:
    """Return whether the editor of a field shows its default as a placeholder."""
    if one.state != "unset" or not one.has_default or one.required or is_secret(one):
        return False
    return not isinstance(one, Container | ChoiceField)


def _empty(one: Field) -> str:
    """Return the status of a field that sends an empty value, else an empty string."""
    if isinstance(one, VariantField):
        return "" if one.is_raw else _empty(one.inner)
    if isinstance(one, TextField):
        return "empty string" if one.state == "value" and not one.text and not one.in_list else ""
    if not isinstance(one, Container) or one.state != "value" or one.is_filled:
        return ""
    if isinstance(one, ListField | MultiChoiceField):
        return "empty list"
    return "empty object" if one.draft() == {} else ""


def _notes(item: FormItem, *, has_focus: bool) -> list[Pieces]:
    """Return the notes of a field, a paragraph each: description, reason for JSON, examples."""
    one = item.field
    notes: list[Pieces] = []
    if one.description.strip():
        notes.append([(clean(one.description.strip()), _MUTED)])
    if one.reason:
        notes.append([(f"As JSON: {clean_line(one.reason)}.", _STATE)])
    if has_focus and one.examples and _hides_examples(one):
        examples = ", ".join(beginning(clean_line(write(example)), _LONGEST_SUMMARY) for example in one.examples[:4])
        notes.append([(f"e.g. {examples}", _MUTED)])
    return notes


def _hides_examples(one: Field) -> bool:
    """Return whether the editor of a field doesn't show an example as a placeholder."""
    return isinstance(one, Container | ChoiceField) or one.has_default or one.state != "unset"


def _note_limit(space: Space, *, has_focus: bool) -> int:
    return _MOST_NOTES if has_focus else space.notes


def _wrap(paragraphs: Iterable[Pieces], width: int, most: int) -> list[Content]:
    """Wrap paragraphs to `width` columns; if there are more than `most` lines, the last one ends with an ellipsis."""
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
            space = last.truncate(width - 1) if last.cell_length >= width else last
            return [*lines[: most - 1], space + Content.styled("…", _MUTED)]
    return lines
