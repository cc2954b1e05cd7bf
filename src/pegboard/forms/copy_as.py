"""A call as text to be pasted elsewhere: a command line, a line of a script, JSON, Python, an MCP request."""

from __future__ import annotations

import json
import keyword
import re
import shlex
from collections.abc import Iterator
from typing import Literal, TypeAlias

from pydantic import JsonValue

from pegboard.errors import FormFaults
from pegboard.forms.flags import arguments_from_words, asks_for_help, is_command, plain_name, whole_flag
from pegboard.forms.json_text import identical
from pegboard.forms.pairs import read_pairs
from pegboard.models import JsonObject, McpHandler, ToolSpec

CopyKind: TypeAlias = Literal["cli", "script", "json", "python", "mcp"]

_MOST_WORDS = 10_000
"""Characters of JSON up to which arguments are written as words; nobody reads more of them."""
_LONGEST_LINE = 100_000
"""Bytes that a command line may have; Linux takes 131,072 in one word."""
_WIDTH = 88
_UNSEEN = re.compile(r"[^ -~]")
_UNTYPABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What a terminal would take for a key when a line is pasted, what ends a word, and what has no bytes."""


def copied_as(kind: CopyKind, spec: ToolSpec, arguments: JsonObject, *, packs: str = "") -> str:
    """Gives a call as text that makes the same call elsewhere; secrets are in it as they would be sent.

    Args:
        kind: `cli`, a line for a POSIX shell; `script`, a command of a bash script in which tools are commands; `json`,
            the argument object; `python`, a `call_tool(…)`; `mcp`, a `tools/call` request on one line.
        spec: The tool.
        arguments: Its arguments, by the names of the schema. They needn't be valid.
        packs: The folder that a command line must name, since the tool was found there for this run only.

    Returns:
        The text, without a newline at its end.
    """
    match kind:
        case "cli":
            return _command_line(spec, arguments, ["--packs", packs] if packs else [])
        case "script":
            name = spec.name if is_command(spec.name) else plain_name(spec.name)
            return f"{name} {shlex.join(_script_words(spec, arguments))}".rstrip(" ")
        case "json":
            return _json(arguments, indent=2)
        case "python":
            return _python_call(spec.name, arguments)
        case "mcp":
            name = spec.handler.tool if isinstance(spec.handler, McpHandler) else spec.name
            params: JsonObject = {"name": name, "arguments": arguments}
            return _json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


# --- The command line ---


def _command_line(spec: ToolSpec, arguments: JsonObject, where: list[str]) -> str:
    whole = _json(arguments)
    if len(whole) > _MOST_WORDS:
        return _through_stdin(spec.name, where, whole)
    pairs, rest = _said(spec, arguments)
    words = [word for pair in pairs for word in ("--arg", pair)]
    if rest is not None:
        words += ["--args", _json(rest)]
    line = _line(spec.name, [*where, *words])
    # half a surrogate pair has no bytes; as it can be no word either, only the tool's name could have one
    return line if len(line.encode("utf-8", "replace")) <= _LONGEST_LINE else _through_stdin(spec.name, where, whole)


def _through_stdin(name: str, where: list[str], arguments: str) -> str:
    """Writes a line without a limit: its JSON is a line of its own, which can't be the one that ends it."""
    return f"{_line(name, [*where, '--args', '-'])} <<'END'\n{arguments}\nEND"


def _line(name: str, words: list[str]) -> str:
    ordered = [*words, "--", name] if name.startswith("-") else [name, *words]
    return shlex.join(["pegboard", "tools", "invoke", *ordered])


def _said(spec: ToolSpec, arguments: JsonObject) -> tuple[list[str], JsonObject | None]:
    """Splits arguments into `key=value` words and what `--args` must say, if anything.

    Each argument is written the plainest way that is read back as exactly what it is; all together are tried too.
    """
    ways = {name: list(_ways(name, value)) for name, value in arguments.items()}
    while True:
        pairs = [word for left in ways.values() if left for word in left[0]]
        rest = {name: arguments[name] for name, left in ways.items() if not left} or None
        found, _ = read_pairs(spec.input_schema, pairs, given=rest, aliases=spec.parameter_aliases)
        wrong = [name for name, left in ways.items() if left and not _is_in(found, name, arguments[name])]
        if not wrong:
            return (pairs, rest) if identical(found, arguments) else ([], arguments)
        for name in wrong:
            del ways[name][0]


