"""Texts about a field derived from its schema and name: label, limits, and special kinds of text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from pegboard.data.json_text import write
from pegboard.data.mask import MASK
from pegboard.forms.fields import FieldDescription

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject

PathKind: TypeAlias = Literal["", "file", "folder"]

_LONG_TEXTS = {
    "body",
    "code",
    "content",
    "html",
    "markdown",
    "message",
    "patch",
    "prompt",
    "script",
    "template",
    "text",
}
_LONG_FORMATS = {"markdown", "multi-line", "multiline", "textarea"}
_LONG = 200
"""Minimum `maxLength` of a multiline text."""
_WHOLE = re.compile(r"\^([^\\]|\\.)*\$")
"""A pattern for a text from its beginning to its end."""
_MAY_BREAK = re.compile(r"\\[sSDWPnrcux]|\[\^|\(\?|[\r\n|]")
"""Parts of a pattern with which a text that matches it may have several lines."""
_SECRET = re.compile(
    r"(^|_)(password|passwd|passphrase|secret|credential|api_?key|private_?key|secret_?key"
    r"|(access|auth|bearer|refresh)_?token)s?$"
)
_TYPE = re.compile(r"^(?:boolean|choice|constant|integer|list|map|number|object|string)\b")
_FILES = {"file", "filename", "filepath", "path"}
_FOLDERS = {"cwd", "dir", "directory", "folder"}
_NO_PATH = {"json", "jq", "object", "key", "property", "url", "route", "field"}
"""Words before `path` that exclude a file path."""


def facts_of(
    node: JsonObject, schema: JsonValue, name: str, *, required: bool, nullable: bool, in_list: bool
) -> FieldDescription:
    """Return facts about an argument from its schema, without its type.

    Args:
        node: Simplified schema.
        schema: Part of the validator's schema that was simplified.
        name: Name of the property.
        required: Whether it must be sent.
        nullable: Whether null is allowed.
        in_list: Whether it is a row.
    """
    title, description, examples = node.get("title"), node.get("description"), node.get("examples")
    says_more = isinstance(title, str) and _letters(title) not in {_letters(name), ""}
    return FieldDescription(
        schema=schema,
        label=title if says_more and isinstance(title, str) else "",
        description=description if isinstance(description, str) else "",
        required=required,
        nullable=nullable,
        has_default="default" in node,
        default=node.get("default"),
        examples=tuple(examples) if isinstance(examples, list) else (),
        limits=limits(node),
        in_list=in_list,
    )


def with_null(label: str, nullable: bool) -> str:
    """Return a type label that mentions null if it is allowed."""
    return f"{label} or null" if nullable and label not in {"null", "any"} and not label.endswith(" or null") else label


def container_label(outer: str, inner: str) -> str:
    """Return the label of a list or map with items of a type."""
    if " or " in inner:
        return f"{outer} of ({inner})"
    return f"{outer} of {_TYPE.sub(lambda name: f'{name[0]}s', inner)}"


@lru_cache(maxsize=1000)
def is_secret(name: str) -> bool:
    """Return True if a text of this name should be masked."""
    return _SECRET.search(_words(name)) is not None


def without_secrets(value: JsonValue, name: str) -> JsonValue:
    """Return a value of this name with `MASK` in place of each text that should be masked."""
    match value:
        case dict():
            return {key: without_secrets(inner, name if is_secret(name) else key) for key, inner in value.items()}
        case list():
            return [without_secrets(item, name) for item in value]
        case str() if is_secret(name):
            return MASK
        case _:
            return value


def is_long(node: JsonObject, name: str) -> bool:
    """Return True if the text should have several lines."""
    form, longest = node.get("format"), node.get("maxLength")
    if form in _LONG_FORMATS:
        return True
    if _is_one_line(node.get("pattern")):
        return False
    if isinstance(longest, int) and longest >= _LONG:
        return True
    return longest is None and form is None and _words(name).rpartition("_")[2] in _LONG_TEXTS


def _is_one_line(pattern: JsonValue) -> bool:
    """Return True if no text of several lines matches a pattern; False if in doubt."""
    return isinstance(pattern, str) and bool(_WHOLE.fullmatch(pattern)) and not _MAY_BREAK.search(pattern)


def picks(node: JsonObject, name: str) -> PathKind:
    """Return whether a text is the path of a file or a folder, judging by its name and format."""
    form = node.get("format")
    if form in {"path", "file-path"}:
        return "file"
    if form == "directory-path":
        return "folder"
    if form is not None or "pattern" in node:
        return ""
    before, _, last = _words(name).rpartition("_")
    if last in _FOLDERS:
        return "folder"
    return "file" if last in _FILES and before.rpartition("_")[2] not in _NO_PATH else ""


def limits(node: JsonObject) -> str:
    """Return the constraints of a schema in a few words."""
    parts = [
        *_bounds(node),
        f"multiple of {write(node['multipleOf'])}" if "multipleOf" in node else "",
        _range(node.get("minLength"), node.get("maxLength"), "character"),
        f"pattern {node['pattern']}" if "pattern" in node else "",
        _range(node.get("minItems"), node.get("maxItems"), "item"),
        "no item twice" if node.get("uniqueItems") is True else "",
        "some items of a certain kind" if "contains" in node else "",
        _range(node.get("minProperties"), node.get("maxProperties"), "property"),
        _needed(node.get("anyOf"), "one of {} is required"),
        _needed(node.get("oneOf"), "exactly one of {} is required"),
        *_needs(node.get("dependentRequired")),
    ]
    return ", ".join(part for part in parts if part)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_").replace(".", "_")


def _bounds(node: JsonObject) -> list[str]:
    over, under = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    least, most = node.get("minimum"), node.get("maximum")
    if over is None and under is None:
        return [_range(least, most, "")]
    return [
        f"more than {write(over)}" if over is not None else _range(least, None, ""),
        f"less than {write(under)}" if under is not None else _range(None, most, ""),
    ]


def _needed(variants: JsonValue, sentence: str) -> str:
    """Return a rule whose variants each require other names, in words, or an empty string."""
    listed = variants if isinstance(variants, list) else []
    names = [one.get("required") for one in listed if isinstance(one, dict) and one.keys() == {"required"}]
    groups = [" with ".join(map(str, group)) for group in names if isinstance(group, list) and group]
    return sentence.format(", ".join(groups)) if len(groups) == len(listed) > 1 else ""


def _needs(rules: JsonValue) -> list[str]:
    found = rules.items() if isinstance(rules, dict) else ()
    return [f"{name} needs {', '.join(map(str, names))}" for name, names in found if isinstance(names, list) and names]


def _range(least: JsonValue, most: JsonValue, unit: str) -> str:
    if least is None and most is None:
        return ""
    last = least if most is None else most
    if unit:
        unit = f" {unit}" if last == 1 else f" {unit[:-1]}ies" if unit.endswith("y") else f" {unit}s"
    if most is None:
        return f"at least {write(least)}{unit}" if unit == "" or least != 0 else ""
    if least is None or (unit and least == 0):
        return f"at most {write(most)}{unit}"
    return f"{write(least)}{unit}" if least == most else f"{write(least)} to {write(most)}{unit}"
