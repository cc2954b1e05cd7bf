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
    """Return the hard cases, and a small set of real schemas in which each feature occurs several times.

    Args:
        rows: Real schemas and hard cases.
        file: File that lists the features of the real schemas.
        count: Least number of schemas with each feature; fewer only if the corpus has fewer.
    """
    lines = file.read_text(encoding="utf-8").splitlines()
    features: dict[str, list[str]] = {one["id"]: one["features"] for one in map(json.loads, lines)}
    rows = [*rows]
    real = sorted(
        (row for row in rows if row.valid and row.id in features), key=lambda row: len(json.dumps(row.schema))
    )
    found = {row.id: row for row in rows if row.id not in features}
    frequencies = Counter(feature for row in real for feature in features[row.id])
    for feature, _ in reversed(frequencies.most_common()):
        having = [row for row in real if feature in features[row.id]]
        missing = count - sum(row.id in found for row in having)
        found |= {row.id: row for row in [row for row in having if row.id not in found][: max(missing, 0)]}
    return [*found.values()]
