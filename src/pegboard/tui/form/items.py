"""What of a form is in sight: its tree, as far as it is unfolded, as a row of items from top to bottom.

An item is what the screen shows in one piece: a field with its label, the line above what a container holds, the choice
of a variant, the line that adds a row.
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

Part: TypeAlias = Literal["field", "header", "choice", "raw", "add"]
"""A field with its editor; the line above what a container holds; the choice of a variant; the JSON of a container that
holds what fits no part of it; the line that adds a row."""

Key: TypeAlias = tuple[Part, Field | MapEntry, bool]
"""What tells one item from the others."""

_FEW_PARTS, _FEW_PARTS_INSIDE = 12, 3
"""Up to so many fields an optional section starts unfolded: one of the tool's own, and one inside of another."""
_FEW_ROWS = 3
"""Up to so many rows that hold fields of their own start unfolded."""
_DEEPEST = 40
"""Levels down to which sections unfold by themselves; a schema that requires itself would go on for ever."""


@dataclass(eq=False)
class Item:
    """One piece of the form.

    Items of the same `key` are the same piece, whatever has changed around it.
    """

    part: Part
    field: Field
    """What it shows, or of which it shows a part."""
    depth: int
    """How many containers are around it."""
    is_named: bool = True
    """Whether it has a label."""
    holder: ListField | MapField | None = None
    """What it is a row of."""
    index: int = 0
    """Which row it is."""
    entry: MapEntry | None = None
    """What it is the value of."""
    is_open: bool = True
    """Whether what is inside is in sight."""
    is_first: bool = False
    """Whether nothing of the form stands above it."""
    follows_header: bool = False
    """Whether the line above what it is in stands right before it."""
    messages: tuple[str, ...] = ()
    """What is wrong with it."""
    hidden_faults: int = 0
    """How much is wrong with what is folded away in it."""
    lines: tuple[object, int] = (None, 0)
    """How many lines it takes where it isn't mounted, and for what that was found."""

    @property
    def key(self) -> Key:
        """What makes it the same piece: a row keeps its own wherever it moves, an entry whatever value it is given."""
        return self.part, self.entry or self.field, self.holder is not None

    @property
    def is_stop(self) -> bool:
        """Whether something in it can have the focus."""
        if self.entry is not None:
            return True
        match self.part, self.field:
            case "field", ChoiceField() as choice:
                others = choice.nullable + (not choice.required)
                return len(choice.options) + others > 1 or choice.chosen is None
        return True


class Folds:
    """Which containers of a form are folded: what the user asked for, else what suits them."""

    as_json: Field | None = None
    """The container that is being edited as JSON, whether or not that can be read meanwhile."""

    def __init__(self) -> None:
        self._asked: WeakKeyDictionary[Field, bool] = WeakKeyDictionary()
        self._suiting: WeakKeyDictionary[Field, bool] = WeakKeyDictionary()

    @property
    def were_asked(self) -> bool:
        """Whether somebody folded or unfolded anything."""
        return bool(self._asked)

    def is_open(self, container: Field) -> bool:
        """Whether what is in a container is in sight; it stays so until somebody asks otherwise."""
        if container.state == "null":
            return False
        asked = self._asked.get(container)
        if asked is not None:
            return asked
        if container not in self._suiting:
            self._suiting[container] = _suits(container)
        return self._suiting[container]

    def put(self, container: Field, is_open: bool) -> None:
        """Folds or unfolds a container."""
        self._asked[container] = is_open

    def put_all(self, form: Form, is_open: bool) -> None:
        """Folds or unfolds every container; of those that go on for ever as much as is there."""
        for one in form.walk():
            if _holds(one):
                self._asked[one] = is_open and not (isinstance(one, SectionField) and not one.is_built)

    def forget_suiting(self) -> None:
        """Looks again at what suits the containers that nobody folded or unfolded."""
        self._suiting.clear()

    def take_over(self, other: Folds, form: Form) -> None:
        """Folds the containers of another form as those of the same paths were.

        Args:
            other: How the earlier form was folded.
            form: The form that took the earlier one's place.
        """
        for mine, theirs in ((self._asked, other._asked), (self._suiting, other._suiting)):
            for before, is_open in theirs.items():
                now = form.field_at(before.path)
                if now is not None and now.path == before.path and _holds(now):
                    mine[now] = is_open


def items_of(form: Form, folds: Folds) -> list[Item]:
    """Gives the items of a form as far as it is unfolded.

    Args:
        form: The form.
        folds: Which of its containers are folded.
    """
    if isinstance(form.root, VariantField):
        found = [Item("choice", form.root, 0), *_inside(form.root.inner, folds, 0)]
    else:
        found = [item for one in form.fields for item in _items(one, folds, 0)]
    for item in found[:1]:
        item.is_first = True
    for before, item in pairwise(found):
        item.follows_header = before.part == "header" and before.is_open and item.depth > before.depth
    return found


