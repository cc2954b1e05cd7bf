"""Construction of form fields from a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from pegboard.forms.containers import Maker
from pegboard.forms.fields import Field, FieldFacts, FieldPosition
from pegboard.forms.json_text import same, write
from pegboard.forms.labels import facts_of, is_long, is_secret, of, picks, with_null
from pegboard.forms.lists import ListField, MultiChoiceField, TupleField
from pegboard.forms.scalars import ChoiceField, ConstField, JsonField, NumberField, Option, SwitchField, TextField
from pegboard.forms.sections import MapField, SectionField
from pegboard.forms.shapes import Shapes, is_free, is_null, meant_types, merge, types, without
from pegboard.forms.variants import Variant, VariantField
from pegboard.models import JsonObject
from pegboard.schema.patterns import occurs
from pegboard.schema.validation import Validator

_ANYTHING: tuple[JsonObject, ...] = (
    {"type": "string"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array"},
    {"type": "object"},
)
_MOST_LISTED = 4
"""Maximum number of types that a label lists by name."""
_OTHER_CONSTANT = 8
"""Weight of another variant's constant, in validation errors."""
_MAX_LABEL_DEPTH = 2
"""Maximum depth of nested lists and unions in a label."""
_MAX_UNION_DEPTH = 8
"""Maximum depth of directly nested unions. A schema can be a variant of itself."""


