"""Types of the parts of a schema, as a form shows them: unions, listed values and labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pegboard.data.json_text import same, write
from pegboard.forms.labels import container_label, with_null
from pegboard.forms.shapes import is_free, is_null, meant_types, merge, types, without

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.shapes import Shapes
    from pegboard.models import JsonObject
    from pegboard.schema.validation import Validator

MAX_UNION_DEPTH = 8
"""Maximum depth of directly nested unions. A schema can be a variant of itself."""
_MOST_LISTED = 4
"""Maximum number of types that a label lists by name."""
_OTHER_CONSTANT = 8
"""Weight of another variant's constant, in validation errors."""
_MAX_LABEL_DEPTH = 2
"""Maximum depth of nested lists and unions in a label."""


class SchemaTypes:
    """Reader of the types in one schema.

    Args:
        validator: Validator that repairs the schema and resolves its references.
        shapes: Simplifier of the same schema.
    """

    def __init__(self, validator: Validator, shapes: Shapes) -> None:
        self._validator = validator
        self._shapes = shapes
        self._known_labels: dict[tuple[int, int], tuple[JsonObject, str]] = {}
        """Id of a simplified schema and depth → the schema, which keeps the id valid, and its label."""
        self._known_collapsed: dict[int, tuple[JsonObject, tuple[JsonObject, bool]]] = {}
        """Id of a simplified schema → the schema, and its form without null."""

    def collapse(self, node: JsonObject) -> tuple[JsonObject, bool]:
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
            variants = self.flattened(written, set())
            others = [variant for variant in variants if not is_null(self._shapes.plain(variant))]
            with_nothing = len(others) < len(variants)
            if len(others) == 1 and not self._shapes.is_rule(others[0]) and depth < MAX_UNION_DEPTH:
                merged = merge(without(node, keyword), self._shapes.plain(others[0]))
                inner, inner_nullable = self._collapsed(merged, depth + 1)
                return inner, with_nothing or inner_nullable
            if (others and len(others) < len(written)) or len(variants) > len(written):
                node, nullable = {**node, keyword: [*others]}, nullable or with_nothing
        return node, nullable

    def flattened(self, variants: list[JsonValue], seen: set[int]) -> list[JsonValue]:
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
                found += self.flattened(nested, seen)
            else:
                found.append(variant)
        return found

    def only_type(self, variants: list[JsonValue]) -> str | None:
        """Return the type that all variants share if one text or number field can hold them all."""
        if not all(self._is_plain(one) for one in variants):
            return None
        kinds = {tuple(meant_types(self._shapes.plain(one))) for one in variants}
        if kinds == {("string",)}:
            return "string"
        if kinds <= {("integer",), ("number",)}:
            return "integer" if kinds == {("integer",)} else "number"
        return None

    def formats(self, node: JsonObject) -> list[str]:
        """Return the format of a text, or those of all variants of a text; nothing if a variant has none."""
        nodes = [node] if "format" in node else [self._shapes.plain(one) for one in self._shapes.variants(node)]
        found = [one.get("format") for one in nodes if not is_null(one)]
        formats = [one for one in found if isinstance(one, str)]
        return list(dict.fromkeys(formats)) if len(formats) == len(found) else []

    def is_object(self, schema: JsonValue) -> bool:
        """Return True if a variant describes an object."""
        node = self._shapes.plain(schema)
        return "properties" in node or "additionalProperties" in node or bool(self._shapes.variants(node))

    def _is_plain(self, schema: JsonValue) -> bool:
        node = self._shapes.plain(schema)
        return not ({"enum", "const", "anyOf", "oneOf"} & node.keys()) and not is_null(node)

    def listed_values(self, node: JsonObject) -> list[tuple[JsonValue, str | None]] | None:
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

    def discriminator(self, plain: Sequence[JsonObject]) -> tuple[str, list[JsonValue]]:
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

    def nearest(self, schemas: Sequence[JsonValue], value: JsonValue) -> int:
        """Return the index of the variant that a value fits or violates least."""
        fitting = (index for index, schema in enumerate(schemas) if self._validator.fits(schema, value))
        found = next(fitting, None)
        if found is not None:
            return found
        return min(range(len(schemas)), key=lambda index: self._distance(schemas[index], value))

    def _distance(self, schema: JsonValue, value: JsonValue) -> tuple[bool, int]:
        node, nullable = self.collapse(self._shapes.plain(schema))
        kinds = meant_types(node)
        other_kind = bool(kinds) and not has_type(value, kinds) and not (value is None and nullable)
        faults = self._validator.faults_within(schema, value, "")
        properties = node.get("properties")
        named = properties if isinstance(properties, dict) else {}
        given = value if isinstance(value, dict) else {}
        beyond = sum(name not in named for name in given) if named else 0
        others = sum(_differs(self._shapes.plain(named[name]), given[name]) for name in given if name in named)
        return other_kind, len(faults) + beyond + _OTHER_CONSTANT * others

    def variant_labels(self, plain: Sequence[JsonObject], constants: Sequence[JsonValue]) -> list[str]:
        """Return labels for variants: their titles, else their distinguishing constants, else their types."""
        labels: list[str] = []
        for index, node in enumerate(plain):
            title = node.get("title")
            own = title if isinstance(title, str) and title.strip() else ""
            label = (
                own
                or (_as_label(constants[index]) if constants else "")
                or type_name(self.label(self.collapse(node)[0]))
            )
            if label == "object" and len(plain) > 1:
                label = _object_label(node, [other for other in plain if other is not node])
            before = labels.count(label)
            labels.append(f"{label} {index + 1}" if before else label)
        return labels

    def label(self, node: JsonObject, depth: int = 0) -> str:
        """Return the type of a schema without null, in a few words."""
        if "const" in node:
            return "constant"
        if self.listed_values(node) is not None:
            return "choice"
        variants = [one for one in self._shapes.variants(node) if not self._shapes.is_rule(one)]
        only = self.only_type(variants) if len(variants) > 1 else None
        if len(variants) > 1 and only is None and depth > _MAX_LABEL_DEPTH:
            return f"one of {len(variants)} kinds"
        inner = [self._label_of(one, depth + 1) for one in variants] if len(variants) > 1 and only is None else []
        names = without_null(inner) or ([only] if only is not None else None) or without_null(meant_types(node))
        parts = list(dict.fromkeys(type_name(name) if len(set(names)) > 1 else name for name in names))
        if len(parts) > 1:
            return " or ".join(parts) if len(parts) <= _MOST_LISTED else f"one of {len(parts)} kinds"
        if parts == ["array"]:
            return self._list_label(node, depth)
        if parts == ["object"] and not inner:
            return self.map_label(node, depth) if not node.get("properties") else "object"
        if parts == ["string"]:
            return " · ".join(filter(None, ("string", " or ".join(self.formats(node)))))
        return parts[0] if parts else "null" if types(node) == ["null"] else "any"

    def _label_of(self, schema: JsonValue, depth: int) -> str:
        plain = self._shapes.plain(schema)
        key = id(plain), depth
        if key not in self._known_labels:
            node, nullable = self.collapse(plain)
            self._known_labels[key] = plain, with_null(self.label(node, depth), nullable)
        return self._known_labels[key][1]

    def _list_label(self, node: JsonObject, depth: int) -> str:
        items = node.get("items")
        fixed = node.get("prefixItems", items if isinstance(items, list) else None)
        if isinstance(fixed, list) and fixed:
            return f"list of {len(fixed)}"
        if depth > _MAX_LABEL_DEPTH or items is None or is_free(items):
            return "list"
        return container_label("list", self._label_of(items, depth + 1))

    def map_label(self, node: JsonObject, depth: int) -> str:
        """Return the type of a map in a few words."""
        values = node.get("additionalProperties", True)
        if "patternProperties" in node or values is False or is_free(values) or depth > _MAX_LABEL_DEPTH:
            return "object"
        return container_label("map", self._label_of(values, depth + 1))


def _items(properties: JsonValue) -> Iterable[tuple[str, JsonValue]]:
    return properties.items() if isinstance(properties, dict) else ()


def _only_value(node: JsonObject) -> tuple[JsonValue, ...]:
    """Return the only allowed value other than null, as the only item, or nothing if there are several."""
    listed = node.get("enum")
    values = [node["const"]] if "const" in node else listed if isinstance(listed, list) else []
    return () if len(values) != 1 or values[0] is None else (values[0],)


def _object_label(node: JsonObject, others: Sequence[JsonObject]) -> str:
    """Return a label for an object from the first property that only it has, preferably a required one."""
    known = {name for other in others for name, _ in _items(other.get("properties"))}
    own = [name for name, _ in _items(node.get("properties")) if name.strip() and name not in known]
    required = node.get("required")
    needed = [name for name in own if isinstance(required, list) and name in required]
    return next((f"object with {name}" for name in [*needed, *own]), "object")


def _as_label(value: JsonValue) -> str:
    return value if isinstance(value, str) and value.strip() else write(value)


def without_null(names: list[str]) -> list[str]:
    """Return the types other than null, without `integer` if `number` is among them."""
    return [name for name in names if name != "null" and not (name == "integer" and "number" in names)]


def _differs(node: JsonObject, value: JsonValue) -> bool:
    """Return True if the schema allows one value and this is another."""
    return any(not same(only, value) for only in _only_value(node))


def has_type(value: JsonValue, kinds: list[str]) -> bool:
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


def type_name(label: str) -> str:
    """Return the name of a type within a label."""
    return {"array": "list", "string": "text"}.get(label, label)
