"""Rows of the corpus: schemas of tools with valid and invalid arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pegboard.models import JsonObject


@dataclass(frozen=True)
class Row:
    """One schema with its examples."""

    id: str
    schema: JsonValue
    valid: list[JsonObject]
    invalid: list[JsonObject]
    why: list[str]
    """Explanation of each invalid example; can be empty."""


def rows_of(file: Path) -> list[Row]:
    """Read the rows of a JSON Lines file."""
    read = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Row(one["id"], one["schema"], one["valid"], one["invalid"], one.get("invalid_why", [])) for one in read]
