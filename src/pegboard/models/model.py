"""Base class of the data types."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object."""


class DataModel(BaseModel):
    """A frozen model: snake_case attributes, camelCase JSON, no unknown fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        ser_json_inf_nan="strings",
        defer_build=True,  # Most commands use few of the types.
    )


def as_json(model: BaseModel) -> JsonObject:
    """Return a model of a protocol as JSON, without values that are None."""
    plain: JsonObject = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain
