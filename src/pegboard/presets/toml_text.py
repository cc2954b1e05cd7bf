"""Argument objects as TOML, in their own order and without loss.

Members of objects are written as dotted keys (`filter.kind = "x"`), one value per line. Values that TOML can't
represent (null, integers beyond 64 bits, lone surrogates) and deeply nested ones become a table with the single key
`$json` and the JSON text as its value. So does an object that looks like such a table.

`tomlkit` is not used for writing: it takes 14 to 18 times as long (285 ms instead of 16 ms for a list of 500 objects,
during which keys wait), and a multi-line string with carriage returns does not survive the round trip.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from pydantic import JsonValue

from pegboard.data.json_text import JsonTextError, parse
from pegboard.data.toml import TomlError, parse_toml
from pegboard.models import JsonObject

_MARK = "$json"
_DEEPEST = 20
"""Maximum depth of lists and objects that are written as TOML."""
_LARGEST = 2**63
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WIDTH = 100


class TomlTextError(ValueError):
    """A text is not TOML, or has a value that JSON can't represent.

    Attributes:
        line: Number of the wrong line, from 1, or None if unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def write_toml(arguments: JsonObject) -> str:
    """Return an argument object as TOML.

    Raises:
        TomlTextError: A number is not finite, or has more digits than Python converts.
    """
    try:
        encoded = _encoded(arguments, 0)
    except (ValueError, RecursionError) as error:
        raise TomlTextError(str(error)) from None
    assert isinstance(encoded, dict), "objects stay objects"
    return "".join(f"{line}\n" for line in _assignments((), encoded))


def read_toml(text: str) -> JsonObject:
    """Parse text written by `write_toml` or by a person.

    Raises:
        TomlTextError: The text is not TOML, or has a value that JSON can't represent (a date, infinity).
    """
    try:
        found = _decoded(parse_toml(text))
    except TomlError as error:
        raise TomlTextError(f"is not TOML: {error}", error.line) from None
    except JsonTextError as error:
        raise TomlTextError(f"has a `{_MARK}` that {error}") from None
    if not isinstance(found, dict):
        raise TomlTextError(f"consists of a `{_MARK}` that is not an object")
    return found


def _encoded(value: JsonValue, depth: int) -> JsonValue:
    """Return a value with a `$json` table in place of each part that TOML can't represent."""
    match value:
        case bool():
            return value
        case float() if not math.isfinite(value):
            raise TomlTextError(f"{value} is not a JSON number")
        case float():
            return value
        case int() if -_LARGEST <= value < _LARGEST:
            return value
        case str() if _is_unicode(value):
            return value
        case list() if depth < _DEEPEST:
            return [_encoded(item, depth + 1) for item in value]
        case dict() if depth < _DEEPEST and value.keys() != {_MARK} and all(map(_is_unicode, value)):
            return {name: _encoded(inner, depth + 1) for name, inner in value.items()}
    return {_MARK: json.dumps(value, allow_nan=False)}


def _decoded(value: object) -> JsonValue:
    match value:
        case dict() if value.keys() == {_MARK} and isinstance(value[_MARK], str):
            return parse(value[_MARK], deepest=len(value[_MARK]))  # whatever `write_toml` wrote
        case dict():
            return {name: _decoded(inner) for name, inner in value.items()}
        case list():
            return [_decoded(item) for item in value]
        case bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case float():
            raise TomlTextError(f"has the number {value}, which JSON can't represent")
        case _:
            raise TomlTextError(f"has a date or a time, {value}: write it as text, in quotes")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def _assignments(keys: tuple[str, ...], value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict) and (not keys or (value and value.keys() != {_MARK})):
        for name, inner in value.items():
            yield from _assignments((*keys, name), inner)
        return
    yield f"{'.'.join(map(_key, keys))} = {_block(value)}"


def _block(value: JsonValue) -> str:
    """Return a top-level value: long lists have one item per line, texts with line breaks become multi-line strings."""
    if isinstance(value, str) and "\n" in value:
        lines = re.sub(r'"(?="")|"\Z', r"\"", "".join(sign if sign == "\n" else _sign(sign) for sign in value))
        return f'"""\n{lines}"""'
    line = _inline(value)
    if isinstance(value, list) and (len(line) > _WIDTH or any(isinstance(item, dict) for item in value)):
        return "\n".join(["[", *(f"    {_inline(item)}," for item in value), "]"])
    return line


def _inline(value: JsonValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(_inline, value))}]"
        case dict():
            members = (f"{_key(name)} = {_inline(inner)}" for name, inner in value.items())
            return f"{{ {', '.join(members)} }}" if value else "{}"
        case _:
            return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    if ('"' in text or "\\" in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return '"' + "".join(map(_sign, text)).replace('"', r"\"") + '"'


def _sign(sign: str) -> str:
    if sign in _SHORT:
        return _SHORT[sign]
    if sign.isprintable():
        return sign
    return f"\\u{ord(sign):04X}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08X}"