def is_folding(one: Field) -> bool:
    """Whether a field is shown as a header with what it holds beneath, which folds."""
    if isinstance(one, VariantField):
        return one.is_raw or is_folding(one.inner)
    return _holds(one)


def _holds(one: Field) -> bool:
    return isinstance(one, Container) and not isinstance(one, MultiChoiceField)


def _items(one: Field, folds: Folds, depth: int, row: Item | None = None) -> Iterator[Item]:
    """Gives the items of a field: its own, and those of what is in it."""
    facts = row or Item("field", one, depth)
    if not is_folding(one) and one is not folds.as_json:
        if isinstance(one, VariantField) and one.state != "null":
            yield _like(facts, "choice", one, depth)
            yield from _inside(one.inner, folds, depth)
        else:
            yield _like(facts, "choice" if isinstance(one, VariantField) else "field", one, depth)
        return
    if _is_bare(one) and one is not folds.as_json:
        yield _like(facts, "add", one, depth)
        return
    header = _like(facts, "header", one, depth)
    header.is_open = folds.is_open(one)
    yield header
    if header.is_open and one.state != "null":
        yield from _parts(one, folds, depth + 1)


def _parts(one: Field, folds: Folds, depth: int) -> Iterator[Item]:
    """Gives the items of what is in a container whose own line has been given."""
    assert isinstance(one, Container), "only containers have parts"
    if one.is_raw or one is folds.as_json:
        yield Item("raw", one, depth, is_named=False)
        return
    match one:
        case SectionField():
            for inner in one.children:
                yield from _items(inner, folds, depth)
        case MapField():
            for index, entry in enumerate(one.entries):
                row = Item("field", entry.field, depth, is_named=False, holder=one, index=index, entry=entry)
                yield from _items(entry.field, folds, depth, row)
            yield Item("add", one, depth, is_named=False)
        case ListField():
            for index, inner in enumerate(one.rows):
                named = index < one.fixed
                row = Item("field", inner, depth, is_named=named, holder=one, index=index)
                yield from _items(inner, folds, depth, row)
            if one.can_add:
                yield Item("add", one, depth, is_named=False)
        case VariantField():
            yield Item("choice", one, depth, is_named=False)
            yield from _inside(one.inner, folds, depth)


def _inside(inner: Field, folds: Folds, depth: int) -> Iterator[Item]:
    """Gives the items of a variant's field, which needs no line of its own."""
    if isinstance(inner, VariantField):
        yield Item("choice", inner, depth, is_named=False)
        yield from _inside(inner.inner, folds, depth)
    elif _holds(inner):
        yield from _parts(inner, folds, depth)
    else:
        yield Item("field", inner, depth, is_named=False)


def _like(facts: Item, part: Part, one: Field, depth: int) -> Item:
    return Item(part, one, depth, is_named=facts.is_named, holder=facts.holder, index=facts.index, entry=facts.entry)


def _is_bare(one: Field) -> bool:
    """Whether a container is shown by the line that adds its first row alone."""
    if one.state == "null" or (isinstance(one, Container) and one.is_raw):
        return False
    match one:
        case ListField():
            return not one.rows and one.can_add
        case MapField():
            return not one.entries
    return False


def _suits(one: Field) -> bool:
    """Whether a container that nobody folded or unfolded is open."""
    around = _around(one)
    if one.is_filled and not one.is_prefilled:
        holder = one.parent
        many = isinstance(holder, ListField | MapField) and len(holder.children) > _FEW_ROWS
        return not many
    if _is_within_itself(one, around):
        return False
    if one.required and not one.in_list:
        return True
    few = _FEW_PARTS_INSIDE if around[1:] else _FEW_PARTS
    return _count(one) <= few


def _around(one: Field) -> list[Field]:
    """Gives the fields around one, inner ones first; last the whole."""
    found: list[Field] = []
    outer = one.parent
    while outer is not None:
        found.append(outer)
        outer = outer.parent
    return found


def _is_within_itself(one: Field, around: list[Field]) -> bool:
    if len(around) > _DEEPEST:
        return True
    return isinstance(one, SectionField) and any(
        isinstance(outer, SectionField) and outer.names == one.names for outer in around if one.names
    )


def _count(one: Field) -> int:
    """Counts the fields that a container would show, without building them."""
    match one:
        case VariantField():
            return _count(one.inner)
        case SectionField():
            return len(one.names) + one.is_open
        case ListField():
            return one.fixed
    return 0
