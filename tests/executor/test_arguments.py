"""Conversion of JSON arguments to the annotated types."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any  # fixtures

import pytest

pytestmark = pytest.mark.promise("EXE-3")

TYPED = Path(__file__).parents[1] / "packs" / "executor_typed.py"
BARE = TYPED.with_name("bare_decorators.py")
COMMANDS = TYPED.with_name("command_lines.py")
FRAMEWORK = TYPED.with_name("framework_tools.py")


@pytest.mark.parametrize(
    ("args", "given"),
    [
        ({"day": "2024-02-29"}, "datetime.date(2024, 2, 29)"),
        ({"at": "2024-02-29T01:02:03"}, "datetime.datetime(2024, 2, 29, 1, 2, 3)"),
        ({"length": "PT90S"}, "datetime.timedelta(seconds=90)"),
        ({"price": "1.10"}, "Decimal('1.10')"),
        ({"id": "12345678-1234-5678-1234-567812345678"}, "UUID('12345678-1234-5678-1234-567812345678')"),
        ({"path": "a/b"}, "PosixPath('a/b')"),
        ({"raw": "é"}, "b'\\xc3\\xa9'"),
        ({"colour": "red"}, "<Colour.RED: 'red'>"),
        ({"colour": 2}, "<Colour.BLUE: 2>"),
        ({"point": {"x": 1, "at": "2024-01-01"}}, "Point(x=1, at=datetime.date(2024, 1, 1))"),
        (
            {"person": {"name": "A", "friends": [{"name": "B"}]}},
            "Person(name='A', born=None, friends=[Person(name='B', born=None, friends=[])])",
        ),
        (
            {"exact": {"born": "2024-01-01", "colour": "red", "pair": [1, "b"]}},
            "Exact(born=datetime.date(2024, 1, 1), colour=<Colour.RED: 'red'>, pair=(1, 'b'))",
        ),
        ({"exact_day": "2024-01-01"}, "datetime.date(2024, 1, 1)"),
        ({"dated": {"when": "2024-01-01"}}, "{'when': datetime.date(2024, 1, 1)}"),
        ({"tags": ["a", "a"]}, "{'a'}"),
        ({"pair": [1, "b"]}, "(1, 'b')"),
        ({"days": ["2024-01-01"]}, "[datetime.date(2024, 1, 1)]"),
        ({"by_day": {"a": "2024-01-01", "b": None}}, "{'a': datetime.date(2024, 1, 1), 'b': None}"),
        ({"either": "2024-01-01"}, "datetime.date(2024, 1, 1)"),
        ({"either": 3}, "3"),
        ({"even": 7}, "6"),
    ],
)  # fmt: skip
async def test_json_values_are_converted_to_the_annotated_type(harness: Any, args: dict[str, Any], given: str) -> None:
    assert (await harness.run("kinds", TYPED, **args)).data == {name: given for name in args}  # noqa: C420 - one pair


async def test_the_path_of_an_invalid_value_has_no_names_of_the_variants_of_a_union(
    harness: Any, tmp_path: Path
) -> None:
    file = tmp_path / "pets.py"
    file.write_text(
        """
from typing import Annotated, Literal
from pydantic import AfterValidator, BaseModel, Field, field_validator

def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value

class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, AfterValidator(even)]

class Dog(BaseModel):
    kind: Literal["dog"]
    name: str

    @field_validator("name")
    @classmethod
    def _short(cls, value: str) -> str:
        if len(value) > 3:
            raise ValueError("must be short")
        return value

def f(
    *,
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = [],
    count: Annotated[int, AfterValidator(even)] | Literal["all"] = "all",
    by: dict[str, Annotated[int, AfterValidator(even)] | None] = {},
    **rest: Annotated[int, AfterValidator(even)] | Literal["all"],
) -> None:
    "Count pets."
