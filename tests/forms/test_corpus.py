"""Forms of real schemas: examples are accepted, or rejected at the right field, and nothing is added."""

from __future__ import annotations

import json
import re

import pytest
from oracle import ErrorPath, error_paths, prefilled
from pydantic import JsonValue
from rows import Row
from typist import CannotBeTypedError, fill
from unfolding import leaves

from pegboard.data.pointer import pointer
from pegboard.errors import FormFaults
from pegboard.forms import Form
from pegboard.models import JsonObject

pytestmark = pytest.mark.slow

NOT_TYPED = {
    "H11": "an integer field sends 3.0 as 3",
}
"""Id → why an example can't be typed field by field as it is."""

MOST_JSON = 0.03
"""Maximum share of leaf fields for which only a JSON editor is possible."""


def exact(value: JsonValue) -> str:
    """Return JSON that distinguishes `1`, `1.0` and `true`."""
    return json.dumps(value, sort_keys=True)


def is_rejected(form: Form) -> bool:
    """Return True if the form raises validation errors."""
    try:
        form.arguments()
    except FormFaults:
        return True
    return False


def returns(form: Form, arguments: JsonObject) -> bool:
    """Return True if the form has no errors and returns these arguments."""
    return not form.faults() and exact(form.arguments()) == exact(arguments)


@pytest.mark.promise("TUI-3")
def test_every_valid_example_loads_and_is_returned_unchanged(corpus: list[Row]) -> None:
    wrong = []
    for row in corpus:
        form = Form(row.schema)
        for example in row.valid:
            form.load(example)
            if not returns(form, example):
                wrong.append(f"{row.id} loses {exact(example)}")
        for example in row.valid[:1]:
            form.load_text(json.dumps(example))
            if not returns(form, example):
                wrong.append(f"{row.id} loses the text of {exact(example)}")
    assert wrong == []


@pytest.mark.promise("TUI-3")
def test_every_valid_example_can_be_typed_field_by_field(corpus: list[Row]) -> None:
    wrong = {}
    for row in corpus:
        for example in row.valid:
            form = Form(row.schema)
            try:
                fill(form, example)
                sent = exact(form.arguments())
            except (CannotBeTypedError, FormFaults) as trouble:
                wrong[row.id] = str(trouble)
                continue
            if sent != exact(example):
                wrong[row.id] = f"sends {sent}, not {exact(example)}"
    assert wrong.keys() == NOT_TYPED.keys(), wrong


@pytest.mark.promise("TUI-3")
def test_every_invalid_example_is_rejected_at_the_invalid_argument(corpus: list[Row]) -> None:
    wrong = []
    for row in corpus:
        form = Form(row.schema)
        for example, why in zip(row.invalid, row.why or [""] * len(row.invalid), strict=True):
            form.load(example)
            found = [fault.path for fault in form.faults()]
            if exact(form.draft()) != exact(example) or not is_rejected(form):
                wrong.append(f"{row.id} takes {exact(example)}")
            missed, strange = compared(found, error_paths(row.schema, example))
            if missed or strange or not is_at_named_argument(found, why):
                wrong.append(f"{row.id}: {why}; missed {missed}, strange {strange}")
    assert wrong == []


def compared(found: list[str], places: list[ErrorPath] | None) -> tuple[list[str], list[str]]:
    """Return the paths without an expected error, and the paths of unexpected errors."""
    if places is None:
        return ([] if found else ["any"]), []

    def is_at(path: str, place: ErrorPath) -> bool:
        return path == place[0] or (place[1] and path.startswith(place[0] + "/"))

    missed = [place[0] for place in places if not any(is_at(path, place) for path in found)]
    return missed, [path for path in found if not any(is_at(path, place) for place in places)]


def is_at_named_argument(found: list[str], why: str) -> bool:
    """Return True if an error is at, in or around the argument that the explanation names, if it names one."""
    nested = re.search(r"nested (\S+?)\.(.+) (?:wrong type|missing)", why)
    named = re.search(r"'([^']*)'", why)
    if nested is None and named is None:
        return True
    path = pointer(nested[1], nested[2]) if nested else pointer(named[1] if named else "")
    return any(f"{one}/".startswith(f"{path}/") or f"{path}/".startswith(f"{one}/") for one in found)


@pytest.mark.promise("TUI-3")
def test_an_untouched_form_sends_required_constants_and_defaults_and_no_optional_argument(corpus: list[Row]) -> None:
    wrong = []
    for row in corpus:
        if not isinstance(row.schema, dict) or {"anyOf", "oneOf", "allOf", "if"} & row.schema.keys():
            continue
        form = Form(row.schema)
        sent, missing = prefilled(row.schema, row.schema, "")
        if exact(form.draft()) != exact(sent):
            wrong.append(f"{row.id} sends {form.text()}, not {exact(sent)}")
        faults = [fault.path for fault in form.faults()]
        if sorted(faults) != sorted(missing):
            wrong.append(f"{row.id} has faults at {faults}, not {missing}")
        if any(field.touched for field in form.walk()):
            wrong.append(f"{row.id} is touched")
    assert wrong == []


@pytest.mark.promise("TUI-3")
def test_few_fields_need_a_json_editor_and_each_of_them_has_a_reason(corpus: list[Row]) -> None:
    found = [(row.id, field) for row in corpus for field in leaves(Form(row.schema))]
    as_json = {f"{name} {field.path}": field.reason for name, field in found if field.kind == "json"}
    assert all(as_json.values()), as_json
    assert len(as_json) <= MOST_JSON * len(found), as_json