class Builder:
    """Builder of fields for the parts of one schema.

    Args:
        validator: Validator that repairs the schema and resolves its references.
    """

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._shapes = Shapes(validator)
        self._known_labels: dict[tuple[int, int], tuple[JsonObject, str]] = {}
        """Id of a simplified schema and depth → the schema, which keeps the id valid, and its label."""
        self._known_collapsed: dict[int, tuple[JsonObject, tuple[JsonObject, bool]]] = {}
        """Id of a simplified schema → the schema, and its form without null."""

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
        node, nullable = self._collapse(self._shapes.plain(schema))
        facts = facts_of(node, schema, position.name, required=required, nullable=nullable, in_list=in_list)
        facts = facts.but(reason=reason, type_label=with_null(self._label(node), nullable))
        return (
            self._fixed(node, facts, position)
            or self._union(node, facts, position)
            or self._typed(node, facts, position)
        )

    def property_schema(self, schema: JsonValue, name: str) -> JsonValue:
        """Return the schema of an object's property, declared or additional.

        Args:
            schema: Schema of the object, part of the validator's schema.
            name: Name of the property.
        """
        node = self._shapes.plain(schema)
        properties = node.get("properties")
        if isinstance(properties, dict) and name in properties:
            return properties[name]
        return self._additional(node, name)

    # --- Unions ---

    def _collapse(self, node: JsonObject) -> tuple[JsonObject, bool]:
        """Remove null and one-variant unions from a simplified schema; return whether null was allowed."""
        if id(node) not in self._known_collapsed:
            self._known_collapsed[id(node)] = node, self._collapsed(node, 0)
        return self._known_collapsed[id(node)][1]

    def _collapsed(self, node: JsonObject, depth: int) -> tuple[JsonObject, bool]:
        names = types(node)
        nullable = "null" in names
        rest: list[JsonValue] = [name for name in names if name != "null"]
        if nullable and rest:
            node = {**node, "type": rest if len(rest) > 1 else rest[0]}
        listed = node.get("enum")
        if isinstance(listed, list):
            nullable = None in listed and (nullable or not names)
        for keyword in ("anyOf", "oneOf"):
            written = node.get(keyword)
            if not isinstance(written, list):
                continue
            variants = self._flattened(written, set())
            others = [variant for variant in variants if not is_null(self._shapes.plain(variant))]
            with_nothing = len(others) < len(variants)
            if len(others) == 1 and not self._shapes.is_rule(others[0]) and depth < _MAX_UNION_DEPTH:
                merged = merge(without(node, keyword), self._shapes.plain(others[0]))
                inner, inner_nullable = self._collapsed(merged, depth + 1)
                return inner, with_nothing or inner_nullable
            if (others and len(others) < len(written)) or len(variants) > len(written):
                node, nullable = {**node, keyword: [*others]}, nullable or with_nothing
        return node, nullable

    def _flattened(self, variants: list[JsonValue], seen: set[int]) -> list[JsonValue]:
        """Return variants with directly nested unions replaced by their variants, each once."""
        found: list[JsonValue] = []
        for variant in variants:
            inner = self._shapes.plain(variant)
            if id(inner) in seen:
                continue
            if isinstance(variant, dict):
                seen.add(id(inner))
            nested = self._shapes.variants(inner)
            if nested and inner.keys() <= {"anyOf", "oneOf", "title", "description"}:
                found += self._flattened(nested, seen)
            else:
                found.append(variant)
        return found

    def _union(self, node: JsonObject, facts: FieldFacts, position: FieldPosition) -> Field | None:
        """Build the field of a schema with several types, or return None if it has only one."""
        variants = [one for one in self._shapes.variants(node) if not self._shapes.is_rule(one)]
        if len(variants) > 1:
            kind = self._only_kind(variants)
            if kind is not None:
                return self._typed({**node, "type": kind}, facts, position)
            if _unions_around(position) > _MAX_UNION_DEPTH:
                return JsonField(facts.but(reason="the schema is a union that contains itself"), position)
            return self._variants(node, variants, facts, position)
        names = _kinds(types(node))
        if len(names) > 1:
            parts: list[JsonValue] = [{"type": name} for name in names]
            return self._variants(without(node, "type"), parts, facts, position)
        return None

    def _only_kind(self, variants: list[JsonValue]) -> str | None:
        """Return the type that all variants share if one text or number field can hold them all."""
        if not all(self._is_plain(one) for one in variants):
            return None
        kinds = {tuple(meant_types(self._shapes.plain(one))) for one in variants}
        if kinds == {("string",)}:
            return "string"
        if kinds <= {("integer",), ("number",)}:
            return "integer" if kinds == {("integer",)} else "number"
        return None

    def _variants(
        self, node: JsonObject, variants: list[JsonValue], facts: FieldFacts, position: FieldPosition
    ) -> VariantField:
        """Build a choice of variants. Keywords beside the union apply to each of them."""
        beside = without(node, "anyOf", "oneOf", "title", "description", "default", "examples")
        schemas: list[JsonValue] = [{"allOf": [variant, beside]} if beside else variant for variant in variants]
        plain = [self._shapes.plain(variant) for variant in variants]
        name, constants = self._discriminator(plain)
        built = schemas
        if _tag(node) == name != "":
            # Parsers of tagged unions need the tag in every value, even if the schema does not require it.
            built = [{"allOf": [schema, {"required": [name]}]} for schema in schemas]
        if _is_whole(position):
            makers = [self._root_maker(schema) for schema in built]
        else:
            makers = [self._maker(schema, required=True, in_list=facts.in_list) for schema in built]
        labels = self._labels(plain, [_as_label(constant) for constant in constants])
        options = [Variant(*parts) for parts in zip(labels, schemas, makers, strict=True)]

        def rank(value: JsonValue) -> int:
            named = value.get(name) if isinstance(value, dict) and constants else None
            told = (index for index, constant in enumerate(constants) if same(constant, named))
            found = next(told, None)
            return self._nearest(schemas, value) if found is None else found

        return VariantField(facts, position, options=options, rank=rank)

    def _labels(self, plain: Sequence[JsonObject], constants: Sequence[str]) -> list[str]:
        """Return labels for variants: their titles, else their distinguishing constants, else their types."""
        labels: list[str] = []
        for index, node in enumerate(plain):
            title = node.get("title")
            own = title if isinstance(title, str) and title.strip() else ""
            label = own or (constants[index] if constants else "") or _type_name(self._label(self._collapse(node)[0]))
            if label == "object" and len(plain) > 1:
                label = _object_label(node, [other for other in plain if other is not node])
            before = labels.count(label)
            labels.append(f"{label} {index + 1}" if before else label)
        return labels

    def _discriminator(self, plain: Sequence[JsonObject]) -> tuple[str, list[JsonValue]]:
        """Return the property with a distinct constant in each variant, and the constants."""
        found: list[dict[str, JsonValue]] = []
        for node in plain:
            properties = node.get("properties")
            fixed = {name: _only_value(self._shapes.plain(schema)) for name, schema in _items(properties)}
            found.append({name: value[0] for name, value in fixed.items() if value})
        for name in found[0] if found else ():
            values = [constants[name] for constants in found if name in constants]
            if len(values) == len(plain) == len({write(value) for value in values}):
                return name, values
        return "", []

    def _nearest(self, schemas: Sequence[JsonValue], value: JsonValue) -> int:
        """Return the index of the variant that a value fits or violates least."""
        fitting = (index for index, schema in enumerate(schemas) if self._validator.fits(schema, value))
        found = next(fitting, None)
        if found is not None:
            return found
        return min(range(len(schemas)), key=lambda index: self._distance(schemas[index], value))

    def _distance(self, schema: JsonValue, value: JsonValue) -> tuple[bool, int]:
        node, nullable = self._collapse(self._shapes.plain(schema))
        kinds = meant_types(node)
        other_kind = bool(kinds) and not _has_type(value, kinds) and not (value is None and nullable)
        faults = self._validator.faults_within(schema, value, "")
        properties = node.get("properties")
        named = properties if isinstance(properties, dict) else {}
        given = value if isinstance(value, dict) else {}
        beyond = sum(name not in named for name in given) if named else 0
        others = sum(_differs(self._shapes.plain(named[name]), given[name]) for name in given if name in named)
        return other_kind, len(faults) + beyond + _OTHER_CONSTANT * others

    def _is_object(self, schema: JsonValue) -> bool:
        node = self._shapes.plain(schema)
        return "properties" in node or "additionalProperties" in node or bool(self._shapes.variants(node))

    def _is_plain(self, schema: JsonValue) -> bool:
        node = self._shapes.plain(schema)
        return not ({"enum", "const", "anyOf", "oneOf"} & node.keys()) and not is_null(node)

    # --- Listed values ---

    def _fixed(self, node: JsonObject, facts: FieldFacts, position: FieldPosition) -> Field | None:
        """Build the field of a schema that lists its values, or return None."""
        if "const" in node:
            value = node["const"]
            options = () if value is None else _options([(value, None)])
            return ConstField(facts.but(nullable=value is None, type_label="constant"), position, options=options)
        listed = self._listed(node)
        if listed is None:
            return None
        kinds = [name for name in types(node) if name != "null"]
        fitting = [one for one in listed if one[0] is not None and _has_type(one[0], kinds)]
        if not fitting and not facts.nullable:
            return JsonField(facts.but(reason="the schema allows no value"), position)
        return ChoiceField(facts, position, options=_options(fitting))

    def _listed(self, node: JsonObject) -> list[tuple[JsonValue, str | None]] | None:
        """Return the listed values with their titles, from `enum` or from variants of one value each."""
        values = node.get("enum")
        if isinstance(values, list):
            names = node.get("enumNames")
            titles = names if isinstance(names, list) and len(names) == len(values) else [None] * len(values)
            return [
                (value, title if isinstance(title, str) else None) for value, title in zip(values, titles, strict=True)
            ]
        variants = self._shapes.variants(node)
        listed: list[tuple[JsonValue, str | None]] = []
        for variant in map(self._shapes.plain, variants):
            title = variant.get("title")
            inner = variant.get("enum")
            if "const" in variant:
                listed.append((variant["const"], title if isinstance(title, str) else None))
            elif isinstance(inner, list):
                listed.extend((value, None) for value in inner)
            else:
                return None
        return listed if variants else None

    # --- Values of one type ---

    def _typed(self, node: JsonObject, facts: FieldFacts, position: FieldPosition) -> Field:
        match _kinds(meant_types(node)):
            case ["string"]:
                return _text_field(node, facts, position)
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

    def _anything(self, facts: FieldFacts, position: FieldPosition) -> Field:
        """Build the field of a schema without a type."""
        flaw = self._shapes.flaw(facts.schema)
        if flaw:
            return JsonField(facts.but(reason=flaw), position)
        options = [
            Variant(_type_name(self._label(schema)), schema, self._maker(schema, in_list=facts.in_list))
            for schema in _ANYTHING
        ]
        return VariantField(facts.but(nullable=True), position, options=options, rank=_kind_of)

    def _list_field(self, node: JsonObject, facts: FieldFacts, position: FieldPosition) -> Field:
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
        node, nullable = self._collapse(self._shapes.plain(items))
        listed = None if nullable or "const" in node else self._listed(node)
        kinds = [name for name in types(node) if name != "null"]
        return _options([one for one in listed or () if one[0] is not None and _has_type(one[0], kinds)])

    def _tuple(
        self, node: JsonObject, fixed: list[JsonValue], further: JsonValue, facts: FieldFacts, position: FieldPosition
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

    def _object(self, node: JsonObject, facts: FieldFacts, position: FieldPosition) -> Field:
        if node.get("properties") or node.get("required") or _is_closed(node):
            return self._section(node, facts, position)
        return self._entries(node, facts, position, frozenset())

    def _section(self, node: JsonObject, facts: FieldFacts, position: FieldPosition) -> SectionField:
        properties, listed = node.get("properties"), node.get("required")
        named = properties if isinstance(properties, dict) else {}
        required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        makers = {name: self._maker(schema, required=name in required) for name, schema in named.items()}
        for name in required:
            if name not in makers:
                said = "the schema requires it without describing it"
                makers[name] = self._maker(self._additional(node, name), required=True, reason=said)
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
        label = self._map_label(node, 0)
        return self._entries(node, FieldFacts(schema={}, label="other arguments", type_label=label), position, taken)

    def _entries(self, node: JsonObject, facts: FieldFacts, position: FieldPosition, taken: frozenset[str]) -> MapField:
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
        listed = self._listed(self._shapes.plain(names)) if isinstance(names, dict) else None
        return tuple(value for value, _ in listed or () if isinstance(value, str) and value not in taken)

    def _additional(self, node: JsonObject, name: str) -> JsonValue:
        """Return the schema of an additional property, or `{}` to keep the value of a forbidden one."""
        patterns = node.get("patternProperties")
        matching = [
            schema
            for expression, schema in (patterns.items() if isinstance(patterns, dict) else ())
            if occurs(expression, name)
        ]
        if matching:
            return matching[0] if len(matching) == 1 else {"allOf": [*matching]}
        further = node.get("additionalProperties", True)
        return {} if further is False or further is True else further

    # --- Labels ---

    def _label(self, node: JsonObject, depth: int = 0) -> str:
        """Return the type of a schema without null, in a few words."""
        if "const" in node:
            return "constant"
        if self._listed(node) is not None:
            return "choice"
        variants = [one for one in self._shapes.variants(node) if not self._shapes.is_rule(one)]
        only = self._only_kind(variants) if len(variants) > 1 else None
        if len(variants) > 1 and only is None and depth > _MAX_LABEL_DEPTH:
            return f"one of {len(variants)} kinds"
        inner = [self._label_of(one, depth + 1) for one in variants] if len(variants) > 1 and only is None else []
        names = _kinds(inner) or ([only] if only is not None else None) or _kinds(meant_types(node))
        said = list(dict.fromkeys(_type_name(name) if len(set(names)) > 1 else name for name in names))
        if len(said) > 1:
            return " or ".join(said) if len(said) <= _MOST_LISTED else f"one of {len(said)} kinds"
        if said == ["array"]:
            return self._list_label(node, depth)
        if said == ["object"] and not inner:
            return self._map_label(node, depth) if not node.get("properties") else "object"
        if said == ["string"]:
            return f"string · {node['format']}" if isinstance(node.get("format"), str) else "string"
        return said[0] if said else "null" if types(node) == ["null"] else "any"

    def _label_of(self, schema: JsonValue, depth: int) -> str:
        plain = self._shapes.plain(schema)
        key = id(plain), depth
        if key not in self._known_labels:
            node, nullable = self._collapse(plain)
            self._known_labels[key] = plain, with_null(self._label(node, depth), nullable)
        return self._known_labels[key][1]

    def _list_label(self, node: JsonObject, depth: int) -> str:
        items = node.get("items")
        fixed = node.get("prefixItems", items if isinstance(items, list) else None)
        if isinstance(fixed, list) and fixed:
            return f"list of {len(fixed)}"
        if depth > _MAX_LABEL_DEPTH or items is None or is_free(items):
            return "list"
        return of("list", self._label_of(items, depth + 1))

    def _map_label(self, node: JsonObject, depth: int) -> str:
        values = node.get("additionalProperties", True)
        if "patternProperties" in node or values is False or is_free(values) or depth > _MAX_LABEL_DEPTH:
            return "object"
        return of("map", self._label_of(values, depth + 1))

    def _maker(self, schema: JsonValue, *, required: bool = True, in_list: bool = False, reason: str = "") -> Maker:
        return lambda position: self.field(schema, position, required=required, in_list=in_list, reason=reason)

    def _root_maker(self, schema: JsonValue) -> Maker:
        return lambda position: self._root_field(schema, position)

    def _root_field(self, schema: JsonValue, position: FieldPosition) -> Field:
        """Build the field of the whole argument object, or of one of its variants."""
        node = self._shapes.plain(schema)
        facts = facts_of(node, schema, "", required=True, nullable=False, in_list=False)
        variants = [one for one in self._flattened(self._shapes.variants(node), {id(node)}) if self._is_object(one)]
        if len(variants) > 1 and _unions_around(position) <= _MAX_UNION_DEPTH:
            return self._variants(node, variants, facts, position)
        if len(variants) == 1:
            node = merge(without(node, "anyOf", "oneOf"), self._shapes.plain(variants[0]))
        return self._section(node, facts, position)


def _items(properties: JsonValue) -> Iterable[tuple[str, JsonValue]]:
    return properties.items() if isinstance(properties, dict) else ()


def _only_value(node: JsonObject) -> tuple[JsonValue, ...]:
    """Return the only allowed value other than null, as the only item, or nothing if there are several."""
    listed = node.get("enum")
    values = [node["const"]] if "const" in node else listed if isinstance(listed, list) else []
    return () if len(values) != 1 or values[0] is None else (values[0],)


def _tag(node: JsonObject) -> JsonValue:
    """Return the property that distinguishes a union's variants, from OpenAPI's `discriminator`."""
    told = node.get("discriminator")
    return told.get("propertyName") if isinstance(told, dict) else None


def _object_label(node: JsonObject, others: Sequence[JsonObject]) -> str:
    """Return a label for an object from the first property that only it has, preferably a required one."""
    known = {name for other in others for name, _ in _items(other.get("properties"))}
    own = [name for name, _ in _items(node.get("properties")) if name.strip() and name not in known]
    required = node.get("required")
    needed = [name for name in own if isinstance(required, list) and name in required]
    return next((f"object with {name}" for name in [*needed, *own]), "object")


def _as_label(value: JsonValue) -> str:
    return value if isinstance(value, str) and value.strip() else write(value)


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


def _kinds(names: list[str]) -> list[str]:
    """Return the types other than null, without `integer` if `number` is among them."""
    return [name for name in names if name != "null" and not (name == "integer" and "number" in names)]


def _differs(node: JsonObject, value: JsonValue) -> bool:
    """Return True if the schema allows one value and this is another."""
    return any(not same(only, value) for only in _only_value(node))


def _is_closed(node: JsonObject) -> bool:
    return node.get("additionalProperties") is False and "patternProperties" not in node


def _has_type(value: JsonValue, kinds: list[str]) -> bool:
    """Return True if a value has one of the types, or if there are none."""
    if not kinds:
        return True
    match value:
        case None:
            return "null" in kinds
        case bool():
            return "boolean" in kinds
        case int():
            return "integer" in kinds or "number" in kinds
        case float():
            return "number" in kinds or ("integer" in kinds and value.is_integer())
        case str():
            return "string" in kinds
        case list():
            return "array" in kinds
        case _:
            return "object" in kinds


def _kind_of(value: JsonValue) -> int:
    """Return the index of a value's type in a field of any type."""
    kinds = [str(schema["type"]) for schema in _ANYTHING]
    return next((index for index, kind in enumerate(kinds) if _has_type(value, [kind])), 0)


def _options(listed: list[tuple[JsonValue, str | None]]) -> tuple[Option, ...]:
    clear = all(isinstance(value, str) and value == value.strip() != "" for value, _ in listed)
    return tuple(
        Option(title or (value if clear and isinstance(value, str) else write(value)), value) for value, title in listed
    )


def _text_field(node: JsonObject, facts: FieldFacts, position: FieldPosition) -> TextField:
    secret = is_secret(node, position.name)
    return TextField(
        facts,
        position,
        secret=secret,
        multiline=not secret and not facts.in_list and is_long(node, position.name),
        picks="" if secret else picks(node, position.name),
    )


def _type_name(label: str) -> str:
    """Return the name of a type within a label."""
    return {"array": "list", "string": "text"}.get(label, label)
