"""The expanded part of a form's field tree, flattened into a list of items from top to bottom.

An item is a unit of display: a field with its label, the header of a container, the choice of a variant, or the line
that adds a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

from pegboard.forms import (
    ChoiceField,
    Container,
    Field,
    Form,
    ListField,
    MapEntry,
    MapField,
    MultiChoiceField,
    SectionField,
    VariantField,
)

ItemPart: TypeAlias = Literal["field", "header", "choice", "raw", "add"]
"""Kind of an item: a field with its editor, the header of a container, the choice of a variant, the JSON of a container
whose value doesn't fit its fields, or the line that adds a row."""

ItemKey: TypeAlias = tuple[ItemPart, Field | MapEntry, bool]
"""Identity of an item."""

_FEW_PARTS, _FEW_PARTS_INSIDE = 12, 3
"""Most fields of an optional section that starts expanded: at the top level, and inside another section."""
_FEW_ROWS = 3
"""Most rows of a list or map whose rows start expanded."""
_DEEPEST = 40
"""Most levels that expand by default; a schema that requires itself is infinitely deep."""


@dataclass(eq=False)
class FormItem:
    """Unit of display of a form; its `key` identifies it across rebuilds."""

    part: ItemPart
    field: Field
    """The field of which it shows all or a part."""
    depth: int
    """Number of enclosing containers."""
    is_named: bool = True
    """Whether it has a label."""
    holder: ListField | MapField | None = None
    """The list or map of which it is a row, or None."""
    index: int = 0
    """Index of the row."""
    entry: MapEntry | None = None
    """The map entry whose value it shows, or None."""
    is_open: bool = True
    """Whether the container is expanded."""
    is_first: bool = False
    """Whether it is the first item of the form."""
    follows_header: bool = False
    """Whether the previous item is the header of its container."""
    messages: tuple[str, ...] = ()
    """Validation errors of the field."""
    hidden_errors: int = 0
    """Number of validation errors in the collapsed content."""
    cached_lines: tuple[object, int] = (None, 0)
    """Key of a cached height, and the height in lines while the item isn't mounted."""

    @property
    def key(self) -> ItemKey:
        """Identity of the item: a moved row keeps its key, and so does an entry whose value changes."""
        return self.part, self.entry or self.field, self.holder is not None

    @property
    def is_stop(self) -> bool:
        """Whether it can be focused."""
        if self.entry is not None:
            return True
        match self.part, self.field:
            case "field", ChoiceField() as choice:
                others = choice.nullable + (not choice.required)
                return len(choice.options) + others > 1 or choice.chosen is None
        return True


class Folds:
    """Expanded and collapsed containers of a form: the choice of the user, else the default."""

    as_json: Field | None = None
    """The container that is being edited as JSON, even while the text is invalid."""

    def __init__(self) -> None:
        self._chosen: WeakKeyDictionary[Field, bool] = WeakKeyDictionary()
        self._defaults: WeakKeyDictionary[Field, bool] = WeakKeyDictionary()

    @property
    def were_changed(self) -> bool:
        """Whether the user expanded or collapsed a container."""
        return bool(self._chosen)

    def is_open(self, container: Field) -> bool:
        """Return whether a container is expanded; its default is kept until the user changes it."""
        if container.state == "null":
            return False
        chosen = self._chosen.get(container)
        if chosen is not None:
            return chosen
        if container not in self._defaults:
            self._defaults[container] = _is_open_by_default(container)
        return self._defaults[container]

    def set_open(self, container: Field, is_open: bool) -> None:
        """Expand or collapse a container."""
        self._chosen[container] = is_open

    def set_all(self, form: Form, is_open: bool) -> None:
        """Expand or collapse every container; unbuilt sections stay collapsed, since they may be recursive."""
        for one in form.walk():
            if _has_foldable_content(one):
                self._chosen[one] = is_open and not (isinstance(one, SectionField) and not one.is_built)

    def forget_defaults(self) -> None:
        """Recompute the defaults of containers that the user didn't expand or collapse."""
        self._defaults.clear()

    def take_over(self, other: Folds, form: Form) -> None:
        """Apply the folds of an earlier form to the containers with the same paths.

        Args:
            other: The folds of the earlier form.
            form: The form that replaces it.
        """
        for mine, theirs in ((self._chosen, other._chosen), (self._defaults, other._defaults)):
            for before, is_open in theirs.items():
                now = form.field_at(before.path)
                if now is not None and now.path == before.path and _has_foldable_content(now):
                    mine[now] = is_open


def items_of(form: Form, folds: Folds) -> list[FormItem]:
    """Return the items of the expanded part of a form."""
    if isinstance(form.root, VariantField):
        found = [FormItem("choice", form.root, 0), *_items_of_variant(form.root.inner, folds, 0)]
    else:
        found = [item for one in form.fields for item in _items_of_field(one, folds, 0)]
    for item in found[:1]:
        item.is_first = True
    for before, item in pairwise(found):
        item.follows_header = before.part == "header" and before.is_open and item.depth > before.depth
    return found


