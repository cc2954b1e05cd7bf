"""What a script will call, as far as can be known without running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pegboard.errors import FormFaults
from pegboard.forms.flags import as_flag
from pegboard.models import ExpectedCall, ScriptAnalysis
from pegboard.scripts.commands import Command

_DEEPEST: Final = 8
_SHELLS: Final = frozenset({"bash", "sh"})
_READERS: Final = frozenset({"source", ".", "alias"})
_WRAPPERS: Final = frozenset({
    "builtin", "busybox", "command", "compgen", "env", "exec", "find", "ionice", "nice", "nohup", "parallel", "setsid",
    "stdbuf", "sudo", "time", "timeout", "trap", "watch", "xargs",
})  # fmt: skip
_ALWAYS_UNKNOWN: Final = frozenset({"compgen", "parallel", "trap"})
_RUNNERS: Final = _SHELLS | {"alias", "eval", "source", "{}"}
"""Words behind a wrapper that make what it runs unknown."""
_AWK: Final = frozenset({"awk", "gawk", "mawk", "nawk"})
_RUNS_COMMANDS: Final = re.compile(r"system|getline|\||^-f")
"""What a program for awk has that runs commands."""
_UNSEEN: Final = (
    (re.compile(r"@P\}"), "${…@P} runs what stands in a variable."),
    (re.compile(r"\bPS4\b"), "PS4 is run before each command with set -x."),
    (
        re.compile(r"\$\{[^}\n]*(?:\$\(|`)|\(\([^)\n]*(?:\$\([^(]|`)|\[(?:\$\(|`)"),
        "What stands in $(…) within ${…}, ((…)) or an index isn't looked into.",
    ),
)
"""What runs commands that the parser doesn't tell of."""
_LINE: Final = re.compile(r"at line (\d+)")
_NAMES: Final = re.compile(r"[^\W\d][\w.:+-]*")


class ParsedCommand(NamedTuple):
    """A command as it stands in a script."""

    name: str | None
    """None where it is only known when the script runs."""
    args: Sequence[str | None]
    is_assignment_only: bool


class Parsed(NamedTuple):
    """A script, read."""

    commands: Sequence[ParsedCommand]
    functions: Sequence[str]
    is_cut: bool
    """Whether it was too long to be read to its end."""


class UnreadableError(Exception):
    """A script can't be read; the message says why."""


Parse = Callable[[str], Parsed]
"""Reads a script, or raises an `UnreadableError`."""


def analyze(script: str, commands: Mapping[str, Command], parse: Parse) -> ScriptAnalysis:
    """Reads a script without running it; blocks for a moment.

    Args:
        script: The script.
        commands: What may be called, by name.
        parse: What reads it.
    """
    calls: list[ExpectedCall] = []
    unknown: dict[str, None] = {}
    failure = None
    try:
        _read(script, commands, parse, calls, unknown, _DEEPEST)
    except UnreadableError as error:
        failure = str(error)
        unknown["What stands before the place where it can't be read runs nevertheless."] = None
        if (place := _LINE.search(failure)) is not None:
            before = "\n".join(script.split("\n")[: int(place[1]) - 1])
            _read_within(before, commands, parse, calls, unknown, _DEEPEST)
    unknown |= dict.fromkeys(sentence for pattern, sentence in _UNSEEN if pattern.search(script))
    seen = {call.tool for call in calls}
    for name in dict.fromkeys(_NAMES.findall(script)):
        if name in commands and commands[name].names[0] not in seen:
            unknown[f"It names {commands[name].names[0]}, and may call it in a way that can't be seen."] = None
    return ScriptAnalysis(tuple(calls), tuple(unknown), failure)


def _read(
    script: str,
    commands: Mapping[str, Command],
    parse: Parse,
    calls: list[ExpectedCall],
    unknown: dict[str, None],
    levels: int,
) -> None:
    parsed = parse(script)
    for command in parsed.commands:
        if command.is_assignment_only or command.name in parsed.functions:
            continue
        if command.name is None:
            unknown["A command's name is only known when the script runs."] = None
        elif command.name in commands:
            calls.append(_call(commands[command.name], tuple(command.args)))
        elif "/" in command.name:
            unknown[f"{command.name} runs a file that may hold anything."] = None
        else:
            for text in _texts(command, commands, calls, unknown):
                _read_within(text, commands, parse, calls, unknown, levels - 1)
    _note_shadows(parsed, commands, unknown)
    if parsed.is_cut:
        unknown["It is too long to be read to its end."] = None


def _read_within(
    script: str,
    commands: Mapping[str, Command],
    parse: Parse,
    calls: list[ExpectedCall],
    unknown: dict[str, None],
    levels: int,
) -> None:
    try:
        if levels:
            _read(script, commands, parse, calls, unknown, levels)
            return
    except UnreadableError:
        pass
    unknown["It runs a text within that can't be read."] = None


def _call(command: Command, words: tuple[str | None, ...]) -> ExpectedCall:
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        return ExpectedCall(command.names[0], words, None)
    try:
        return ExpectedCall(command.names[0], words, command.arguments(known, None))
    except FormFaults as faults:
        return ExpectedCall(command.names[0], words, None, tuple(map(as_flag, faults.faults)))


def _texts(
    command: ParsedCommand, commands: Mapping[str, Command], calls: list[ExpectedCall], unknown: dict[str, None]
) -> Iterator[str]:
    """Gives the scripts that a command runs, and notes what it calls by itself."""
    words = command.args
    if command.name == "eval":
        known = [word for word in words if word is not None]
        if len(known) == len(words):
            yield " ".join(known)
        else:
            unknown["eval runs a text that is only known when the script runs."] = None
    elif command.name in _SHELLS:
        text = words[words.index("-c") + 1] if "-c" in words[:-1] else None
        if text is None or text.startswith("-"):
            unknown[f"{command.name} runs a text that is only known when the script runs."] = None
        else:
            yield text
    elif command.name in _READERS:
        unknown[f"{command.name} may give names another meaning."] = None
    elif command.name in _WRAPPERS:
        at = next((index for index, word in enumerate(words) if word in commands), None)
        if at is not None:
            calls.append(ExpectedCall(commands[words[at] or ""].names[0], (*words[at + 1 :], None), None))
        elif None in words or command.name in _ALWAYS_UNKNOWN or _RUNNERS & set(words) or _reads(command):
            unknown[f"{command.name} runs a command that is only known when the script runs."] = None

    elif command.name in _AWK and any(word is None or _RUNS_COMMANDS.search(word) for word in words):
        unknown[f"{command.name} may run commands that are only known when the script runs."] = None


def _reads(command: ParsedCommand) -> bool:
    return command.name in ("builtin", "command") and "." in command.args


def _note_shadows(parsed: Parsed, commands: Mapping[str, Command], unknown: dict[str, None]) -> None:
    for name in parsed.functions:
        if name in commands:
            unknown[f"It has a function of its own called {name}."] = None
