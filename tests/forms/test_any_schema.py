"""Random changes to forms of random schemas: no exception is raised and no value changes unnoticed.

Schemas are generated from arbitrary JSON, hence `Any` in the types of the strategies.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pydantic import JsonValue

from pegboard.errors import FormFaults
from pegboard.forms import (
    ChoiceField,
    Container,
    Field,
    Form,
    ListField,
    MapField,
    MultiChoiceField,
    TextField,
    VariantField,
)
from pegboard.models import JsonObject

MOST_FIELDS = 150
"""Maximum number of fields to inspect. A schema can contain itself."""

NAMES = st.sampled_from(["a", "b", "c", "kind", "", "$x", "a/b", "~", "é"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 1.5, 10**20, -0.0, 1e300])
    | st.sampled_from(["", "a", "b", " ", "1", "true", "null", "2024-05-06", "x\ny"])
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nowhere", "#/$defs/a/items", "a", ""])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas that contain these, most of them valid, some partly nonsense."""
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=3)
    required: dict[str, st.SearchStrategy[Any]] = {"required": st.lists(NAMES, max_size=2)}
    count = st.integers(0, 3)
    of_type: list[st.SearchStrategy[Any]] = [
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": named},
            optional={**required, "additionalProperties": inner, "title": st.sampled_from(["A", "B"])},
        ),
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "additionalProperties": inner,
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "("]), inner, max_size=2),
                "propertyNames": st.sampled_from([{"enum": ["a", "b"]}, {"pattern": "^a"}, {"maxLength": 1}]),
                "minProperties": count,
            },
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"minItems": count}),
        st.fixed_dictionaries({"type": st.just("array"), "prefixItems": several}, optional={"items": inner}),
        st.fixed_dictionaries({"type": st.just("array"), "items": several, "additionalItems": inner}),
        st.fixed_dictionaries({"type": st.just("array"), "contains": inner, "uniqueItems": st.booleans()}),
        st.fixed_dictionaries({"anyOf": several}, optional={"properties": named, **required}),
        st.fixed_dictionaries({"oneOf": several}, optional={"default": VALUES}),
        st.fixed_dictionaries({"allOf": several}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner, "properties": named}),
        st.fixed_dictionaries({"dependentSchemas": named, "dependentRequired": st.dictionaries(NAMES, st.just(["a"]))}),
        st.fixed_dictionaries({"$ref": REFERENCES}, optional={"title": st.just("T"), "properties": named}),
        st.dictionaries(
            st.sampled_from(["type", "properties", "items", "enum", "anyOf", "$ref", "not"]), inner | VALUES
        ),
    ]
    return st.one_of(of_type)


LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean", ["string", "null"], ["integer", "array"]])},
        optional={
            "default": VALUES,
            "enum": st.lists(SCALARS, max_size=3),
            "format": st.sampled_from(["date", "password", "x"]),
            "minimum": st.integers(-1, 1),
            "pattern": st.sampled_from(["^a", "[", "(a|a)*$"]),
        },
    ),
    st.fixed_dictionaries({"const": SCALARS}),
    st.fixed_dictionaries({"enum": st.lists(VALUES, max_size=3)}),
    st.fixed_dictionaries({"$ref": REFERENCES}),
    st.booleans(),
    st.just({}),
)
SCHEMAS = st.recursive(LEAVES, schemas, max_leaves=8)
WHOLE: st.SearchStrategy[Any] = (
    st.fixed_dictionaries(
        {"properties": st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=4)},
        optional={
            "required": st.lists(NAMES, max_size=3),
            "$defs": st.fixed_dictionaries({"a": SCHEMAS, "b": SCHEMAS}),
            "additionalProperties": SCHEMAS,
            "anyOf": st.lists(SCHEMAS, min_size=1, max_size=2),
            "$schema": st.sampled_from(["http://json-schema.org/draft-07/schema#", "x"]),
        },
    )
    | SCHEMAS
    | VALUES
)
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)
TEXTS = st.sampled_from(
    ["", " ", "1", "1.0", "ten", "true", "null", "a", '"a"', "[1]", "[", '{"a": 1}', '{"kind": "a"}']
)


def exact(value: JsonValue) -> str:
    """Return JSON that distinguishes `1`, `1.0` and `true`."""
    return json.dumps(value, sort_keys=True)


