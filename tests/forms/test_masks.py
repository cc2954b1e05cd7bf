"""Secrets that are masked while arguments are edited as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import JsonValue

from pegboard.data.mask import MASK
from pegboard.forms import Form, MapField
from pegboard.models import JsonObject

HOST: JsonObject = {
    "type": "object",
    "properties": {"host": {"type": "string"}, "password": {"type": "string"}},
    "required": ["host", "password"],
}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "hosts": {"type": "array", "items": HOST},
        "by_name": {"type": "object", "additionalProperties": HOST},
        "auth": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": kind}, "password": {"type": "string"}},
                    "required": ["kind", "password"],
                    "additionalProperties": False,
                }
                for kind in ("basic", "login")
            ]
        },
        "password": {"type": "string"},
        "note": {"type": "string"},
    },
}
ONE: JsonObject = {"host": "one", "password": "secret of one"}
TWO: JsonObject = {"host": "two", "password": "secret of two"}


def filled(arguments: JsonObject) -> Form:
    """Return a form with these arguments."""
    form = Form(SCHEMA)
    form.load(arguments)
    return form


def masked(form: Form) -> JsonValue:
    """Return the masked JSON of a form."""
    found: JsonValue = json.loads(form.text(masked=True))
    return found


@pytest.mark.promise("TUI-3", "STO-2")
@pytest.mark.parametrize(
    ("arguments", "edit", "expected"),
    [
        ({"hosts": [ONE, TWO]}, lambda one: one["hosts"].pop(0), {"hosts": [TWO]}),
        ({"hosts": [ONE, TWO]}, lambda one: one["hosts"].reverse(), {"hosts": [TWO, ONE]}),
        (
            {"hosts": [ONE, TWO]},
            lambda one: one["hosts"].insert(0, {"host": "new", "password": "typed"}),
            {"hosts": [{"host": "new", "password": "typed"}, ONE, TWO]},
        ),
        (
            {"by_name": {"a": ONE}},
            lambda one: one["by_name"].update(b=one["by_name"].pop("a")),
            {"by_name": {"b": ONE}},
        ),
        (
            {"auth": {"kind": "basic", "password": "x"}},
            lambda one: one["auth"].update(kind="login"),
            {"auth": {"kind": "login", "password": "x"}},
        ),
        ({"hosts": [ONE, TWO]}, lambda one: one["hosts"][1].update(host="2"), {"hosts": [ONE, {**TWO, "host": "2"}]}),
    ],
    ids=["deleted row", "swapped rows", "inserted row", "renamed key", "other variant", "edited row"],
)
def test_a_secret_stays_with_its_object_when_masked_json_is_edited(
    arguments: JsonObject, edit: Callable[[JsonValue], object], expected: JsonObject
) -> None:
    form = filled(arguments)
    text = masked(form)
    assert "secret of" not in json.dumps(text)
    edit(text)
    form.load_text(json.dumps(text))
    assert form.arguments() == expected


@pytest.mark.promise("TUI-3", "STO-2")
def test_a_mask_keeps_its_secret_after_the_secret_was_deleted_and_replaced() -> None:
    form = filled({"password": "first", "hosts": [ONE]})
    before = form.text(masked=True)
    form.load_text("{}")
    form.load_text('{"password": "second"}')
    assert form.arguments() == {"password": "second"}
    assert form.text(masked=True) not in before
    form.load_text(before)
    assert form.arguments() == {"password": "first", "hosts": [ONE]}


@pytest.mark.promise("TUI-3", "STO-2")
@pytest.mark.parametrize(
    "edited",
    [{"password": f"{MASK} 2"}, {"password": f"Bearer {MASK}"}, {"note": MASK}, {"hosts": {"password": MASK}}],
    ids=["unknown mask", "part of a text", "field that isn't secret", "value that doesn't fit"],
)
def test_a_mask_without_a_secret_and_one_that_would_show_it_are_errors(edited: JsonObject) -> None:
    form = filled({"password": "hidden"})
    form.load_text(json.dumps(edited))
    [fault] = form.faults()
    assert "hides a value that was moved or changed. Put it back, or enter a value" in fault.message
    form.drop_text()
    assert form.arguments() == {"password": "hidden"}


@pytest.mark.promise("TUI-3", "STO-2")
def test_a_text_that_looks_like_a_mask_is_kept_in_a_field_that_is_not_secret() -> None:
    form = filled({"note": f"shows {MASK}"})
    form.load_text(json.dumps({"note": f"shows {MASK}", "password": "typed"}))
    assert form.arguments() == {"note": f"shows {MASK}", "password": "typed"}


@pytest.mark.promise("TUI-3", "STO-2")
def test_a_loaded_mask_is_not_sent_as_a_secret() -> None:
    for password in (MASK, f"Bearer {MASK}", f"{MASK}x"):
        [fault] = filled({"password": password}).faults()
        assert (fault.path, fault.message) == ("/password", "is only a mask; enter the value that it hides")


@pytest.mark.promise("TUI-3", "STO-2")
@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": ["string", "integer"]}], ids=["text", "union"])
def test_the_key_of_a_map_entry_decides_whether_its_value_is_masked(schema: JsonObject) -> None:
    form = Form({"type": "object", "properties": {"headers": {"type": "object", "additionalProperties": schema}}})
    headers = form.fields[0]
    assert isinstance(headers, MapField)
    headers.add().field.write("hidden")
    assert "hidden" in form.text(masked=True)
    headers.rename(0, "X-API-Key")
    assert "hidden" not in form.text(masked=True)
    form.load_text(form.text(masked=True))
    assert form.arguments() == {"headers": {"X-API-Key": "hidden"}}
    headers.rename(0, "Accept")
    assert "hidden" in form.text(masked=True)


@pytest.mark.promise("TUI-3", "STO-2")
def test_the_secrets_in_a_value_that_does_not_fit_its_field_are_masked() -> None:
    auth: JsonObject = {"type": "object", "properties": {"password": {"type": "string"}}}
    form = Form({"type": "object", "properties": {"auth": auth, "passwords": auth}})
    given: JsonObject = {
        "auth": [{"password": "first", "user": {"api_key": ["second"]}}, "open"],
        "passwords": ["third"],
    }
    form.load(given)
    text = form.text(masked=True)
    assert [secret for secret in ("first", "second", "third") if secret in text] == []
    assert "open" in text
    form.load_text(text)
    assert form.draft() == given


@pytest.mark.promise("TUI-3", "STO-2")
def test_the_rows_of_a_list_of_secrets_are_masked() -> None:
    form = Form({"type": "object", "properties": {"api_keys": {"type": "array", "items": {"type": "string"}}}})
    form.load({"api_keys": ["first", "second"]})
    text = form.text(masked=True)
    assert "first" not in text
    form.load_text(text)
    assert form.arguments() == {"api_keys": ["first", "second"]}
