r"""Matching of rules and calls: names after alias resolution, values by type, paths after resolution.

`deny` and `ask` rules match if any interpretation of the call matches, `allow` rules only if every one does. An omitted
argument of a tool whose schema is unknown may have any default.

Patterns: `?` is one character and `*` any number, both within one folder of a path; `**` crosses folders. `[*]`, `[?]`
and `[[]` are the characters themselves; `pegboard.models.rule_scope.literal` writes them.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.data.json_text import is_text_of
from pegboard.gateway.rule_pattern import expression, literal
from pegboard.models import OF_CLIENTS, McpHandler
from pegboard.models.rule_scope import matches_exactly

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.shapes import Shapes
    from pegboard.models import CallSource, JsonObject, ToolCall, ToolSpec
    from pegboard.models.rule import Rule, RuleScope

_UP = re.compile(r"(^|[/\\])\.\.($|[/\\])")
_MOST_VARIANTS = 64


@dataclass(frozen=True)
class Folders:
    """The folders that relative paths of a call may start from.

    Args:
        roots: Folders configured for the tool's pack or server, absolute; the tool starts in the first.
    """

    roots: tuple[str, ...] = ()

    def bases(self, *, strict: bool) -> list[str]:
        """Return the folders that a relative path may start from; only the likeliest if `strict`.

        Raises:
            OSError: The working directory no longer exists.
        """
        if strict:
            return [self.roots[0] if self.roots else str(Path.cwd())]
        return [str(Path.cwd()), *self.roots]


def matches(rule: Rule, spec: ToolSpec, call: ToolCall, folders: Folders) -> bool:
    """Return whether a rule applies to a call whose arguments were validated."""
    if rule.scope is not None and not _covers(rule.scope, call.source):
        return False
    if not any(names_tool(rule, pattern, spec) for pattern in rule.tools):
        return False
    if rule.exactly is not None and not matches_exactly(rule.exactly, spec, call.args):
        return False
    arguments = Arguments(spec)
    return all(
        _where_matches(rule, patterns, arguments, key, call.args, folders) for key, patterns in rule.where.items()
    )


def _covers(scope: RuleScope, source: CallSource) -> bool:
    return source in OF_CLIENTS if scope == "mcp" else scope == source


def names_tool(rule: Rule, pattern: str, spec: ToolSpec) -> bool:
    """Return whether a pattern of a rule names a tool, by its name or an alias."""
    from fnmatch import fnmatchcase

    if fnmatchcase(spec.name, pattern):
        return True
    if rule.action == "allow":
        # An alias with a dot could impersonate a tool of another pack.
        return "." not in pattern and pattern in spec.aliases
    return any(fnmatchcase(alias, pattern) for alias in spec.aliases)


def _where_matches(
    rule: Rule, patterns: Sequence[str], arguments: Arguments, key: str, args: JsonObject, folders: Folders
) -> bool:
    strict = rule.action == "allow"
    if not strict and _is_unknown(arguments, key, args):
        return True
    values = [*arguments.values(args, key)]
    found = [leaf for value in values for leaf in _leaves(value)]
    fitting = (any(value_matches(pattern, value, folders, strict=strict) for pattern in patterns) for value in found)
    return bool(found) and (all(fitting) if strict else any(fitting))


def _is_unknown(arguments: Arguments, key: str, args: JsonObject) -> bool:
    """Return whether a call omits an argument whose default is unknown."""
    if arguments.are_listed:
        return False
    values = [*arguments.values(args, key)]
    return not values or any(value.is_missing for value in values)


def unknown_argument(rule: Rule, spec: ToolSpec, call: ToolCall) -> str:
    """Return the argument of a matching rule that the call omits and whose default is unknown; empty if none is."""
    arguments = Arguments(spec)
    return next((key for key in rule.where if _is_unknown(arguments, key, call.args)), "")


# Values of arguments


@dataclass(frozen=True)
class ArgumentValue:
    """A value of an argument with its schema."""

    name: str
    data: JsonValue
    nodes: tuple[JsonObject, ...]
    """The variants of its schema, with references resolved; empty if it has no schema."""
    items: tuple[JsonObject, ...] = ()
    """The variants of the schema of its items."""
    is_missing: bool = False
    """Whether it represents an item of a list without such a value."""

    @property
    def is_path(self) -> bool:
        """Whether it is a path, by its schema or its name, as in forms."""
        return is_path(self.nodes, self.name)

    @property
    def is_text_only(self) -> bool:
        """Whether the schema accepts text and nothing else."""
        return bool(self.nodes) and all(node.get("type") in {"string", "null"} for node in self.nodes)


class Arguments:
    """The arguments of a tool, by the keys that rules use for them.

    Args:
        spec: The tool.
    """

    def __init__(self, spec: ToolSpec) -> None:
        from pegboard.forms.shapes import Shapes
        from pegboard.schema.validation import validator

        checked = validator(spec.input_schema)
        self._spec = spec
        self._shapes: Shapes = Shapes(checked)
        self._root = self._variants([checked.schema])

    @property
    def are_listed(self) -> bool:
        """Whether the schema is known, and with it the defaults."""
        return not isinstance(self._spec.handler, McpHandler) or self._spec.handler.listed

    def values(self, args: JsonObject, key: str) -> Iterator[ArgumentValue]:
        """Yield the values under a key: a name, an alias or a dotted path. Missing arguments have their defaults.

        A path also leads into the items of lists.
        """
        yield from self._reach(args, self._root, self._parts(key), "")

    def nodes(self, key: str) -> list[tuple[JsonObject, ...]] | None:
        """Return the schemas of the values under a key; None if the tool has no such argument."""
        found = [*self._schemas(self._root, self._parts(key))]
        return found or None

    def items(self, nodes: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
        """Return the variants of the items of lists."""
        return self._variants([node["items"] for node in nodes if "items" in node])

    def _parts(self, key: str) -> list[str]:
        aliases = self._spec.parameter_aliases
        if key in aliases:
            return [aliases[key]]
        if any(key in _properties(node) for node in self._root):
            return [key]
        first, *rest = key.split(".")
        return [aliases.get(first, first), *rest]

    def _reach(
        self, value: JsonValue, nodes: tuple[JsonObject, ...], parts: Sequence[str], name: str
    ) -> Iterator[ArgumentValue]:
        if not parts:
            yield ArgumentValue(name, value, nodes, self.items(nodes) if isinstance(value, list) else ())
        elif isinstance(value, list):
            for item in value:
                found = [*self._reach(item, self.items(nodes), parts, name)]
                yield from found or [ArgumentValue(name, None, (), is_missing=True)]
        elif isinstance(value, dict):
            for count in range(1, len(parts) + 1):
                inner = ".".join(parts[:count])
                below = self._variants([_properties(node)[inner] for node in nodes if inner in _properties(node)])
                for spelled in self._spellings(value, nodes, inner):
                    yield from self._reach(value[spelled], below, parts[count:], inner)
                if inner not in value:
                    for node in [node for node in below if "default" in node][:1]:
                        yield from self._reach(node["default"], below, parts[count:], inner)

    def _spellings(self, value: JsonObject, nodes: tuple[JsonObject, ...], name: str) -> list[str]:
        """Return the keys of an object that a server may read as a name: those written in Go ignore the case."""
        if not isinstance(self._spec.handler, McpHandler):
            return [name] if name in value else []
        folded = name.casefold()
        others = (key for key in value if key.casefold() == folded)
        return [key for key in others if key == name or not any(key in _properties(node) for node in nodes)]

    def _schemas(self, nodes: tuple[JsonObject, ...], parts: Sequence[str]) -> Iterator[tuple[JsonObject, ...]]:
        if not parts:
            yield nodes
            return
        if any(node.get("type") == "array" or "items" in node for node in nodes):
            yield from self._schemas(self.items(nodes), parts)
        if not nodes or any(_is_open(node) for node in nodes):
            yield ()
        for count in range(1, len(parts) + 1):
            inner = ".".join(parts[:count])
            found = [_properties(node)[inner] for node in nodes if inner in _properties(node)]
            if found:
                yield from self._schemas(self._variants(found), parts[count:])

    def _variants(self, schemas: Iterable[JsonValue]) -> tuple[JsonObject, ...]:
        found: list[JsonObject] = []
        waiting = [*schemas]
        while waiting and len(found) < _MOST_VARIANTS:
            plain = self._shapes.plain(waiting.pop(0))
            inner = self._shapes.variants(plain)
            if inner:
                default = {"default": plain["default"]} if "default" in plain else {}
                waiting += [{**self._shapes.plain(one), **default} for one in inner]
            else:
                found += _by_type(plain)
        return tuple(found)


def _by_type(node: JsonObject) -> Iterator[JsonObject]:
    types = node.get("type")
    if isinstance(types, list):
        yield from ({**node, "type": one} for one in types)
    else:
        yield node


def _properties(node: JsonObject) -> JsonObject:
    properties = node.get("properties")
    return properties if isinstance(properties, dict) else {}


def _is_open(node: JsonObject) -> bool:
    """Return whether an object may have more properties than its schema lists."""
    if "patternProperties" in node or node.get("additionalProperties") not in (None, False):
        return True
    is_object = node.get("type") in (None, "object")
    return is_object and not _properties(node) and "additionalProperties" not in node and "enum" not in node


def _leaves(value: ArgumentValue) -> Iterator[ArgumentValue]:
    if not isinstance(value.data, list):
        yield value
        return
    for item in value.data:
        if isinstance(item, list):
            yield ArgumentValue(value.name, json.dumps(item, ensure_ascii=False, separators=(",", ":")), ())
        else:
            yield ArgumentValue(value.name, item, value.items)


def is_path(nodes: Iterable[JsonObject], name: str) -> bool:
    """Return whether a text of these schemas is a path, by format or by its name."""
    from pegboard.forms.labels import picks

    singular = re.sub(r"ies$", "y", name) if name.endswith("ies") else name.removesuffix("s")
    return any(picks(node, one) for node in (*nodes, {}) for one in (name, singular))


# Patterns and values


def value_matches(pattern: str, value: ArgumentValue, folders: Folders, *, strict: bool) -> bool:
    """Return whether a pattern matches a value.

    Args:
        pattern: The pattern.
        value: A value that isn't a list.
        folders: The folders that relative paths may start from.
        strict: Whether every interpretation of the value must match, as for `allow`, rather than any.
    """
    data = value.data
    if value.is_missing:
        return False
    if data is None:
        return literal(pattern) == "null" or (not strict and pattern in {"*", "**"})
    if isinstance(data, bool):
        word, text = literal(pattern), str(data).lower()
        return _text_matches(pattern, text, strict=strict) if word is None else word.casefold() == text
    if isinstance(data, int | float):
        return _number_matches(pattern, data, strict=strict)
    if isinstance(data, str):
        return _string_matches(pattern, data, value, folders, strict=strict)
    if (word := literal(pattern)) is not None and is_text_of(word, data):
        return True
    forms = {json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=sort) for sort in (False, True)}
    return (all if strict else any)(_text_matches(pattern, form, strict=strict) for form in forms)


def number(text: str | None) -> Decimal | None:
    """Return a text as an exact number, or None if it isn't one that can be compared."""
    if text is None:
        return None
    try:
        found = Decimal(text)
    except (InvalidOperation, ValueError):
        return None
    return None if found.is_snan() else found


