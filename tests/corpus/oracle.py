"""Validation results of the library itself, computed without the code under test.

Schemas come from outside and are not validated before they are read here, hence `Any`.
"""

from __future__ import annotations

from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError

ErrorPath = tuple[str, bool]
"""Path of an error, and whether an error below it is accepted too."""


def pointer(*steps: Any) -> str:
    """Return a JSON Pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def error_paths(schema: Any, arguments: Any) -> list[ErrorPath] | None:
    """Return the expected paths of errors from the library, or None if it can't use the schema."""
    dialect = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        return [found for error in dialect(schema).iter_errors(arguments) for found in paths_of(error)]
    except (jsonschema.exceptions.UnknownType, TypeError):
        return None


def paths_of(error: ValidationError) -> list[ErrorPath]:
    """Return the expected paths for one error of the library."""
    path, rule, value, around = _parts(error)
    match error.validator:
        case "required":
            return [(path + pointer(name), False) for name in rule if name not in value]
        case "additionalProperties":
            known = around.get("properties", {})
            return [(path + pointer(name), False) for name in value if name not in known]
        case "propertyNames" | "dependentRequired" | "anyOf" | "oneOf":
            return [(path, True)]
        case "pattern" if not is_invalid_value(error):
            return [(path + pointer(value), False)]  # an invalid name
    return [(path, False)]


def _parts(error: ValidationError) -> tuple[str, Any, Any, Any]:
    return pointer(*error.absolute_path), error.validator_value, error.instance, error.schema


def is_invalid_value(error: ValidationError) -> bool:
    """Return True if a value is invalid. For an invalid name, the library reports the path of the object around it."""
    return "propertyNames" not in error.absolute_schema_path


def prefilled(schema: dict[str, Any], root: dict[str, Any], path: str) -> tuple[dict[str, Any], list[str]]:
    """Return the required constants and valid defaults of an object, and the paths of other required values."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    sent: dict[str, Any] = {}
    missing: list[str] = []
    for name in required if isinstance(required, list) else []:
        inner = followed(properties.get(name, {}), root)
        inner_path = path + pointer(name)
        if "const" in inner:
            sent[name] = inner["const"]
        elif "default" in inner and jsonschema.Draft202012Validator({**root, **inner}).is_valid(inner["default"]):
            sent[name] = inner["default"]
        elif isinstance(inner.get("properties"), dict) and not {"anyOf", "oneOf"} & inner.keys():
            further, unknown = prefilled(inner, root, inner_path)
            if further:
                sent[name] = further
            missing += unknown if further else [inner_path]
        else:
            missing.append(inner_path)
    return sent, missing


def followed(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its local reference resolved."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    found: Any = root
    for step in reference.split("/")[1:]:
        found = found[step] if isinstance(found, dict) and step in found else {}
    return {**(followed(found, root) if isinstance(found, dict) else {}), **schema}
