"""Rows of the corpus: schemas of tools with valid and invalid arguments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
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


def with_every_feature(rows: Iterable[Row], file: Path, count: int) -> list[Row]:
    """Return the hard cases, and the first few real schemas with each feature.

    Args:
        rows: Real schemas and hard cases.
        file: File that lists the features of the real schemas.
        count: Number of schemas per feature.
    """
    lines = file.read_text(encoding="utf-8").splitlines()
    features: dict[str, list[str]] = {one["id"]: one["features"] for one in map(json.loads, lines)}
    seen: Counter[str] = Counter()
    found = []
    for row in rows:
        if row.valid and any(seen[feature] < count for feature in features.get(row.id, ())):
            seen.update(features[row.id])
            found.append(row)
        elif row.id not in features:
            found.append(row)
    return found