"""
    )
    dog = {"kind": "dog", "name": "Rover"}
    result = await harness.run("f", file, pet=dog, pets=[{"kind": "cat", "lives": 1}, dog], count=3, by={"a": 5}, z=7)
    expected = {
        "/pet/name": "must be short",
        "/pets/0/lives": "must be even",
        "/pets/1/name": "must be short",
        "/count": "must be even",
        "/by/a": "must be even",
        "/z": "must be even",
    }
    found = {fault.path: fault.message for fault in result.error.faults if fault.message.startswith("must be")}
    assert found == expected
    assert {fault.path for fault in result.error.faults} == expected.keys()
    missing = await harness.run("f", file, pets=[{"kind": "dog"}])
    assert [(fault.path, fault.message) for fault in missing.error.faults] == [("/pets/0/name", "Field required")]


async def test_null_is_accepted_if_the_default_is_none(harness: Any) -> None:
    assert (await harness.run("kinds", TYPED, day=None, tags=None, person={"name": "A"})).data.keys() == {"person"}


async def test_an_invalid_value_is_reported_with_its_path(harness: Any) -> None:
    result = await harness.run("kinds", TYPED, day="yesterday", person={"name": "A", "friends": [{}]}, tags=["fine"])
    assert result.error.code == "invalid_args"
    assert {fault.path for fault in result.error.faults} == {"/day", "/person/friends/0/name"}
    assert all(fault.message for fault in result.error.faults)
    assert (await harness.run("kinds", TYPED, tags=["fine"])).ok


async def test_the_message_names_each_invalid_value(harness: Any) -> None:
    result = await harness.run("framed", TYPED, outer={"width": -1}, inner=[{"width": 1}, {"width": -2}])
    assert result.error.message == (
        "Invalid arguments: outer.width: must not be negative; inner #2.width: must not be negative"
    )


async def test_json_types_arrive_unchanged(harness: Any) -> None:
    args = {
        "text": "2024-01-01", "number": 2, "ratio": 1, "some": [1, 2], "choice": 1, "anything": {"a": None},
        "nested": {"a": [{"a": 1}]}, "limited": 5, "maybe": None, "unknown": "2024-01-01",
    }  # fmt: skip
    result = await harness.run("native", TYPED, **args)
    assert result.data == {name: repr(value) for name, value in args.items()}


async def test_text_is_changed_as_its_annotation_says(harness: Any) -> None:
    result = await harness.run("texts", TYPED, trimmed=" Ab ", shouted=["ab"], short=" Ab ", decoded="YWI=")
    assert result.data == {"trimmed": "ab", "shouted": ["AB"], "short": " Ab ", "decoded": "ab"}


async def test_three_point_zero_becomes_an_annotated_integer(harness: Any) -> None:
    data = (await harness.run("native", TYPED, number=3.0, limited=4.0, maybe=5.0, ratio=6.0, anything=7.0)).data
    assert (data["number"], data["limited"], data["maybe"]) == ("3", "4", "5")
    assert (data["ratio"], data["anything"]) == ("6.0", "7.0")


@pytest.mark.parametrize(
    ("args", "given"),
    [
        ({"some": [1.0, 2, 2.5]}, "[1, 2, 2.5]"),
        ({"by_name": {"a": 1.0}}, "{'a': 1}"),
        ({"maybe": [1.0]}, "[1]"),
        ({"deep": {"a": [{"b": 1.0, "c": "x", "d": None}]}}, "{'a': [{'b': 1, 'c': 'x', 'd': None}]}"),
        ({"either": [1.0]}, "[1]"),
        ({"either": {"a": 1.0}}, "{'a': 1}"),
        ({"either": 1.0}, "1"),
        ({"numbers": [1.0]}, "[1.0]"),
        ({"mixed": [1.0]}, "[1.0]"),
        ({"bare": [{"count": 1.0}]}, "[{'count': 1}]"),
    ],
)
async def test_three_point_zero_becomes_an_integer_inside_lists_and_objects(
    harness: Any, args: dict[str, Any], given: str
) -> None:
    assert (await harness.run("integers", TYPED, **args)).data == {name: given for name in args}  # noqa: C420 - one pair


async def test_three_point_zero_becomes_an_integer_beside_other_keys(harness: Any, tmp_path: Path) -> None:
    pack = tmp_path / "plain.py"
    pack.write_text(
        "from typing import TypedDict\n"
        "class Item(TypedDict):\n    name: str\n    count: int\n"
        "def ask(*, item: Item):\n    return repr(item)\n"
    )
    assert (await harness.run("ask", pack, item={"name": "x", "count": 1.0})).data == "{'name': 'x', 'count': 1}"


@pytest.mark.parametrize(
    ("annotation", "value", "given"),
    [
        ("Iterable[date]", ["2024-01-01"], "[datetime.date(2024, 1, 1)]"),
        ("t.Iterable[date] | None", ["2024-01-01"], "[datetime.date(2024, 1, 1)]"),
        ("t.Iterable[T]", [1, "a"], "[1, 'a']"),
        ("Annotated[Iterable[date], 'days']", ["2024-01-01"], "[datetime.date(2024, 1, 1)]"),
        ("dict[str, Iterable[date]]", {"a": ["2024-01-01"]}, "{'a': [datetime.date(2024, 1, 1)]}"),
        ("t.Dict[str, Iterable[date]]", {"a": ["2024-01-01"]}, "{'a': [datetime.date(2024, 1, 1)]}"),
        ("Iterable[t.Iterable[date]]", [["2024-01-01"]], "[[datetime.date(2024, 1, 1)]]"),
        ("str | Iterable[date]", ["2024-01-01"], "[datetime.date(2024, 1, 1)]"),
        ("Collection[date]", ["2024-01-01"], "[datetime.date(2024, 1, 1)]"),
        ("t.Container[date]", ["2024-01-01"], "[datetime.date(2024, 1, 1)]"),
        ("Reversible", ["2024-01-01"], "['2024-01-01']"),
        ("Reversible[int]", [3.0], "[3]"),
    ],
)
async def test_an_iterable_and_a_collection_arrive_as_a_list_of_converted_items(
    harness: Any, tmp_path: Path, annotation: str, value: object, given: str
) -> None:
    lines = [
        "import typing as t",
        "from collections.abc import Collection, Iterable, Reversible",
        "from datetime import date",
        "from typing import Annotated",
        "T = t.TypeVar('T')",
        f'def f(*, items: {annotation}):\n    """Show."""\n    return repr(items)',
    ]
    (tmp_path / "lists.py").write_text("\n".join(lines))
    events = await harness.events("f", tmp_path / "lists.py", items=value)
    assert (harness.result(events).data, harness.text(events)) == (given, "")


async def test_lists_and_objects_become_tables_series_and_arrays(harness: Any, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pack = tmp_path / "tables.py"
    pack.write_text(
        "import numpy as np\nimport pandas as pd\nfrom pandas import DataFrame\n"
        "def ask(*, rows: DataFrame, marks: pd.Series, grid: np.ndarray | None = None, more: pd.DataFrame = None):\n"
        "    return [rows.a.sum(), marks.sum(), None if grid is None else grid * 2, more]\n"
    )
    given = {"rows": [{"a": 1}, {"a": 2}], "marks": [3, 4]}
    assert (await harness.run("ask", pack, **given)).data == [3, 7, None, None]
    given |= {"grid": [[1, 2]], "marks": {"x": 5}, "more": [{"b": 1}]}
    assert (await harness.run("ask", pack, **given)).data == [3, 5, [[2, 4]], [{"b": 1}]]
    error = (await harness.run("ask", pack, **given | {"grid": [[1], [1, 2]]})).error
    assert (error.code, [fault.path for fault in error.faults]) == ("invalid_args", ["/grid"])


async def test_tables_are_made_inside_lists_and_objects_and_below_annotated(harness: Any, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pack = tmp_path / "frames.py"
    pack.write_text(
        "from typing import Annotated, Optional\nimport numpy as np\nimport pandas as pd\nfrom pydantic import Field\n"
        "def ask(\n"
        "    *, grid: Annotated[np.ndarray, Field(description='Numbers')], frames: list[pd.DataFrame],\n"
        "    named: dict[str, Annotated[pd.Series, 'of marks']] | None = None,\n"
        "    rows: Annotated[Optional[pd.DataFrame], Field(min_length=1)] = None,\n"
        "):\n"
        "    return [grid * 2, [frame.a.sum() for frame in frames], named and named['x'].sum(), rows]\n"
    )
    given = {"grid": [1, 2], "frames": [[{"a": 1}, {"a": 2}]]}
    events = await harness.events("ask", pack, **given)
    assert harness.result(events).data == [[2, 4], [3], None, None]
    assert harness.text(events) == ""
    given |= {"named": {"x": [3, 4]}, "rows": [{"b": 1}]}
    assert (await harness.run("ask", pack, **given)).data == [[2, 4], [3], 7, [{"b": 1}]]


async def test_an_array_has_the_annotated_type_of_its_elements(harness: Any, tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    pack = tmp_path / "arrays.py"
    pack.write_text(
        "from typing import Any, Optional\nimport numpy as np\nfrom numpy.typing import NDArray\n"
        "def ask(\n"
        "    *, a: NDArray[np.float64], b: list[NDArray[np.datetime64]], c: NDArray, d: NDArray[np.integer],\n"
        "    e: Optional[np.ndarray[Any, np.dtype[np.int8]]] = None,\n"
        "):\n"
        "    return [str(one.dtype) for one in (a, *b, c, d, *([] if e is None else [e]))]\n"
    )
    given = {"a": [1], "b": [["2024-01-02"]], "c": [True], "d": [[1], [2]]}
    kinds = ["float64", "datetime64[D]", "bool", "int64"]
    assert (await harness.run("ask", pack, **given)).data == kinds
    assert (await harness.run("ask", pack, **given, e=[1])).data == [*kinds, "int8"]
    error = (await harness.run("ask", pack, **given, e=[1000])).error
    assert (error.code, [fault.path for fault in error.faults]) == ("invalid_args", ["/e"])


async def test_types_of_typing_without_brackets_are_converted_too(harness: Any, tmp_path: Path) -> None:
    pack = tmp_path / "bare.py"
    pack.write_text(
        "from typing import Dict, List, Optional, Set, Tuple\n"
        "def ask(\n"
        "    *, rows: List[List], by_name: Dict[str, Dict], record: Dict, pair: Tuple, tags: Optional[Set] = None,\n"
        "    other: Optional = None,\n"
        "):\n"
        "    return repr([rows, by_name, record, pair, tags, other])\n"
    )
    given = {"rows": [[1, "a"]], "by_name": {"a": {"b": 1}}, "record": {"c": 2}, "pair": [1, "b"], "tags": ["d", "d"]}
    events = await harness.events("ask", pack, **given, other=3)
    assert harness.result(events).data == "[[[1, 'a']], {'a': {'b': 1}}, {'c': 2}, (1, 'b'), {'d'}, 3]"
    assert "unconverted" not in harness.text(events)


DATED, ITS_DATE = {"when": "2024-01-01"}, "{'when': datetime.date(2024, 1, 1)}"
BLUE = "<Colour.BLUE: 2>"


@pytest.mark.parametrize(
    ("args", "given"),
    [
        ({"maybe": DATED}, ITS_DATE),
        ({"several": [DATED, {}]}, f"[{ITS_DATE}, {{}}]"),
        (
            {"nested": {"dated": DATED, "more": [{"more": [], "colour": 2}], "colour": "red"}},
            f"{{'dated': {ITS_DATE}, 'more': [{{'more': [], 'colour': {BLUE}}}], 'colour': <Colour.RED: 'red'>}}",
        ),
        ({"by_number": {"1": "a"}}, "{1: 'a'}"),
        ({"by_day": {"2024-01-01": 1}}, "{datetime.date(2024, 1, 1): 1}"),
        ({"holder": {"dated": DATED}}, f"Holder(dated={ITS_DATE})"),
        ({"quoted": [DATED]}, f"[{ITS_DATE}]"),
        ({"all_quoted": [DATED]}, f"[{ITS_DATE}]"),
        ({"alias": [DATED]}, f"[{ITS_DATE}]"),
        ({"heir": {"a": 1, "days": ["2024-01-01"]}}, "{'a': 1, 'days': [datetime.date(2024, 1, 1)]}"),
        ({"eased": {"a": 1, "when": "2024-01-01"}}, "{'a': 1, 'when': datetime.date(2024, 1, 1)}"),
        (
            {"functional": {"class": "a", "in-days": ["2024-01-01"]}},
            "{'class': 'a', 'in-days': [datetime.date(2024, 1, 1)]}",
        ),
    ],
)
async def test_objects_are_converted_by_their_keys_and_fields(harness: Any, args: dict[str, Any], given: str) -> None:
    events = await harness.events("dicts", TYPED, **args)
    assert harness.result(events).data == {name: given for name in args}  # noqa: C420 - one pair
    assert harness.text(events) == ""


async def test_an_invalid_field_is_reported_with_its_path(harness: Any) -> None:
    result = await harness.run("dicts", TYPED, nested={"more": [{"more": []}], "colour": "red"}, by_number={"one": "a"})
    assert {fault.path for fault in result.error.faults} == {"/nested/more/0/colour", "/by_number/one"}


@pytest.mark.parametrize("function", ["opaque", "endless"])
async def test_an_unsupported_type_is_logged(harness: Any, function: str) -> None:
    events = await harness.events(function, TYPED, value={"a": [1]})
    assert harness.result(events).data == "{'a': [1]}"
    said = f"{function} receives value unconverted, because its type is not supported: "
    assert harness.text(events).startswith(said)


@pytest.mark.promise("DSC-4")
async def test_the_log_about_a_class_without_a_json_form_is_in_plain_words(harness: Any) -> None:
    events = await harness.events("opaque", TYPED, value=1)
    said = "opaque receives value unconverted, because its type is not supported: "
    assert harness.text(events) == f"{said}It contains a class without a JSON form.\n"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="pydantic.v1 doesn't support this Python")
@pytest.mark.promise("DSC-4")
async def test_a_model_of_pydantic_v1_is_left_unconverted(harness: Any, tmp_path: Path) -> None:
    pack = tmp_path / "old.py"
    pack.write_text(
        "from pydantic.v1 import BaseModel\nclass Box(BaseModel):\n    size: int\n"
        "def one(*, value: Box) -> str:\n"
        '    """Return the value as text."""\n'
        "    return repr(value)\n"
        "def several(*, value: list[Box] | None = None) -> str:\n"
        '    """Return the values as text."""\n'
        "    return repr(value)\n"
    )
    reason = "because its type is not supported: It contains a class without a JSON form."
    for function, value in {"one": {"size": 1}, "several": [{"size": 1}]}.items():
        events = await harness.events(function, pack, value=value)
        assert harness.result(events).data == repr(value)
        assert f"{function} receives value unconverted, {reason}" in harness.text(events)


@pytest.mark.promise("DSC-4")
async def test_an_iterator_is_made_of_a_list(harness: Any, tmp_path: Path) -> None:
    pack = tmp_path / "lazy.py"
    pack.write_text(
        "import datetime, typing\nfrom collections.abc import Iterator\n"
        "def days(*, days: Iterator[datetime.date], more: typing.Iterator = None) -> list:\n"
        '    """Return the years and the rest."""\n'
        "    return [next(days).year, *(day.year for day in days), *more]\n"
    )
    events = await harness.events("days", pack, days=["2024-01-01", "2025-01-01"], more=["a", 1])
    assert (harness.result(events).data, harness.text(events)) == ([2024, 2025, "a", 1], "")
    result = await harness.run("days", pack, days=["2024-01-01", "no"])
    assert [fault.path for fault in result.error.faults] == ["/days/1"]


async def test_json_types_and_paths_need_no_import(harness: Any, tmp_path: Path) -> None:
    pack = tmp_path / "light.py"
    pack.write_text(
        "import sys\nfrom typing import Optional\n"
        "from pathlib import Path\n"
        "def ask(*, a: Optional[int], b: 'list[str] | None' = None, c: 'Path | None' = None):\n"
        "    assert isinstance(c, Path)\n"
        "    return [name for name in ('pydantic', 'asyncio', 'inspect') if name in sys.modules]\n"
    )
    assert (await harness.run("ask", pack, a=1, c="a/b")).data == []


async def test_defaults_in_fields_are_applied(harness: Any) -> None:
    assert (await harness.run("fields", TYPED)).data == [10, []]
    assert (await harness.run("fields", TYPED, count=2)).data == [2, []]
    assert (await harness.run("positional", TYPED, first=1)).data == [1, 10, []]


async def test_defaults_in_fields_are_converted_only_if_they_say_so(harness: Any) -> None:
    assert (await harness.run("field_defaults", TYPED)).data == "(None, [], datetime.date(2024, 1, 1))"
    given = (await harness.run("field_defaults", TYPED, until=None, since="2024-01-02")).data
    assert given == "(None, datetime.date(2024, 1, 2), datetime.date(2024, 1, 1))"


async def test_a_function_that_pydantic_validates_receives_its_arguments_under_their_aliases(harness: Any) -> None:
    result = await harness.run("validated", TYPED, query="a", day="2024-02-29")
    assert result.data == "'a' datetime.date(2024, 2, 29) 10"
    assert (await harness.run("validated", TYPED, query="a", day="2024-02-29", most=3)).data.endswith(" 3")


async def test_defaults_in_options_of_typer_are_applied_and_converted(harness: Any) -> None:
    result = await harness.run("described", COMMANDS, day="2024-02-29")
    assert result.data == "datetime.date(2024, 2, 29) 3 Level.LOW PosixPath('out.txt') [] None 5"
    result = await harness.run("described", COMMANDS, day="2024-02-29", level="high", names=["a"], note="b")
    assert result.data == "datetime.date(2024, 2, 29) 3 Level.HIGH PosixPath('out.txt') ['a'] b 5"


@pytest.mark.promise("DSC-2")
async def test_the_function_of_a_click_command_is_called(harness: Any) -> None:
    assert (await harness.run("command", COMMANDS, count=3)).data == 3


async def test_values_are_converted_for_a_function_with_arguments_passed_in_advance(harness: Any) -> None:
    assert (await harness.run("prepared", TYPED, day="2024-01-01")).data == "(datetime.date(2024, 1, 1), 'fixed')"


async def test_functions_without_annotations_and_with_further_keywords_are_called(harness: Any) -> None:
    assert (await harness.run("no_annotations", TYPED, first=1)).data == [1, 2]
    assert (await harness.run("with_rest", TYPED, first=1)).data == [1, "{}"]


@pytest.mark.parametrize(
    ("function", "args", "given"),
    [
        ("with_rest", {"second": "2024-01-01"}, "{'second': datetime.date(2024, 1, 1)}"),
        ("with_rest", {"rest": "2024-01-01"}, "{'rest': datetime.date(2024, 1, 1)}"),
        (
            "with_paths",
            {"when": "2024-01-01", "where": "a"},
            "{'when': datetime.date(2024, 1, 1), 'where': PosixPath('a')}",
        ),
    ],
)
async def test_further_keywords_are_converted(harness: Any, function: str, args: dict[str, Any], given: str) -> None:
    assert (await harness.run(function, TYPED, first=1, **args)).data == [1, given]


async def test_three_point_zero_becomes_an_integer_in_further_keywords(harness: Any) -> None:
    assert (await harness.run("with_numbers", TYPED, args=1.0, more=2.0)).data == "{'args': 1, 'more': 2}"


async def test_an_invalid_further_keyword_is_reported_with_its_path(harness: Any) -> None:
    result = await harness.run("with_paths", TYPED, first=1, when="soon")
    assert [fault.path for fault in result.error.faults] == ["/when"]


async def test_a_missing_argument_fails_the_call(harness: Any) -> None:
    result = await harness.run("no_annotations", TYPED)
    assert result.error.message.startswith("TypeError: no_annotations() missing 1 required")


@pytest.mark.parametrize("function", ["in_closure", "in_two_closures", "in_attribute"])
async def test_values_are_converted_for_a_function_whose_decorator_hides_its_annotations(
    harness: Any, function: str
) -> None:
    assert (await harness.run(function, BARE, day="2024-02-29")).data == "datetime.date(2024, 2, 29)"
    result = await harness.run(function, BARE, day="yesterday")
    assert [fault.path for fault in result.error.faults] == ["/day"]


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize(
    ("function", "data"),
    [("in_closure", 6), ("takes_text", 6), ("takes_context", 6), ("takes_keywords", "checked 6")],
)
async def test_a_function_that_a_decorator_put_into_an_object_is_called(
    harness: Any, function: str, data: object
) -> None:
    assert (await harness.run(function, FRAMEWORK, a=2, b=3)).data == data


@pytest.mark.promise("DSC-2")
async def test_a_function_that_a_decorator_lost_is_reported(harness: Any) -> None:
    result = await harness.run("lost", FRAMEWORK, a=2, b=3)
    assert result.error.code == "tool_not_found"
    assert result.error.message.endswith("the function lost: a decorator or assignment left a value of type NoneType.")


async def test_a_required_parameter_that_only_a_framework_supplies_fails_the_call_with_that_reason(
    harness: Any,
) -> None:
    result = await harness.run("needs_context", FRAMEWORK, a=1)
    assert result.error.message == (
        "TypeError: needs_context() missing 1 required positional argument: 'ctx'. Pegboard can't supply `ctx`. "
        "Set the default to None, so that the function can be called without it."
    )
    assert result.meta.traceback is None
    own_mistake = await harness.run("calls_itself", FRAMEWORK, a=1)
    assert own_mistake.error.message == "TypeError: calls_itself() missing 1 required keyword-only argument: 'a'"


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize("function", ["by_position", "by_position_with_others"])
async def test_a_parameter_that_is_accepted_by_position_only_fails_the_call_with_what_to_do(
    harness: Any, write_pack: Any, function: str
) -> None:
    folder = write_pack(
        "placed.py",
        "def by_position(a: int, /, b: int = 0) -> int:\n    return a + b\n\n\n"
        "def by_position_with_others(a: int, /, **others: int) -> int:\n    return a\n",
    )
    result = await harness.run(function, folder / "placed.py", a=1, b=2)
    assert result.error.message == (
        "TypeError: The function accepts `a` by position only, but tools are called with keyword arguments. "
        "Remove the `/` from its signature."
    )
    assert result.meta.traceback is None


async def test_a_parameter_that_is_left_out_causes_no_message(harness: Any) -> None:
    events = await harness.events("may_lack_context", FRAMEWORK, a=1)
    assert harness.result(events).data == "None 1"
    assert harness.text(events) == ""


async def test_a_function_that_is_chosen_by_the_type_of_its_first_argument_is_called(harness: Any) -> None:
    assert (await harness.run("by_type", FRAMEWORK, value=1, suffix="!")).data == "a number!"
    assert (await harness.run("by_type", FRAMEWORK, value="1")).data == "something"