def fields_of(form: Form) -> list[Field]:
    """Return the fields of a form, outer ones first, opening sections up to a limit."""
    found, queue = list[Field](), [form.root]
    while queue and len(found) < MOST_FIELDS:
        found.append(queue.pop(0))
        queue += found[-1].children
    return found


def read_everything(form: Form) -> None:
    """Read everything that an interface shows."""
    for field in fields_of(form):
        assert field.state in {"unset", "null", "value"}
        assert all(isinstance(text, str) for text in (field.text, field.type_label, field.limits, field.reason))
        assert field.path == "" or field.path.startswith("/")
        _ = field.is_prefilled, field.is_filled, field.is_typed, field.can_recall
        if isinstance(field, MapField):
            _ = [field.key_fault(index) for index in range(len(field.entries))]
        if isinstance(field, VariantField):
            assert len(set(field.variants)) == len(field.variants) > field.chosen


class AnyForm(RuleBasedStateMachine):
    """Form of any schema, changed by any of its methods."""

    @initialize(schema=WHOLE)
    def build(self, schema: JsonValue) -> None:
        self.schema = schema
        self.form = Form(schema)

    def field(self, number: int) -> Field:
        found = fields_of(self.form)
        return found[number % len(found)]

    @rule(arguments=ARGUMENTS)
    def load(self, arguments: JsonObject) -> None:
        self.form.load(arguments)
        assert exact(self.form.draft()) == exact(arguments)
        assert not self.form.has_text_fault

    @rule(arguments=ARGUMENTS)
    def load_text(self, arguments: JsonObject) -> None:
        self.form.load_text(json.dumps(arguments))
        assert exact(self.form.draft()) == exact(arguments)

    @rule(text=TEXTS)
    def load_bad_text(self, text: str) -> None:
        before = exact(self.form.draft())
        self.form.load_text(text)
        if self.form.has_text_fault:
            assert self.form.text() == text
            self.form.drop_text()
            assert exact(self.form.draft()) == before

    @rule(number=st.integers(0, 200), text=TEXTS)
    def write(self, number: int, text: str) -> None:
        self.field(number).write(text)

    @rule(number=st.integers(0, 200), value=VALUES)
    def load_a_field(self, number: int, value: JsonValue) -> None:
        field = self.field(number)
        field.load(value)
        assert exact(field.draft()) == exact(value)

    @rule(number=st.integers(0, 200))
    def set_null(self, number: int) -> None:
        self.field(number).set_null()

    @rule(number=st.integers(0, 200))
    def unset_and_recall(self, number: int) -> None:
        field = self.field(number)
        before = exact(field.draft()) if field.is_filled else None
        field.unset()
        if before is not None and field.can_recall:
            field.recall()
            assert exact(field.draft()) == before

    @rule(number=st.integers(0, 200))
    def unset(self, number: int) -> None:
        field = self.field(number)
        field.unset()
        assert field.state == "unset" or field is self.form.root

    @rule(number=st.integers(0, 200))
    def recall(self, number: int) -> None:
        self.field(number).recall()

    @rule(number=st.integers(0, 200))
    def empty(self, number: int) -> None:
        field = self.field(number)
        if isinstance(field, TextField | Container):
            field.empty()

    @rule(number=st.integers(0, 200), index=st.integers(0, 5))
    def choose(self, number: int, index: int) -> None:
        field = self.field(number)
        if isinstance(field, ChoiceField) and field.options:
            field.choose(index % len(field.options))
            assert field.chosen is not None
        elif isinstance(field, MultiChoiceField) and field.options:
            field.toggle(index % len(field.options))
        elif isinstance(field, VariantField):
            self.switch_away_and_back(field, index % len(field.variants))
            field.choose(index % len(field.variants))

    @staticmethod
    def switch_away_and_back(field: VariantField, index: int) -> None:
        if field.is_raw or field.state == "null":
            return
        field.choose(field.chosen)
        before, chosen = (field.state, exact(field.draft()) if field.state != "unset" else ""), field.chosen
        field.choose(index)
        field.choose(chosen)
        assert (field.state, exact(field.draft()) if field.state != "unset" else "") == before

    @rule(number=st.integers(0, 200), index=st.integers(0, 5), key=NAMES, by=st.integers(-2, 2))
    def change_rows(self, number: int, index: int, key: str, by: int) -> None:
        field = self.field(number)
        if isinstance(field, ListField):
            self.change_list(field, index, by)
        elif isinstance(field, MapField):
            self.change_map(field, index, key, by)

    @staticmethod
    def change_list(field: ListField, index: int, by: int) -> None:
        if field.can_add:
            row = field.add(None if index > 2 else min(index, len(field.rows)))
            assert row in field.rows
        if field.rows:
            before = len(field.rows)
            field.move(index % len(field.rows), by)
            assert len(field.rows) == before
            if by > 0:
                field.remove(index % len(field.rows))

    @staticmethod
    def change_map(field: MapField, index: int, key: str, by: int) -> None:
        field.add(key if index % 2 else "")
        field.rename(index % len(field.entries), key)
        field.move(index % len(field.entries), by)
        if by > 0:
            field.remove(index % len(field.entries))

    @rule()
    def take_over(self) -> None:
        other = Form(self.schema)
        other.take_over(self.form)
        other.faults()

    @rule(schema=WHOLE)
    def change_the_schema(self, schema: JsonValue) -> None:
        before, self.form, self.schema = self.form, Form(schema), schema
        self.form.take_over(before)

    @rule()
    def reset(self) -> None:
        self.form.reset()
        assert exact(self.form.draft()) == exact(Form(self.schema).draft())
        assert not any(field.touched for field in self.form.walk())

    @invariant()
    def looking_changes_nothing(self) -> None:
        before = exact(self.form.draft()), self.form.text(), self.form.faults()
        read_everything(self.form)
        assert (exact(self.form.draft()), self.form.text(), self.form.faults()) == before

    @invariant()
    def arguments_are_valid_or_refused(self) -> None:
        try:
            sent = self.form.arguments()
        except FormFaults:
            assert self.form.faults()
            return
        assert self.form.faults() == ()
        assert self.form.validator.faults(sent) == ()
        assert exact(sent) == exact(self.form.draft())

    @invariant()
    def ids_are_legal_and_unique(self) -> None:
        ids = [field.id for field in fields_of(self.form)]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[a-zA-Z_-][a-zA-Z0-9_-]*", one) for one in ids)