def is_folding(one: Field) -> bool:
    """Return whether a field is shown as a header with collapsible content below."""
    if isinstance(one, VariantField):
        return one.is_raw or is_folding(one.inner)
    return _has_foldable_content(one)


def _has_foldable_content(one: Field) -> bool:
    return isinstance(one, Container) and not isinstance(one, MultiChoiceField)


def _items_of_field(one: Field, folds: Folds, depth: int, row: FormItem | None = None) -> Iterator[FormItem]:
    """Yield the items of a field and of its content; `row` is the template of a row's items."""
    template = row or FormItem("field", one, depth)
    if not is_folding(one) and one is not folds.as_json:
        if isinstance(one, VariantField) and one.state != "null":
            yield _item_like(template, "choice", one, depth)
            yield from _items_of_variant(one.inner, folds, depth)
        else:
            yield _item_like(template, "choice" if isinstance(one, VariantField) else "field", one, depth)
        return
    if _shows_only_add_line(one) and one is not folds.as_json:
        yield _item_like(template, "add", one, depth)
        return
    header = _item_like(template, "header", one, depth)
    header.is_open = folds.is_open(one)
    yield header
    if header.is_open and one.state != "null":
        yield from _items_within(one, folds, depth + 1)


def _items_within(one: Field, folds: Folds, depth: int) -> Iterator[FormItem]:
    """Yield the items below the header of a container."""
    assert isinstance(one, Container), "only containers have parts"
    if one.is_raw or one is folds.as_json:
        yield FormItem("raw", one, depth, is_named=False)
        return
    match one:
        case SectionField():
            for inner in one.children:
                yield from _items_of_field(inner, folds, depth)
        case MapField():
            for index, entry in enumerate(one.entries):
                row = FormItem("field", entry.field, depth, is_named=False, holder=one, index=index, entry=entry)
                yield from _items_of_field(entry.field, folds, depth, row)
            yield FormItem("add", one, depth, is_named=False)
        case ListField():
            for index, inner in enumerate(one.rows):
                named = index < one.fixed
                row = FormItem("field", inner, depth, is_named=named, holder=one, index=index)
                yield from _items_of_field(inner, folds, depth, row)
            if one.can_add:
                yield FormItem("add", one, depth, is_named=False)
        case VariantField():
            yield FormItem("choice", one, depth, is_named=False)
            yield from _items_of_variant(one.inner, folds, depth)


def _items_of_variant(inner: Field, folds: Folds, depth: int) -> Iterator[FormItem]:
    """Yield the items of a variant's field, which has no header of its own."""
    if isinstance(inner, VariantField):
        yield FormItem("choice", inner, depth, is_named=False)
        yield from _items_of_variant(inner.inner, folds, depth)
    elif _has_foldable_content(inner):
        yield from _items_within(inner, folds, depth)
    else:
        yield FormItem("field", inner, depth, is_named=False)


def _item_like(row: FormItem, part: ItemPart, one: Field, depth: int) -> FormItem:
    return FormItem(part, one, depth, is_named=row.is_named, holder=row.holder, index=row.index, entry=row.entry)


def _shows_only_add_line(one: Field) -> bool:
    """Return whether a container is empty and shown only by the line that adds its first row."""
    if one.state == "null" or (isinstance(one, Container) and one.is_raw):
        return False
    match one:
        case ListField():
            return not one.rows and one.can_add
        case MapField():
            return not one.entries
    return False


def _is_open_by_default(one: Field) -> bool:
    """Return whether a container starts expanded."""
    around = _ancestors(one)
    if one.is_filled and not one.is_prefilled:
        holder = one.parent
        many = isinstance(holder, ListField | MapField) and holder.part_count > _FEW_ROWS
        return not many
    if _is_recursive(one, around):
        return False
    if one.required and not one.in_list:
        return True
    few = _FEW_PARTS_INSIDE if around[1:] else _FEW_PARTS
    return _count_fields(one) <= few


def _ancestors(one: Field) -> list[Field]:
    """Return the ancestors of a field, innermost first."""
    found: list[Field] = []
    outer = one.parent
    while outer is not None:
        found.append(outer)
        outer = outer.parent
    return found


def _is_recursive(one: Field, around: list[Field]) -> bool:
    if len(around) > _DEEPEST:
        return True
    return isinstance(one, SectionField) and any(
        isinstance(outer, SectionField) and outer.names == one.names for outer in around if one.names
    )


def _count_fields(one: Field) -> int:
    """Count the fields that a container would show, without building them."""
    match one:
        case VariantField():
            return _count_fields(one.inner)
        case SectionField():
            return len(one.names) + one.is_open
        case ListField():
            return one.fixed
    return 0
