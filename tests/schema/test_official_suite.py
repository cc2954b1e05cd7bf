"""The official JSON Schema Test Suite: its mandatory cases of draft 7 and draft 2020-12, through form and validator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import JsonValue

from pegboard.data.json_text import same
from pegboard.errors import FormFaults
from pegboard.forms import Form
from pegboard.models import JsonObject
from pegboard.schema.validation import validator

_DRAFTS = {"draft7": "http://json-schema.org/draft-07/schema#", "draft2020-12": None}
_REFERRING = ("$id", "$ref", "$dynamicRef", "$recursiveRef")

_REMOTE = "refers to another document, and references are never fetched"
_FORMATS = (
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "ipv4",
    "ipv6",
    "regex",
    "time",
    "uri",
    "uuid",
)
EXCEPTIONS: dict[str, str] = {
    **dict.fromkeys((f"format: {name} format" for name in _FORMATS), "a form checks formats, not only shows them"),
    "dynamicRef: strict-tree schema, guards against misspelled properties": _REMOTE,
    "dynamicRef: tests for implementation dynamic anchor and reference link": _REMOTE,
    "dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first": _REMOTE,
    "dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first": _REMOTE,
    "refRemote: base URI change - change folder": _REMOTE,
    "refRemote: base URI change - change folder in subschema": _REMOTE,
    "refRemote: root ref in remote ref": _REMOTE,
    "refRemote: remote ref with ref to definitions": _REMOTE,
    "refRemote: remote ref with ref to defs": _REMOTE,
    "refRemote: retrieved nested refs resolve relative to their URI not $id": _REMOTE,
    "vocabulary: schema that uses custom metaschema with with no validation vocabulary": _REMOTE,
}
"""Group of the suite (`file: description`) → why Pegboard disagrees with some of its cases."""


class Case(NamedTuple):
    """One case of the suite, as the arguments of a tool."""

    group: str
    description: str
    schema: JsonObject
    arguments: JsonObject
    valid: bool


def cases_of(file: Path, dialect: str | None) -> Iterator[Case]:
    """Yield the cases of one file.

    Data that is not an object becomes the argument `v`, except where that would move a schema that refers to itself;
    such cases are left out.
    """
    for group in json.loads(file.read_text(encoding="utf-8")):
        schema = group["schema"]
        if dialect and isinstance(schema, dict):
            schema = {"$schema": dialect, **schema}
        for test in group["tests"]:
            arguments = test["data"]
            inner = schema
            if not isinstance(arguments, dict) or not isinstance(schema, dict):
                if _refers(schema):
                    continue
                inner = {"type": "object", "properties": {"v": schema}, "required": ["v"]}
                if isinstance(schema, dict) and "$schema" in schema:
                    inner["$schema"] = schema["$schema"]
                arguments = {"v": arguments}
            yield Case(f"{file.stem}: {group['description']}", test["description"], inner, arguments, test["valid"])


def _refers(schema: JsonValue) -> bool:
    if isinstance(schema, dict):
        return any(name in schema for name in _REFERRING) or any(map(_refers, schema.values()))
    return isinstance(schema, list) and any(map(_refers, schema))


def _disagreement(case: Case) -> str | None:
    """Return how Pegboard's answer differs from the suite's, or None."""
    faults = validator(case.schema).faults(case.arguments)
    if (not faults) is not case.valid:
        return f"the validator says {[str(fault) for fault in faults] or 'valid'}"
    form = Form(case.schema)
    try:
        form.load(case.arguments)
        sent = form.arguments()
    except FormFaults as error:
        return f"the form rejects it: {error}" if case.valid else None
    if not case.valid:
        return "the form accepts it"
    return None if same(sent, case.arguments) else f"the form sends {sent}"


@pytest.mark.promise("TUI-3", "EXE-3")
def test_form_and_validator_agree_with_the_official_suite(data_folder: Path) -> None:
    tried, wrong, excepted = 0, list[str](), set[str]()
    for draft, dialect in _DRAFTS.items():
        for file in sorted((data_folder / "json-schema-test-suite" / draft).rglob("*.json")):
            for case in cases_of(file, dialect):
                tried += 1
                found = _disagreement(case)
                if found and case.group in EXCEPTIONS:
                    excepted.add(case.group)
                elif found:
                    wrong.append(f"{case.group} / {case.description}: {found}")
    assert tried > 2000
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong)
    assert excepted == EXCEPTIONS.keys(), "an exception that is not needed"
