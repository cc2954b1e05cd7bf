"""Validation with any schema: all errors, with paths and messages."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard.models import JsonObject
from pegboard.schema.formats import FORMATS
from pegboard.schema.patterns import PatternError, compiled
from pegboard.schema.validation import validator

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYWORDS = [
    *("type", "enum", "const", "required", "properties", "items", "prefixItems", "additionalProperties", "anyOf"),
    *("oneOf", "allOf", "not", "if", "then", "$ref", "$defs", "$id", "$schema", "$anchor", "pattern", "format"),
    *("minimum", "exclusiveMinimum", "multipleOf", "minLength", "minItems", "uniqueItems", "dependencies"),
    *("patternProperties", "propertyNames", "dependentRequired", "unevaluatedProperties", "contains", "maxContains"),
]
NONSENSE = st.recursive(
    JSON | st.sampled_from(["string", "object", "array", "#", "#/$defs/a", "#/properties/a", "^(", "http://[x"]),
    lambda inner: st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=5),
    max_leaves=20,
)


def errors_of(schema: JsonValue, arguments: JsonObject) -> dict[str, str]:
    """Return the validation errors as path → message."""
    return {fault.path: fault.message for fault in validator(schema).faults(arguments)}


def of(inner: JsonValue, value: JsonValue) -> str:
    """Return the message about `value` as the property `x` with the schema `inner`; empty if it is valid."""
    return errors_of({"type": "object", "properties": {"x": inner}}, {"x": value}).get("/x", "")


@pytest.mark.promise("EXE-3")
def test_all_errors_are_reported_with_paths_in_the_order_of_the_schema() -> None:
    schema: JsonObject = {
        "type": "object",
        "required": ["b", "a/c"],
        "properties": {
            "a/c": {"type": "string"},
            "n": {"type": "integer", "maximum": 3},
            "b": {},
            "o": {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}}},
        },
        "additionalProperties": False,
    }
    faults = validator(schema).faults({"pat": 1, "o": {"l": [1, "two"]}, "n": "ten"})
    assert [(fault.path, fault.message) for fault in faults] == [
        ("/a~1c", "is required"),
        ("/n", 'must be an integer, not the text "ten"'),
        ("/b", "is required"),
        ("/o/l/1", 'must be an integer, not the text "two"'),
        ("/pat", "unknown argument"),
    ]


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"type": "integer"}, True, "must be an integer, not true"),
        ({"type": "boolean"}, 1, "must be true or false, not 1"),
        ({"type": ["string", "null"]}, 1.5, "must be text or null, not 1.5"),
        ({"type": "number"}, float("nan"), "must be a number, not nan"),
        ({"type": "array"}, {}, "must be a list, not an object"),
        ({"enum": [1, "1", None]}, True, 'must be one of 1, "1", null, not true'),
        ({"enum": []}, "x", "is not allowed: no value is valid"),
        ({"const": "a"}, "b", 'must be "a", not "b"'),
        ({"minimum": 1}, 0, "must be at least 1, not 0"),
        ({"exclusiveMinimum": 0}, 0, "must be greater than 0, not 0"),
        ({"multipleOf": 0.1}, 0.35, "must be a multiple of 0.1"),
        ({"minLength": 1}, "", "must not be empty"),
        ({"maxLength": 2}, "abc", "must have at most 2 characters, not 3"),
        ({"pattern": "^[a-z]+$"}, "a\n", "must match the pattern ^[a-z]+$"),
        ({"pattern": r"^\d$"}, "\u0661", r"must match the pattern ^\d$"),
        ({"pattern": "^(?<year>[0-9]{4})$"}, "20", "must match the pattern ^(?<year>[0-9]{4})$"),
        ({"minItems": 1}, [], "must have at least 1 item, not 0"),
        ({"uniqueItems": True}, [1, 1], "must not have the same item twice"),
        ({"format": "date"}, "2024-2-30", "must be a date like 2024-05-31"),
        ({"format": "date"}, "2023-02-30", "is not a real date: February 2023 has the days 1 to 28, not 30"),
        ({"format": "date"}, "2023-13-01", "is not a real date: months are 01 to 12, not 13"),
        (
            {"format": "date-time"},
            "2023-02-29T10:00:00Z",
            "is not a real date: February 2023 has the days 1 to 28, not 29",
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 5, "must be text or null, not 5"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "c", 'must be one of "a", "b", not "c"'),
        ({"not": {"const": 1}}, 1, "must not match the schema of `not`"),
        (False, 1, "is not allowed: no value is valid"),
    ],
)
def test_every_keyword_has_a_message(schema: JsonValue, value: JsonValue, sentence: str) -> None:
    assert of(schema, value) == sentence


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 3.0),
        ({"type": "integer"}, 10**400),
        ({"multipleOf": 0.1}, 0.3),
        ({"multipleOf": 0.01}, 10**30),
        ({"enum": [1]}, 1.0),
        ({"pattern": "b"}, "abc"),
        ({"format": "no-such-format"}, "x"),
        ({"minLength": 3}, 5),
    ],
)
def test_values_that_the_standard_allows_are_valid(schema: JsonValue, value: JsonValue) -> None:
    assert of(schema, value) == ""


def test_an_unknown_argument_suggests_a_similar_unset_one() -> None:
    schema: JsonObject = {"properties": {"path": {}, "paths": {}}, "additionalProperties": False}
    assert errors_of(schema, {"pth": 1}) == {"/pth": "unknown argument; did you mean `path`?"}
    assert errors_of(schema, {"pth": 1, "path": 2}) == {"/pth": "unknown argument; did you mean `paths`?"}


def test_errors_have_the_path_of_the_object_or_of_the_missing_field() -> None:
    assert errors_of({"minProperties": 1}, {}) == {"": "must have at least 1 property, not 0"}
    assert errors_of({"dependentRequired": {"a": ["b"]}}, {"a": 1}) == {"/b": "is required if `a` is set"}
    draft_7: JsonObject = {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}
    assert errors_of(draft_7, {"a": 1}) == {"/b": "is required if `a` is set"}
    assert errors_of({"propertyNames": {"pattern": "^[a-z]+$"}}, {"A": 1}) == {
        "/A": "the name must match the pattern ^[a-z]+$"
    }


def test_errors_of_a_union_are_those_of_the_most_likely_variant() -> None:
    email: JsonObject = {
        "properties": {"kind": {"const": "email"}, "to": {"type": "string"}},
        "required": ["kind", "to"],
    }
    sms: JsonObject = {
        "properties": {"kind": {"const": "sms"}, "phone": {"type": "string"}},
        "required": ["kind", "phone"],
    }
    assert errors_of({"oneOf": [email, sms]}, {"kind": "sms", "phone": 5}) == {"/phone": "must be text, not 5"}
    assert list(errors_of({"oneOf": [email, sms]}, {})) == [""]
    assert of({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, 0) == "must be at least 1, not 0"


def test_the_dialect_follows_the_schema_and_older_keywords_are_supported() -> None:
    bounds: JsonObject = {"type": "integer", "minimum": 1, "exclusiveMinimum": True}
    assert of(bounds, 1) == "must be greater than 1, not 1"
    pair: JsonObject = {"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False}
    for dialect in ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"):
        schema: JsonObject = {"$schema": dialect, "properties": {"x": pair}}
        assert errors_of(schema, {"x": [1, "a"]}) == {}
        assert errors_of(schema, {"x": ["a", "a"]}) == {"/x/0": 'must be an integer, not the text "a"'}
        assert errors_of(schema, {"x": [1, "a", 2]}) == {"/x": "has too many items"}


@pytest.mark.promise("EXE-3")
@pytest.mark.parametrize(
    ("schema", "flaw"),
    [
        ({"properties": {"x": {"type": "any"}}}, "/properties/x/type"),
        ({"properties": {"x": {"required": True}}}, "/properties/x/required"),
        ({"properties": {"x": {"pattern": "("}}}, "/properties/x/pattern"),
        ({"properties": {"x": {"$ref": "#/$defs/Missing"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"$ref": "https://example.org/s.json"}}}, "/properties/x/$ref"),
        ({"properties": {"x": 5}}, "/properties/x"),
        ({"properties": 5}, "/properties"),
        ({"patternProperties": {"(": {}}}, "/patternProperties/("),
        ("nonsense", ""),
        ([], ""),
        (None, ""),
    ],
)
def test_an_invalid_keyword_is_reported_and_removed_and_the_rest_applies(schema: JsonValue, flaw: str) -> None:
    assert [one.path for one in validator(schema).flaws] == [flaw]
    assert validator(schema).faults({"x": 1}) == ()
    if isinstance(schema, dict):
        assert errors_of({**schema, "required": ["y"]}, {"x": 1}) == {"/y": "is required"}


def test_references_are_followed_within_the_schema_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a reference was fetched")

    monkeypatch.setattr(socket, "create_connection", refuse)
    schema: JsonObject = {
        "properties": {
            "remote": {"$ref": "http://127.0.0.1:9/x.json"},
            "named": {"$ref": "#item"},
            "sibling": {"$ref": "#/properties/plain", "maximum": 3},
            "plain": {"type": "integer"},
            "next": {"$ref": "#"},
        },
        "$defs": {"i": {"$anchor": "item", "type": "string"}},
    }
    faults = errors_of(schema, {"remote": 1, "named": 2, "sibling": 4, "next": {"plain": "x"}})
    assert list(faults) == ["/named", "/sibling", "/next/plain"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"properties": {"a": {"$ref": "#/x-own/list"}}, "x-own": {"list": {"type": "nonsense", "items": 5}}},
        {"properties": {"a": {"$ref": "#/properties/a/type"}}},
        {"$id": "http://[", "properties": {"a": {"$ref": "b"}}},
        {"$id": "x/", "properties": {"a": {"$id": "y/", "$ref": "#/properties/a"}}},
    ],
)
def test_recursive_and_invalid_references_raise_nothing(schema: JsonValue) -> None:
    assert isinstance(validator(schema).faults({"a": [1]}), tuple)


def test_too_deeply_nested_arguments_and_schemas_are_an_error() -> None:
    deep: JsonValue = 1
    for _ in range(5000):
        deep = [deep]
    recursive: JsonObject = {
        "properties": {"x": {"$ref": "#/$defs/l"}},
        "$defs": {"l": {"items": {"$ref": "#/$defs/l"}}},
    }
    assert errors_of(recursive, {"x": deep}) == {"": "is nested too deeply to be validated"}
    assert validator({"enum": [deep]}).flaws


@settings(max_examples=200)
@given(schema=NONSENSE, arguments=st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON, max_size=3))
def test_no_schema_and_no_arguments_raise_anything(schema: JsonValue, arguments: JsonObject) -> None:
    assert isinstance(validator(schema).faults(arguments), tuple)


def test_the_schema_and_the_arguments_given_stay_as_they_were() -> None:
    schema: JsonObject = {"$schema": "x", "properties": {"a": {"type": "any", "items": [{}]}}}
    before = json.dumps(schema)
    validator(schema).faults({"a": 1})
    assert json.dumps(schema) == before


def test_the_validator_of_a_schema_is_cached() -> None:
    schema: JsonObject = {"type": "object"}
    assert validator(schema) is validator(schema)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", ["2024-02-29"], ["2024-2-29", "20240229", "2023-02-29"]),
        (
            "date-time",
            ["2024-05-06T07:08:09Z", "2024-05-06t07:08:09.123+02:00", "2016-12-31T23:59:60Z", "2024-05-06T07:08:09"],
            [
                "2024-05-06T07:08",
                "2024-05-06",
                "2024-05-06T25:08:09Z",
                "2024-05-06T07:08:09+99:00",
                "2024-05-06T07:08:09+05:99",
            ],
        ),
        ("time", ["07:08:09Z", "07:08:09", "07:08:09.5"], ["07:08", "7:08:09Z", "25:08:09", "07:08:09+05:60"]),
        ("duration", ["P1D", "PT1.5S", "P1Y2M3DT4H", "P2W"], ["P", "PT", "1D", "P1DT"]),
        ("email", ["a@b"], ["a", "a b@c", "@"]),
        ("hostname", ["example.org", "a-b"], ["-a", "a..b", "a_b"]),
        ("ipv4", ["192.0.2.1"], ["1.2.3", "01.2.3.4"]),
        ("ipv6", ["::1"], ["::g", "1.2.3.4"]),
        (
            "regex",
            [
                "a+",
                r"(?<year>\d{4})",
                r"\p{L}+",
                r"\u{1F600}",
                "[^]",
                r"a\/b",
                r"\cA",
                "(?i:a)",
                "(?<=a)b(?!c)",
                "[+]+",
            ],
            ["(", "(?P<year>a)", "(?i)a", "(?>a)", r"\A", r"\Z", r"\a", "x*+", "x{1}+"],
        ),
        ("uri", ["https://a/b?c#d", "urn:x:y", "mailto:a@b"], ["a/b", "http://a b", "//x"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000", "x"]),
    ],
)
def test_formats_are_checked(name: str, good: list[str], bad: list[str]) -> None:
    fits = FORMATS[name][1]
    assert [text for text in good if not fits(text)] == []
    assert [text for text in bad if fits(text)] == []


@pytest.mark.promise("EXE-3")
def test_every_example_of_the_corpus_is_validated_correctly(data_folder: Path) -> None:
    wrong: list[str] = []
    for file in ("open.jsonl", "hardcases.jsonl"):
        for line in (data_folder / "schemas" / file).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            checker = validator(row["schema"])
            wrong += [f"{row['id']} refuses {example}" for example in row["valid"] if checker.faults(example)]
            for example in row["invalid"]:
                faults = checker.faults(example)
                if not faults or not all(re.fullmatch("(/.*)?", fault.path) and fault.message for fault in faults):
                    wrong.append(f"{row['id']} takes {example}")
    assert wrong == []


@pytest.mark.parametrize(
    ("pattern", "fitting", "failing"),
    [
        (r"^\S+$", "a\u0085b", "a\u00a0b"),
        (r"^\s$", "\ufeff", "\x1c"),
        (r"^[^\s]$", "\x1c", "\u3000"),
        (r"^[\S-]$", "-", "\u2029"),
        ("^.$", "\u0085", "\u2028"),
        (r"\bé", "aé", "é"),
        (r"^[\p{L}\d]$", "é", "\u0663"),
        (r"^[\w-\.]+$", "a.b-c", "é"),
        (r"^[\\d-x]$", "e", "5"),
        (r"^\cA$", "\x01", "cA"),
        (r"^\u{1F600}$", "\U0001f600", "u"),
        (r"^[\u{1F600}-\u{1F64F}]$", "\U0001f601", "u"),
        (r"^\ud83d\ude00$", "\U0001f600", "x"),
        (r"^(?<x>a|b)\k<x>$", "bb", "ab"),
        ("^a{,2}$", "a{,2}", "a"),
        ("^(foo){e<=1}$", "foo{e<=1}", "fo"),
        ("^[[:alpha:]]$", "a]", "a"),
        ("^[^]$", "\n", ""),
        ("^[]?$", "", "]"),
        (r"\Aa\Z", "a", "a\n"),  # Python's, which tools in Python have
    ],
)
def test_patterns_follow_javascript(pattern: str, fitting: str, failing: str) -> None:
    assert of({"pattern": pattern}, fitting) == ""
    assert of({"pattern": pattern}, failing) == f"must match the pattern {pattern}"


def test_an_exponential_pattern_is_an_error() -> None:
    [fault] = validator({"properties": {"x": {"pattern": "^(a|a)*$"}}}).faults({"x": "a" * 60 + "b"})
    assert "took too long" in fault.message


@pytest.mark.promise("SEC-8")
@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("((((a{100}){100}){100}){100})", "repeats too much"),
        ("(?:(?:a|b){2}c{3,}){1000000}", "repeats too much"),
        ("(a{200}){200}" * 2, "repeats too much"),
        pytest.param("a" * 1_000_000, "is too long", id="long"),
        pytest.param("[" * 20_000, "a class is not closed", id="classes"),
    ],
)
def test_a_pattern_that_would_take_much_memory_or_time_is_invalid(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        compiled(pattern)
    [flaw] = validator({"properties": {"x": {"pattern": pattern}}}).flaws
    assert flaw.message == "is not a supported regular expression"
    [invalid] = validator({"properties": {"x": {"format": "regex"}}}).faults({"x": pattern})
    assert invalid.message == "must be a regular expression"


@pytest.mark.parametrize(
    ("pattern", "fitting"),
    [
        ("^(?:[ab]{2}){0,1000000}$", "abba"),
        pytest.param("^[a-z]{9000}$", "a" * 9_000, id="long"),
        ("^(?:(?=a)a{50}|(?<x>b)){150}$", "b" * 150),
        (r"^(?:\(\{\)|[()]){3}$", "()("),
    ],
)
def test_a_pattern_with_large_counts_is_used_if_it_takes_little_memory(pattern: str, fitting: str) -> None:
    assert of({"pattern": pattern}, fitting) == ""
    assert of({"pattern": pattern}, f"{fitting}-") != ""


def test_a_value_that_matches_two_variants_of_one_of_is_rejected() -> None:
    overlapping: JsonObject = {"oneOf": [{"minimum": 1}, {"maximum": 5}, {"const": 9}]}
    assert of(overlapping, 3) == "matches more than one of the variants, but must match exactly one"
    assert of(overlapping, 9) == "matches more than one of the variants, but must match exactly one"
    assert of(overlapping, 7) == ""
    assert of(overlapping, 0) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"required": ["a"]}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_reference_to_itself_allows_everything(schema: JsonObject) -> None:
    assert validator(schema).faults({"x": 1}) == ()


def test_a_schema_that_includes_itself_still_applies() -> None:
    assert errors_of({"allOf": [{"$ref": "#"}], "required": ["a"]}, {}) == {"/a": "is required"}


@pytest.mark.promise("EXE-3")
def test_two_references_beside_each_other_both_apply() -> None:
    schema: JsonObject = {
        "properties": {"x": {"$ref": "#/$defs/whole", "$dynamicRef": "#large"}},
        "$defs": {"whole": {"type": "integer"}, "large": {"$dynamicAnchor": "large", "minimum": 5}},
    }
    assert errors_of(schema, {"x": 3}) == {"/x": "must be at least 5, not 3"}
    assert errors_of(schema, {"x": 5.5}) == {"/x": "must be an integer, not 5.5"}
    assert errors_of(schema, {"x": 5}) == {}


@pytest.mark.promise("EXE-3")
def test_a_dynamic_reference_is_checked_for_each_path_that_leads_to_it() -> None:
    schema: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/root",
        "properties": {"x": {"allOf": [{"$ref": "list"}, {"$ref": "integers"}]}},
        "$defs": {
            "list": {
                "$id": "list",
                "items": {"$dynamicRef": "#item"},
                "$defs": {"any": {"$dynamicAnchor": "item"}},
            },
            "integers": {
                "$id": "integers",
                "$ref": "list",
                "$defs": {"integer": {"$dynamicAnchor": "item", "type": "integer"}},
            },
        },
    }
    assert errors_of(schema, {"x": [1, "a"]}) == {"/x/1": 'must be an integer, not the text "a"'}


@pytest.mark.timeout(30)
@pytest.mark.promise("EXE-3", "SEC-8")
def test_a_small_schema_whose_references_double_60_times_is_checked_in_no_time() -> None:
    twice: JsonObject = {
        str(level): {"allOf": [{"$ref": f"#/$defs/{level + 1}"}, {"$ref": f"#/$defs/{level + 1}"}]}
        for level in range(60)
    }
    schema: JsonObject = {"properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": {**twice, "60": {"minimum": 5}}}
    assert errors_of(schema, {"x": 5}) == {}
    assert set(errors_of(schema, {"x": 3})) == {"/x"}
    few: JsonObject = {"properties": {"x": {"$ref": "#/$defs/56"}}, "$defs": {**twice, "60": {"minimum": 5}}}
    assert {fault.message for fault in validator(few).faults({"x": 3})} == {"must be at least 5, not 3"}
