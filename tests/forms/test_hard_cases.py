"""Requirements of each hard case beyond its valid and invalid examples."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import JsonValue
from rows import Row

from pegboard.errors import FormFaults
from pegboard.forms import (
    ChoiceField,
    Field,
    Form,
    ListField,
    MapField,
    MultiChoiceField,
    SectionField,
    SwitchField,
    TextField,
    TupleField,
    VariantField,
)
from pegboard.models import JsonObject

Hard = Callable[[str], Form]


@pytest.fixture
def hard(hard_cases: dict[str, Row]) -> Hard:
    """Return a function that builds the form of a hard case."""
    return lambda name: Form(hard_cases[name].schema)


def errors(form: Form) -> dict[str, str]:
    """Return the validation errors as path → message."""
    return {fault.path: fault.message for fault in form.faults()}


def at(form: Form, path: str) -> Field:
    """Return the field with exactly this path."""
    found = [field for field in form.walk() if field.path == path]
    assert found, path
    return found[-1]


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize(
    ("name", "kinds"),
    {
        "H01": {"a": "text", "n": "number", "x": "number"},
        "H02": {"l": "list", "o": "section"},
        "H05": {"b": "switch"},
        "H07": {"t": "choice"},
        "H10": {"n": "number"},
        "H14": {"p": "choice"},
        "H15": {"v": "choice"},
        "H18": {"v": "variant"},
        "H19": {"urls": "variant"},
        "H20": {"ops": "list"},
        "H22": {"userId": "number", "title": "text"},
        "H23": {"o": "section"},
        "H24": {"a": "section", "b": "section"},
        "H26": {"v": "number", "next": "section"},
        "H27": {"a": "json"},
        "H28": {"labels": "map", "nums": "map"},
        "H29": {"m": "map"},
        "H30": {"o": "map", "any": "variant"},
        "H31": {"l": "list", "k": "list"},
        "H32": {"f": "multi"},
        "H34": {"m": "list", "t": "tuple"},
        "H35": {"bbox": "tuple"},
        "H41": {"a": "text", "b": "text", "mode": "choice"},
        "H42": {"": "map"},
        "H43": {},
        "H48": {"a": "text", "ghost": "variant"},
        "H49": {"c": "json"},
        "H50": {"dag_id": "text", "conf": "map", "x": "json"},
    }.items(),
)
def test_each_case_has_the_right_kinds_of_field(hard: Hard, name: str, kinds: dict[str, str]) -> None:
    assert {field.name: field.kind for field in hard(name).fields} == kinds


@pytest.mark.parametrize("name", ["H01", "H02", "H03", "H06", "H07", "H10", "H28", "H30", "H36", "H38", "H42", "H43"])
def test_an_untouched_or_cleared_form_sends_no_optional_argument(hard: Hard, name: str) -> None:
    form = hard(name)
    assert form.arguments() == {}
    for field in form.fields:
        field.write("1")
        field.write("")
        field.set_null()
        field.unset()
    assert form.arguments() == {}


def test_empty_lists_and_objects_are_sent_on_request(hard: Hard) -> None:  # H02
    form = hard("H02")
    items, section = form.fields
    assert isinstance(items, ListField)
    assert isinstance(section, SectionField)
    items.empty()
    section.empty()
    assert form.arguments() == {"l": [], "o": {}}


@pytest.mark.parametrize("name", ["H05", "H06"])
def test_a_switch_has_three_states(hard: Hard, name: str) -> None:
    form = hard(name)
    switch = form.fields[0]
    assert isinstance(switch, SwitchField)
    assert switch.state == "unset"
    sent = []
    for index in (0, 1):
        switch.choose(index)
        sent.append(form.arguments())
    assert sent == [{"b": True}, {"b": False}]


def test_null_is_a_state_only_where_the_schema_allows_it(hard: Hard) -> None:  # H07, H08, H09
    for name, nullable in (("H07", True), ("H08", True), ("H09", False)):
        choice = hard(name).fields[0]
        assert isinstance(choice, ChoiceField)
        assert choice.nullable is nullable
        assert [option.value for option in choice.options] == (["a", "b"] if nullable else ["a"])


def test_switching_a_variant_sends_the_visible_one_and_keeps_the_other(hard: Hard) -> None:  # H19
    form = hard("H19")
    urls = form.fields[0]
    assert isinstance(urls, VariantField)
    urls.inner.write("one")
    urls.choose(1)
    assert isinstance(urls.inner, ListField)
    urls.inner.add().write("two")
    assert form.arguments() == {"urls": ["two"]}
    urls.choose(0)
    assert form.arguments() == {"urls": "one"}


def test_choosing_a_variant_fills_in_its_constant(hard: Hard) -> None:  # H20
    form = hard("H20")
    operations = form.fields[0]
    assert isinstance(operations, ListField)
    row = operations.add()
    assert isinstance(row, VariantField)
    assert row.variants == ("add", "del")
    row.choose(1)
    assert form.draft() == {"ops": [{"kind": "del"}]}
    assert errors(form) == {"/ops/0/id": "is required"}


def test_a_chosen_variant_is_sent_with_its_constant_before_its_fields_are_read() -> None:
    choice: JsonObject = {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"]}
    form = Form({"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "object", **choice}]}}})
    field = form.fields[0]
    assert isinstance(field, VariantField)
    field.choose(1)
    assert form.arguments() == {"x": {"kind": "a"}}


def test_a_union_at_the_root_is_a_choice_of_variants(hard: Hard) -> None:  # H21
    form = hard("H21")
    assert isinstance(form.root, VariantField)
    assert form.root.variants == ("email", "sms")
    assert form.draft() == {}
    form.root.choose(1)
    at(form, "/phone").write("1")
    assert form.arguments() == {"kind": "sms", "phone": "1"}
    form.load({"kind": "sms", "address": "a"})
    assert errors(form) == {"/phone": "is required"}


def test_keywords_beside_a_reference_apply(hard: Hard) -> None:  # H23
    assert hard("H23").fields[0].description == "sibling"


@pytest.mark.parametrize(
    ("name", "steps"), [("H25", ["root", "children", "0", "children"]), ("H26", ["next", "next", "next"])]
)
def test_recursion_unfolds_on_demand(hard: Hard, name: str, steps: list[str]) -> None:
    form = hard(name)
    before = len(list(form.walk()))
    field = form.root
    for step in steps:
        inside = [field.add()] if isinstance(field, ListField) else field.children
        field = next(inner for inner in inside if inner.name == step)
    assert before < 6
    assert len(list(form.walk())) > before


def test_a_json_field_has_a_reason(hard: Hard) -> None:  # H27, H48, H49, H50
    reasons = {name: [field.reason for field in hard(name).fields if field.reason] for name in ("H27", "H48", "H49")}
    assert reasons == {
        "H27": ["the target of the reference #/$defs/Missing does not exist"],
        "H48": ["the schema requires it without describing it"],
        "H49": ["the schema allows no value"],
    }
    assert hard("H50").fields[2].reason == "`type` must name JSON types"


def test_entries_are_added_named_and_ordered_and_keys_are_unique(hard: Hard) -> None:  # H28
    form = hard("H28")
    labels = form.fields[0]
    assert isinstance(labels, MapField)
    for text in ("x", "y", "z"):
        labels.add().field.write(text)
    assert errors(form) == {"/labels/": "has no name yet"}
    labels.rename(0, "b")
    labels.rename(1, "b")
    labels.name_empty(2)
    assert labels.key_fault(1) == "is given twice"
    assert errors(form) == {"/labels/b": "is given twice"}
    labels.rename(1, "a")
    labels.move(2, -2)
    assert json.dumps(form.arguments()) == '{"labels": {"": "z", "b": "x", "a": "y"}}'
    labels.rename(0, "")
    assert errors(form) == {"/labels/": "has no name yet"}


def test_the_error_of_a_key_appears_at_its_entry(hard: Hard) -> None:  # H29
    form = hard("H29")
    form.load({"m": {"AB": ["x"]}})
    assert errors(form) == {"/m/AB": "the name must match the pattern ^[a-z]+$"}


def test_several_of_the_listed_values_make_a_list(hard: Hard) -> None:  # H32
    form = hard("H32")
    formats = form.fields[0]
    assert isinstance(formats, MultiChoiceField)
    formats.toggle(0)
    formats.toggle(2)
    assert form.arguments() == {"f": ["md", "links"]}
    formats.toggle(0)
    formats.toggle(2)
    assert form.arguments() == {}


def test_titles_are_shown_and_values_sent(hard: Hard) -> None:  # H33
    first, second = hard("H33").fields
    assert isinstance(first, ChoiceField)
    assert isinstance(second, ChoiceField)
    assert [(option.label, option.value) for option in first.options] == [("Cats", "pet-1"), ("Dogs", "pet-2")]
    assert [option.label for option in second.options] == ["Aa", "Bb"]


def test_tuples_have_rows_from_the_start(hard: Hard) -> None:  # H34, H35
    for name, path, length in (("H34", "/t", 2), ("H35", "/bbox", 4)):
        field = at(hard(name), path)
        assert isinstance(field, TupleField)
        assert (len(field.rows), field.fixed, field.can_add) == (length, length, False)


def test_defaults_are_shown_and_only_required_valid_ones_sent(hard: Hard) -> None:  # H36, H37, H38
    assert [field.default for field in hard("H36").fields] == [10, {"s": "y"}]
    assert hard("H37").arguments() == {"r": "us-east-1"}
    assert hard("H38").arguments() == {}


def test_errors_name_the_limit(hard: Hard) -> None:  # H39
    form = hard("H39")
    form.load({"p": 0, "q": 1.5})
    assert errors(form) == {"/p": "must be greater than 0, not 0", "/q": "must be at most 1, not 1.5"}


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"a": "1", "b": "2", "mode": "y"}, {"": "must not match the schema of `not`"}),
        ({"mode": "x"}, {"/a": "is required"}),
        ({"b": "1"}, {"/mode": "is required if `b` is set"}),
    ],
)
def test_rules_across_fields_are_reported(hard: Hard, arguments: JsonObject, faults: dict[str, str]) -> None:  # H41
    form = hard("H41")
    form.load(arguments)
    assert errors(form) == faults
    assert "b needs mode" in form.root.limits


def test_markup_stays_as_it_is(hard: Hard) -> None:  # H45
    field = hard("H45").fields[0]
    assert isinstance(field, ChoiceField)
    assert "[/red]" in field.description
    assert [option.label for option in field.options] == ["[red]", "[/]", "a"]


def test_nested_errors_have_their_path_and_field(hard: Hard) -> None:  # H47
    form = hard("H47")
    form.load({"a": {"b": {"c": {"d": {"e": [{}]}}}}})
    assert errors(form) == {"/a/b/c/d/e/0/f": "is required"}
    assert at(form, "/a/b/c/d/e/0/f").kind == "number"


def test_text_is_kept_including_trailing_spaces(hard: Hard) -> None:  # H03, H16, H17
    for name, path in (("H03", "/a"), ("H16", "/text"), ("H17", "/body")):
        form = hard(name)
        for text in ("null", "007", ' {"a": 1}', "a\nb\tc", "trailing\n"):
            field = at(form, path)
            assert isinstance(field, TextField)
            field.write(text)
            assert form.arguments() == {path[1:]: text}


# --- Schemas of unbounded size ---


def deep(levels: int) -> JsonValue:
    """Return a schema of nested required sections."""
    schema: JsonValue = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return schema


def doubling(keyword: str) -> JsonValue:
    """Return a schema in which each of thirty definitions refers to the next one twice."""
    steps: JsonObject = {f"s{n}": {keyword: [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(30)}
    return {"properties": {"x": {"$ref": "#/$defs/s0"}}, "$defs": {**steps, "s30": {"type": "string"}}}


def of_itself(schema: JsonObject) -> JsonValue:
    """Return a schema of a property that can refer to itself."""
    return {"properties": {"x": {"$ref": "#/$defs/x"}}, "required": ["x"], "$defs": {"x": schema}}


ITSELF: JsonValue = {"$ref": "#/$defs/x"}
ENDLESS: dict[str, JsonValue] = {
    "deep": deep(200),
    "wide": {"properties": {f"p{n}": {"type": "string"} for n in range(10_000)}},
    **{f"doubling {keyword}": doubling(keyword) for keyword in ("allOf", "anyOf", "oneOf")},
    "reference to itself": of_itself({"$ref": "#/$defs/x"}),
    "all of itself": of_itself({"allOf": [ITSELF, ITSELF], "type": "string"}),
    "any of itself": of_itself({"anyOf": [ITSELF, {"type": "string"}]}),
    "any of itself and more": of_itself({"anyOf": [ITSELF, {"type": "string"}, {"type": "null"}], "minLength": 1}),
    "requires itself": of_itself({"properties": {"x": ITSELF, "c": {"const": 1}}, "required": ["x", "c"]}),
    "tuple of itself": of_itself({"type": "array", "prefixItems": [ITSELF, ITSELF], "minItems": 2}),
    "list of itself": of_itself({"type": "array", "items": ITSELF}),
    "anything": {"properties": {"x": {}}},
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("value", ["s", 1, [[], [[]]], {"x": {"x": 1}}, "deep"])
def test_recursive_and_large_schemas_need_bounded_work(name: str, value: JsonValue) -> None:
    if value == "deep":
        for _ in range(150):
            value = {"x": [value]}
    form = Form(ENDLESS[name])
    untouched = form.draft()
    opened = [inner for field in list(form.walk()) for inner in field.children]
    assert all((field.state, field.id, field.path) for field in opened)
    assert form.draft() == untouched
    form.load({"x": value})
    assert form.draft() == {"x": value}
    form.load_text(form.text())
    assert form.draft() == {"x": value}
    refused = bool(form.faults())
    try:
        form.arguments()
    except FormFaults:
        assert refused
    else:
        assert not refused
