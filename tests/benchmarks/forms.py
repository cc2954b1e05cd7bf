"""Cost of a form: building and validating it, over the real schemas and compared with the fastest validator."""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from pegboard.forms import Form
from pegboard.models import JsonObject


class Peer(Protocol):
    """The part of the other validator's interface that is used."""

    def iter_errors(self, instance: JsonValue) -> Iterable[object]:
        """Yield every validation error."""


_TESTS = Path(__file__).parents[1]
_DATA = _TESTS.parents[1] / "shared" / "data" / "schemas"
_MOST_JSON = 0.03
_SOME_FIELDS = 205


def _rows() -> list[tuple[JsonValue, list[JsonObject]]]:
    files = [file for file in (_DATA / "open.jsonl", _TESTS / "corpus" / "hardcases.jsonl") if file.is_file()]
    read = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [(row["schema"], row["valid"] + row["invalid"]) for row in read]


def _timed(work: Callable[[], object]) -> float:
    """Return the CPU milliseconds of one run."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def _percentile(times: list[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1]


def _peer(schema: JsonValue, examples: list[JsonObject]) -> list[float]:
    """Time the fastest validator on the same objects; return [] if it isn't installed or rejects the schema."""
    try:
        rust = importlib.import_module("jsonschema_rs")
        check = rust.validator_for(schema)
    except (ImportError, ValueError):
        return []
    return [_timed(partial(_all_errors, check, example)) for example in examples]


def _all_errors(check: Peer, example: JsonObject) -> None:
    for _ in check.iter_errors(example):
        pass


def measure() -> list[tuple[str, float, float, str]]:
    """Return the figures of building, of validation and of the share of JSON fields."""
    built, checked, peer = list[float](), list[float](), list[float]()
    for schema, examples in _rows():
        built.append(
            _timed(partial(Form, json.loads(json.dumps(schema))))
        )  # A copy, because a known schema is not built again.
        form = Form(schema)
        for example in examples:
            form.load(example)
            checked.append(_timed(form.faults))
        peer += _peer(schema, examples)
    return [
        *_beside(peer, "form built from its schema", built, (1.0, 5.0), (150.0, 250.0)),
        *_beside(peer, "all faults of a filled form", checked, (1.0, 10.0), (60.0, 250.0)),
        (f"all faults of a form of {_SOME_FIELDS} fields: ms", _large(), 10.0, ""),
        ("leaf fields left to JSON, share", *_left_to_json()),
    ]


def _beside(
    peer: list[float], figure: str, times: list[float], limits: tuple[float, float], ratios: tuple[float, float]
) -> list[tuple[str, float, float, str]]:
    """Return the median and the 99th percentile, each also as a ratio to the other validator's."""
    found: list[tuple[str, float, float, str]] = []
    for name, percent, limit, ratio in zip(("median", "99th percentile"), (50, 99), limits, ratios, strict=True):
        ours = _percentile(times, percent)
        found.append((f"{figure}, {name} over the corpus: ms", ours, limit, ""))
        if not peer:
            found.append((f"{figure}, {name}: ours / jsonschema_rs", 0.0, ratio, "jsonschema_rs is not installed"))
            continue
        theirs = _percentile(peer, percent)
        said = f"it checks the same objects in {theirs:.4f} ms; we read fields and tell in words"
        found.append((f"{figure}, {name}: ours / jsonschema_rs", ours / theirs, ratio, said))
    return found


def _large() -> float:
    """Time the validation of a form of many filled fields."""
    properties: JsonObject = {f"p{index}": {"type": ["string", "integer"][index % 2]} for index in range(_SOME_FIELDS)}
    form = Form({"properties": properties, "required": [*properties]})
    for field in form.fields:
        field.write("12")
    return statistics.median(_timed(form.faults) for _ in range(20))


def _left_to_json() -> tuple[float, float, str]:
    sys.path.insert(0, str(_TESTS / "corpus"))
    leaves = importlib.import_module("unfolding").leaves
    found = [field for schema, _ in _rows() for field in leaves(Form(schema))]
    as_json = [field for field in found if field.kind == "json"]
    reasons = "; ".join(sorted({field.reason for field in as_json}))
    return len(as_json) / len(found), _MOST_JSON, f"{len(as_json)} of {len(found)}: {reasons}"
