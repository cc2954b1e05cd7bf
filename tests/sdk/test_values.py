"""Conversion of return values to JSON."""

from __future__ import annotations

import array
import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import io
import ipaddress
import json
import math
import pathlib
import sqlite3
import types
import uuid
import zoneinfo
from collections.abc import Iterator
from contextlib import closing
from typing import IO, Any, NamedTuple  # Any: tools return any value

import attrs
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server.mcpserver import Image as McpImage
from mcp_types import ImageContent
from PIL import Image

from pegboard.sdk.values import DEPTH, NotSerializableError, encode

pytestmark = pytest.mark.promise("EXE-3")


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


@dataclasses.dataclass
class Point:
    x: int
    when: dt.date | None = None


class Person(pydantic.BaseModel):
    name: str
    born: dt.date


class Columns:
    """A substitute for tables of Arrow, whose wheel is large."""

    def to_pylist(self) -> list[dict[str, object]]:
        return [{"a": 1}]


class Download(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    name: str
    content: bytes
    table: Columns | None = None


class Pair(NamedTuple):
    left: int
    right: str


class Array:
    """Array like numpy's, which converts itself to a list."""

    def tolist(self) -> list[float]:
        return [1.0, math.nan]


class Series:
    """Series like pandas', whose labels are an array."""

    def __init__(self, values: list[object], labels: list[object]) -> None:
        self.values, self.labels = values, labels

    @property
    def index(self) -> Any:
        unique = len(set(self.labels)) == len(self.labels)
        return types.SimpleNamespace(tolist=lambda: self.labels, is_unique=unique)

    def __len__(self) -> int:
        return len(self.values)

    def tolist(self) -> list[object]:
        return self.values

    def items(self) -> Iterator[tuple[object, object]]:
        return zip(self.labels, self.values, strict=True)

    def to_dict(self) -> dict[object, object]:
        return dict(self.items())


class Table:
    """A substitute for tables of Polars, whose wheel is large."""

    def to_dicts(self) -> list[dict[str, object]]:
        return [{"a": 1, "when": dt.date(2024, 1, 2)}]


class Column:
    """A substitute for series of Polars."""

    def to_list(self) -> list[object]:
        return [1, None, dt.date(2024, 1, 2)]


@attrs.define
class Box:
    width: int
    at: dt.date


def _rows() -> list[sqlite3.Row]:
    with closing(sqlite3.connect(":memory:")) as base:
        base.row_factory = sqlite3.Row
        return base.execute("SELECT 1 AS a, 'x' AS b").fetchall()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"b": [1, 2.5, None, True, "é"], "a": {}}, {"b": [1, 2.5, None, True, "é"], "a": {}}),
        (2**200, 2**200),
        ((1, "a"), [1, "a"]),
        (Pair(1, "a"), [1, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset(["a"]), ["a"]),
        (Colour.RED, "red"),
        (Size.BIG, 3),
        ({Colour.RED: 1}, {"red": 1}),
        (Point(1, dt.date(2024, 1, 2)), {"x": 1, "when": "2024-01-02"}),
        ([Point(1)], [{"x": 1, "when": None}]),
        (Person(name="A", born=dt.date(2024, 1, 2)), {"name": "A", "born": "2024-01-02"}),
        (Download(name="A", content=b"\xff\xfe"), {"name": "A", "content": "//4=", "table": None}),
        ([Download(name="A", content=b"t", table=Columns())], [{"name": "A", "content": "t", "table": [{"a": 1}]}]),
        (dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2024-01-02T03:04:05+00:00"),
        (dt.timedelta(days=1, seconds=2, microseconds=500_000), "P1DT2.5S"),
        (-dt.timedelta(seconds=90), "-P0DT90S"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (decimal.Decimal("1.10"), "1.10"),
        (fractions.Fraction(1, 3), "1/3"),
        (zoneinfo.ZoneInfo("Europe/Paris"), "Europe/Paris"),
        (ipaddress.ip_address("1.2.3.4"), "1.2.3.4"),
        (ipaddress.ip_network("2001:db8::/32"), "2001:db8::/32"),
        (pydantic.HttpUrl("http://a.b/c"), "http://a.b/c"),
        (b"text", "text"),
        (bytearray(b"\xff\xfe"), "//4="),
        (math.nan, "NaN"),
        ([math.inf, -math.inf], ["Infinity", "-Infinity"]),
        ({"a": [math.nan, Point(1)]}, {"a": ["NaN", {"x": 1, "when": None}]}),
        ({1: "a", None: "b", 2.5: "c", False: "d"}, {"1": "a", "null": "b", "2.5": "c", "false": "d"}),
        ({dt.date(2024, 1, 2): 1, uuid.UUID(int=1): 2}, {"2024-01-02": 1, str(uuid.UUID(int=1)): 2}),
        (Array(), [1.0, "NaN"]),
        (Table(), [{"a": 1, "when": "2024-01-02"}]),
        (Columns(), [{"a": 1}]),
        ({"column": Column()}, {"column": [1, None, "2024-01-02"]}),
        (Box(2, dt.date(2024, 1, 2)), {"width": 2, "at": "2024-01-02"}),
        (_rows(), [{"a": 1, "b": "x"}]),
        (Series([1, 2], [0, 1]), [1, 2]),
        (Series([1, 2], ["a", "b"]), {"a": 1, "b": 2}),
        (Series([1, 2], [1, 0]), {"1": 1, "0": 2}),
        (Series([1, 2], ["a", "a"]), [["a", 1], ["a", 2]]),
        (array.array("i", [1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (collections.deque([1]), [1]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        (map(str, [1, 2]), ["1", "2"]),
        ([iter([1]), math.nan, iter([Point(2)])], [[1], "NaN", [{"x": 2, "when": None}]]),
        ("\ud83d\ude00\ud800", "😀\ufffd"),
        ({"\udfff": "a"}, {"\ufffd": "a"}),
        ([[]] * 1000, [[]] * 1000),
    ],
)
def test_values_have_their_expected_json_form(value: object, written: object) -> None:
    assert json.loads(encode(value)) == written


FRAMES = {
    "numbered": ('DataFrame({"a": [1, 2], "s": ["x", None]})', [{"a": 1, "s": "x"}, {"a": 2, "s": None}]),
    "filtered": ('DataFrame({"a": [1, 2]}).query("a > 1")', [{"a": 2}]),
    "missing": ('DataFrame({"a": [1.5, float("nan")], "d": [NaT, NA]})', [{"a": 1.5, "d": None}, dict.fromkeys("ad")]),
    "labels": ('DataFrame({"a": [1]}, index=["x"])', [{"index": "x", "a": 1}]),
    "named": ('DataFrame({"a": [1]}, index=Index([7], name="id"))', [{"id": 7, "a": 1}]),
    "times": (
        'DataFrame({"t": to_datetime(["2024-01-02"]), "l": [Timedelta("1h")], "p": [Period("2024-01")]})',
        [{"t": "2024-01-02T00:00:00", "l": "P0DT1H0M0S", "p": "2024-01"}],
    ),
    "groups": (
        'DataFrame({"g": ["a", "a"], "v": [1, 3]}).groupby("g").agg({"v": ["sum", "mean"]})',
        [{"g": "a", "v.sum": 4, "v.mean": 2.0}],
    ),
    "repeated names": (
        "DataFrame([[1, 2, 3, 4]], columns=['a', 'a.2', 'a', 1])", [{"a": 1, "a.2": 2, "a.3": 3, "1": 4}]
    ),
    "levels": ("DataFrame([[1, 2]], columns=MultiIndex.from_tuples([(0, 'a'), ('b', '')]))", [{"0.a": 1, "b": 2}]),
    "kinds": ('DataFrame({"c": Categorical(["x"]), "i": array([1], dtype="Int64")})', [{"c": "x", "i": 1}]),
    "empty": ('DataFrame({"a": []})', []),
    "series": ("Series([1, 2])", [1, 2]),
    "labeled series": ("Series([1, 2], ['a', 'b'])", {"a": 1, "b": 2}),
    "repeated labels": ("Series([1, 2], ['a', 'a'])", [["a", 1], ["a", 2]]),
    "series of missing texts": ("Series(['a', None])", ["a", None]),
    "series of missing integers": ("Series([1, None], dtype='Int64')", [1, None]),
    "series of missing numbers": ("Series([1.5, None], ['a', 'b'])", {"a": 1.5, "b": None}),
    "series of missing times": ("Series([NaT, NaT], ['a', 'a'])", [["a", None], ["a", None]]),
    "missing scalars": ("{'last': Series([NaT]).max(), 'id': NA, NaT: 1}", {"last": None, "id": None, "null": 1}),
    "missing in arrays": ("[Index(['a', None]), Categorical([None]), array([None])]", [["a", None], [None], [None]]),
    "several levels of labels": ("MultiIndex.from_tuples([('a', 1)])", [["a", 1]]),
    "series with several levels of labels": (
        "DataFrame({'g': ['a'], 'n': [1], 'v': [2]}).groupby(['g', 'n'])['v'].sum()", [{"g": "a", "n": 1, "v": 2}]
    ),
    "sizes of groups": ("DataFrame({'g': ['a'], 'n': [1]}).groupby(['g', 'n']).size()", [{"g": "a", "n": 1, "0": 1}]),
    "nested": ('{"rows": [DataFrame({"a": [1]})]}', {"rows": [[{"a": 1}]]}),
}  # fmt: skip


@pytest.mark.parametrize(("code", "written"), FRAMES.values(), ids=FRAMES.keys())
def test_tables_and_series_of_pandas_become_lists_and_objects(code: str, written: object) -> None:
    pandas = pytest.importorskip("pandas")
    assert json.loads(encode(eval(code, vars(pandas)))) == written


ARRAYS = {
    "times": ("array(['2024-01-02T03:04:05', 'NaT'], dtype='datetime64[ns]')", ["2024-01-02T03:04:05", None]),
    "time": ("datetime64('2024-01-02T03:04:05.000001002')", "2024-01-02T03:04:05.000001"),
    "durations": ("{'a': array([[1_500_000_000]], dtype='timedelta64[ns]')}", {"a": [["P0DT1.5S"]]}),
    "days": ("array(['2024-01-02'], dtype='datetime64[D]')", ["2024-01-02"]),
    "complex": ("[1.5 + 2j, array([1j]), clongdouble(3)]", ["1.5+2j", ["1j"], "3+0j"]),
    "rows": (
        "array([(1, 'x', (2.5, [3, 4]))], dtype=[('a', int), ('b', 'U1'), ('c', [('d', float), ('e', int, 2)])])",
        [{"a": 1, "b": "x", "c": {"d": 2.5, "e": [3, 4]}}],
    ),
    "row": ("recarray((1,), dtype=[('a', int)], buf=array([1]))[0]", {"a": 1}),
    "long doubles": ("[longdouble(1.5), array([0.5, inf], dtype=longdouble)]", [1.5, [0.5, "Infinity"]]),
}  # fmt: skip


@pytest.mark.parametrize(("code", "written"), ARRAYS.values(), ids=ARRAYS.keys())
def test_values_of_numpy_that_json_has_no_type_for_are_converted_to_the_nearest_one(code: str, written: object) -> None:
    numpy = pytest.importorskip("numpy")
    assert json.loads(encode(eval(code, vars(numpy)))) == written


def test_secrets_of_pydantic_are_written_masked() -> None:
    assert json.loads(encode({"key": pydantic.SecretStr("hidden")})) == {"key": "**********"}


class Picture:
    """Object of IPython's display protocol."""

    def __init__(self, png: object = None, jpeg: object = None) -> None:
        self.png, self.jpeg = png, jpeg

    def _repr_png_(self) -> object:
        if isinstance(self.png, Exception):
            raise self.png
        return self.png

    def _repr_jpeg_(self) -> object:
        return self.jpeg


class Sketch:
    """A substitute for figures of Matplotlib, whose wheel is large."""

    def savefig(self, target: IO[bytes], *, format: str) -> None:  # noqa: A002 - Matplotlib's name
        target.write(f"a figure as {format}".encode())


class Plot:
    """A substitute for axes of Matplotlib."""

    def get_figure(self) -> Sketch:
        return Sketch()


class BrokenSketch:
    def savefig(self, target: IO[bytes], *, format: str) -> None:  # noqa: A002 - Matplotlib's name
        raise RuntimeError("no font")


def _image(kind: str, data: bytes) -> dict[str, str]:
    return {"type": "image", "mimeType": f"image/{kind}", "data": base64.b64encode(data).decode()}


_CONTENT = ImageContent(data="AAAA", mime_type="image/gif")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Picture(b"p"), _image("png", b"p")),
        (Picture(("cA==", {"width": 3})), _image("png", b"p")),
        (Picture(None, b"j"), _image("jpeg", b"j")),
        (Picture(OSError("full"), b"j"), _image("jpeg", b"j")),
        (Sketch(), _image("png", b"a figure as png")),
        (Plot(), _image("png", b"a figure as png")),
        (_CONTENT, {"type": "image", "mimeType": "image/gif", "data": "AAAA"}),
        (McpImage(data=b"m", format="webp"), _image("webp", b"m")),
        ({"a": [Picture(b"p"), math.nan]}, {"a": [_image("png", b"p"), "NaN"]}),
    ],
)
def test_an_image_becomes_an_object_as_in_mcp(value: object, written: object) -> None:
    assert json.loads(encode(value)) == written


def test_a_figure_is_written_once_for_an_array_of_its_axes() -> None:
    numpy = pytest.importorskip("numpy")
    first, second = Sketch(), Sketch()

    def axes(figure: Sketch) -> object:
        return types.SimpleNamespace(get_figure=lambda: figure)

    one = numpy.array([[axes(first), axes(first)], [axes(first), axes(first)]], dtype=object)
    assert json.loads(encode(one)) == _image("png", b"a figure as png")
    two = numpy.array([axes(first), axes(second), axes(second)], dtype=object)
    assert json.loads(encode({"plots": two})) == {"plots": [_image("png", b"a figure as png")] * 2}


def test_an_image_of_pillow_becomes_a_png() -> None:
    written = json.loads(encode(Image.new("RGB", (3, 2))))
    assert (written["type"], written["mimeType"]) == ("image", "image/png")
    assert Image.open(io.BytesIO(base64.b64decode(written["data"]))).size == (3, 2)


def _nested(levels: int) -> object:
    value: object = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def _cyclic() -> object:
    point = Point(1)
    point.x = [point]  # type: ignore[assignment] # that is the point
    return {"deep": point}


class Endless:
    def tolist(self) -> object:
        return Endless()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "an object of type object at the top"),
        ({"a": [1, {"b c": lambda: 1}]}, 'an object of type function at .a[1]["b c"]'),
        ({"a": math.nan, "b": {(1, 2): 3}}, "a key of type tuple at .b"),
        ([Picture()], "an object of type tests.sdk.test_values.Picture that can't be saved as PNG or JPEG at [0]"),
        (Picture(OSError("full")), "Picture that can't be saved as an image (OSError: full) at the top"),
        ({"plot": BrokenSketch()}, "BrokenSketch that can't be saved as an image (RuntimeError: no font) at .plot"),
        ([1, 10**5000], "an integer of more than 4,300 digits at [1]"),
        (_cyclic(), "an object that contains itself at .deep.x[0]"),
        (_nested(DEPTH + 1), f"nested deeper than {DEPTH} levels"),
        (_nested(100_000), "nested deeper"),
        ({"x": Endless()}, "an infinitely nested object"),
        ({dt.date(2024, 1, 2): 1, "2024-01-02": 2}, "two keys that both become “2024-01-02”"),
        ({1: "one", "1": "uno"}, "two keys that both become “1” at the top"),
        ([{None: 1, "null": 2}], "two keys that both become “null” at [0]"),
        ({"a": [Point({2.5: 1, "2.5": 2})]}, "two keys that both become “2.5” at .a[0].x"),  # type: ignore[arg-type]
        (open, "an object of type builtin_function_or_method"),
        (json, "an object of type module"),
        (Point, "an object of type type"),
        (dict.fromkeys(["\ud83d", "\ud83e"]), "two keys that both become “\ufffd” at the top"),
        ([{key: {1} for key in ("\ud83d", "\ufffd")}], "two keys that both become “\ufffd” at [0]"),
        ({"a": {10**5000: 1}}, "an integer of more than 4,300 digits at .a"),
    ],
    ids=range(21),
)
def test_a_value_without_a_json_form_is_reported_with_type_and_path(value: object, words: str) -> None:
    with pytest.raises(NotSerializableError) as refused:
        encode(value)
    assert words in str(refused.value)


