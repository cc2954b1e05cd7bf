"""Calls as text to paste elsewhere: a command line, a script command, JSON, Python or an MCP request."""

from __future__ import annotations

import json
import keyword
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from pegboard.data.json_text import identical
from pegboard.data.pointer import steps
from pegboard.errors import FormFaults
from pegboard.forms.flags import arguments_from_words, asks_for_help, is_command, plain_name, whole_flag
from pegboard.forms.pairs import read_pairs
from pegboard.models import McpHandler
from pegboard.results.clean import escaped_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject, ToolSpec

CopyKind: TypeAlias = Literal["cli", "script", "json", "python", "mcp"]

_MOST_WORDS = 10_000
"""Maximum length of JSON arguments that are written as words. Longer lines are unreadable."""
_LONGEST_LINE = 100_000
"""Maximum bytes of a command line. Linux accepts 131,072 per word."""
_WIDTH = 88
UNTYPABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that a terminal interprets as keys when pasted, that end a word, or that can't be encoded."""


def copied_as(kind: CopyKind, spec: ToolSpec, arguments: JsonObject, *, options: Sequence[str] = ()) -> str:
    """Return a call as text that makes the same call elsewhere, including its secrets.

    Args:
        kind: `cli`, a line for a POSIX shell; `script`, a command of a bash script in which tools are commands; `json`,
            the argument object; `python`, a `call_tool(…)`; `mcp`, a `tools/call` request on one line.
        spec: The tool.
        arguments: Arguments by their names in the schema, valid or not.
        options: Options of a command line, for a tool that was found only by them, such as `--packs`.

    Returns:
        The text, without a final newline.
    """
    match kind:
        case "cli":
            return _command_line(spec, arguments, options)
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


# --- Command lines ---


def _command_line(spec: ToolSpec, arguments: JsonObject, where: Sequence[str]) -> str:
    whole = _json(arguments)
    if len(whole) > _MOST_WORDS:
        return _through_stdin(spec.name, where, whole)
    pairs, rest = _split_arguments(spec, arguments)
    words = [word for pair in pairs for word in ("--arg", pair)]
    if rest is not None:
        words += ["--args", _json(rest)]
    line = _line(spec.name, [*where, *words])
    # A lone surrogate can't be encoded. Words have none, so only the tool's name could contain one.
    return line if len(line.encode("utf-8", "replace")) <= _LONGEST_LINE else _through_stdin(spec.name, where, whole)


def _through_stdin(name: str, where: Sequence[str], arguments: str) -> str:
    """Return a command line of unlimited length. JSON is one line, so it can't contain the end marker."""
    return f"{_line(name, [*where, '--args', '-'])} <<'END'\n{arguments}\nEND"


def _line(name: str, words: list[str]) -> str:
    ordered = [*words, "--", name] if name.startswith("-") else [name, *words]
    return " ".join(map(_quoted, ["pegboard", "tools", "invoke", *ordered]))


def _quoted(word: str) -> str:
    """Return a word in quotes if a POSIX shell needs them, or zsh, where `=name` is the path of a program."""
    return f"'{word}'" if word.startswith("=") and shlex.quote(word) == word else shlex.quote(word)


def _split_arguments(spec: ToolSpec, arguments: JsonObject) -> tuple[list[str], JsonObject | None]:
    """Split arguments into `key=value` words and the rest for `--args`, if any.

    Each argument uses the simplest notation that is parsed back to the same value, alone and together with the others,
    and that is as valid as its JSON.
    """
    own = {
        fault.path for fault in read_pairs(spec.input_schema, (), given=arguments, aliases=spec.parameter_aliases)[1]
    }
    spellings = {name: list(_spellings(name, value)) for name, value in arguments.items()}
    while True:
        pairs = [word for left in spellings.values() if left for word in left[0]]
        rest = {name: arguments[name] for name, left in spellings.items() if not left} or None
        found, faults = read_pairs(spec.input_schema, pairs, given=rest, aliases=spec.parameter_aliases)
        new = [fault for fault in faults if fault.path not in own]
        rejected = {name for fault in new for name in steps(fault.path)[:1]}
        wrong = [
            name
            for name, left in spellings.items()
            if left and (name in rejected or not _is_found(found, name, arguments[name]))
        ]
        if not wrong:
            return (pairs, rest) if not new and identical(found, arguments) else ([], arguments)
        for name in wrong:
            del spellings[name][0]


def _is_found(found: JsonObject, name: str, value: JsonValue) -> bool:
    return name in found and identical(found[name], value)


def _spellings(name: str, value: JsonValue) -> Iterator[list[str]]:
    """Yield notations of an argument as words, simplest first, without those that a terminal would change."""
    spellings = [list(_parts(name, value)), [f"{name}={_word(value)}"], [f"{name}={_json(value)}"]]
    for index, spelling in enumerate(spellings):
        if spelling not in spellings[:index] and not any(UNTYPABLE.search(word) for word in spelling):
            yield spelling


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


# --- Script commands ---


def _script_words(spec: ToolSpec, arguments: JsonObject) -> list[str]:
    """Return words that are parsed to exactly these arguments: flags as far as possible, and JSON for the rest."""
    whole = [whole_flag(spec), _json(arguments)]
    if len(whole[1]) > _MOST_WORDS:
        return whole
    pairs, rest = _split_arguments(spec, arguments)
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
    """Return JSON that any file, terminal and clipboard preserves: invisible characters are escaped."""
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=indent))


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
    # Python normalises identifiers: `ﬁ` would become `fi`.
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
