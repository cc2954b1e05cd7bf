"""From a JSON Schema to fields: which kind of field fits a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from pegboard.forms.containers import (
    ListField,
    Maker,
    MapField,
    MultiChoiceField,
    SectionField,
    TupleField,
    Variant,
    VariantField,
)
from pegboard.forms.fields import (
    ChoiceField,
    ConstField,
    Facts,
    Field,
    JsonField,
    NumberField,
    Option,
    Place,
    SwitchField,
    TextField,
)
from pegboard.forms.json_text import same, write
from pegboard.forms.labels import facts_of, is_long, is_secret, of, picks, with_null
from pegboard.forms.shapes import Shapes, is_free, is_null, meant_types, merge, types, without
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
_MOST_SAID = 4
"""Kinds of value that are told one by one."""
_OTHER_CONSTANT = 8
"""Faults that the constant of another variant weighs as much as."""
_DEEPEST_LABEL = 2
"""Lists in lists whose items are told of, and choices in choices."""
_MOST_UNIONS = 8
"""Choices whose variant is a choice, one in the other; a schema may have itself to choose from without end."""


class Builder:
    """Builds fields for the parts of one schema.

    Args:
        validator: What has mended the schema and follows its references.
    """

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._shapes = Shapes(validator)
        self._known_labels: dict[tuple[int, int], tuple[JsonObject, str]] = {}
        """Id of a plain schema and depth → the schema, so that the id stays its own, and its label."""
        self._known_collapsed: dict[int, tuple[JsonObject, tuple[JsonObject, bool]]] = {}
        """Id of a plain schema → the schema, and what is left of it without null."""

    def root(self) -> Field:
        """Builds the field of the whole argument object."""
        return self._whole(self._validator.schema, Place())

    def field(
        self, schema: JsonValue, place: Place, *, required: bool, in_list: bool = False, reason: str = ""
    ) -> Field:
        """Builds the field for a property, a row or an entry.

        Args:
            schema: Its schema, a part of the validator's.
            place: Where it stands.
            required: Whether it must be sent.
            in_list: Whether it is a row or an entry, which is there because somebody added it.
            reason: What is to be said of it beyond what its schema says.
        """
        node, nullable = self._collapse(self._shapes.plain(schema))
        facts = facts_of(node, schema, place.name, required=required, nullable=nullable, in_list=in_list)
        facts = facts.but(reason=reason, type_label=with_null(self._label(node), nullable))
        return self._fixed(node, facts, place) or self._union(node, facts, place) or self._typed(node, facts, place)

    def property_schema(self, schema: JsonValue, name: str) -> JsonValue:
        """Gives the schema of a property of an object, named by the object's schema or not.

        Args:
            schema: The object's schema, a part of the validator's.
            name: The property's name.
        """
        node = self._shapes.plain(schema)
        properties = node.get("properties")
        if isinstance(properties, dict) and name in properties:
            return properties[name]
        return self._beyond(node, name)

    # --- Unions ---

    def _collapse(self, node: JsonObject) -> tuple[JsonObject, bool]:
        """Takes null out of a plain schema, and a union that is left with one variant; says whether null was in it."""
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
            variants = self._flat(written, set())
            others = [variant for variant in variants if not is_null(self._shapes.plain(variant))]
            with_nothing = len(others) < len(variants)
            if len(others) == 1 and not self._shapes.is_rule(others[0]) and depth < _MOST_UNIONS:
                merged = merge(without(node, keyword), self._shapes.plain(others[0]))
                inner, inner_nullable = self._collapsed(merged, depth + 1)
                return inner, with_nothing or inner_nullable
            if (others and len(others) < len(written)) or len(variants) > len(written):
                node, nullable = {**node, keyword: [*others]}, nullable or with_nothing
        return node, nullable

    def _flat(self, variants: list[JsonValue], seen: set[int]) -> list[JsonValue]:
        """Takes the variants out of those variants that are nothing but unions themselves; each once."""
        found: list[JsonValue] = []
        for variant in variants:
            inner = self._shapes.plain(variant)
            if id(inner) in seen:
                continue
            if isinstance(variant, dict):
                seen.add(id(inner))
            nested = self._shapes.variants(inner)
            if nested and inner.keys() <= {"anyOf", "oneOf", "title", "description"}:
                found += self._flat(nested, seen)
            else:
                found.append(variant)
        return found

    def _union(self, node: JsonObject, facts: Facts, place: Place) -> Field | None:
        """Builds the field of a schema with several kinds of value; None if there is one kind only."""
        variants = [one for one in self._shapes.variants(node) if not self._shapes.is_rule(one)]
        if len(variants) > 1:
            kind = self._only_kind(variants)
            if kind is not None:
                return self._typed({**node, "type": kind}, facts, place)
            if _unions_around(place) > _MOST_UNIONS:
                return JsonField(facts.but(reason="the schema is a choice that has itself to choose"), place)
            return self._variants(node, variants, facts, place)
        names = _kinds(types(node))
        if len(names) > 1:
            parts: list[JsonValue] = [{"type": name} for name in names]
            return self._variants(without(node, "type"), parts, facts, place)
        return None

    def _only_kind(self, variants: list[JsonValue]) -> str | None:
        """Gives the type that all variants have, where one text or number field does for all of them."""
        if not all(self._is_plain(one) for one in variants):
            return None
        kinds = {tuple(meant_types(self._shapes.plain(one))) for one in variants}
        if kinds == {("string",)}:
            return "string"
        if kinds <= {("integer",), ("number",)}:
            return "integer" if kinds == {("integer",)} else "number"
        return None

    def _variants(self, node: JsonObject, variants: list[JsonValue], facts: Facts, place: Place) -> VariantField:
        """Builds a choice of variants; what stands beside the union holds for each of them."""
        beside = without(node, "anyOf", "oneOf", "title", "description", "default", "examples")
        schemas: list[JsonValue] = [{"allOf": [variant, beside]} if beside else variant for variant in variants]
        plain = [self._shapes.plain(variant) for variant in variants]
        name, constants = self._discriminator(plain)
        built = schemas
        if _tag(node) == name != "":
            # Whoever reads the union by its tag needs that in every value, required or not.
            built = [{"allOf": [schema, {"required": [name]}]} for schema in schemas]
        if _is_whole(place):
            makers = [self._whole_maker(schema) for schema in built]
        else:
            makers = [self._maker(schema, required=True, in_list=facts.in_list) for schema in built]
        labels = self._labels(plain, [_as_label(constant) for constant in constants])
        options = [Variant(*parts) for parts in zip(labels, schemas, makers, strict=True)]

        def rank(value: JsonValue) -> int:
            named = value.get(name) if isinstance(value, dict) and constants else None
            told = (index for index, constant in enumerate(constants) if same(constant, named))
            found = next(told, None)
            return self._nearest(schemas, value) if found is None else found

        return VariantField(facts, place, options=options, rank=rank)

    def _labels(self, plain: Sequence[JsonObject], constants: Sequence[str]) -> list[str]:
        """Gives what variants are called: by their title, by the constant that tells them apart, else by their type."""
        labels: list[str] = []
        for index, node in enumerate(plain):
            title = node.get("title")
            own = title if isinstance(title, str) and title.strip() else ""
            label = own or (constants[index] if constants else "") or _in_words(self._label(self._collapse(node)[0]))
            if label == "object" and len(plain) > 1:
                label = _object_label(node, [other for other in plain if other is not node])
            before = labels.count(label)
            labels.append(f"{label} {index + 1}" if before else label)
        return labels

    def _discriminator(self, plain: Sequence[JsonObject]) -> tuple[str, list[JsonValue]]:
        """Gives the property that has a constant of its own in each variant, and the constants; nothing if none has."""
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
        """Gives the variant that a value fits, else the one from which it is least far."""
        fitting = (index for index, schema in enumerate(schemas) if self._validator.fits(schema, value))
        found = next(fitting, None)
        if found is not None:
            return found
        return min(range(len(schemas)), key=lambda index: self._distance(schemas[index], value))

    def _distance(self, schema: JsonValue, value: JsonValue) -> tuple[bool, int]:
        node, nullable = self._collapse(self._shapes.plain(schema))
        kinds = meant_types(node)
        other_kind = bool(kinds) and not _is_of(value, kinds) and not (value is None and nullable)
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

    # --- Values that are listed ---

    def _fixed(self, node: JsonObject, facts: Facts, place: Place) -> Field | None:
        """Builds the field of a schema that lists its values; None if it doesn't."""
        if "const" in node:
            value = node["const"]
            options = () if value is None else _options([(value, None)])
            return ConstField(facts.but(nullable=value is None, type_label="constant"), place, options=options)
        listed = self._listed(node)
        if listed is None:
            return None
        kinds = [name for name in types(node) if name != "null"]
        fitting = [one for one in listed if one[0] is not None and _is_of(one[0], kinds)]
        if not fitting and not facts.nullable:
            return JsonField(facts.but(reason="the schema allows no value"), place)
        return ChoiceField(facts, place, options=_options(fitting))

    def _listed(self, node: JsonObject) -> list[tuple[JsonValue, str | None]] | None:
        """Gives the values that a schema lists, each with its title, whether as `enum` or as variants of one value."""
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

    def _typed(self, node: JsonObject, facts: Facts, place: Place) -> Field:
        match _kinds(meant_types(node)):
            case ["string"]:
                return _text_field(node, facts, place)
            case ["integer" | "number" as kind]:
                return NumberField(facts, place, integer=kind == "integer")
            case ["boolean"]:
                return SwitchField(facts, place)
            case ["array"]:
                return self._list_field(node, facts, place)
            case ["object"]:
                return self._object(node, facts, place)
        if types(node) == ["null"]:
            return ConstField(facts.but(nullable=True), place, options=())
        return self._anything(facts, place)

    def _anything(self, facts: Facts, place: Place) -> Field:
        """Builds the field of a schema that says nothing of the type."""
        flaw = self._shapes.flaw(facts.schema)
        if flaw:
            return JsonField(facts.but(reason=flaw), place)
        options = [
            Variant(_in_words(self._label(schema)), schema, self._maker(schema, in_list=facts.in_list))
            for schema in _ANYTHING
        ]
        return VariantField(facts.but(nullable=True), place, options=options, rank=_kind_of)

    def _list_field(self, node: JsonObject, facts: Facts, place: Place) -> Field:
        items = node.get("items")
        fixed = node.get("prefixItems", items if isinstance(items, list) else None)
        further = node.get("additionalItems") if isinstance(items, list) else items
        if isinstance(fixed, list) and fixed:
            return self._tuple(node, fixed, further, facts, place)
        options = self._picks(further)
        if options:
            return MultiChoiceField(facts, place, options=options, allows_twice=node.get("uniqueItems") is not True)
        row = None if further is False else self._maker(further if further is not None else {}, in_list=True)
        return ListField(facts, place, make_row=row)

    def _picks(self, items: JsonValue) -> tuple[Option, ...]:
        """Gives the values of which a list is made; none where the items are not such values."""
        node, nullable = self._collapse(self._shapes.plain(items))
        listed = None if nullable or "const" in node else self._listed(node)
        kinds = [name for name in types(node) if name != "null"]
        return _options([one for one in listed or () if one[0] is not None and _is_of(one[0], kinds)])

    def _tuple(
        self, node: JsonObject, fixed: list[JsonValue], further: JsonValue, facts: Facts, place: Place
    ) -> TupleField:
        least, most = node.get("minItems"), node.get("maxItems")
        needed = least if isinstance(least, int) else 0
        full = isinstance(most, int) and most <= len(fixed)
        return TupleField(
            facts,
            place,
            source=fixed,
            makers=[self._maker(schema, required=index < needed) for index, schema in enumerate(fixed)],
            make_row=None if further is False or further is None or full else self._maker(further, in_list=True),
            spare=self._maker({}, in_list=True),
            validator=self._validator,
        )

    def _object(self, node: JsonObject, facts: Facts, place: Place) -> Field:
        if node.get("properties") or node.get("required") or _is_closed(node):
            return self._section(node, facts, place)
        return self._entries(node, facts, place, frozenset())

    def _section(self, node: JsonObject, facts: Facts, place: Place) -> SectionField:
        properties, listed = node.get("properties"), node.get("required")
        named = properties if isinstance(properties, dict) else {}
        required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        makers = {name: self._maker(schema, required=name in required) for name, schema in named.items()}
        for name in required:
            if name not in makers:
                said = "the schema requires it and says no more of it"
                makers[name] = self._maker(self._beyond(node, name), required=True, reason=said)
        further = node.get("additionalProperties")
        return SectionField(
            facts,
            place,
            source=named,
            makers=makers,
            rest=lambda inner, taken: self._rest(node, inner, taken),
            is_open=further not in (None, False) or "patternProperties" in node,
            validator=self._validator,
        )

    def _rest(self, node: JsonObject, place: Place, taken: frozenset[str]) -> MapField:
        label = self._map_label(node, 0)
        return self._entries(node, Facts(schema={}, label="other arguments", type_label=label), place, taken)

    def _entries(self, node: JsonObject, facts: Facts, place: Place, taken: frozenset[str]) -> MapField:
        return MapField(
            facts,
            place,
            make=lambda inner: self.field(self._beyond(node, inner.name), inner, required=True, in_list=True),
            key_options=self._keys(node, taken),
            taken=taken,
            same_for_all="patternProperties" not in node,
        )

    def _keys(self, node: JsonObject, taken: frozenset[str]) -> tuple[str, ...]:
        names = node.get("propertyNames")
        listed = self._listed(self._shapes.plain(names)) if isinstance(names, dict) else None
        return tuple(value for value, _ in listed or () if isinstance(value, str) and value not in taken)

    def _beyond(self, node: JsonObject, name: str) -> JsonValue:
        """Gives the schema of a property that isn't named; of anything where none is allowed, so that it is kept."""
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

    # --- What they are called ---

    def _label(self, node: JsonObject, depth: int = 0) -> str:
        """Gives the type of a schema without null, in a few words."""
        if "const" in node:
            return "constant"
        if self._listed(node) is not None:
            return "choice"
        variants = [one for one in self._shapes.variants(node) if not self._shapes.is_rule(one)]
        only = self._only_kind(variants) if len(variants) > 1 else None
        if len(variants) > 1 and only is None and depth > _DEEPEST_LABEL:
            return f"one of {len(variants)} kinds"
        inner = [self._label_of(one, depth + 1) for one in variants] if len(variants) > 1 and only is None else []
        names = _kinds(inner) or ([only] if only is not None else None) or _kinds(meant_types(node))
        said = list(dict.fromkeys(_in_words(name) if len(set(names)) > 1 else name for name in names))
        if len(said) > 1:
            return " or ".join(said) if len(said) <= _MOST_SAID else f"one of {len(said)} kinds"
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
        if depth > _DEEPEST_LABEL or items is None or is_free(items):
            return "list"
        return of("list", self._label_of(items, depth + 1))

    def _map_label(self, node: JsonObject, depth: int) -> str:
        values = node.get("additionalProperties", True)
        if "patternProperties" in node or values is False or is_free(values) or depth > _DEEPEST_LABEL:
            return "object"
        return of("map", self._label_of(values, depth + 1))

    def _maker(self, schema: JsonValue, *, required: bool = True, in_list: bool = False, reason: str = "") -> Maker:
        return lambda place: self.field(schema, place, required=required, in_list=in_list, reason=reason)

    def _whole_maker(self, schema: JsonValue) -> Maker:
        return lambda place: self._whole(schema, place)

    def _whole(self, schema: JsonValue, place: Place) -> Field:
        """Builds the field of the whole argument object, or of one variant of it."""
        node = self._shapes.plain(schema)
        facts = facts_of(node, schema, "", required=True, nullable=False, in_list=False)
        variants = [one for one in self._flat(self._shapes.variants(node), {id(node)}) if self._is_object(one)]
        if len(variants) > 1 and _unions_around(place) <= _MOST_UNIONS:
            return self._variants(node, variants, facts, place)
        if len(variants) == 1:
            node = merge(without(node, "anyOf", "oneOf"), self._shapes.plain(variants[0]))
        return self._section(node, facts, place)