def _number_matches(pattern: str, data: float, *, strict: bool) -> bool:
    wanted, exact = number(literal(pattern)), Decimal(data if isinstance(data, int) else repr(data))
    if wanted is not None:
        if wanted.is_nan() or exact.is_nan():
            return wanted.is_nan() and exact.is_nan()
        return wanted == exact or (not strict and _rounded(wanted) == _rounded(exact))
    if literal(pattern) is not None:
        return False
    plain = f"{exact:f}"
    forms = {plain, plain.rstrip("0").rstrip(".") if "." in plain else plain}
    if not (strict or isinstance(data, int)):
        forms.add(repr(data))
    return (all if strict else any)(_text_matches(pattern, form, strict=strict) for form in forms)


def _rounded(value: Decimal) -> float:
    """Return a number as the float that a tool receives."""
    try:
        return float(value)
    except (OverflowError, ValueError):
        return float("inf") if value > 0 else float("-inf")


def _string_matches(pattern: str, data: str, value: ArgumentValue, folders: Folders, *, strict: bool) -> bool:
    looks_like_path = value.is_path or "/" in pattern or pattern.startswith(("~", "./", "../"))
    if strict:
        if _UP.search(data) or (not value.is_path and not _text_matches(pattern, data, strict=True)):
            return False
        return not looks_like_path or _path_matches(pattern, data, folders, strict=True)
    if any(_text_matches(pattern, text, strict=value.is_path) for text in {data, data.strip()}):
        return True
    if not value.is_text_only:
        wanted, given = number(literal(pattern)), number(data.strip())
        if wanted is not None and given is not None and wanted == given:
            return True
    if _is_same_moment(pattern, data, value):
        return True
    return looks_like_path and _path_matches(pattern, data, folders, strict=False)


