"""Forms without an interface: they return entered values and nothing else."""

from __future__ import annotations

import json
import re

import pytest
from pydantic import JsonValue

from pegboard.errors import FormFaults
from pegboard.forms import (
    ChoiceField,
    Field,
    Form,
    ListField,
    MapField,
    MultiChoiceField,
    TextField,
    TupleField,
    VariantField,
)
from pegboard.models import JsonObject


def form(properties: JsonObject, *required: str) -> Form:
    """Return the form of an object with these properties."""
    return Form({"type": "object", "properties": properties, "required": [*required]})


def only(schema: JsonValue, *, required: bool = False) -> tuple[Form, Field]:
    """Return the form of one property `x`, and its field."""
    built = form({"x": schema}, *(["x"] if required else []))
    return built, built.fields[0]


def errors(built: Form) -> dict[str, str]:
    """Return the validation errors as path → message."""
    return {fault.path: fault.message for fault in built.faults()}


def exact(value: JsonValue) -> str:
    """Return JSON that distinguishes `1`, `1.0` and `true`."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.promise("TUI-3")
def test_an_untouched_form_sends_required_constants_and_required_valid_defaults_and_nothing_else() -> None:
    built = form(
        {
            "mode": {"const": "fast"},
            "region": {"type": "string", "default": "eu"},
            "wrong": {"type": "integer", "default": "5"},
            "optional": {"type": "string", "default": "x"},
            "maybe": {"const": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "switch": {"type": "boolean", "default": True},
            "free": {"type": "object"},
            "nothing": {"type": ["string", "null"], "default": None},
        },
        "mode",
        "region",
        "wrong",
    )
    assert built.draft() == {"mode": "fast", "region": "eu"}
    assert errors(built) == {"/wrong": "is required"}


@pytest.mark.promise("TUI-3")
def test_an_optional_field_is_unset_null_or_a_value_and_empty_text_is_a_value() -> None:
    built, field = only({"type": ["string", "null"]})
    assert isinstance(field, TextField)
    assert (field.state, built.arguments()) == ("unset", {})
    field.empty()
    assert (field.state, built.arguments()) == ("value", {"x": ""})
    field.set_null()
    assert (field.state, built.arguments()) == ("null", {"x": None})
    field.write("null")
    assert (field.state, built.arguments()) == ("value", {"x": "null"})
    field.write("")
    assert (field.state, built.arguments()) == ("unset", {})


def test_required_empty_text_is_sent_only_on_request() -> None:
    built, field = only({"type": "string"}, required=True)
    assert isinstance(field, TextField)
    assert errors(built) == {"/x": "is required"}
    field.empty()
    assert built.arguments() == {"x": ""}


@pytest.mark.parametrize("text", ["007", "true", "null", '{"a":1}', "  spaces ", "a\nb\tc\r\n", "é\u202e\ud800"])
def test_text_is_sent_exactly_as_typed(text: str) -> None:
    built, field = only({"type": "string"})
    field.write(text)
    assert built.arguments() == {"x": text}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("time", "8:30", "08:30:00"),
        ("time", "08:30", "08:30:00"),
        ("time", "8:30 pm", "20:30:00"),
        ("time", "12 am", "00:00:00"),
        ("time", "1 a.m.", "01:00:00"),
        ("time", "08:30 +02", "08:30:00+02:00"),
        ("time", "08:30:15.250z", "08:30:15.250Z"),
        ("date", "2026/11/7", "2026-11-07"),
        ("date-time", "2026-11-27 08:30", "2026-11-27T08:30:00"),
        ("date-time", " 2026-11-27T8:30  UTC ", "2026-11-27T08:30:00Z"),
        ("duration", "01:30:00", "PT1H30M"),
        ("duration", "90 min", "PT1H30M"),
        ("duration", "1h30m", "PT1H30M"),
        ("duration", "1.5 days", "P1DT12H"),
        ("duration", "1 day, 2:03:04.50", "P1DT2H3M4.5S"),
        ("duration", "2 hours and 5 seconds", "PT2H5S"),
        ("duration", "2 days", "P2D"),
        ("duration", "0s", "PT0S"),
    ],
)
def test_dates_times_and_durations_are_sent_in_the_form_of_their_standard(form: str, text: str, value: str) -> None:
    built, field = only({"type": "string", "format": form})
    field.write(text)
    assert isinstance(field, TextField)
    assert (field.text, field.converted, built.arguments()) == (text, value, {"x": value})


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"format": "time"}, "8"),
        ({"format": "time"}, "25:30"),
        ({"format": "time"}, "13 pm"),
        ({"format": "date"}, "3/7/2026"),
        ({"format": "date"}, "2026/02/30"),
        ({"format": "date-time"}, "2026-11-27"),
        ({"format": "date-time"}, "2026-11-27 now"),
        ({"format": "duration"}, "1:30"),
        ({"format": "duration"}, "90"),
        ({"format": "duration"}, "90M"),
        ({"format": "duration"}, "5m 1h"),
        ({"format": "duration"}, "3 fortnights"),
        ({"format": "duration"}, "9" * 60 + "w"),
        ({"format": "time", "pattern": "^..:..$"}, "08:30"),
        ({"format": "date-time"}, "2026-11-27 08:30 or later"),
    ],
)
def test_a_date_time_or_duration_with_several_meanings_is_an_error(schema: JsonObject, text: str) -> None:
    built, field = only({"type": "string", **schema})
    field.write(text)
    assert "like" in errors(built)["/x"] or "real date" in errors(built)["/x"]
    assert built.draft() == {"x": text}


def test_a_date_or_time_of_several_formats_is_converted_to_the_one_that_fits() -> None:
    built, field = only({"anyOf": [{"type": "string", "format": name} for name in ("date", "date-time", "time")]})
    assert field.type_label == "string · date or date-time or time"
    for text, value in {"2026/1/2": "2026-01-02", "2026-1-2 8:30": "2026-01-02T08:30:00", "8:30": "08:30:00"}.items():
        field.write(text)
        assert built.arguments() == {"x": value}


def test_a_time_that_was_not_typed_is_sent_and_validated_as_it_is() -> None:
    built, field = only({"type": "string", "format": "time"})
    field.load("8:30")
    assert errors(built) == {"/x": "must be a time like 08:30:00Z"}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "12", 12),
        ("integer", " -3 ", -3),
        ("integer", "+5", 5),
        ("integer", "90071992547409910123", 90071992547409910123),
        ("integer", "1e3", 1000),
        ("integer", "1e22", 10**22),
        ("integer", "3.0", 3),
        ("integer", "-0.0", 0),
        ("number", "3", 3),
        ("number", "3.0", 3.0),
        ("number", "-74.01", -74.01),
        ("number", "1e-7", 1e-7),
        ("number", ".5", 0.5),
        ("number", "90071992547409910123", 90071992547409910123),
    ],
)
def test_numbers_are_exact(kind: str, text: str, value: float) -> None:
    built, field = only({"type": kind})
    field.write(text)
    assert exact(built.arguments()) == exact({"x": value})


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        ("integer", "ten", 'must be an integer, not "ten"'),
        ("integer", "1_000", 'must be an integer, not "1_000"'),
        ("integer", "1,000", 'must be an integer, not "1,000"'),
        ("integer", "1.5", "must be an integer, not 1.5"),
        ("integer", "1e-999999999", "must be an integer, not 1e-999999999"),
        ("integer", "1e999999999", "is too large"),
        ("integer", "1e99999999999999999999", "is too large"),
        ("integer", "9" * 5000, "has too many digits"),
        ("integer", "\u0661", 'must be an integer, not "\u0661"'),
        ("number", "1e999", "is too large"),
        ("number", "NaN", 'must be a number, not "NaN"'),
        ("number", "3,5", 'must be a number, not "3,5"'),
    ],
)
def test_an_invalid_number_stays_as_typed_and_is_an_error(kind: str, text: str, sentence: str) -> None:
    built, field = only({"type": kind})
    field.write(text)
    assert errors(built) == {"/x": sentence}
    assert field.text == text
    with pytest.raises(FormFaults):
        built.arguments()


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"type": "number"}, {"enum": [1, 2]}])
def test_the_error_of_a_long_text_shows_only_its_beginning(schema: JsonObject) -> None:
    built, field = only(schema)
    field.write("wrong" * 1000)
    assert errors(built)["/x"].endswith(f'not "{"wrong" * 19}wron…"')
    assert field.text == "wrong" * 1000


@pytest.mark.promise("TUI-3")
def test_choices_keep_their_types_and_null_is_a_state() -> None:
    built, field = only({"enum": [1, "1", True, None, "", {"a": 1}]})
    assert isinstance(field, ChoiceField)
    assert [option.label for option in field.options] == ["1", '"1"', "true", '""', '{"a": 1}']
    assert field.nullable
    values: list[JsonValue] = [1, "1", True, "", {"a": 1}]
    for index, value in enumerate(values):
        field.choose(index)
        assert exact(built.arguments()) == exact({"x": value})
        assert field.chosen == index
    field.set_null()
    assert built.arguments() == {"x": None}


def test_a_typed_choice_is_the_one_that_is_written_so_or_an_equal_one() -> None:
    built, field = only({"enum": ["1", 1, 2.5, "two words", True]})
    chosen: JsonObject = {
        "1": 1,
        '"1"': "1",
        "2.50": 2.5,
        "two words": "two words",
        '"two words"': "two words",
        " true ": True,
    }
    for text, value in chosen.items():
        field.write(text)
        assert exact(built.arguments()) == exact({"x": value}), text
    field.write("3")
    assert errors(built) == {"/x": 'must be one of "1", 1, 2.5, "two words", true, not "3"'}


@pytest.mark.parametrize(
    ("schema", "kind", "nullable", "label"),
    [
        ({"type": "string"}, "text", False, "string"),
        ({"type": "string", "format": "date"}, "text", False, "string · date"),
        ({"type": ["integer", "null"]}, "number", True, "integer or null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, "number", True, "integer or null"),
        ({"anyOf": [{"$ref": "#/$defs/e"}, {"type": "null"}]}, "choice", True, "choice or null"),
        ({"type": ["string", "null"], "enum": ["a"]}, "choice", False, "choice"),
        ({"type": ["string", "null"], "enum": ["a", None]}, "choice", True, "choice or null"),
        ({"oneOf": [{"const": "a", "title": "An A"}, {"const": "b"}]}, "choice", False, "choice"),
        ({"allOf": [{"$ref": "#/$defs/e"}]}, "choice", False, "choice"),
        ({"allOf": [{"type": ["string", "integer", "null"]}, {"type": ["string", "null"]}]}, "text", True, None),
        ({"allOf": [{"type": "number"}, {"type": ["integer", "string"]}]}, "number", False, "integer"),
        ({"allOf": [{"type": ["integer", "boolean"]}, {"type": ["number", "boolean"]}]}, "variant", False, None),
        ({"allOf": [{"type": "string"}, {"type": "boolean"}]}, "text", False, "string"),
        ({"allOf": [{"enum": ["a", "b", "c"]}, {"enum": ["c"]}]}, "choice", False, "choice"),
        ({"const": None}, "const", True, "constant"),
        ({"type": ["null", "null"]}, "const", True, "null"),
        ({"type": "boolean"}, "switch", False, "boolean"),
        ({"type": "array", "items": {"type": "number"}}, "list", False, "list of numbers"),
        ({"type": ["array", "null"], "items": {"$ref": "#/$defs/e"}}, "multi", True, "list of choices or null"),
        ({"type": "array"}, "list", False, "list"),
        ({"type": "array", "items": {"type": "object"}}, "list", False, "list of objects"),
        ({"items": {"type": "array", "items": {"type": "integer"}}}, "list", False, "list of lists of integers"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {}]}, "tuple", False, "list of 2"),
        ({"type": "object", "properties": {}}, "map", False, "object"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map", False, "map of integers"),
        ({"type": "object", "properties": {"k": {}}}, "section", False, "object"),
        ({"properties": {"k": {}}}, "section", False, "object"),
        ({"type": "object", "additionalProperties": False}, "section", False, "object"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "variant", False, "text or number"),
        ({"type": ["string", "integer", "null"]}, "variant", True, "text or integer or null"),
        ({"type": ["integer", "number"]}, "number", False, "number"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "number", False, "number"),
        ({"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}, "variant", False, None),
        ({"pattern": "a"}, "text", False, "string"),
        ({"minimum": 1}, "number", False, "number"),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": "string"}]}, "text", False, "string"),
        ({"type": "string", "enum": []}, "json", False, "choice"),
        ({}, "variant", True, "any"),
        (True, "variant", True, "any"),
        ({"type": "any"}, "json", False, "any"),
        ({"$ref": "#/$defs/missing"}, "json", False, "any"),
    ],
)
def test_each_schema_gets_the_field_that_fits(schema: JsonValue, kind: str, nullable: bool, label: str | None) -> None:
    built = Form({"properties": {"x": schema}, "$defs": {"e": {"type": "string", "enum": ["a", "b"]}}})
    field = built.fields[0]
    assert (field.kind, field.nullable) == (kind, nullable)
    assert label is None or field.type_label == label
    assert bool(field.reason) == (kind == "json")


def test_all_parts_of_a_schema_require_their_fields() -> None:
    text: JsonValue = {"type": "string"}
    parts: list[JsonValue] = [
        {"type": "object", "properties": {"a": text, "c": text}, "required": ["a"]},
        {"properties": {"b": text}, "required": ["b", "a"]},
    ]
    built = Form({"allOf": parts})
    assert [(field.name, field.required) for field in built.fields] == [("a", True), ("c", False), ("b", True)]


def test_a_field_shows_the_texts_of_its_schema() -> None:
    built = form(
        {
            "max_rows": {
                "title": "Max Rows",
                "description": "How many.",
                "type": "integer",
                "minimum": 1,
                "maximum": 10,
                "multipleOf": 2,
                "default": 4,
                "examples": [2, 6],
            },
            "name": {"title": "Display name", "type": "string", "minLength": 1, "maxLength": 40, "pattern": "^[a-z]*$"},
            "ids": {"type": "array", "items": {"type": "integer"}, "maxItems": 3, "uniqueItems": True},
        },
        "name",
    )
    rows, name, ids = built.fields
    assert (rows.label, rows.description, rows.limits) == ("max_rows", "How many.", "1 to 10, multiple of 2")
    assert (rows.has_default, rows.default, rows.examples, rows.required) == (True, 4, (2, 6), False)
    assert (name.label, name.limits, name.required) == ("Display name", "1 to 40 characters, pattern ^[a-z]*$", True)
    assert ids.limits == "at most 3 items, no item twice"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *[(name, True) for name in ("password", "api_key", "apiKey", "X-API-Key", "access_token", "clientSecret")],
        *[(name, False) for name in ("token", "max_tokens", "page_token", "secretary", "key", "passwords_file")],
    ],
)
def test_secrets_are_recognised_by_name(name: str, secret: bool) -> None:
    field = form({name: {"type": "string"}}).fields[0]
    assert isinstance(field, TextField)
    assert field.secret is secret


def test_secrets_are_missing_in_the_masked_text_and_survive_its_editing() -> None:
    built = form({"password": {"type": "string"}, "n": {"type": "integer"}})
    built.load({"password": "hunter2", "n": 1})
    masked = built.text(masked=True)
    assert "hunter2" not in masked
    assert built.draft() == {"password": "hunter2", "n": 1}
    built.load_text(masked.replace("1", "2"))
    assert built.arguments() == {"password": "hunter2", "n": 2}
    built.load_text('{"password": "other"}')
    assert built.arguments() == {"password": "other"}


def test_rows_are_added_removed_and_moved_and_a_cleared_list_is_not_sent() -> None:
    built, field = only({"type": "array", "items": {"type": "integer"}})
    assert isinstance(field, ListField)
    for text in ("1", "2", "3"):
        field.add().write(text)
    field.add(0).write("zero")
    assert errors(built) == {"/x/0": 'must be an integer, not "zero"'}
    field.rows[0].write("0")
    assert built.arguments() == {"x": [0, 1, 2, 3]}
    assert field.move(0, 2) == 2
    assert field.move(0, -5) == 0
    assert built.arguments() == {"x": [1, 2, 0, 3]}
    assert [row.path for row in field.rows] == ["/x/0", "/x/1", "/x/2", "/x/3"]
    for _ in range(4):
        field.remove(0)
    assert built.arguments() == {}
    field.empty()
    assert built.arguments() == {"x": []}
    field.add()
    assert errors(built) == {"/x/0": "is empty"}


def test_after_each_move_of_a_row_every_row_has_its_new_place() -> None:
    built, field = only({"type": "array", "items": {"type": "integer"}})
    assert isinstance(field, ListField)
    for index, by in ((0, 9), (3, -2), (1, 1)):
        field.load([*range(3)])
        field.add().write("last")
        assert field.move(index, by) == min(max(index + by, 0), 3)
        assert [row.path for row in field.rows] == ["/x/0", "/x/1", "/x/2", "/x/3"]
        assert [*errors(built)] == [next(row.path for row in field.rows if row.text == "last")]


def test_the_first_rows_of_a_tuple_stay_where_they_are() -> None:
    built, field = only({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "integer"}})
    assert isinstance(field, TupleField)
    field.load(["a", 1, 2, 3])
    assert (field.add(0).path, field.move(1, 1), field.move(4, -4)) == ("/x/2", 1, 2)
    field.remove(0)
    assert [row.text for row in field.rows] == ["a", "1", "3", "", "2"]
    for _ in range(3):
        field.remove(2)
    assert built.arguments() == {"x": ["a", 1]}
    built.load_text('{"x": ["b"]}')
    assert built.arguments() == {"x": ["b"]}
    built.load_text('{"x": []}')
    assert built.arguments() == {"x": []}


def test_edited_json_text_keeps_the_typed_text_of_unchanged_rows() -> None:
    built, field = only({"type": "array", "items": {"type": "integer"}})
    assert isinstance(field, ListField)
    field.load([1, 2])
    field.rows[0].write("1e3")
    for edited, texts in (("[1000, 3]", ["1e3", "3"]), ("[1000, 3, 4]", ["1e3", "3", "4"]), ("[1000]", ["1e3"])):
        built.load_text(f'{{"x": {edited}}}')
        assert [row.text for row in field.rows] == texts


def test_choices_of_equal_values_of_other_types_are_picked_and_removed_one_by_one() -> None:
    for required, left in ((False, "{}"), (True, '{"x": []}')):
        built, field = only({"type": "array", "items": {"enum": [1, True, "1"]}}, required=required)
        assert isinstance(field, MultiChoiceField)
        for index in (1, 0, 2):
            field.toggle(index)
        assert exact(built.arguments()) == '{"x": [true, 1, "1"]}'
        field.toggle(1)
        assert exact(built.arguments()) == '{"x": [1, "1"]}'
        field.toggle(2)
        field.toggle(0)
        assert exact(built.arguments()) == left


def test_a_value_that_was_unset_or_null_can_be_recalled_until_another_is_loaded() -> None:
    kinds: list[tuple[JsonValue, JsonValue, JsonValue]] = [
        ({"type": ["string", "null"]}, "a", "b"),
        ({"type": ["integer", "null"]}, 1, 2),
        ({"enum": ["a", "b", None]}, "a", "b"),
        ({"type": ["array", "null"], "items": {"type": "integer"}}, [1, 2], [3]),
        ({"type": ["array", "null"], "items": {"enum": ["a", "b"]}}, ["a"], ["b"]),
        ({"type": ["array", "null"], "prefixItems": [{}, {}]}, ["a", 1], ["b"]),
        ({"type": ["object", "null"], "properties": {"y": {"type": "string"}}}, {"y": "a"}, {"y": "b"}),
        ({"type": ["object", "null"], "additionalProperties": {"type": "integer"}}, {"k": 1}, {"l": 2}),
        ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {}}, {"type": "null"}]}, [1], 2),
    ]
    for schema, first, second in kinds:
        built, field = only(schema)
        field.load(first)
        field.unset()
        assert built.arguments() == {}, schema
        field.set_null()
        assert built.arguments() == {"x": None}, schema
        field.recall()
        assert built.arguments() == {"x": first}, schema
        field.unset()
        field.load(second)
        assert (built.arguments(), field.can_recall) == ({"x": second}, False), schema
        field.unset()
        field.leave_out()
        assert (built.arguments(), field.can_recall) == ({}, False), schema


def test_another_variant_gets_the_values_that_it_lacks_and_keeps_its_own() -> None:
    def variant(kind: str, **more: JsonValue) -> JsonValue:
        text: JsonValue = {"type": "string"}
        properties: JsonObject = {"kind": {"const": kind}, "name": text, "size": text, **more}
        return {"type": "object", "properties": properties, "required": ["kind"]}

    other: JsonObject = {"size": {"type": "integer"}, "extra": {"type": "string"}}
    built, field = only({"oneOf": [variant("a"), variant("b", **other)]})
    assert isinstance(field, VariantField)
    built.load_text('{"x": {"kind": "a", "name": "one", "size": "s"}}')
    field.choose(1)
    assert built.arguments() == {"x": {"kind": "b", "name": "one"}}
    built.load_text('{"x": {"kind": "b", "name": "two", "extra": "more"}}')
    field.choose(0)
    assert built.arguments() == {"x": {"kind": "a", "name": "one", "size": "s"}}
    built.load_text('{"x": {"kind": "b", "name": "three", "size": 5}}')
    assert (field.chosen, built.arguments()) == (1, {"x": {"kind": "b", "name": "three", "size": 5}})


def test_a_row_of_text_may_be_empty() -> None:
    built, field = only({"type": "array", "items": {"type": ["string", "null"]}})
    assert isinstance(field, ListField)
    field.add()
    field.add().set_null()
    assert built.arguments() == {"x": ["", None]}
    for text in ("a", ""):
        field.rows[0].write(text)
        assert built.arguments() == {"x": [text, None]}


@pytest.mark.promise("TUI-3")
def test_a_value_that_fits_no_field_is_kept_and_is_an_error() -> None:
    built = Form(
        {
            "properties": {
                "n": {"type": "integer"},
                "s": {"type": "string"},
                "l": {"type": "array", "items": {"type": "string"}},
                "c": {"enum": ["a"]},
                "b": {"type": "boolean"},
            },
            "additionalProperties": False,
        }
    )
    odd: JsonObject = {"n": "5", "s": None, "l": "x", "c": [1], "b": "true", "extra": 1}
    built.load(odd)
    assert built.draft() == odd
    assert list(errors(built)) == ["/n", "/s", "/l", "/c", "/b", "/extra"]
    assert built.fields[-1].label == "other arguments"


def test_a_loaded_value_is_returned_unchanged_until_it_is_edited() -> None:
    built, field = only({"type": "integer"})
    built.load({"x": 3.0})
    assert exact(built.arguments()) == '{"x": 3.0}'
    field.write("3.0")
    assert exact(built.arguments()) == '{"x": 3}'


def test_loading_replaces_all_content_and_reset_removes_it() -> None:
    built = form({"a": {"type": "string"}, "b": {"const": 1}}, "b")
    built.load({"a": "x"})
    assert built.draft() == {"a": "x"}
    built.reset()
    assert built.draft() == {"b": 1}
    assert not any(field.touched for field in built.fields)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1', "is not JSON: expecting ',' delimiter (line 1, column 8)"),
        ('{\n "a": nope}', "is not JSON: expecting value (line 2, column 7)"),
        ("hello", 'is not JSON: expecting value (line 1, column 1); put text in quotes: "hello"'),
        ('{"a": 1, "a": 2}', 'has the key "a" twice'),
        ('{"a": NaN}', "is not JSON: NaN is not a JSON value"),
        ("1e999", "has the number 1e999, which is too large"),
        pytest.param("9" * 5000, "has a number with too many digits", id="digits"),
        pytest.param("[" * 100_000, "is nested too deeply", id="depth"),
    ],
)
@pytest.mark.parametrize("schema", [{"$ref": "#/nowhere"}, {"type": "array"}, {"properties": {"a": {}}}])
def test_json_is_parsed_strictly_and_stays_as_typed(schema: JsonValue, text: str, sentence: str) -> None:
    built, field = only(schema)
    field.write(text)
    assert errors(built) == {"/x": sentence}
    assert field.text == text


@pytest.mark.promise("TUI-3")
def test_json_text_and_fields_can_be_edited_alternately_without_loss() -> None:
    built = form({"n": {"type": "integer"}, "s": {"type": "string"}, "j": {"$ref": "#/nowhere"}})
    number, text, free = built.fields
    number.write("ten")
    free.write('{"half": ')
    assert json.loads(built.text()) == {"n": "ten", "j": '{"half": '}
    built.load_text('{"n": "ten", "s": "new", "j": "{\\"half\\": "}')
    assert (number.text, text.text, free.text) == ("ten", "new", '{"half": ')
    built.load_text('{"n": 5')
    assert built.has_text_fault
    assert built.text() == '{"n": 5'
    assert number.text == "ten"
    assert errors(built) == {"": "is not JSON: expecting ',' delimiter (line 1, column 8)"}
    built.load_text("[1]")
    assert errors(built) == {"": 'must be a JSON object, like {"name": "value"}'}
    with pytest.raises(FormFaults):
        built.arguments()
    built.drop_text()
    assert (number.text, text.text) == ("ten", "new")
    built.load_text('{"n": 5}')
    assert built.arguments() == {"n": 5}


@pytest.mark.promise("TUI-3")
def test_another_type_of_an_equal_value_in_the_json_text_is_an_edit() -> None:
    either: JsonValue = {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}
    edits: list[tuple[JsonValue, str, str]] = [
        ({}, "1", "true"),
        ({"type": "number"}, "1", "1.0"),
        (either, "1", "true"),
        ({"enum": [1, True]}, "1", "true"),
        ({"type": "array", "items": {}}, "[1, 0]", "[true, 0]"),
        ({"type": "array", "items": {"enum": [1, True]}}, "[1]", "[true]"),
        ({"prefixItems": [{}, {}]}, "[1, 0]", "[1, false]"),
        ({"type": "object", "properties": {"y": {}}}, '{"y": 1}', '{"y": true}'),
        ({"type": "object", "additionalProperties": either}, '{"y": 1}', '{"y": true}'),
    ]
    for schema, before, after in edits:
        built, _ = only(schema)
        built.load_text(f'{{"x": {before}}}')
        built.load_text(f'{{"x": {after}}}')
        assert exact(built.arguments()) == f'{{"x": {after}}}', schema


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "default": {"a": 1}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "default": {"a": 1}},
        {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}], "default": {"a": 1}},
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "default": [1, "x"]},
        {
            "type": "object",
            "properties": {
                "given": {"type": "object", "properties": {"a": {"const": 1}, "b": {}}, "required": ["a"]},
                "left_out": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                "pair": {"type": "array", "prefixItems": [{"const": 1}], "minItems": 1},
            },
            "default": {"given": {"a": 1}, "pair": [1]},
        },
    ],
    ids=["section", "required property", "variant", "tuple", "nested"],
)
def test_the_valid_default_of_a_required_container_is_filled_in(schema: JsonObject) -> None:
    built, field = only(schema, required=True)
    expected = {"x": schema["default"]}
    assert built.arguments() == expected
    assert field.is_prefilled
    field.unset()
    assert errors(built) == {"/x": "is required"}
    field.recall()
    assert built.arguments() == expected
    built.load({})
    assert errors(built) == {"/x": "is required"}
    built.reset()
    assert (built.arguments(), built.fields[0].is_prefilled) == (expected, True)


_KIND: JsonObject = {"properties": {"kind": {"const": "x"}, "a": {"type": "integer"}}, "required": ["kind"]}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    ("schema", "path", "after"),
    [
        ({"type": "object", **_KIND}, "/x/a", '{"kind": "x"}'),
        (
            {"type": "object", "properties": {"n": {"default": 3}, "a": {"type": "integer"}}, "required": ["n"]},
            "/x/a",
            '{"n": 3}',
        ),
        ({"properties": {"r": {"type": "object", **_KIND}}, "required": ["r"]}, "/x/r/a", '{"r": {"kind": "x"}}'),
        ({"anyOf": [{"type": "object", **_KIND}, {"type": "string"}]}, "/x/a", '{"kind": "x"}'),
        ({"type": "array", "prefixItems": [{"const": "k"}, {"type": "integer"}], "minItems": 1}, "/x/1", '["k"]'),
    ],
    ids=["constant", "default", "nested", "variant", "tuple"],
)
def test_an_edit_of_the_json_text_that_leaves_only_prefilled_values_keeps_the_argument(
    schema: JsonObject, path: str, after: str
) -> None:
    built, outer = only(schema)
    field = outer.rows[1] if isinstance(outer, TupleField) else built.build_to(path)
    assert field is not None
    field.write("1")
    assert built.arguments() != {}
    built.load_text(f'{{"x": {after}}}')
    assert built.arguments() == json.loads(built.text()) == {"x": json.loads(after)}


@pytest.mark.promise("TUI-3")
def test_an_object_whose_additional_argument_was_removed_in_the_json_text_is_left_out_when_it_is_cleared() -> None:
    built, _ = only({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}})
    built.load({"x": {"a": 1, "b": "more"}})
    built.load_text('{"x": {"a": 1}}')
    assert built.arguments() == {"x": {"a": 1}}
    field = built.field_at("/x/a")
    assert field is not None
    field.write("")
    assert built.arguments() == {}


def test_additional_arguments_have_a_field_if_the_schema_allows_them() -> None:
    built = Form({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}})
    rest = built.fields[-1]
    assert isinstance(rest, MapField)
    assert (rest.label, rest.path) == ("other arguments", "")
    rest.write('{"b": "x"}')
    assert errors(built) == {"/b": 'must be an integer, not the text "x"'}
    rest.write('{"b": 1}')
    assert built.arguments() == {"b": 1}
    rest.add("a").field.write("1")
    assert errors(built) == {"/a": "has a field of its own"}
    rest.remove(1)
    rest.add()
    assert errors(built) == {"/": "has no name yet"}
    rest.write("[]")
    assert errors(built) == {"": "must be a JSON object"}
    assert [field.name for field in Form({"properties": {}}).fields] == []


def test_a_required_name_without_a_property_has_a_field() -> None:
    built = Form({"properties": {"a": {}}, "required": ["ghost"]})
    assert errors(built) == {"/ghost": "is required"}
    assert built.fields[1].reason == "the schema requires it without describing it"
    built.fields[1].write("1")
    assert built.arguments() == {"ghost": "1"}


def test_a_form_of_a_changed_schema_keeps_user_input() -> None:
    before = form(
        {"a": {"type": "integer"}, "b": {"type": "string"}, "gone": {"type": "string"}, "d": {"const": 1}}, "d"
    )
    before.fields[0].write("ten")
    before.fields[1].write("kept")
    after = form({"b": {"type": "string"}, "a": {"type": "integer"}, "d": {"const": 2}}, "d")
    after.take_over(before)
    assert after.draft() == {"b": "kept", "a": "ten", "d": 2}
    assert after.fields[1].text == "ten"
    before.load_text("{")
    after.take_over(before)
    assert after.text() == "{"


def test_a_form_of_a_changed_schema_has_its_own_default_unless_the_user_changed_the_value() -> None:
    before = form({name: {"type": "integer", "default": 1} for name in "abc"}, "a", "b")
    before.fields[1].write("7")
    after = form({name: {"type": "integer", "default": 2} for name in "abc"}, "a", "b", "c")
    after.take_over(before)
    assert after.arguments() == {"a": 2, "b": 7, "c": 2}
    before.fields[0].unset()
    before.fields[0].touched = True
    after.take_over(before)
    assert after.draft() == {"b": 7, "c": 2}


def test_an_untouched_form_of_a_changed_schema_is_like_a_new_one() -> None:
    before = form({"a": {"type": "integer"}})
    item: JsonValue = {"properties": {"kind": {"const": "x"}, "size": {"type": "integer"}}, "required": ["kind"]}
    parts: dict[str, JsonValue] = {"a": {"type": "integer"}, "item": item, "unit": {"const": "m"}}
    after = form(parts, "item", "unit")
    after.take_over(before)
    assert after.arguments() == {"item": {"kind": "x"}, "unit": "m"}
    assert [one.path for one in after.walk()] == ["/a", "/item", "/item/kind", "/item/size", "/unit"]
    before.load({})
    after.take_over(before)
    assert after.draft() == {}


def test_a_form_whose_union_has_other_variants_keeps_the_value_in_the_one_that_fits() -> None:
    variants: list[JsonValue] = [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]
    changed: list[list[JsonValue]] = [variants[::-1], [{"type": "boolean"}, *variants], variants[1:] * 2]
    for others in changed:
        before, after = form({"a": {"anyOf": variants}}), form({"a": {"anyOf": others}})
        before.load({"a": [5]})
        after.take_over(before)
        field = after.fields[0]
        assert isinstance(field, VariantField)
        assert (field.inner.kind, after.arguments()) == ("list", {"a": [5]}), others


@pytest.mark.promise("TUI-3")
def test_a_form_of_a_changed_schema_keeps_null_and_typed_text_in_a_union() -> None:
    union: JsonValue = {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "default": 10}
    before, after = form({"a": union, "b": union}), form({"a": union, "b": union, "c": {"type": "string"}})
    before.fields[0].set_null()
    typed = before.fields[1]
    assert isinstance(typed, VariantField)
    typed.inner.write("ten")
    after.take_over(before)
    assert after.draft() == {"a": None, "b": "ten"}
    assert errors(after) == {"/b": 'must be an integer, not "ten"'}


def test_containers_of_an_unreadable_value_are_not_validated() -> None:
    built = Form({"properties": {"n": {"type": "integer"}, "m": {}}, "minProperties": 1, "required": ["m"]})
    built.fields[0].write("ten")
    assert errors(built) == {"/n": 'must be an integer, not "ten"', "/m": "is required"}


NAMES = ["$filter", "a-b", "a_b", "a.b", "class", "", "😀", "A", "a", "page[size]", "a/b", "a~b", " ", "1", "from<"]


def test_ids_are_valid_and_unique_for_any_names() -> None:
    built = form({key: {"type": "array", "items": {"type": "string"}} for key in NAMES})
    ids = [field.id for field in built.fields]
    for field in built.fields:
        assert isinstance(field, ListField)
        ids.append(field.add().id)
    assert len(set(ids)) == 2 * len(NAMES)
    assert all(re.fullmatch(r"[a-zA-Z_-][a-zA-Z0-9_-]*", one) for one in ids)
    assert ids[: len(NAMES)] == [field.id for field in form({key: {} for key in NAMES}).fields]


def test_the_field_at_a_pointer_is_the_innermost_one() -> None:
    built = form({"a": {"type": "array", "items": {"type": "string"}}, "ab": {}})
    field = built.fields[0]
    assert isinstance(field, ListField)
    row = field.add()
    assert built.field_at("/a/0") is row
    assert built.field_at("/a/7") is field
    assert built.field_at("/ab/x/y") is built.fields[1]
    assert built.field_at("/nope") is None


@pytest.mark.promise("TUI-3")
def test_the_tag_of_a_union_is_sent_even_if_the_schema_does_not_require_it() -> None:
    variants: list[JsonValue] = [
        {
            "type": "object",
            "title": kind.title(),
            "properties": {"kind": {"const": kind, "default": kind}, "size": {"type": "integer"}},
        }
        for kind in ("circle", "square")
    ]
    shape: JsonObject = {"oneOf": variants, "discriminator": {"propertyName": "kind"}}
    form = Form({"type": "object", "properties": {"shape": shape}, "required": ["shape"]})
    assert form.draft() == {}
    variant = form.field_at("/shape")
    assert isinstance(variant, VariantField)
    variant.choose(1)
    assert form.arguments() == {"shape": {"kind": "square"}}
    variant.choose(0)
    size = form.field_at("/shape/size")
    assert size is not None
    size.write("3")
    assert form.arguments() == {"shape": {"kind": "circle", "size": 3}}
    form.load({"shape": {"size": 3}})
    assert form.draft() == {"shape": {"size": 3}}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("schema", [{"items": False}, {"prefixItems": [], "items": False}])
def test_items_that_a_list_does_not_allow_are_errors_also_after_an_edit_as_json(schema: JsonObject) -> None:
    built, _ = only({"type": "array", **schema})
    built.load({"x": []})
    built.load_text('{"x": [1, "two"]}')
    assert built.draft() == {"x": [1, "two"]}
    assert errors(built)
    built.load_text('{"x": []}')
    assert built.arguments() == {"x": []}


@pytest.mark.promise("SDK-14", "TUI-3")
def test_loaded_arguments_may_have_other_names_of_the_parameters() -> None:
    form = Form(
        {"type": "object", "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}}},
        {"query": "text", "q": "text", "max": "limit"},
    )
    form.load({"query": "a", "limit": 1})
    assert form.arguments() == {"text": "a", "limit": 1}
    form.load_text('{"q": "b", "max": 2}')
    assert form.arguments() == {"text": "b", "limit": 2}
    form.load({"query": "a", "text": "b", "q": "c"})
    assert form.draft() == {"text": "b", "query": "a", "q": "c"}, "both spellings are an error, as in a call"


def test_a_key_for_which_a_pattern_takes_too_long_is_an_error_and_keeps_its_value() -> None:
    built, field = only({"type": "object", "patternProperties": {"^(a|a)*$": {"type": "integer"}}})
    assert isinstance(field, MapField)
    key = "a" * 60 + "!"
    field.add("a")
    field.rename(0, key)
    field.entries[0].field.write("1")
    message = "could not be validated because the schema is invalid (the search for the pattern ^(a|a)*$ took too long)"
    assert (built.draft(), errors(built)) == ({"x": {key: "1"}}, {"": message})
    built.load({"x": {key: 2}})
    assert (built.draft(), errors(built)) == ({"x": {key: 2}}, {"": message})


@pytest.mark.promise("TUI-3")
def test_the_fields_of_a_long_list_are_found_by_their_paths() -> None:
    row: JsonObject = {"type": "object", "properties": {"a/b": {"anyOf": [{"type": "integer"}, {"type": "object"}]}}}
    built, field = only({"type": "array", "items": row})
    built.load({"x": [{"a/b": number, "more": {"c": 1}} for number in range(3_000)]})
    assert isinstance(field, ListField)
    for number, found in enumerate(field.rows):
        inner = built.build_to(f"/x/{number}/a~1b")
        assert inner is found.children[0]
        assert built.field_at(f"/x/{number}/a~1b/none") is inner
    missing = [built.field_at(path) for path in ("/x/3000", "/x/-", "/x/" + "9" * 5_000, "/x/1/none", "/y", "")]
    assert missing == [field, field, field, field.rows[1], None, None]
