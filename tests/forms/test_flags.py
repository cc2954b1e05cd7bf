"""Words of a command as arguments of a tool."""

from __future__ import annotations

from typing import Any  # schemas and arguments are any JSON

import pytest

from pegboard.errors import FormFaults
from pegboard.forms import arguments_from_pairs
from pegboard.forms.flags import arguments_from_words, as_flag, asks_for_help, whole_flag
from pegboard.models import Hints, PackHandler, ToolSpec
from pegboard.schema.arguments import prepare

PROPERTIES = {
    "path": {"type": "string"},
    "limit": {"type": "integer", "minimum": 1},
    "recursive": {"type": "boolean"},
    "follow": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    "tags": {"type": "array", "items": {"type": "string"}},
    "max_depth": {"type": "integer"},
    "filter": {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "hidden": {"type": "boolean"},
            "name": {"type": "string"},
        },
    },
    "mode": {"enum": ["fast", "slow"]},
    "text": {"type": "string"},
    "any": {},
}


def _spec(*required: str, stdin: str | None = None, **schema: object) -> ToolSpec:
    return ToolSpec(
        name="it.does",
        pack="it",
        input_schema={
            "type": "object",
            "properties": PROPERTIES,
            "required": [*required],
            "additionalProperties": False,
            **schema,
        },
        parameter_aliases={"where": "path"},
        hints=Hints(stdin=stdin),
        handler=PackHandler(pack="it", function="does", file="/it.py", line=1),
    )


READ: dict[str, tuple[tuple[str, ...], list[str], dict[str, Any]]] = {
    "nothing": ((), [], {}),
    "a flag and its value": ((), ["--path", "src"], {"path": "src"}),
    "a flag with =": ((), ["--limit=3"], {"limit": 3}),
    "a value with =": ((), ["--path=a=b"], {"path": "a=b"}),
    "digits where text is asked for": ((), ["--path", "007"], {"path": "007"}),
    "true alone": ((), ["--recursive"], {"recursive": True}),
    "true before another word": (("path",), ["--recursive", "src"], {"recursive": True, "path": "src"}),
    "true said": ((), ["--recursive", "false"], {"recursive": False}),
    "true or null alone": ((), ["--follow"], {"follow": True}),
    "no-": ((), ["--no-recursive"], {"recursive": False}),
    "a list again and again": ((), ["--tags", "a", "--tags", "b"], {"tags": ["a", "b"]}),
    "a list as JSON": ((), ["--tags", '["a", "b"]'], {"tags": ["a", "b"]}),
    "dashes for underscores": ((), ["--max-depth", "2"], {"max_depth": 2}),
    "a negative number": ((), ["--max-depth", "-2"], {"max_depth": -2}),
    "within an object": ((), ["--filter.size", "3", "--filter.hidden"], {"filter": {"size": 3, "hidden": True}}),
    "an object as JSON": ((), ["--filter", '{"size": 3}'], {"filter": {"size": 3}}),
    "any as JSON": ((), ["--any", '{"a": [1]}'], {"any": {"a": [1]}}),
    "any as text": ((), ["--any", "plain"], {"any": "plain"}),
    "a choice": ((), ["--mode", "slow"], {"mode": "slow"}),
    "another name": ((), ["--where", "src"], {"path": "src"}),
    "required in order": (("path", "limit"), ["src", "3"], {"path": "src", "limit": 3}),
    "required among flags": (("path", "limit"), ["--limit", "3", "src"], {"path": "src", "limit": 3}),
    "the last one a list": (("path", "tags"), ["src", "a", "b"], {"path": "src", "tags": ["a", "b"]}),
    "after --": (("path",), ["--recursive", "--", "--odd"], {"recursive": True, "path": "--odd"}),
    "an empty text": (("path",), [""], {"path": ""}),
    "all as JSON": (("path",), ["--args", '{"path": "src", "limit": null}'], {"path": "src", "limit": None}),
    "all as JSON by another name": (("path",), ['--args={"where": "src"}'], {"where": "src"}),
    "JSON that other words change": (
        ("path",),
        ["--limit", "3", "--args", '{"path": "src", "limit": 1, "tags": ["a"]}'],
        {"path": "src", "limit": 3, "tags": ["a"]},
    ),
    "required beside JSON": (("path", "limit"), ["src", "--args", '{"limit": 1}'], {"path": "src", "limit": 1}),
    "one dash": (("path",), ["-"], {"path": "-"}),
}


@pytest.mark.promise("SCR-2")
@pytest.mark.parametrize(("required", "words", "arguments"), READ.values(), ids=READ.keys())
def test_words_are_parsed_by_the_schema(required: tuple[str, ...], words: list[str], arguments: dict[str, Any]) -> None:
    assert arguments_from_words(_spec(*required), words) == arguments