_FORMATS = {"date-time": "datetime", "date": "date", "time": "time", "duration": "timedelta", "uuid": "UUID"}


def _is_same_moment(pattern: str, data: str, value: ArgumentValue) -> bool:
    """Return whether two spellings mean the same date, time, duration or UUID."""
    word = literal(pattern)
    formats = {str(node.get("format")) for node in value.nodes} & _FORMATS.keys()
    if word is None or not formats:
        return False
    import datetime as dt
    import uuid

    from pydantic import TypeAdapter, ValidationError

    for form in formats:
        kind: type = getattr(uuid if form == "uuid" else dt, _FORMATS[form])
        adapter = TypeAdapter[object](kind)
        try:
            if adapter.validate_python(word) == adapter.validate_python(data.strip()):
                return True
        except (ValidationError, TypeError):
            continue
    return False


def _path_matches(pattern: str, data: str, folders: Folders, *, strict: bool) -> bool:
    """Compare a path after resolution: lexically and through links, from every folder that it may start from."""
    try:
        bases = folders.bases(strict=strict)
        wanted = [one for base in bases for one in _path_patterns(pattern, base, strict=strict)]
        given = {path for base in bases for path in _targets(data, base, strict=strict)}
        ignore_case = any(_ignores_case(base) for base in bases)
    except (OSError, ValueError):  # A NUL, a lone surrogate or a loop of links: the target can't be known.
        return not strict
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    matching = (any(re.fullmatch(one, path, flags) for one in wanted) for path in given)
    return all(matching) if strict else any(matching)


