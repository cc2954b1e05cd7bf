"""Base of the fields that hold other fields.

A container's state follows from its inner fields: it has a value if any inner field holds one that the form did not
prefill, and becomes unset when all of them are unset. An empty container is sent only on request. A value that fits no
inner field, such as text instead of an object or invalid JSON, is kept unchanged and reported as a validation error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pegboard.data.json_text import JsonTextError, parse, write
from pegboard.forms.fields import Field, FieldPosition, FieldReading, FieldStatus, key_of
from pegboard.forms.labels import without_secrets

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.fields import FieldDescription, State

Maker: TypeAlias = Callable[[FieldPosition], Field]
"""Function that builds an untouched field at a position."""

_MOST_PREFILLED = 24
"""Maximum depth of prefilled required sections. A schema can require itself."""
_DEEPEST = 100
"""Maximum nesting depth of loaded fields. Deeper values are kept as JSON because Python's stack is limited."""


class Container(Field):
    """Field composed of other fields.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
    """

    source: JsonValue = None
    """Schema part from which the inner fields are built, the same object on every level of a recursive schema."""

    def __init__(self, facts: FieldDescription, position: FieldPosition) -> None:
        super().__init__(facts, position)
        self._unreadable: str | None = None
        self._left_out = False
        self._initial_state: State = "value" if self.in_list or position.parent is None else "unset"
        """State without content. Rows of a list and the root field always have a value."""
        self._state = self._initial_state

    @property
    def state(self) -> State:
        """State of the argument: left out, null or a value."""
        return self.status().state

    @property
    def is_raw(self) -> bool:
        """True if it holds a value that fits no inner field; `text` returns that value."""
        return self._unreadable is not None or bool(self._loaded)

    @property
    def text(self) -> str:
        """Content as JSON, or the typed text if it is not valid JSON."""
        if self._unreadable is not None:
            return self._unreadable
        return write(self.draft(), indent=2) if self.state == "value" else ""

    @property
    def is_typed(self) -> bool:
        """True if it holds typed text that is not valid JSON."""
        return self._unreadable is not None

    @property
    def is_filled(self) -> bool:
        """True if it has a value that is not empty."""
        return self.is_raw or (self._state != "null" and self._has_content(*self._inner_status()))

    def sends_prefilled(self, inner: Field) -> bool:
        """Return True if an inner section with only prefilled content is sent."""
        return inner.required

    def status(self) -> FieldStatus:
        """Return state and activity in one pass over the inner fields."""
        if self.is_raw:
            return FieldStatus("value", not self._prefilled)
        if self._state == "null":
            return FieldStatus("null", not self._prefilled)
        any_active, any_set = self._inner_status()
        if self._state == "unset" and not self._has_content(any_active, any_set):
            return FieldStatus("unset", is_active=False)
        return FieldStatus("value", any_active or (self._state == "value" and not self._prefilled))

    def clear(self) -> None:
        """Reset the field to its initial content."""
        super().clear()
        self._state = self._initial_state
        self._left_out = False

    def draft(self, *, masked: bool = False) -> JsonValue:
        """Return the content, valid or not; text that can't be read is returned as typed."""
        if self._unreadable is not None:
            return self._unreadable
        if self._loaded:
            return without_secrets(self._loaded[0], key_of(self)) if masked else self._loaded[0]
        return None if self.state == "null" else self._draft_parts(masked)

    def load(self, value: JsonValue) -> None:
        """Replace the content with a value, even one that does not fit."""
        self._kept = None
        if value is None:
            self._set_state("null")
            return
        self._set_own_state("unset")
        if self.depth > _DEEPEST or not self._load_parts(value):
            self._reset_parts()
            self._loaded = (value,)

    def update(self, value: JsonValue, shown: JsonValue) -> None:
        """Apply an edited draft, part by part if possible."""
        if write(value) == write(shown):
            return
        if self.is_raw or not self._update_parts(value, shown):
            self.load(value)
        elif self.state == "unset":  # the edit left only prefilled content
            self._state = "value"

    def write(self, text: str) -> None:
        """Replace the content with typed JSON. Invalid JSON is kept as typed."""
        if not text.strip():
            self._set_state("unset")
            return
        try:
            value = parse(text)
        except JsonTextError:
            self._set_state("unset")
            self._unreadable = text
            return
        self.load(value)
        self.touched = True

    def empty(self) -> None:
        """Send an empty value. `recall` restores the previous one."""
        self._remember()
        self._set_state("value")

    def mark_prefilled(self) -> None:
        """Mark all content as filled in by the form."""
        if self.state == "unset":
            return
        super().mark_prefilled()
        self._left_out = False
        for inner in self.built:
            inner.mark_prefilled()

    def _edit(self) -> None:
        """Prepare for a change of the inner fields, which then determine the value."""
        if self.is_raw or self._state == "null":
            self._set_state("value")
        self._state = "value"
        self.touched = True
        self._prefilled = False

    def _prefill_required(self) -> None:
        """Fill in the inner fields of a required field, unless an outer field has the same source."""
        if self.required and self._is_part_of_itself(self.source):
            self._left_out = True
        elif self.required:
            self.complete()

    def _is_part_of_itself(self, source: JsonValue) -> bool:
        """Return True if an outer field has the same source, so that prefilling both would not end."""
        outer, depth = self.parent, 0
        while outer is not None:
            depth += 1
            if (isinstance(outer, Container) and outer.source is source) or depth > _MOST_PREFILLED:
                return True
            outer = outer.parent
        return False

    def _set_state(self, state: State) -> None:
        self._set_own_state(state)
        self._reset_parts()

    def _set_own_state(self, state: State) -> None:
        super()._set_state(state)
        self._unreadable = None
        self._left_out = True

    def _snapshot(self) -> Callable[[], None]:
        unread, loaded, parts = self._unreadable, self._loaded, self._snapshot_parts()
        left_out, prefilled = self._left_out, self._prefilled

        def restore() -> None:
            self._state = "unset"
            self._unreadable, self._loaded, self._left_out, self._prefilled = unread, loaded, left_out, prefilled
            parts()

        return restore

    def _read(self) -> FieldReading:
        if self._unreadable is None:
            return self._read_parts()
        try:
            return FieldReading((parse(self._unreadable),))
        except JsonTextError as error:
            return self._invalid(str(error))

    def _inner_status(self) -> tuple[bool, bool]:
        """Return whether any inner field is active, and whether any is set."""
        any_set = False
        for inner in self.built:
            state, is_active = inner.status()
            if is_active:
                return True, True
            any_set = any_set or state != "unset"
        return False, any_set

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        """Return True if the content makes this a value."""
        raise NotImplementedError

    def _draft_parts(self, masked: bool) -> JsonValue:
        raise NotImplementedError

    def _read_parts(self) -> FieldReading:
        raise NotImplementedError

    def _load_parts(self, value: JsonValue) -> bool:
        """Load a value other than null into the inner fields; return False if it has the wrong type."""
        raise NotImplementedError

    def _update_parts(self, value: JsonValue, shown: JsonValue) -> bool:
        """Apply an edited draft to the inner fields; return False if it has to be loaded instead."""
        return False

    def _reset_parts(self) -> None:
        """Reset the inner fields."""
        raise NotImplementedError

    def _snapshot_parts(self) -> Callable[[], None]:
        """Return a function that restores the current inner fields."""
        raise NotImplementedError
