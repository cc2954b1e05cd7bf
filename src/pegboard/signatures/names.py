"""Tables of named types of `typing`, `collections`, `pydantic` and others."""

from __future__ import annotations

import collections.abc
import sys
import typing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.models import JsonObject


def canonical(name: str | None) -> str | None:
    """Return the name in `typing` for types of `typing_extensions` and `collections.abc`, and that in `pydantic`.

    Other names are returned unchanged.
    """
    if name is None:
        return None
    module, _, last = name.rpartition(".")
    if module in {"typing_extensions", "collections.abc", "_collections_abc"}:
        return f"typing.{last}"
    return f"pydantic.{last}" if module in {"pydantic.types", "pydantic.networks"} else name


def is_standard(name: str | None) -> bool:
    """Return whether a qualified name belongs to Python or to its standard library."""
    if name is None:
        return False
    module, _, last = name.rpartition(".")
    if module in {"typing", "collections.abc"}:
        return hasattr(typing if module == "typing" else collections.abc, last)
    return name.partition(".")[0] in sys.stdlib_module_names


SIMPLE: dict[str, JsonObject] = {
    "builtins.str": {"type": "string"},
    "builtins.int": {"type": "integer"},
    "builtins.float": {"type": "number"},
    "builtins.bool": {"type": "boolean"},
    "builtins.bytes": {"type": "string", "format": "binary"},
    "builtins.complex": {"type": "string"},
    "builtins.object": {},
    "typing.Any": {},
    "typing.Hashable": {},
    "typing.Text": {"type": "string"},
    "typing.AnyStr": {"type": "string"},
    "typing.LiteralString": {"type": "string"},
    "types.NoneType": {"type": "null"},
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "format": "time"},
    "datetime.timedelta": {"type": "string", "format": "duration"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
    "decimal.Decimal": {"anyOf": [{"type": "number"}, {"type": "string"}]},
    "fractions.Fraction": {"type": "string"},
    "zoneinfo.ZoneInfo": {"type": "string", "format": "zoneinfo"},
    "re.Pattern": {"type": "string", "format": "regex"},
    "typing.Pattern": {"type": "string", "format": "regex"},
    "pathlib.Path": {"type": "string", "format": "path"},
    "pathlib.PurePath": {"type": "string", "format": "path"},
    "pathlib.PosixPath": {"type": "string", "format": "path"},
    "pathlib.PurePosixPath": {"type": "string", "format": "path"},
    "pathlib.WindowsPath": {"type": "string", "format": "path"},
    "pathlib.PureWindowsPath": {"type": "string", "format": "path"},
    "os.PathLike": {"type": "string", "format": "path"},
    "ipaddress.IPv4Address": {"type": "string", "format": "ipv4"},
    "ipaddress.IPv6Address": {"type": "string", "format": "ipv6"},
    **{
        f"ipaddress.{name}": {"type": "string", "format": name.lower()}
        for name in ("IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface")
    },
    "numpy.ndarray": {"type": "array"},
    "numpy.typing.NDArray": {"type": "array"},
    "pandas.DataFrame": {"type": "array", "items": {"type": "object"}},
    "pandas.Series": {"type": ["array", "object"]},
    "polars.DataFrame": {"type": "array", "items": {"type": "object"}},
    "polars.Series": {"type": "array"},
    "numbers.Number": {"type": "number"},
    "numbers.Real": {"type": "number"},
    "numbers.Integral": {"type": "integer"},
    "pydantic.JsonValue": {},
    "pydantic.AnyUrl": {"type": "string", "format": "uri"},
    "pydantic.AnyHttpUrl": {"type": "string", "format": "uri"},
    "pydantic.HttpUrl": {"type": "string", "format": "uri"},
    **{
        f"pydantic.{name}": {"type": "string", "format": "uri"}
        for name in ("FileUrl", "FtpUrl", "WebsocketUrl", "AnyWebsocketUrl", "PostgresDsn", "MySQLDsn", "RedisDsn")
    },
    "pydantic.EmailStr": {"type": "string", "format": "email"},
    "pydantic.SecretStr": {"type": "string", "format": "password", "writeOnly": True},
    "pydantic.SecretBytes": {"type": "string", "format": "password", "writeOnly": True},
    "pydantic.NewPath": {"type": "string", "format": "path"},
    "pydantic.FilePath": {"type": "string", "format": "file-path"},
    "pydantic.DirectoryPath": {"type": "string", "format": "directory-path"},
    "pydantic.PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "pydantic.NegativeInt": {"type": "integer", "exclusiveMaximum": 0},
    "pydantic.NonNegativeInt": {"type": "integer", "minimum": 0},
    "pydantic.NonPositiveInt": {"type": "integer", "maximum": 0},
    "pydantic.PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "pydantic.NegativeFloat": {"type": "number", "exclusiveMaximum": 0},
    "pydantic.NonNegativeFloat": {"type": "number", "minimum": 0},
    "pydantic.NonPositiveFloat": {"type": "number", "maximum": 0},
    "pydantic.StrictInt": {"type": "integer"},
    "pydantic.StrictFloat": {"type": "number"},
    "pydantic.StrictStr": {"type": "string"},
    "pydantic.StrictBool": {"type": "boolean"},
    "pydantic.StrictBytes": {"type": "string", "format": "binary"},
    "pydantic.FiniteFloat": {"type": "number"},
    "pydantic.PastDate": {"type": "string", "format": "date"},
    "pydantic.FutureDate": {"type": "string", "format": "date"},
    "pydantic.PastDatetime": {"type": "string", "format": "date-time"},
    "pydantic.FutureDatetime": {"type": "string", "format": "date-time"},
    "pydantic.AwareDatetime": {"type": "string", "format": "date-time"},
    "pydantic.NaiveDatetime": {"type": "string"},  # the format requires an offset, which pydantic rejects
    **{f"pydantic.UUID{version}": {"type": "string", "format": f"uuid{version}"} for version in range(1, 9)},
    "pydantic.Base64Bytes": {"type": "string", "format": "base64"},
    "pydantic.Base64Str": {"type": "string", "format": "base64"},
    "pydantic.Base64UrlBytes": {"type": "string", "format": "base64url"},
    "pydantic.Base64UrlStr": {"type": "string", "format": "base64url"},
    "pydantic.Json": {"type": "string", "contentMediaType": "application/json"},
    "pydantic.ByteSize": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]},
    "pydantic.IPvAnyAddress": {"type": "string", "format": "ipvanyaddress"},
    "pydantic.IPvAnyInterface": {"type": "string", "format": "ipvanyinterface"},
    "pydantic.IPvAnyNetwork": {"type": "string", "format": "ipvanynetwork"},
}
"""Schemas of types without parameters."""

