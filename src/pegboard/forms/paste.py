"""A call as text from elsewhere: what `copied_as` writes, and what models and other programs write."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import JsonValue

from pegboard.forms.json_text import JsonTextError, parse
from pegboard.forms.pairs import property_names, read_pairs
from pegboard.models import Fault, JsonObject, McpHandler, ToolSpec
from pegboard.schema.validation import validator

PasteKind: TypeAlias = Literal["arguments", "call", "mcp", "cli", "python"]

_NAMES = ("name", "tool")
_ARGUMENTS = ("arguments", "args", "input")
_FIRST = 1_000
"""Characters within which a command line must name its program."""
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
_VALUED = {"--arg", "--args", "--timeout", "--packs", "--tool-allow", "--print"}
_BARE = {"--data", "--json"}
_BEFORE = {"$", "%", "env", "python", "python3", "-m", "uv", "uvx", "run"}
"""What a prompt or a launcher puts before the program."""
_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True)
class Pasted:
    """What a text says."""

    kind: PasteKind
    """`arguments`, the argument object alone; `call`, JSON that names a tool; `mcp`, a request; `cli`; `python`."""
    tool: str | None
    """The tool that it names, by its full name where it is the tool asked about; None where it names none."""
    arguments: JsonObject
    """What the tool is given; of a command line for another tool, read without its schema."""
    faults: tuple[Fault, ...] = ()
    """What a command line says that can't be read as the tool's schema asks; what could be put in is in `arguments`."""


def pasted(text: str, spec: ToolSpec) -> Pasted | None:
    """Reads a text that says what a tool is to be called with.

    It knows an argument object; a JSON object that has the tool's name and the arguments, as OpenAI, Anthropic and
    `pegboard tools invoke` write them; an MCP `tools/call` request; a command line with `pegboard tools invoke`; and
    Python's `call_tool(…)`. Where an object could be the arguments as well as name and arguments, the schema decides.

    Args:
        text: What somebody pasted.
        spec: The tool that it is probably meant for. For a command line that names another one, ask again with that.

    Returns:
        What it says; None if it says no such thing. Never raises.
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
    if call is not None and not _is_meant(value, call, spec):
        return call
    return Pasted("arguments", None, value) if _concerns(value, spec) else None


def _call_in(value: JsonObject, spec: ToolSpec) -> Pasted | None:
    """Gives the call that an object is, by its keys alone."""
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
    """Gives arguments, also those that are written as a text of JSON; OpenAI writes no arguments as an empty text."""
    if isinstance(value, str):
        try:
            value = parse(value) if value.strip() else {}
        except JsonTextError:
            return None
    return value if isinstance(value, dict) else None


def _is_meant(value: JsonObject, call: Pasted, spec: ToolSpec) -> bool:
    """Whether an object that looks like a call is meant as arguments: the tool has properties of such names."""
    is_own = call.tool == spec.name and _fits(call.arguments, spec)
    return not is_own and value.keys() <= _names(spec)


def _fits(value: JsonObject, spec: ToolSpec) -> bool:
    return not validator(spec.input_schema).faults(value)


def _concerns(value: JsonObject, spec: ToolSpec) -> bool:
    """Whether an object is about this tool: it fits, or has at least one of its arguments."""
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
            warnings.simplefilter("ignore")  # of escapes that aren't any: the text is another's
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
    """Gives a Python value that is JSON.

    Raises:
        ValueError: It isn't any.
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
    raise ValueError(f"{value!r} is no JSON")


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
    """Parts words into options with their values, and the others with an empty name; None at an unknown option."""
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
    """Splits the first command of a POSIX shell's text into words, and gives its here-document, if it has one.

    What a shell would put in the place of `$NAME` is not known: it stays as it stands.

    Returns:
        The words and the here-document; None if a quote isn't closed, or only bash would understand it.
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