def _items(properties: JsonValue) -> Iterable[tuple[str, JsonValue]]:
    return properties.items() if isinstance(properties, dict) else ()


def _only_value(node: JsonObject) -> tuple[JsonValue, ...]:
    """Gives the only value that fits, other than null, as the only item; nothing where there is another."""
    listed = node.get("enum")
    values = [node["const"]] if "const" in node else listed if isinstance(listed, list) else []
    return () if len(values) != 1 or values[0] is None else (values[0],)


def _tag(node: JsonObject) -> JsonValue:
    """Gives the property by which a union is read, as OpenAPI's `discriminator` names it; None without one."""
    told = node.get("discriminator")
    return told.get("propertyName") if isinstance(told, dict) else None


def _object_label(node: JsonObject, others: Sequence[JsonObject]) -> str:
    """Gives the label of an object by the first property that no other variant has, a required one if there is."""
    known = {name for other in others for name, _ in _items(other.get("properties"))}
    own = [name for name, _ in _items(node.get("properties")) if name.strip() and name not in known]
    required = node.get("required")
    needed = [name for name in own if isinstance(required, list) and name in required]
    return next((f"object with {name}" for name in [*needed, *own]), "object")


def _as_label(value: JsonValue) -> str:
    return value if isinstance(value, str) and value.strip() else write(value)


