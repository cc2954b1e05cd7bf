"""Fields for unions: a choice between variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pegboard.data.json_text import write
from pegboard.forms.containers import Container
from pegboard.forms.fields import FieldPosition, FieldReading, FieldStatus
from pegboard.forms.scalars import Option, TextField, not_one_of
from pegboard.forms.sections import SectionField
from pegboard.models import Fault

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.containers import Maker
    from pegboard.forms.fields import Field, FieldDescription


class Variant:
    """Alternative of a union.

    Args:
        label: Label that is unique within the union.
        schema: Schema of the variant, including the keywords beside the union.
        make: Function that builds the field.
    """

    def __init__(self, label: str, schema: JsonValue, make: Maker) -> None:
        self.label = label
        self.schema = schema
        self.make = make


class VariantField(Container):
    """Choice between several kinds of value.

    Args:
        facts: Facts about the argument from its schema.
        position: Position of the field in the form.
        options: Variants, at least one.
        rank: Function that returns the index of the best variant for a value.
        tag: Property with a distinct constant in each variant, and the constants; an empty name if no property has.
    """

    kind = "variant"
    has_named_parts = False

    def __init__(
        self,
        facts: FieldDescription,
        position: FieldPosition,
        *,
        options: Sequence[Variant],
        rank: Callable[[JsonValue], int],
        tag: tuple[str, Sequence[JsonValue]] = ("", ()),
    ) -> None:
        super().__init__(facts, position)
        self.chosen = 0
        """Index of the visible variant."""
        self.is_settled = False
        """Whether the user chose or filled the variant."""
        self._options = options
        self._rank = rank
        self._tag, self._constants = tag
        self._inners: dict[int, Field] = {}
        self._state = "unset"

    @property
    def variants(self) -> tuple[str, ...]:
        """Labels of the variants."""
        return tuple(option.label for option in self._options)

    @property
    def chosen_schema(self) -> JsonValue:
        """Schema of the chosen variant, including the keywords beside the union."""
        return self._options[self.chosen].schema

    @property
    def inner(self) -> Field:
        """Field of the chosen variant."""
        if self.chosen not in self._inners:
            self._inners[self.chosen] = self._options[self.chosen].make(FieldPosition(self, self.name))
        return self._inners[self.chosen]

    @property
    def children(self) -> tuple[Field, ...]:
        """Field of the chosen variant."""
        return (self.inner,)

    @property
    def built(self) -> tuple[Field, ...]:
        """Field of the chosen variant if it exists already."""
        return (self._inners[self.chosen],) if self.chosen in self._inners else ()

    @property
    def text(self) -> str:
        """Content of the chosen variant as typed."""
        return super().text if self.is_raw or self._state == "null" else self.inner.text

    @property
    def is_filled(self) -> bool:
        """True if the chosen variant has a value that is not empty."""
        return self.is_raw or (super().is_filled and self.inner.is_filled)

    def status(self) -> FieldStatus:
        """Return state and activity of the chosen variant, or unset until the user chooses or fills it."""
        if self.is_raw or self._state != "unset":
            return super().status()
        if not (self.built or self._counts_untouched()):
            return FieldStatus("unset", is_active=False)
        state, is_active = self.inner.status()
        if not self._has_content(is_active, state != "unset"):
            return FieldStatus("unset", is_active=False)
        return FieldStatus(state, is_active or not self._prefilled)

    def path_of(self, inner: Field) -> str:
        """Return the JSON Pointer of a variant's field, which is the path of the value itself."""
        return self.path

    def id_part(self, inner: Field) -> str:
        """Return the last part of the id of a variant's field."""
        return f"-v{next((index for index, one in self._inners.items() if one is inner), self.chosen)}"

    def sends_prefilled(self, inner: Field) -> bool:
        """Return True if the user chose or filled the variant."""
        return self.is_settled

    def choose(self, index: int) -> None:
        """Show another variant. The previous one keeps its content, and properties of both are copied."""
        if self.is_raw or self._state == "null":
            self._set_state("unset")
        before = self.inner
        self.chosen, self.is_settled = index, True
        self.touched, self._prefilled = True, False
        now = self.inner
        now.complete()
        if isinstance(before, SectionField) and isinstance(now, SectionField) and before is not now:
            for name, theirs in before.named.items():
                mine = now.named.get(name)
                if mine is None or mine.kind != theirs.kind or mine.kind == "const" or mine.state != "unset":
                    continue
                if theirs.is_active:
                    mine.take_over(theirs)

    def candidate(self, index: int) -> Field:
        """Return an untouched field of a variant, to be filled and then adopted or discarded."""
        return self._options[index].make(FieldPosition(self, self.name))

    def adopt(self, index: int, inner: Field) -> None:
        """Show a variant with a field from `candidate`, replacing all content."""
        self._set_state("unset")
        self.chosen, self.is_settled = index, True
        self._inners[index] = inner

    def empty(self) -> None:
        """Send the empty value of the chosen variant. `recall` restores the previous one."""
        if not isinstance(self.inner, TextField | Container):
            return
        self._remember()
        self._set_state("unset")
        self.is_settled = True
        inner = self.inner
        assert isinstance(inner, TextField | Container), "a variant's field is always of the same kind"
        inner.empty()

    def write(self, text: str) -> None:
        """Write typed text to the chosen variant."""
        if self.is_raw or self._state == "null":
            self._set_state("unset")
        if isinstance(self.inner, Container):
            super().write(text)
        else:
            self.inner.write(text)
            self.is_settled = self.touched = True
            self._prefilled = False

    def _update_parts(self, value: JsonValue, shown: JsonValue) -> bool:
        if value is None or self.state != "value" or self._rank(value) != self.chosen:
            return False
        self.inner.update(value, shown)
        return True

    def take_over(self, other: Field) -> None:
        """Copy user input from the field of the same name of another schema."""
        if (
            not isinstance(other, VariantField)
            or other.is_raw
            or other.state != "value"
            or other.variants != self.variants
        ):
            super().take_over(other)
            return
        self.choose(other.chosen)
        self.inner.take_over(other.inner)
        self.touched = other.touched

    def _has_content(self, any_active: bool, any_set: bool) -> bool:
        return any_active or (any_set and self._counts_untouched())

    def _counts_untouched(self) -> bool:
        """Return True if the chosen variant is sent without user input, as it is for a new row."""
        return self.is_settled or (self.in_list and not self._left_out)

    def _draft_parts(self, masked: bool) -> JsonValue:
        return self.inner.draft(masked=masked)

    def _read_parts(self) -> FieldReading:
        reading = self.inner.read()
        tag = self.inner.named.get(self._tag) if self._constants and isinstance(self.inner, SectionField) else None
        if tag is None or not any(fault.path == tag.path for fault in reading.faults):
            return reading
        # The chosen variant knows only its own constant, but the value may name any variant.
        message = not_one_of([Option(write(constant), constant) for constant in self._constants], tag.text)
        faults = (Fault(path=tag.path, message=message) if one.path == tag.path else one for one in reading.faults)
        return FieldReading(reading.value, tuple(faults))

    def _load_parts(self, value: JsonValue) -> bool:
        self._inners = {}
        self.chosen, self.is_settled = self._rank(value), True
        self.inner.load(value)
        return True

    def _reset_parts(self) -> None:
        self.is_settled = False
        self._inners = {}

    def _snapshot_parts(self) -> Callable[[], None]:
        chosen, settled, inners = self.chosen, self.is_settled, self._inners

        def restore() -> None:
            self.chosen, self.is_settled, self._inners = chosen, settled, inners

        return restore