def test_groups_without_an_aggregation_are_reported_with_their_type() -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2024-01-02", periods=1)
    for value in (pandas.DataFrame({"x": [1]}).groupby("x"), pandas.Series([1], index=times).resample("D")):
        with pytest.raises(NotSerializableError, match=f"{type(value).__name__} at the top"):
            encode(value)


def test_the_maximum_nesting_is_allowed() -> None:
    assert json.loads(encode(_nested(DEPTH))) == _nested(DEPTH)
    assert json.loads(encode({"[" * 500: "]" * 500})) == {"[" * 500: "]" * 500}


def test_exceptions_of_the_author_propagate() -> None:
    def items() -> Any:
        yield 1
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        encode({"a": items()})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=60)
@given(_JSON)
def test_json_values_are_unchanged(value: object) -> None:
    assert json.loads(encode(value)) == value


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_becomes_a_sorted_list(kind: type[set[int] | frozenset[int]]) -> None:
    # in the iteration order of a set, these numbers would not be sorted
    numbers = kind([96, 8, 1024, 33, 64, 1])
    assert list(numbers) != sorted(numbers)
    assert json.loads(encode(numbers)) == sorted(numbers)
    assert json.loads(encode({"nested": [numbers]})) == {"nested": [sorted(numbers)]}


def test_an_object_that_occurs_twice_is_written_twice() -> None:
    shared = [1, {"x": 2}]
    assert json.loads(encode({"a": shared, "b": [shared], "c": math.nan})) == {"a": shared, "b": [shared], "c": "NaN"}
