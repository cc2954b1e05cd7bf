"""Construction of form fields from a JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.data.json_text import same, write
from pegboard.forms.fields import FieldDescription, FieldPosition
from pegboard.forms.labels import facts_of, is_long, is_secret, picks, with_null
from pegboard.forms.lists import ListField, MultiChoiceField, TupleField
from pegboard.forms.scalars import ChoiceField, ConstField, JsonField, NumberField, Option, SwitchField, TextField
from pegboard.forms.schema_types import MAX_UNION_DEPTH, SchemaTypes, has_type, type_name, without_null
from pegboard.forms.sections import MapField, SectionField
from pegboard.forms.shapes import Shapes, meant_types, merge, types, without
from pegboard.forms.variants import Variant, VariantField
from pegboard.schema.patterns import PatternError, occurs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from pegboard.forms.containers import Maker
    from pegboard.forms.fields import Field
    from pegboard.models import JsonObject
    from pegboard.schema.validation import Validator

_ANYTHING: tuple[JsonObject, ...] = (
    {"type": "string"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array"},
    {"type": "object"},
)


class Builder:
    """Builder of fields for the parts of one schema.

    Args:
        validator: Validator that repairs the schema and resolves its references.
    """

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._shapes = Shapes(validator)
        self._types = SchemaTypes(validator, self._shapes)

    def root(self) -> Field:
        """Build the field of the whole argument object."""
        return self._root_field(self._validator.schema, FieldPosition())

    def field(
        self, schema: JsonValue, position: FieldPosition, *, required: bool, in_list: bool = False, reason: str = ""
    ) -> Field:
        """Build the field for a property, a row or an entry.

        Args:
            schema: Its schema, part of the validator's schema.
            position: Position of the field in the form.
            required: Whether it must be sent.
            in_list: Whether it is a row or an entry, which exists because the user added it.
            reason: Note to show in addition to the schema's texts.
        """
        node, nullable = self._types.collapse(self._shapes.plain(schema))
        facts = facts_of(node, schema, position.name, required=required, nullable=nullable, in_list=in_list)
        facts = facts.but(reason=reason, type_label=with_null(self._types.label(node), nullable))
        return (
            self._fixed(node, facts, position)
            or self._union(node, facts, position)
            or self._typed(node, facts, position)
        )

    # --- Unions ---

    def _union(self, node: JsonObject, facts: FieldDescription, position: FieldPosition) -> Field | None:
        """Build the field of a schema with several types, or return None if it has only one."""
        variants = [one for one in self._shapes.variants(node) if not self._shapes.is_rule(one)]
        if len(variants) > 1:
            kind = self._types.only_type(variants)
            if kind is not None:
                return self._typed({**node, "type": kind}, facts, position)
            if _unions_around(position) > MAX_UNION_DEPTH:
                return JsonField(facts.but(reason="the schema is a union that contains itself"), position)
            return self._variants(node, variants, facts, position)
        names = without_null(types(node))
        if len(names) > 1:
            parts: list[JsonValue] = [{"type": name} for name in names]
            return self._variants(without(node, "type"), parts, facts, position)
        return None

    def _variants(
        self, node: JsonObject, variants: list[JsonValue], facts: FieldDescription, position: FieldPosition
    ) -> VariantField:
        """Build a choice of variants. Keywords beside the union apply to each of them."""
        beside = without(node, "anyOf", "oneOf", "title", "description", "default", "examples")
        schemas: list[JsonValue] = [{"allOf": [variant, beside]} if beside else variant for variant in variants]
        plain = [self._shapes.plain(variant) for variant in variants]
        name, constants = self._types.discriminator(plain)
        built = schemas
        if _tag(node) == name != "":
            # Parsers of tagged unions need the tag in every value, even if the schema does not require it.
            built = [{"allOf": [schema, {"required": [name]}]} for schema in schemas]
        if _is_whole(position):
            makers = [self._root_maker(schema) for schema in built]
        else:
            makers = [self._maker(schema, required=True, in_list=facts.in_list) for schema in built]
        labels = self._types.variant_labels(plain, constants)
        options = [Variant(*parts) for parts in zip(labels, schemas, makers, strict=True)]

        def rank(value: JsonValue) -> int:
            named = value.get(name) if isinstance(value, dict) and constants else None
            named_variants = (index for index, constant in enumerate(constants) if same(constant, named))
            found = next(named_variants, None)
            return self._types.nearest(schemas, value) if found is None else found

        return VariantField(facts, position, options=options, rank=rank, tag=(name, constants))

    # --- Listed values ---

    def _fixed(self, node: JsonObject, facts: FieldDescription, position: FieldPosition) -> Field | None:
        """Build the field of a schema that lists its values, or return None."""
        if "const" in node:
            value = node["const"]
            options = () if value is None else _options([(value, None)])
            return ConstField(facts.but(nullable=value is None, type_label="constant"), position, options=options)
        listed = self._types.listed_values(node)
        if listed is None:
            return None
        kinds = [name for name in types(node) if name != "null"]
        fitting = [one for one in listed if one[0] is not None and has_type(one[0], kinds)]
        if not fitting and not facts.nullable:
            return JsonField(facts.but(reason="the schema allows no value"), position)
        return ChoiceField(facts, position, options=_options(fitting))

    # --- Values of one type ---

    def _typed(self, node: JsonObject, facts: FieldDescription, position: FieldPosition) -> Field:
        match without_null(meant_types(node)):
            case ["string"]:
                return _text_field(node, facts, position, self._types.formats(node))
            case ["integer" | "number" as kind]:
                return NumberField(facts, position, integer=kind == "integer")
            case ["boolean"]:
                return SwitchField(facts, position)
            case ["array"]:
                return self._list_field(node, facts, position)
            case ["object"]:
                return self._object(node, facts, position)
        if types(node) == ["null"]:
            return ConstField(facts.but(nullable=True), position, options=())
        return self._anything(facts, position)

    def _anything(self, facts: FieldDescription, position: FieldPosition) -> Field:
        """Build the field of a schema without a type."""
        flaw = self._shapes.flaw(facts.schema)
        if flaw:
            return JsonField(facts.but(reason=flaw), position)
        options = [
            Variant(type_name(self._types.label(schema)), schema, self._maker(schema, in_list=facts.in_list))
            for schema in _ANYTHING
        ]
        return VariantField(facts.but(nullable=True), position, options=options, rank=_kind_of)

    def _list_field(self, node: JsonObject, facts: FieldDescription, position: FieldPosition) -> Field:
        items = node.get("items")
        fixed = node.get("prefixItems", items if isinstance(items, list) else None)
        further = node.get("additionalItems") if isinstance(items, list) else items
        if isinstance(fixed, list) and fixed:
            return self._tuple(node, fixed, further, facts, position)
        options = self._item_options(further)
        if options:
            return MultiChoiceField(facts, position, options=options, allows_twice=node.get("uniqueItems") is not True)
        row = None if further is False else self._maker(further if further is not None else {}, in_list=True)
        return ListField(facts, position, make_row=row)

    def _item_options(self, items: JsonValue) -> tuple[Option, ...]:
        """Return the values that the items of a list can have, if the schema lists them."""
        node, nullable = self._types.collapse(self._shapes.plain(items))
        listed = None if nullable or "const" in node else self._types.listed_values(node)
        kinds = [name for name in types(node) if name != "null"]
        return _options([one for one in listed or () if one[0] is not None and has_type(one[0], kinds)])

    def _tuple(
        self,
        node: JsonObject,
        fixed: list[JsonValue],
        further: JsonValue,
        facts: FieldDescription,
        position: FieldPosition,
    ) -> TupleField:
        least, most = node.get("minItems"), node.get("maxItems")
        needed = least if isinstance(least, int) else 0
        full = isinstance(most, int) and most <= len(fixed)
        return TupleField(
            facts,
            position,
            source=fixed,
            makers=[self._maker(schema, required=index < needed) for index, schema in enumerate(fixed)],
            make_row=None if further is False or further is None or full else self._maker(further, in_list=True),
            spare=self._maker({}, in_list=True),
            validator=self._validator,
        )

    def _object(self, node: JsonObject, facts: FieldDescription, position: FieldPosition) -> Field:
        if node.get("properties") or node.get("required") or _is_closed(node):
            return self._section(node, facts, position)
        return self._entries(node, facts, position, frozenset())

    def _section(self, node: JsonObject, facts: FieldDescription, position: FieldPosition) -> SectionField:
        properties, listed = node.get("properties"), node.get("required")
        named = properties if isinstance(properties, dict) else {}
        required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        makers = {name: self._maker(schema, required=name in required) for name, schema in named.items()}
        for name in required:
            if name not in makers:
                note = "the schema requires it without describing it"
                makers[name] = self._maker(self._additional(node, name), required=True, reason=note)
        further = node.get("additionalProperties")
        return SectionField(
            facts,
            position,
            source=named,
            makers=makers,
            rest=lambda inner, taken: self._rest(node, inner, taken),
            is_open=further not in (None, False) or "patternProperties" in node,
            validator=self._validator,
        )

    def _rest(self, node: JsonObject, position: FieldPosition, taken: frozenset[str]) -> MapField:
        label = self._types.map_label(node, 0)
        return self._entries(
            node, FieldDescription(schema={}, label="other arguments", type_label=label), position, taken
        )

    def _entries(
        self, node: JsonObject, facts: FieldDescription, position: FieldPosition, taken: frozenset[str]
    ) -> MapField:
        return MapField(
            facts,
            position,
            make=lambda inner: self.field(self._additional(node, inner.name), inner, required=True, in_list=True),
            key_options=self._keys(node, taken),
            taken=taken,
            same_for_all="patternProperties" not in node,
        )

    def _keys(self, node: JsonObject, taken: frozenset[str]) -> tuple[str, ...]:
        names = node.get("propertyNames")
        listed = self._types.listed_values(self._shapes.plain(names)) if isinstance(names, dict) else None
        return tuple(value for value, _ in listed or () if isinstance(value, str) and value not in taken)

    def _additional(self, node: JsonObject, name: str) -> JsonValue:
        """Return the schema of an additional property, or `{}` to keep the value of a forbidden one."""
        patterns = node.get("patternProperties")
        matching = [
            schema
            for expression, schema in (patterns.items() if isinstance(patterns, dict) else ())
            if _matches(expression, name)
        ]
        if matching:
            return matching[0] if len(matching) == 1 else {"allOf": [*matching]}
        further = node.get("additionalProperties", True)
        return {} if further is False or further is True else further

    # --- Makers ---

    def _maker(self, schema: JsonValue, *, required: bool = True, in_list: bool = False, reason: str = "") -> Maker:
        return lambda position: self.field(schema, position, required=required, in_list=in_list, reason=reason)

    def _root_maker(self, schema: JsonValue) -> Maker:
        return lambda position: self._root_field(schema, position)

    def _root_field(self, schema: JsonValue, position: FieldPosition) -> Field:
        """Build the field of the whole argument object, or of one of its variants."""
        node = self._shapes.plain(schema)
        facts = facts_of(node, schema, "", required=True, nullable=False, in_list=False)
        variants = [
            one for one in self._types.flattened(self._shapes.variants(node), {id(node)}) if self._types.is_object(one)
        ]
        if len(variants) > 1 and _unions_around(position) <= MAX_UNION_DEPTH:
            return self._variants(node, variants, facts, position)
        if len(variants) == 1:
            node = merge(without(node, "anyOf", "oneOf"), self._shapes.plain(variants[0]))
        return self._section(node, facts, position)


def _tag(node: JsonObject) -> JsonValue:
    """Return the property that distinguishes a union's variants, from OpenAPI's `discriminator`."""
    keyword = node.get("discriminator")
    return keyword.get("propertyName") if isinstance(keyword, dict) else None


def _is_whole(position: FieldPosition) -> bool:
    """Return True for the whole argument object or a variant of it."""
    outer = position.parent
    while isinstance(outer, VariantField):
        outer = outer.parent
    return outer is None


def _unions_around(position: FieldPosition) -> int:
    """Count the directly enclosing unions."""
    outer, count = position.parent, 0
    while isinstance(outer, VariantField):
        outer, count = outer.parent, count + 1
    return count


def _is_closed(node: JsonObject) -> bool:
    return node.get("additionalProperties") is False and "patternProperties" not in node


def _matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name; a search that takes too long is a validation error later."""
    try:
        return occurs(pattern, name)
    except PatternError:
        return False


def _kind_of(value: JsonValue) -> int:
    """Return the index of a value's type in a field of any type."""
    kinds = [str(schema["type"]) for schema in _ANYTHING]
    return next((index for index, kind in enumerate(kinds) if has_type(value, [kind])), 0)


def _options(listed: list[tuple[JsonValue, str | None]]) -> tuple[Option, ...]:
    clear = all(isinstance(value, str) and value == value.strip() != "" for value, _ in listed)
    return tuple(
        Option(title or (value if clear and isinstance(value, str) else write(value)), value) for value, title in listed
    )


def _text_field(
    node: JsonObject, facts: FieldDescription, position: FieldPosition, formats: Sequence[str]
) -> TextField:
    is_password = node.get("format") == "password"
    secret = is_password or is_secret(position.name)
    # These keywords can describe another form than that of the standard.
    is_narrower = bool({"pattern", "minLength", "maxLength"} & node.keys())
    return TextField(
        facts,
        position,
        secret=is_password,
        multiline=not secret and not facts.in_list and is_long(node, position.name),
        picks="" if secret else picks(node, position.name),
        formats=() if is_narrower else formats,
    )
