"""Makes the arguments of a call ready for its tool."""

from __future__ import annotations

from copy import deepcopy

from pegboard.data.pointer import pointer
from pegboard.errors import FormFaults
from pegboard.models import Fault, JsonObject, ToolSpec
from pegboard.schema.validation import validator


def prepare(spec: ToolSpec, args: JsonObject) -> JsonObject:
    """Resolves other names of parameters, fills in what is required and has a default, and validates.

    The defaults of optional parameters are not filled in: the tool has them.

    Args:
        spec: The tool.
        args: The arguments as the caller gave them; not changed.

    Returns:
        The arguments by the names of the schema, in the order given, then the defaults filled in.

    Raises:
        FormFaults: One parameter came under two names, or the arguments don't fit the schema; all faults at once.
    """
    prepared: JsonObject = {}
    given_as: dict[str, str] = {}
    faults: list[Fault] = []
    for name, value in args.items():
        parameter = spec.parameter_aliases.get(name, name)
        if parameter in given_as:
            first = given_as[parameter]
            faults.append(Fault(path=pointer(name), message=f"is another name of `{first}`, which is given too"))
            continue
        given_as[parameter] = name
        prepared[parameter] = value
    prepared.update(_missing_defaults(spec.input_schema, prepared))
    faults.extend(validator(spec.input_schema).faults(prepared))
    if faults:
        raise FormFaults(faults)
    return prepared


def _missing_defaults(schema: JsonObject, args: JsonObject) -> JsonObject:
    """Gives the defaults of required properties that are not among the arguments."""
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, dict):
        return {}
    missing = {name: properties.get(name) for name in required if isinstance(name, str) and name not in args}
    return {
        name: deepcopy(described["default"])
        for name, described in missing.items()
        if isinstance(described, dict) and "default" in described
    }