@pytest.mark.promise("SCR-2")
def test_stdin_sets_its_argument_unless_words_set_it() -> None:
    spec = _spec("path", "text", stdin="text")
    assert arguments_from_words(spec, ["src"], "in\n") == {"path": "src", "text": "in\n"}
    assert arguments_from_words(spec, ["src", "said"], "in") == {"path": "src", "text": "said"}
    assert arguments_from_words(spec, ["--text", "said", "src"], "in") == {"path": "src", "text": "said"}
    assert arguments_from_words(spec, ["src"], "") == {"path": "src", "text": ""}
    optional = _spec(stdin="text")
    assert arguments_from_words(optional, [], "in") == {"text": "in"}
    assert arguments_from_words(optional, [], "") == {}
    assert arguments_from_words(_spec(), ["--path", "src"], "in a loop's stdin") == {"path": "src"}


def test_stdin_sets_an_argument_of_that_name() -> None:
    spec = _spec(properties={"stdin": {"type": "string"}})
    assert arguments_from_words(spec, [], "in") == {"stdin": "in"}


@pytest.mark.promise("SCR-2")
def test_all_arguments_can_come_from_stdin_as_json() -> None:
    spec = _spec("path", stdin="text")
    assert arguments_from_words(spec, ["--args", "-"], '{"path": "a"}') == {"path": "a"}
    assert arguments_from_words(spec, ["--args=-", "--path", "b"], '{"path": "a"}') == {"path": "b"}
    with pytest.raises(FormFaults, match="is not JSON"):
        arguments_from_words(spec, ["--args", "-"])


WRONG = {
    "a word too many": ((), ["src"], "unexpected 'src'; to set an argument, use its flag: --path, --limit"),
    "a flag without its value": ((), ["--path"], "--path: needs a value"),
    "a flag without its value before another": ((), ["--path", "--recursive"], "--path: needs a value"),
    "a short flag": ((), ["-r"], "unknown flag -r; flags start with two dashes: --path"),
    "invalid JSON": ((), ["--args", "{1}"], "--args: is not JSON"),
    "JSON that is not an object": ((), ["--args", "[1]"], "--args: must be a JSON object"),
    "missing JSON": ((), ["--args"], "--args: is not JSON"),
    "two names for one": ((), ["--where", "a", "--path", "b"], "is another name of"),
}


@pytest.mark.promise("SCR-2")
@pytest.mark.parametrize(("required", "words", "message"), WRONG.values(), ids=WRONG.keys())
def test_invalid_words_are_reported(required: tuple[str, ...], words: list[str], message: str) -> None:
    with pytest.raises(FormFaults) as raised:
        arguments_from_words(_spec(*required), words)
    assert message in "; ".join(map(as_flag, raised.value.faults))


@pytest.mark.promise("SCR-2")
@pytest.mark.parametrize(
    ("words", "pairs"),
    [
        (["--limit", "many"], ["limit=many"]),
        (["--limit", "0"], ["limit=0"]),
        (["--mode", "odd"], ["mode=odd"]),
        (["--unknown", "1"], ["unknown=1"]),
        (["--unknown"], ["unknown=true"]),
        (["--tags", "[1, 2"], ["tags=[1, 2"]),
        (["--filter", "{"], ["filter={"]),
        (["--recursive=maybe"], ["recursive=maybe"]),
    ],
)
def test_errors_have_the_same_messages_as_in_the_form(words: list[str], pairs: list[str]) -> None:
    spec = _spec()

    def errors(read: Any) -> tuple[object, ...]:
        try:
            prepare(spec, read())
        except FormFaults as found:
            return found.faults
        return ()

    expected = errors(lambda: arguments_from_pairs(spec.input_schema, pairs))
    assert errors(lambda: arguments_from_words(spec, words)) == expected


@pytest.mark.parametrize(
    ("words", "is_help"),
    [
        (["--help"], True),
        (["-h"], True),
        (["src", "-h"], True),
        (["--path=src", "-h"], True),
        (["--recursive", "--help"], True),
        (["--path", "-h"], False),
        (["--path=-h"], False),
        (["--", "--help"], False),
    ],
)
def test_help_is_a_flag_that_is_not_the_value_of_another(words: list[str], is_help: bool) -> None:
    assert asks_for_help(_spec(), words) == is_help
    assert not asks_for_help(_spec(properties={"help": {}}), words)


def test_the_flag_for_all_arguments_gets_another_name_if_an_argument_has_it() -> None:
    spec = _spec(properties={"args": {"type": "array"}})
    assert arguments_from_words(spec, ["--args", "a"]) == {"args": ["a"]}
    assert whole_flag(spec) == "--_args"
    assert arguments_from_words(spec, ["--_args", '{"args": []}']) == {"args": []}


def test_errors_within_an_object_are_named_by_their_flag() -> None:
    with pytest.raises(FormFaults) as raised:
        prepare(_spec(), arguments_from_words(_spec(), ["--filter.size", "big"]))
    assert as_flag(raised.value.faults[0]).startswith("--filter.size: ")
