"""What all our models have in common."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object as Python has it."""


class Model(BaseModel):
    """A frozen model: attributes in snake_case, JSON in camelCase, nothing unknown taken."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        ser_json_inf_nan="strings",
    )
