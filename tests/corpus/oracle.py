"""What the validation library itself says of schemas, read without any of our code.

Schemas come from outside and are read here before anything has checked them, hence `Any`.
"""

from __future__ import annotations

from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError

Place = tuple[str, bool]
"""The path of a fault, and whether one below it will do as well."""


def pointer(*steps: Any) -> str:
    """Gives a JSON Pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def faulty_places(schema: Any, arguments: Any) -> list[Place] | None:
    """Tells from the library's own errors where the faults are; None where it can't use the schema."""
    dialect = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        return [place for error in dialect(schema).iter_errors(arguments) for place in places_of(error)]
    except (jsonschema.exceptions.UnknownType, TypeError):
        return None


def places_of(error: ValidationError) -> list[Place]:
    """Tells where the faults of one error of the library are."""
    path, rule, value, around = _parts(error)
    match error.validator:
        case "required":
            return [(path + pointer(name), False) for name in rule if name not in value]
        case "additionalProperties":
            known = around.get("properties", {})
            return [(path + pointer(name), False) for name in value if name not in known]
        case "propertyNames" | "dependentRequired" | "anyOf" | "oneOf":
            return [(path, True)]
        case "pattern" if not is_of_value(error):
            return [(path + pointer(value), False)]  # a name, not a value
    return [(path, False)]


def _parts(error: ValidationError) -> tuple[str, Any, Any, Any]:
    return pointer(*error.absolute_path), error.validator_value, error.instance, error.schema


def is_of_value(error: ValidationError) -> bool:
    """Whether what is wrong is a value: the library gives a wrong name the path of the object around."""
    return "propertyNames" not in error.absolute_schema_path


def known_beforehand(schema: dict[str, Any], root: dict[str, Any], path: str) -> tuple[dict[str, Any], list[str]]:
    """Tells what required constants and valid defaults of an object are, and what else is required."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    sent: dict[str, Any] = {}
    missing: list[str] = []
    for name in required if isinstance(required, list) else []:
        inner = followed(properties.get(name, {}), root)
        place = path + pointer(name)
        if "const" in inner:
            sent[name] = inner["const"]
        elif "default" in inner and jsonschema.Draft202012Validator({**root, **inner}).is_valid(inner["default"]):
            sent[name] = inner["default"]
        elif isinstance(inner.get("properties"), dict) and not {"anyOf", "oneOf"} & inner.keys():
            further, unknown = known_beforehand(inner, root, place)
            if further:
                sent[name] = further
            missing += unknown if further else [place]
        else:
            missing.append(place)
    return sent, missing


def followed(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Gives a schema with its local reference followed."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    found: Any = root
    for step in reference.split("/")[1:]:
        found = found[step] if isinstance(found, dict) and step in found else {}
    return {**(followed(found, root) if isinstance(found, dict) else {}), **schema}