def _is_in(found: JsonObject, name: str, value: JsonValue) -> bool:
    return name in found and identical(found[name], value)


def _ways(name: str, value: JsonValue) -> Iterator[list[str]]:
    """Gives the ways to write an argument as words, the plainest first; only those that a terminal takes as typed."""
    ways = [list(_parts(name, value)), [f"{name}={_word(value)}"], [f"{name}={_json(value)}"]]
    for index, way in enumerate(ways):
        if way not in ways[:index] and not any(_UNTYPABLE.search(word) for word in way):
            yield way


def _parts(key: str, value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _parts(f"{key}.{name}", inner)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from _parts(f"{key}.{index}", item)
    elif isinstance(value, list) and value:
        yield from (f"{key}={_word(item)}" for item in value)
    else:
        yield f"{key}={_word(value)}"


def _word(value: JsonValue) -> str:
    return value if isinstance(value, str) else _json(value)


# --- The line of a script ---


def _script_words(spec: ToolSpec, arguments: JsonObject) -> list[str]:
    """Gives the words that are read as exactly these arguments: flags as far as they go, for the rest JSON."""
    whole = [whole_flag(spec), _json(arguments)]
    if len(whole[1]) > _MOST_WORDS:
        return whole
    pairs, rest = _said(spec, arguments)
    words = [word for pair in pairs for word in _flags(pair, arguments)]
    if rest is not None:
        words += [whole[0], _json(rest)]
    return words if _are_read_as(words, spec, arguments) else whole


def _flags(pair: str, arguments: JsonObject) -> list[str]:
    key, _, text = pair.partition("=")
    if arguments.get(key) is True:
        return [f"--{key}"]
    return [f"--{key}={text}"] if text.startswith("-") else [f"--{key}", text]


def _are_read_as(words: list[str], spec: ToolSpec, arguments: JsonObject) -> bool:
    try:
        return not asks_for_help(spec, words) and identical(arguments_from_words(spec, words), arguments)
    except FormFaults:
        return False


# --- JSON and Python ---


def _json(value: JsonValue, *, indent: int | None = None) -> str:
    """Writes JSON that any file, terminal and clipboard takes: what can't be seen is escaped."""
    return _UNSEEN.sub(_json_escape, json.dumps(value, ensure_ascii=False, indent=indent))


def _json_escape(match: re.Match[str]) -> str:
    sign = match[0]
    return sign if sign == "\n" or sign.isprintable() else json.dumps(sign)[1:-1]


def _python_call(name: str, arguments: JsonObject) -> str:
    plain = {key: value for key, value in arguments.items() if _is_keyword(key)}
    odd = {key: value for key, value in arguments.items() if not _is_keyword(key)}
    parts = [_python(name), *(f"{key}={_python(value)}" for key, value in plain.items())]
    if odd:
        parts.append(f"**{_python(odd)}")
    line = f"call_tool({', '.join(parts)})"
    if len(line) <= _WIDTH:
        return line
    return "\n".join(["call_tool(", *(f"    {part}," for part in parts), ")"])


def _is_keyword(name: str) -> bool:
    # Python normalises names: `ﬁ` would arrive as `fi`
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__"


def _python(value: JsonValue) -> str:
    match value:
        case str():
            quoted = repr(value)
            return f'"{quoted[1:-1]}"' if '"' not in value and quoted[0] == "'" else quoted
        case list():
            return f"[{', '.join(map(_python, value))}]"
        case dict():
            return "{" + ", ".join(f"{_python(name)}: {_python(inner)}" for name, inner in value.items()) + "}"
        case _:
            return repr(value)