AnyForm.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
TestAnyForm = pytest.mark.slow(AnyForm.TestCase)


# --- Loading ---

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null", "any"])
        | st.lists(st.sampled_from(["string", "integer", "null"]), min_size=1, max_size=3),
        "enum": st.lists(JSON, max_size=4),
        "const": JSON,
        "default": JSON,
        "items": st.sampled_from([{"type": "string"}, {"type": "integer"}, {"enum": [1, "a", None]}, {}, True, []]),
        "anyOf": st.lists(st.sampled_from([{"type": "null"}, {"type": "string"}, {"type": "array"}, True]), max_size=3),
        "$ref": st.sampled_from(["#", "#/properties/a", "#/nowhere"]),
        "minimum": JSON,
        "title": JSON,
        "description": JSON,
        "examples": JSON,
    },
)


NONSENSE = st.recursive(
    JSON | st.sampled_from(["string", "array", "#", "#/properties/a"]),
    lambda inner: st.dictionaries(
        st.sampled_from(
            ["type", "enum", "required", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "a", "b"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=16,
)


@settings(max_examples=120)
@given(schema=NONSENSE, arguments=st.dictionaries(st.sampled_from(["a", "b"]), JSON, max_size=2))
def test_any_object_schema_results_in_a_form_that_loses_no_value(schema: JsonValue, arguments: JsonObject) -> None:
    built = Form(schema)
    built.load(arguments)
    built.faults()
    built.load_text(built.text())
    assert exact(built.draft()) == exact(arguments)


@pytest.mark.parametrize("schema", [None, True, False, 1, "x", [], {}, {"$ref": "#"}, {"type": "array"}])
def test_any_json_value_as_a_schema_results_in_a_form(schema: JsonValue) -> None:
    assert Form(schema).fields == ()


@settings(max_examples=120)
@given(
    properties=st.dictionaries(st.sampled_from(["a", "b", "ä", ""]), PROPERTIES | JSON, max_size=3),
    arguments=st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON, max_size=3),
)
def test_any_arguments_loaded_into_any_form_are_returned_or_are_errors(
    properties: JsonObject, arguments: JsonObject
) -> None:
    built = Form({"type": "object", "properties": properties})
    built.load(arguments)
    assert exact(built.draft()) == exact(arguments)
    if built.faults():
        with pytest.raises(FormFaults):
            built.arguments()
    else:
        assert exact(built.arguments()) == exact(arguments)
        again = Form({"type": "object", "properties": properties})
        again.load_text(built.text())
        assert exact(again.arguments()) == exact(arguments)
