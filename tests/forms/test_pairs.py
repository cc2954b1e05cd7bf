"""Arguments from words of the command line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard.data.json_text import identical
from pegboard.errors import FormFaults
from pegboard.forms import Form, arguments_from_pairs
from pegboard.forms.pairs import keys, read_pairs
from pegboard.models import JsonObject

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "n": {"type": ["integer", "null"]},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "table": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "picked": {"type": "array", "items": {"enum": ["a", "b", 1, "1"]}},
        "pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"}},
        "ops": {
            "type": "array",
            "items": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "add"}, "path": {"type": "string"}},
                        "required": ["kind", "path"],
                    },
                    {
                        "type": "object",
                        "properties": {
                            "kind": {"const": "move"},
                            "from": {"type": "string"},
                            "by": {"type": "integer"},
                        },
                        "required": ["kind", "from"],
                    },
                ]
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "limits": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "mixed": {"enum": [1, "1", None, ""]},
        "speed": {"enum": [0.5, 1.0, "1.00"]},
        "size": {"enum": [[640, 480], {"w": 1, "h": 2}]},
        "text_or_n": {"type": ["string", "integer", "null"]},
        "decimal": {"anyOf": [{"type": "number"}, {"type": "string"}]},
        "auto_or_n": {"anyOf": [{"enum": ["auto", "null"]}, {"type": "integer"}]},
        "one_or_many": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "any": {},
        "fixed": {"type": "object", "properties": {"v": {"const": 2}, "x": {"type": "string"}}, "required": ["v"]},
        "a": {"$ref": "#/$defs/a"},
        "a.c": {"type": "string"},
        "text.null": {"type": ["string", "null"]},
        "tree": {"$ref": "#/$defs/tree"},
    },
    "$defs": {
        "a": {"anyOf": [{"properties": {"b": {"type": "string"}, "n": {"type": "integer"}}}, {"type": "null"}]},
        "tree": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "inner": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        },
    },
    "additionalProperties": False,
}


@pytest.mark.promise("CLI-1", "TUI-3")
@pytest.mark.parametrize(
    ("pairs", "arguments"),
    [
        ([], {}),
        # text
        (["path=12"], {"path": "12"}),
        (["path="], {"path": ""}),
        (["path=a=b"], {"path": "a=b"}),
        (['path="x"'], {"path": '"x"'}),
        (["text.null=null"], {"text.null": "null"}),
        # numbers, switches, choices
        (["n=1e3"], {"n": 1000}),
        (["n= 7"], {"n": 7}),
        (["n=123456789012345678901234567890"], {"n": 123456789012345678901234567890}),
        (["n=null"], {"n": None}),
        (["on=true"], {"on": True}),
        (["mixed=1"], {"mixed": 1}),
        (['mixed="1"'], {"mixed": "1"}),
        (["mixed=null"], {"mixed": None}),
        (["mixed="], {"mixed": ""}),
        (["speed=1"], {"speed": 1.0}),
        (["speed=5e-1"], {"speed": 0.5}),
        (["speed=1.00"], {"speed": "1.00"}),
        (["size=[640,480]"], {"size": [640, 480]}),
        (['size={"h":2, "w":1}'], {"size": {"w": 1, "h": 2}}),
        # lists
        (["tags=x"], {"tags": ["x"]}),
        (["tags=x", "path=p", "tags=1"], {"tags": ["x", "1"], "path": "p"}),
        (['tags=["x", "y"]'], {"tags": ["x", "y"]}),
        (["tags=[x]"], {"tags": ["[x]"]}),
        (["tags=[]"], {"tags": []}),
        (["tags="], {"tags": [""]}),
        (["tags.1=y", "tags.0=x"], {"tags": ["x", "y"]}),
        (["sizes=1", "sizes=2"], {"sizes": [1, 2]}),
        (["table=[1, 2]"], {"table": [[1, 2]]}),
        (["table=[[1], [2]]"], {"table": [[1], [2]]}),
        (["table=[1]", "table=[2]"], {"table": [[1], [2]]}),
        (["table.0=1", "table.0=2", "table.1.0=3"], {"table": [[1, 2], [3]]}),
        (["picked=b", "picked=1", "picked=b"], {"picked": ["b", 1, "b"]}),
        (['picked=["1", 1]'], {"picked": ["1", 1]}),
        (["pair=1", "pair=1", "pair=true"], {"pair": ["1", 1, True]}),
        (["pair.1=2", "pair.0=x"], {"pair": ["x", 2]}),
        # lists of objects of several variants
        (["ops.0.kind=add", "ops.0.path=x"], {"ops": [{"kind": "add", "path": "x"}]}),
        (["ops.0.from=x", "ops.0.by=2"], {"ops": [{"kind": "move", "from": "x", "by": 2}]}),
        (['ops={"kind": "move", "from": "y"}'], {"ops": [{"kind": "move", "from": "y"}]}),
        # objects and maps
        (["a.b=1", "a.n=1"], {"a": {"b": "1", "n": 1}}),
        (["a.c=1"], {"a.c": "1"}),
        (["a=null"], {"a": None}),
        (['a={"b": "x"}'], {"a": {"b": "x"}}),
        (["a={}"], {"a": {}}),
        (["fixed.x=1"], {"fixed": {"v": 2, "x": "1"}}),
        (["labels.k=v", "labels.k8s.io/name=1"], {"labels": {"k": "v", "k8s.io/name": "1"}}),
        (["labels.=v"], {"labels": {"": "v"}}),
        (["limits.cpu.max=2", "limits.cpu.min=1"], {"limits": {"cpu": {"max": 2, "min": 1}}}),
        (["tree.inner.0.inner.0.name=leaf"], {"tree": {"inner": [{"inner": [{"name": "leaf"}]}]}}),
        # several types: JSON is parsed as JSON, anything else is text
        (["text_or_n=12"], {"text_or_n": 12}),
        (['text_or_n="12"'], {"text_or_n": "12"}),
        (["text_or_n=007"], {"text_or_n": "007"}),
        (["text_or_n=1.5"], {"text_or_n": "1.5"}),
        (["decimal=1.50"], {"decimal": 1.5}),
        (["decimal=0.12345678901234567890"], {"decimal": "0.12345678901234567890"}),
        (["text_or_n=null"], {"text_or_n": None}),
        (["auto_or_n=auto"], {"auto_or_n": "auto"}),
        (["auto_or_n=3"], {"auto_or_n": 3}),
        (["auto_or_n=null"], {"auto_or_n": "null"}),
        (["one_or_many=x"], {"one_or_many": "x"}),
        (["one_or_many=x", "one_or_many=y"], {"one_or_many": ["x", "y"]}),
        (['one_or_many=["x"]'], {"one_or_many": ["x"]}),
        (['any={"x": [1]}'], {"any": {"x": [1]}}),
        (["any=hello"], {"any": "hello"}),
        (["any=1.0"], {"any": 1.0}),
        (["any=false"], {"any": False}),
        (["any=null"], {"any": None}),
        (['any="null"'], {"any": "null"}),
        (["any="], {"any": ""}),
        (["any=1", "any=x"], {"any": [1, "x"]}),
        (["any.x.0=1", "any.y=z"], {"any": {"x": [1], "y": "z"}}),
        # undeclared properties are set, and rejected by validation
        (["unknown=1"], {"unknown": 1}),
        (["un.known=1"], {"un": {"known": 1}}),
    ],
)
def test_the_schema_decides_how_a_word_is_parsed(pairs: list[str], arguments: JsonObject) -> None:
    found = arguments_from_pairs(SCHEMA, pairs)
    assert identical(found, arguments), found


@pytest.mark.promise("CLI-1", "TUI-3")
def test_every_invalid_word_is_reported_with_the_message_of_the_form() -> None:
    pairs = [
        "n=ten",
        "on=yes",
        "path",
        "sizes=1",
        "sizes=x",
        'any={"x": ',
        "path=a",
        "path=b",
        "a=null",
        "a.b=1",
        "tags.x=1",
        "table.3.0=1",
        "mixed=  ",
        "fixed={",
        "fixed.v=3",
        "text.null.x=1",
        "picked=z",
        "pair=1",
        "pair=x",
        "limits.cpu.max=",
    ]
    with pytest.raises(FormFaults) as caught:
        arguments_from_pairs(SCHEMA, pairs)
    assert sorted((fault.path, fault.message) for fault in caught.value.faults) == sorted(
        [
            ("/path", "must be written as key=value"),
            ("/path", "is set more than once but is not a list"),
            ("/n", 'must be an integer, not "ten"'),
            ("/on", 'must be one of true, false, not "yes"'),
            ("/sizes/1", 'must be an integer, not "x"'),
            ("/any", "is not JSON: expecting value (line 1, column 7); to pass it as text, put it in quotes"),
            ("/a", "is set both as a whole and in parts"),
            ("/tags/x", "must be the index of an item, starting at 0"),
            ("/table/3", "can't be set: the list has 0 items"),
            ("/mixed", "is empty"),
            ("/fixed", "is set both as a whole and in parts"),
            ("/fixed", "is not JSON: expecting property name enclosed in double quotes (line 1, column 2)"),
            ("/text.null/x", "can't be set: `text.null` has no parts"),
            ("/picked/0", 'must be one of "a", "b", 1, "1", not "z"'),
            ("/pair/1", 'must be an integer, not "x"'),
            ("/limits/cpu/max", "is empty"),
        ]
    )


@pytest.mark.promise("CLI-1")
def test_a_word_that_names_no_variant_is_reported_with_the_constants_of_all_variants() -> None:
    variants: list[JsonValue] = [
        {"type": "object", "properties": {"kind": {"const": kind}, "name": {"type": "string"}}}
        for kind in ("cat", "dog")
    ]
    schema: JsonObject = {"properties": {"pet": {"oneOf": variants, "discriminator": {"propertyName": "kind"}}}}
    _, faults = read_pairs(schema, ["pet.kind=cow", "pet.name=Berta"])
    assert [str(fault) for fault in faults] == ['pet.kind: must be one of "cat", "dog", not "cow"']
    pets: JsonObject = {"properties": {"pets": {"type": "array", "items": {"anyOf": variants}}}}
    _, faults = read_pairs(pets, ["pets.0.kind=dog", "pets.1.kind=cow"])
    assert [str(fault) for fault in faults] == ['pets #2.kind: must be one of "cat", "dog", not "cow"']


def test_a_value_of_no_matching_type_is_set_and_left_to_validation() -> None:
    number_or_switch: JsonObject = {"properties": {"x": {"type": ["number", "boolean"]}}}
    assert arguments_from_pairs(number_or_switch, ["x=007"]) == {"x": 7}
    _, faults = read_pairs(number_or_switch, ["x=ten"])
    assert [fault.path for fault in faults] == ["/x"]
    endless: JsonObject = {
        "properties": {"x": {"$ref": "#/$defs/x"}},
        "$defs": {
            "x": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/x"}}, {"type": "array", "maxItems": 0}]}
        },
    }
    form = Form(endless)
    form.load(read_pairs(endless, ["x=a"])[0])
    assert [fault.path for fault in form.faults()] == ["/x"]


def test_words_change_only_their_own_parts_of_arguments_passed_as_json() -> None:
    given_: JsonObject = {
        "path": "p",
        "tags": ["a", "b"],
        "a": {"b": "x", "n": 1},
        "ops": [{"kind": "add", "path": "x"}, {"kind": "move", "from": "y"}],
        "labels": {"k": "v"},
        "any": {"deep": [1, {"er": True}]},
    }
    pairs = ["tags=c", "a.n=2", "ops.1.by=3", "ops.2.path=z", "labels.k=w", "labels.l=u", "any.deep.1.er=null"]
    assert arguments_from_pairs(SCHEMA, pairs, given=given_) == {
        "path": "p",
        "tags": ["c"],
        "a": {"b": "x", "n": 2},
        "ops": [{"kind": "add", "path": "x"}, {"kind": "move", "from": "y", "by": 3}, {"kind": "add", "path": "z"}],
        "labels": {"k": "w", "l": "u"},
        "any": {"deep": [1, {"er": None}]},
    }
    assert given_["tags"] == ["a", "b"]
    assert arguments_from_pairs(SCHEMA, ["a.b=x"], given={"a": None}) == {"a": {"b": "x"}}
    assert arguments_from_pairs(SCHEMA, ["a.b=x"], given={"a": "wrong"}) == {"a": {"b": "x"}}


def test_constants_are_added_to_an_untouched_form_but_not_to_passed_arguments() -> None:
    schema: JsonObject = {
        "properties": {"v": {"const": 2}, "mode": {"default": "fast"}, "x": {"type": "string"}},
        "required": ["v", "mode"],
    }
    assert arguments_from_pairs(schema, ["x=1"]) == {"v": 2, "mode": "fast", "x": "1"}
    assert arguments_from_pairs(schema, ["x=1"], given={}) == {"x": "1"}


def test_an_alias_of_an_argument_is_parsed_like_it_and_replaced_by_its_name() -> None:
    aliases = {"depth": "n", "where": "a", "path": "n"}
    assert arguments_from_pairs(SCHEMA, ["depth=3", "where.b=1"], aliases=aliases) == {"n": 3, "a": {"b": "1"}}
    assert arguments_from_pairs(SCHEMA, ["path=3"], aliases=aliases) == {"path": "3"}
    assert arguments_from_pairs(SCHEMA, ["depth=3"], given={"depth": 4}, aliases=aliases) == {"n": 3}
    for given_ in ({"n": 1, "depth": 2}, {"depth": 2, "n": 1}):
        found = arguments_from_pairs(SCHEMA, ["path=p"], given={**given_}, aliases=aliases)
        assert found == {"path": "p", "n": 1, "depth": 2}
    twice = arguments_from_pairs(SCHEMA, [], given={"depth": 1, "deep": 2}, aliases={**aliases, "deep": "n"})
    assert twice == {"n": 1, "deep": 2}
    with pytest.raises(FormFaults, match="is another name of `n`, which is given too"):
        arguments_from_pairs(SCHEMA, ["n=3", "depth=4"], aliases=aliases)


def test_additional_arguments_are_parsed_by_their_schema() -> None:
    assert arguments_from_pairs({"additionalProperties": {"type": "string"}}, ["a b=1", "c.d=2"]) == {
        "a b": "1",
        "c.d": "2",
    }
    by_pattern: JsonObject = {
        "patternProperties": {"^n_": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    }
    assert arguments_from_pairs(by_pattern, ["n_a=1", "b=1"]) == {"n_a": 1, "b": "1"}
    assert arguments_from_pairs({}, ["a.b=1", "=2"]) == {"a": {"b": 1}, "": 2}


def test_the_keys_select_the_variant_of_a_union_at_the_root() -> None:
    union: JsonObject = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"by": {"const": "id"}, "id": {"type": "integer"}},
                "required": ["by", "id"],
            },
            {
                "type": "object",
                "properties": {"by": {"const": "name"}, "name": {"type": "string"}},
                "required": ["by", "name"],
            },
        ]
    }
    assert arguments_from_pairs(union, ["name=1"]) == {"by": "name", "name": "1"}
    assert arguments_from_pairs(union, ["id=1"]) == {"by": "id", "id": 1}
    assert arguments_from_pairs(union, ["by=name"]) == {"by": "name"}


def test_the_variant_that_declares_the_keys_is_selected_unless_another_is_named() -> None:
    kinds: JsonObject = {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}},
            {
                "type": "object",
                "properties": {"kind": {"const": "b"}, "y": {"type": "string"}, "z": {"type": "string"}},
                "required": ["z"],
            },
            {"type": "object", "properties": {"kind": {"const": "c"}}, "required": ["kind"]},
        ]
    }
    schema: JsonObject = {"properties": {"v": kinds}}
    assert arguments_from_pairs(schema, ["v.x=1"]) == {"v": {"x": "1"}}
    assert arguments_from_pairs(schema, ["v.y=1"]) == {"v": {"y": "1"}}
    assert arguments_from_pairs(schema, ["v.kind=c", "v.y=1", "v.z=2"]) == {"v": {"kind": "c", "y": 1, "z": 2}}


@pytest.mark.promise("CLI-1")
def test_a_time_or_duration_is_converted_as_in_the_form() -> None:
    form: JsonObject = {"type": "string", "format": "duration"}
    properties: JsonObject = {
        "at": {"type": "string", "format": "time"},
        "every": {"anyOf": [{"type": "integer"}, form]},
        "waits": {"type": "array", "items": form},
    }
    found = arguments_from_pairs({"properties": properties}, ["at=8:30", "every=1h30m", "waits=90 s", "waits=PT5M"])
    assert found == {"at": "08:30:00", "every": "PT1H30M", "waits": ["PT1M30S", "PT5M"]}


def test_keys_are_completed_to_the_typed_depth() -> None:
    assert keys(SCHEMA, "p") == ["path=", "picked=", "pair="]
    assert keys(SCHEMA, "a") == ["auto_or_n=", "any=", "a.", "a.c="]
    assert keys(SCHEMA, "a.") == ["a.b=", "a.n=", "a.c="]
    assert keys(SCHEMA, "tree.in") == ["tree.inner="]
    assert keys({"anyOf": [{"properties": {"x": {}}}, {"properties": {"x": {}, "y": {}}}]}) == ["x=", "y="]
    assert keys(True) == []


@pytest.mark.slow
def test_too_ambiguous_words_are_rejected() -> None:
    properties = {"k": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}
    kinds = [{"type": "object", "properties": properties, "required": ["k", str(number)]} for number in range(11)]
    schema = json.loads(
        json.dumps({"properties": {"x": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"anyOf": kinds}}})
    )
    _, faults = read_pairs(schema, ["x.next.next.k=a"])
    assert [str(fault) for fault in faults] == ["arguments: are too ambiguous; pass them as JSON"]


NAMES = ["path", "n", "tags", "picked", "pair", "ops", "labels", "limits", "one_or_many", "any", "fixed", "a", "tree"]
WORDS = st.text(st.sampled_from('a.=0[]{}":,1 etrufalsn-'), max_size=12)


@pytest.mark.slow
@pytest.mark.promise("TUI-3")
@given(words=st.lists(WORDS | st.builds("{}.{}={}".format, st.sampled_from(NAMES), WORDS, WORDS), max_size=4))
def test_any_words_become_arguments_or_errors(words: list[str]) -> None:
    found, faults = read_pairs(SCHEMA, words)
    assert isinstance(found, dict)
    assert all(fault.message for fault in faults)
    again, _ = read_pairs(SCHEMA, words)
    assert identical(found, again)
