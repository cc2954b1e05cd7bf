"""Preparation of the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from pegboard.data.pointer import pointer
from pegboard.errors import FormFaults
from pegboard.models import Fault, JsonObject, ToolSpec
from pegboard.schema.validation import validator


def prepare(spec: ToolSpec, args: JsonObject) -> JsonObject:
    """Resolve the aliases of parameters, add the defaults of required parameters, and validate.

    The tool itself has the defaults of optional parameters.

    Args:
        spec: Tool.
        args: Arguments of the caller; not changed.

    Returns:
        The arguments by parameter name in the same order, followed by the added defaults.

    Raises:
        FormFaults: The arguments don't match the schema, or two of them are the same parameter. It lists all validation
            errors.
    """
    prepared: JsonObject = {}
    given_as: dict[str, str] = {}
    faults: list[Fault] = []
    for name, value in args.items():
        parameter = spec.parameter_aliases.get(name, name)
        if parameter in given_as:
            first = given_as[parameter]
            faults.append(Fault(path=pointer(name), message=f"is an alias of `{first}`, which is also set"))
            continue
        given_as[parameter] = name
        prepared[parameter] = value
    prepared.update(_missing_defaults(spec.input_schema, prepared))
    faults.extend(validator(spec.input_schema).faults(prepared))
    if faults:
        raise FormFaults(faults)
    return prepared


def by_parameter(args: JsonObject, aliases: Mapping[str, str]) -> JsonObject:
    """Return arguments by parameter name; an alias of a parameter that is also set keeps its name.

    Args:
        args: Arguments; not changed.
        aliases: Other names of parameters: alias → parameter.
    """
    found: JsonObject = {}
    for name, value in args.items():
        parameter = aliases.get(name, name)
        found[name if parameter in args or parameter in found else parameter] = value
    return found


def _missing_defaults(schema: JsonObject, args: JsonObject) -> JsonObject:
    """Return the defaults of required properties that are missing in the arguments."""
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict):
        return {}
    missing = {name: properties.get(name) for name in required if isinstance(name, str) and name not in args}
    return {
        name: deepcopy(described["default"])
        for name, described in missing.items()
        if isinstance(described, dict) and "default" in described
    }