def can_be_path(pattern: str) -> bool:
    """Return whether a pattern can match a path; the target of `..` after a wildcard can't be known."""
    return _UP.search(_split(pattern)[1]) is None


def _targets(data: str, base: str, *, strict: bool) -> Iterator[str]:
    """Yield every file that a path may lead to."""
    spellings = {data}
    if data.startswith("~"):
        spellings.add(os.path.expanduser(data))  # noqa: PTH111 - pathlib's raises where there is no home
    if not strict:
        spellings |= {text.strip() for text in [*spellings]}
        if data.strip().casefold().startswith("file:"):
            from urllib.parse import unquote, urlsplit

            spellings.add(unquote(urlsplit(data.strip()).path))
    for spelling in spellings:
        joined = os.path.join(base, spelling)  # noqa: PTH118 - pathlib has no lexical `..`
        for path in (os.path.normpath(joined), os.path.realpath(joined)):
            yield _comparable(re.sub("^//", "/", path), strict=strict)


def _path_patterns(pattern: str, base: str, *, strict: bool) -> Iterator[str]:
    """Yield the regular expressions of a path pattern: as written, and with its literal prefix resolved."""
    if pattern.endswith("/") and literal(pattern) is not None:
        pattern += "**"
    fixed, rest = _split(_comparable(pattern, strict=strict))
    if _UP.search(rest):
        return
    start = os.path.join(base, os.path.expanduser(fixed))  # noqa: PTH111, PTH118 - see above
    for folder in {os.path.normpath(start), os.path.realpath(start)}:
        prefix = re.escape(_comparable(re.sub("^//", "/", folder), strict=strict)).removesuffix("/")
        if not rest:
            yield prefix or "/"
        elif rest == "**" and not strict:
            yield f"{prefix}(?:/.*)?"  # The folder itself too.
        else:
            yield f"{prefix}/{expression(rest, crosses=False)}"
            if rest.endswith("/**") and not strict:
                yield f"{prefix}/{expression(rest[:-3], crosses=False)}"
    if not strict and not fixed and rest.startswith("**"):
        yield f"/{expression(rest, crosses=False)}"  # In any folder.


def _split(pattern: str) -> tuple[str, str]:
    """Split a path pattern into its folders without wildcards, as text, and the rest."""
    parts = re.split("(/+)", pattern)
    fixed: list[str] = []
    for at in range(0, len(parts), 2):
        text = literal(parts[at])
        if text is None:
            rest = [part for part in parts[at::2] if part not in {"", "."}]
            return "".join(fixed), "/".join(rest)
        fixed += [text, *parts[at + 1 : at + 2]]
    return "".join(fixed), ""


@lru_cache(maxsize=64)
def _ignores_case(folder: str) -> bool:
    """Return whether the file system ignores case."""
    place = Path(folder)
    for path in (place, *place.parents):
        other = path.with_name(path.name.swapcase()) if path.name else path
        if other != path and path.exists():
            return other.exists() and path.samefile(other)
    return False


def _text_matches(pattern: str, text: str, *, strict: bool) -> bool:
    """Compare texts; unless `strict`, `*` and `?` match `/` too, and spellings of one character are equal."""
    compiled = _compiled(_comparable(pattern, strict=strict), crosses=not strict)
    return compiled.fullmatch(_comparable(text, strict=strict)) is not None


def _comparable(text: str, *, strict: bool) -> str:
    """Return a text for comparison: most file systems distinguish different spellings of one character."""
    return text if strict else unicodedata.normalize("NFC", text)


@lru_cache(maxsize=500)
def _compiled(pattern: str, *, crosses: bool) -> re.Pattern[str]:
    return re.compile(expression(pattern, crosses=crosses), re.DOTALL)