_WRITTEN_NUMBER: JsonObject = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
WRITTEN: dict[str, JsonObject] = {
    "builtins.float": _WRITTEN_NUMBER,
    "numbers.Number": _WRITTEN_NUMBER,
    "numbers.Real": _WRITTEN_NUMBER,
    "pydantic.StrictFloat": _WRITTEN_NUMBER,
    "datetime.datetime": {"type": "string"},
    "datetime.time": {"type": "string"},
    "datetime.timedelta": {"type": "string"},
    "pydantic.Json": {},
    "builtins.bytearray": {"type": "string"},
    "builtins.memoryview": {"type": "string"},
    "builtins.range": {"type": "array", "items": {"type": "integer"}},
    "sqlite3.Cursor": {"type": "array"},
    "sqlite3.Row": {"type": "object"},
    "pandas.Index": {"type": "array"},
    "pandas.Timedelta": {"type": ["string", "null"]},
    "pandas.Timestamp": {"type": ["string", "null"]},
    "numpy.bool": {"type": "boolean"},
    "numpy.bool_": {"type": "boolean"},
    "numpy.str_": {"type": "string"},
    **{f"numpy.float{bits}": _WRITTEN_NUMBER for bits in (16, 32, 64)},
    **{f"numpy.{sign}int{bits}": {"type": "integer"} for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{
        name: {}
        for name in (
            "PIL.Image.Image",
            "matplotlib.axes.Axes",
            "matplotlib.figure.Figure",
            "fastmcp.utilities.types.Image",
            "mcp.server.fastmcp.Image",
            "mcp.server.mcpserver.Image",
            "mcp.types.ImageContent",
            "mcp_types.ImageContent",
            "IPython.display.Image",
        )
    },
}
"""Schemas of types without parameters in results, if they differ.

The formats of JSON Schema require an offset of every time, and allow no negative duration. A model writes what the
text of `Json` contains. An image is an object, or the line with its file. Missing times of pandas are null.
"""

CONSTRAINED: dict[str, JsonObject] = {
    "conint": {"type": "integer"},
    "confloat": {"type": "number"},
    "condecimal": SIMPLE["decimal.Decimal"],
    "constr": {"type": "string"},
    "conbytes": SIMPLE["builtins.bytes"],
    "condate": SIMPLE["datetime.date"],
    "conlist": {"type": "array"},
    "conset": {"type": "array", "uniqueItems": True},
    "confrozenset": {"type": "array", "uniqueItems": True},
}
"""Schemas of types that a call constrains: `conint(ge=1)`."""

WRAPPERS = frozenset(
    {
        "typing.Final",
        "typing.ReadOnly",
        "typing.ClassVar",
        "dataclasses.InitVar",
        "pydantic.SerializeAsAny",
        "pydantic.functional_serializers.SerializeAsAny",
    }
)
"""Wrappers that describe the use of a field, not its type."""

LISTS = (
    "builtins.list",
    "typing.List",
    "typing.Sequence",
    "typing.MutableSequence",
    "typing.Iterable",
    "typing.Iterator",
    "typing.Collection",
    "typing.Container",
    "typing.Reversible",
    "typing.Generator",
    "typing.AsyncIterable",
    "typing.AsyncIterator",
    "typing.AsyncGenerator",
    "typing.Deque",
    "typing.KeysView",
    "typing.ValuesView",
    "collections.deque",
)
SETS = (
    "builtins.set",
    "builtins.frozenset",
    "typing.Set",
    "typing.FrozenSet",
    "typing.AbstractSet",
    "typing.MutableSet",
)
MAPPINGS = (
    "builtins.dict",
    "builtins.frozendict",
    "typing.Dict",
    "typing.Mapping",
    "typing.MutableMapping",
    "typing.DefaultDict",
    "typing.OrderedDict",
    "collections.defaultdict",
    "collections.OrderedDict",
)
BARE: dict[str, JsonObject] = {
    **{name: {"type": "array"} for name in LISTS},
    **{name: {"type": "array", "uniqueItems": True} for name in SETS},
    **{name: {"type": "object", "additionalProperties": True} for name in MAPPINGS},
    "builtins.tuple": {"type": "array"},
    "typing.Tuple": {"type": "array"},
    "collections.Counter": {"type": "object", "additionalProperties": True},
    "typing.Final": {},
}
"""Schemas of generic types without brackets."""