def _is_whole(place: Place) -> bool:
    """Whether it is the whole argument object, or a variant of it."""
    outer = place.parent
    while isinstance(outer, VariantField):
        outer = outer.parent
    return outer is None


def _unions_around(place: Place) -> int:
    """Counts the choices of which this is a variant, one in the other."""
    outer, count = place.parent, 0
    while isinstance(outer, VariantField):
        outer, count = outer.parent, count + 1
    return count


def _kinds(names: list[str]) -> list[str]:
    """Gives the types that are not null; a number where integers are numbers too."""
    return [name for name in names if name != "null" and not (name == "integer" and "number" in names)]


def _differs(node: JsonObject, value: JsonValue) -> bool:
    """Whether a schema has one value, and that is another."""
    return any(not same(only, value) for only in _only_value(node))


def _is_closed(node: JsonObject) -> bool:
    return node.get("additionalProperties") is False and "patternProperties" not in node


def _is_of(value: JsonValue, kinds: list[str]) -> bool:
    """Whether a value is of one of the types, of which none stands for any."""
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
    """Gives the index of the kind of anything that a value is."""
    kinds = [str(schema["type"]) for schema in _ANYTHING]
    return next((index for index, kind in enumerate(kinds) if _is_of(value, [kind])), 0)


def _options(listed: list[tuple[JsonValue, str | None]]) -> tuple[Option, ...]:
    clear = all(isinstance(value, str) and value == value.strip() != "" for value, _ in listed)
    return tuple(
        Option(title or (value if clear and isinstance(value, str) else write(value)), value) for value, title in listed
    )


def _text_field(node: JsonObject, facts: Facts, place: Place) -> TextField:
    secret = is_secret(node, place.name)
    return TextField(
        facts,
        place,
        secret=secret,
        multiline=not secret and not facts.in_list and is_long(node, place.name),
        picks="" if secret else picks(node, place.name),
    )


def _in_words(label: str) -> str:
    """Gives the label of a type among others, where `string` would be a strange word."""
    return {"array": "list", "string": "text"}.get(label, label)
