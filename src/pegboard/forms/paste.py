"""Parser of pasted calls, written by `copied_as`, models or other programs."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pegboard.data.json_text import JsonTextError, parse
from pegboard.forms.pairs import property_names, read_pairs
from pegboard.models import McpHandler
from pegboard.schema.validation import validator

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import Fault, JsonObject, ToolSpec

PasteKind: TypeAlias = Literal["arguments", "call", "mcp", "cli", "python"]

_NAMES = ("name", "tool")
_ARGUMENTS = ("arguments", "args", "input")
_FIRST = 1_000
"""Number of leading characters in which a command line must name its program."""
_PYTHON = re.compile(r"\s*(await\s+)?(\w+\.)*call_tool\s*\(")
_WORD = re.compile(
    r"""
    (?P<continued> \\\n )
  | (?P<space>     [ \t]+ )
  | (?P<comment>   (?<![^\s;&|()]) \# [^\n]* )
  | (?P<heredoc>   <<-?[ \t]*(?P<quote>['"]?)(?P<end>\w+)(?P=quote)[ \t]*\n )
  | (?P<operator>  [\n;&|<>()] )
  | (?P<unknown>   \$['"] )
  | '(?P<single>   [^']* )'
  | "(?P<double>   (?: [^"\\] | \\. )* )"
  | \\(?P<escaped> . )
  | (?P<plain>     \$ | [^\s'"\\;&|<>()$]+ )
    """,
    re.DOTALL | re.VERBOSE,
)
_VALUED = {"--arg", "--args", "--elicit", "--mcp", "--packs", "--print", "--timeout", "--tool-allow"}
_BARE = {"--data", "--json"}
_BEFORE = {"$", "%", "env", "python", "python3", "-m", "uv", "uvx", "run"}
"""Words of a prompt or a launcher before the program."""
_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True)
class Pasted:
    """Call parsed from text."""

    kind: PasteKind
    """Format of the text: `arguments`, only the argument object; `call`, JSON that names a tool; `mcp`, a request; …"""
    tool: str | None
    """Tool named in the text, by its full name if it is the expected tool; None if no tool is named."""
    arguments: JsonObject
    """Arguments of the call. Those of a command line for another tool are parsed without its schema."""
    faults: tuple[Fault, ...] = ()
    """Validation errors of a command line. `arguments` contains everything that could be parsed."""


def pasted(text: str, spec: ToolSpec) -> Pasted | None:
    """Parse text that describes a call of a tool.

    Supported are an argument object; a JSON object with the tool's name and arguments, as OpenAI, Anthropic and
    `pegboard tools invoke` write them; an MCP `tools/call` request; a command line with `pegboard tools invoke`; and
    Python's `call_tool(…)`. If an object could be arguments as well as a call, the schema decides.

    Args:
        text: Pasted text.
        spec: Expected tool. If a command line names another tool, parse the text again with that one.

    Returns:
        The call, or None if the text does not describe one. Never raises.
    """
    stripped = text.strip()
    if stripped.startswith("{"):
        return _from_json(stripped, spec)
    if _PYTHON.match(stripped):
        return _from_python(stripped, spec)
    return _from_line(stripped, spec)


# --- JSON ---


def _from_json(text: str, spec: ToolSpec) -> Pasted | None:
    try:
        value = parse(text)
    except JsonTextError:
        return None
    if not isinstance(value, dict):
        return None
    call = _call_in(value, spec)
    if call is not None and not _is_argument_object(value, call, spec):
        return call
    return Pasted("arguments", None, value) if _concerns(value, spec) else None


def _call_in(value: JsonObject, spec: ToolSpec) -> Pasted | None:
    """Return the call that an object represents, judging by its keys, or None."""
    if value.get("jsonrpc") == "2.0" and value.get("method") == "tools/call":
        inner = value.get("params")
        found = _call_in({"arguments": {}, **inner}, spec) if isinstance(inner, dict) else None
        return Pasted("mcp", found.tool, found.arguments) if found is not None else None
    for wrapper in ("function", "call"):
        inner = value.get(wrapper)
        if isinstance(inner, dict) and (found := _call_in(inner, spec)) is not None:
            return found
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((_object(value[key]) for key in _ARGUMENTS if key in value), None)
    if not isinstance(name, str) or not name or arguments is None:
        return None
    return Pasted("call", _full_name(name, spec), arguments)


def _object(value: JsonValue) -> JsonObject | None:
    """Return an argument object, parsed from JSON text if necessary. OpenAI writes no arguments as empty text."""
    if isinstance(value, str):
        try:
            value = parse(value) if value.strip() else {}
        except JsonTextError:
            return None
    return value if isinstance(value, dict) else None


def _is_argument_object(value: JsonObject, call: Pasted, spec: ToolSpec) -> bool:
    """Return True if an object that resembles a call is an argument object, because the tool has such properties."""
    is_own = call.tool == spec.name and _fits(call.arguments, spec)
    return not is_own and value.keys() <= _names(spec)


def _fits(value: JsonObject, spec: ToolSpec) -> bool:
    return not validator(spec.input_schema).faults(value)


def _concerns(value: JsonObject, spec: ToolSpec) -> bool:
    """Return True if an object is valid for the tool or has at least one of its arguments."""
    return not value.keys().isdisjoint(_names(spec)) or _fits(value, spec)


def _names(spec: ToolSpec) -> set[str]:
    return property_names(spec.input_schema) | spec.parameter_aliases.keys()


def _full_name(name: str, spec: ToolSpec) -> str:
    own = {spec.name, *spec.aliases}
    if isinstance(spec.handler, McpHandler):
        own.add(spec.handler.tool)
    return spec.name if name in own else name


# --- Python ---


def _from_python(text: str, spec: ToolSpec) -> Pasted | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in pasted text
            found = ast.parse(text, mode="eval").body
        call = found.value if isinstance(found, ast.Await) else found
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            return None
        name = ast.literal_eval(call.args[0])
        arguments: JsonObject = {}
        for given in call.keywords:
            value = _json_of(ast.literal_eval(given.value))
            new = {given.arg: value} if given.arg is not None else value
            if not isinstance(new, dict) or not arguments.keys().isdisjoint(new):
                return None
            arguments.update(new)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return Pasted("python", _full_name(name, spec), arguments) if isinstance(name, str) else None


def _json_of(value: object) -> JsonValue:
    """Return a Python value that is valid JSON.

    Raises:
        ValueError: The value is not valid JSON.
    """
    match value:
        case dict() if all(isinstance(name, str) for name in value):
            return {name: _json_of(inner) for name, inner in value.items()}
        case list():
            return [_json_of(item) for item in value]
        case None | bool() | int() | str():
            return value
        case float() if value - value == 0:
            return value
    raise ValueError(f"{value!r} is not valid JSON")


# --- Command lines ---


def _from_line(text: str, spec: ToolSpec) -> Pasted | None:
    found = _words(text) if "pegboard" in text[:_FIRST] else None
    if found is None:
        return None
    words, stdin = found
    start = next((at for at, word in enumerate(words) if word.rpartition("/")[2] == "pegboard"), None)
    if start is None or not all(_is_before_a_program(word) for word in words[:start]):
        return None
    options = _options(words[start + 1 :])
    if options is None:
        return None
    names = [value for option, value in options if not option]
    if names[:2] != ["tools", "invoke"] or len(names) != 3:
        return None
    given: JsonObject | None = None
    for option, value in options:
        if option == "--args":
            given = _object(stdin or "") if value == "-" else _object(value)
            if given is None or (value == "-" and stdin is None):
                return None
    name = _full_name(names[2], spec)
    pairs = [value for option, value in options if option == "--arg"]
    if given is not None and not pairs:
        return Pasted("cli", name, given)
    if name == spec.name:
        return Pasted("cli", name, *read_pairs(spec.input_schema, pairs, given=given, aliases=spec.parameter_aliases))
    return Pasted("cli", name, *read_pairs({"additionalProperties": {"type": "string"}}, pairs, given=given))


def _is_before_a_program(word: str) -> bool:
    return word in _BEFORE or _ASSIGNMENT.match(word) is not None


def _options(words: Sequence[str]) -> list[tuple[str, str]] | None:
    """Parse words into options with values, and arguments with an empty name; return None at an unknown option."""
    found: list[tuple[str, str]] = []
    left: Iterator[str] = iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if word == "--":
            found.extend(("", rest) for rest in left)
        elif not word.startswith("-") or word == "-":
            found.append(("", word))
        elif option in _VALUED:
            following = value if equals else next(left, None)
            if following is None:
                return None
            found.append((option, following))
        elif word not in _BARE:
            return None
    return found


def _words(text: str) -> tuple[list[str], str | None] | None:
    """Split the first command of POSIX shell text into words, and return its here-document, if any.

    Variables such as `$NAME` are not expanded.

    Returns:
        The words and the here-document, or None if a quote is not closed or the syntax is specific to bash.
    """
    words: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None or match["unknown"]:
            return None
        at = match.end()
        if match["heredoc"]:
            body = re.compile(rf"(.*?)^{match['end']}\s*$", re.DOTALL | re.MULTILINE).match(text, at)
            return (_joined(words), body[1]) if body else None
        if match["operator"]:
            break
        if match["space"] or match["comment"]:
            words.append([])
        elif match["continued"] is None:
            words[-1].append(_unquoted(match))
    return _joined(words), None


def _joined(words: list[list[str]]) -> list[str]:
    return ["".join(parts) for parts in words if parts]


def _unquoted(match: re.Match[str]) -> str:
    part = match[match.lastgroup or 0]
    if match.lastgroup != "double":
        return part
    return re.sub(r'\\([$`"\\\n])', lambda escape: escape[1].strip("\n"), part)
