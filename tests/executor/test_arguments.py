"""From JSON to what a function's annotations ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any  # a bench is a fixture's

import pytest

pytestmark = pytest.mark.promise("EXE-3")

TYPED = Path(__file__).parents[1] / "packs" / "executor_typed.py"


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
async def test_a_json_value_becomes_what_the_annotation_asks_for(bench: Any, args: dict[str, Any], given: str) -> None:
    assert (await bench.run("kinds", TYPED, **args)).data == {name: given for name in args}  # noqa: C420 - one pair


async def test_null_is_taken_where_the_default_is_none(bench: Any) -> None:
    assert (await bench.run("kinds", TYPED, day=None, tags=None, person={"name": "A"})).data.keys() == {"person"}


async def test_what_does_not_fit_is_a_fault_with_its_path(bench: Any) -> None:
    result = await bench.run("kinds", TYPED, day="yesterday", person={"name": "A", "friends": [{}]}, tags=["fine"])
    assert result.error.code == "invalid_args"
    assert {fault.path for fault in result.error.faults} == {"/day", "/person/friends/0/name"}
    assert all(fault.message for fault in result.error.faults)
    assert (await bench.run("kinds", TYPED, tags=["fine"])).ok


async def test_json_types_arrive_as_they_are(bench: Any) -> None:
    args = {
        "text": "2024-01-01", "number": 2, "ratio": 1, "some": [1, 2], "choice": 1, "anything": {"a": None},
        "nested": {"a": [{"a": 1}]}, "limited": 5, "maybe": None, "unknown": "2024-01-01",
    }  # fmt: skip
    result = await bench.run("native", TYPED, **args)
    assert result.data == {name: repr(value) for name, value in args.items()}


async def test_three_point_zero_is_an_integer_where_one_is_asked_for(bench: Any) -> None:
    data = (await bench.run("native", TYPED, number=3.0, limited=4.0, maybe=5.0, ratio=6.0, anything=7.0)).data
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
async def test_three_point_zero_is_an_integer_inside_of_lists_and_objects_too(
    bench: Any, args: dict[str, Any], given: str
) -> None:
    assert (await bench.run("integers", TYPED, **args)).data == {name: given for name in args}  # noqa: C420 - one pair


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
    ],
)
async def test_objects_are_converted_by_their_keys_and_fields(bench: Any, args: dict[str, Any], given: str) -> None:
    events = await bench.events("dicts", TYPED, **args)
    assert bench.result(events).data == {name: given for name in args}  # noqa: C420 - one pair
    assert bench.text(events) == ""


async def test_a_field_that_does_not_fit_is_a_fault_with_its_path(bench: Any) -> None:
    result = await bench.run("dicts", TYPED, nested={"more": [{"more": []}], "colour": "red"}, by_number={"one": "a"})
    assert {fault.path for fault in result.error.faults} == {"/nested/more/0/colour", "/by_number/one"}


async def test_a_type_that_nothing_can_be_made_into_is_said(bench: Any) -> None:
    events = await bench.events("opaque", TYPED, value={"a": 1})
    assert bench.result(events).data == "{'a': 1}"
    assert bench.text(events).startswith("opaque gets value as JSON has it, as it can't be made into its type: ")


async def test_json_types_and_paths_cost_no_import(bench: Any, tmp_path: Path) -> None:
    pack = tmp_path / "light.py"
    pack.write_text(
        "import sys\nfrom typing import Optional\n"
        "from pathlib import Path\n"
        "def ask(*, a: Optional[int], b: 'list[str] | None' = None, c: 'Path | None' = None):\n"
        "    assert isinstance(c, Path)\n"
        "    return [name for name in ('pydantic', 'asyncio', 'inspect') if name in sys.modules]\n"
    )
    assert (await bench.run("ask", pack, a=1, c="a/b")).data == []


async def test_defaults_written_as_fields_are_filled_in(bench: Any) -> None:
    assert (await bench.run("fields", TYPED)).data == [10, []]
    assert (await bench.run("fields", TYPED, count=2)).data == [2, []]


async def test_functions_without_annotations_and_with_further_keywords_are_called(bench: Any) -> None:
    assert (await bench.run("no_annotations", TYPED, first=1)).data == [1, 2]
    assert (await bench.run("with_rest", TYPED, first=1, second="2024-01-01")).data == [1, {"second": "2024-01-01"}]


async def test_a_missing_argument_is_the_tools_own_failure(bench: Any) -> None:
    result = await bench.run("no_annotations", TYPED)
    assert result.error.message.startswith("TypeError: no_annotations() missing 1 required")
