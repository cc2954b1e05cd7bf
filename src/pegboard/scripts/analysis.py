"""Static analysis of a script: the calls that it will make, as far as they can be known before it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice, pairwise
from typing import Final, NamedTuple

from pegboard.errors import FormFaults
from pegboard.models import ExpectedCall, MissingCommand, ScriptAnalysis
from pegboard.scripts.commands import ScriptCommand

_DEEPEST: Final = 8
_NEAR: Final = 0.8
"""Minimum similarity of an unknown command to a tool's name that makes it a likely typo."""
_SHELLS: Final = frozenset({"bash", "sh"})
_READERS: Final = frozenset({"source", ".", "alias"})
_WRAPPERS: Final = frozenset({
    "builtin", "busybox", "command", "compgen", "env", "exec", "fc", "find", "flock", "ionice", "make", "nice", "nohup",
    "parallel", "setsid", "stdbuf", "sudo", "time", "timeout", "trap", "watch", "xargs",
})  # fmt: skip
_ALWAYS_UNKNOWN: Final = frozenset({"compgen", "fc", "flock", "make", "parallel", "trap"})
_RUNNERS: Final = _SHELLS | {"alias", "eval", "source", "{}"}
"""Words after a wrapper that make the command it runs unknown."""
_AWK: Final = frozenset({"awk", "gawk", "mawk", "nawk"})
_RUNS_COMMANDS: Final = re.compile(r"system|getline|\||^-f")
"""Constructs of awk that run commands."""
_UNSEEN: Final = (
    (re.compile(r"@P\}"), "${…@P} runs the value of a variable."),
    (re.compile(r"\bPS4\b"), "PS4 runs before each command with set -x."),
    (re.compile(r"\bPATH="), "PATH decides which files run as commands."),
    (re.compile(r"\[(?:\$\(|`)"), "$(…) within ${…}, ((…)) or an index is not analyzed."),
)
"""Constructs that run commands but that the parser doesn't report."""
_WITHIN: Final = re.compile(r"(?P<open>\$\{|\(\()|(?P<close>\}|\)\))|\$\((?!\()|`")
"""Brackets that hide the commands in them from the parser, and what begins a command."""
_RUN_OF_FIND: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_OPTION: Final = re.compile(r"[-+].*|\d[\d.]*[smhd]?|\w+=.*|\{\}", re.DOTALL)
"""Word before the command that a wrapper runs."""
_LINE: Final = re.compile(r"at line (\d+)")
_LONGEST_BLOCK: Final = 20
"""Lines of an unfinished block, such as a loop that is being written, above which complete commands are looked for."""
_NAMES: Final = re.compile(r"[^\W\d][\w.:+-]*")


class ParsedCommand(NamedTuple):
    """One command of a script."""

    name: str | None
    """None if it is only known when the script runs."""
    args: Sequence[str | None]
    is_assignment_only: bool


class Parsed(NamedTuple):
    """A parsed script."""

    commands: Sequence[ParsedCommand]
    functions: Sequence[str]
    is_cut: bool
    """Whether it was too long to parse completely."""
    missing: Sequence[str] = ()
    """Names of commands that bash doesn't have, tools included."""
    refusal: str | None = None
    """Why it isn't run although it can be parsed."""


class ScriptSyntaxError(Exception):
    """A script can't be parsed; the message says why."""


Parse = Callable[[str], Parsed]
"""Parser of a script; it raises `ScriptSyntaxError`."""


def analyze(script: str, commands: Mapping[str, ScriptCommand], parse: Parse) -> ScriptAnalysis:
    """Analyze a script without running it; block for a moment.

    Args:
        script: The script.
        commands: The commands of tools, by name.
        parse: The parser.
    """
    reading = _Analysis(commands, parse)
    try:
        failure = reading.read(script, _DEEPEST)
    except ScriptSyntaxError as error:
        failure = str(error)
        reading.note("Complete commands before the syntax error will still run.")
        if (place := _LINE.search(failure)) is not None:
            lines = script.split("\n")[: int(place[1]) - 1]
            for kept in range(len(lines), max(len(lines) - _LONGEST_BLOCK, 0), -1):
                if reading.read_part("\n".join(lines[:kept]), _DEEPEST):
                    break
    reading.note_unparsed(script)
    missing, named = tuple(reading.missing()), tuple(reading.named)
    return ScriptAnalysis(tuple(reading.calls), tuple(reading.unknown), failure, missing, named)


class _Analysis:
    """Analysis of one script and the scripts nested in it.

    Args:
        commands: The commands of tools, by name.
        parse: The parser.
    """

    def __init__(self, commands: Mapping[str, ScriptCommand], parse: Parse) -> None:
        self._commands = commands
        self._parse = parse
        self.calls: list[ExpectedCall] = []
        self.unknown: dict[str, None] = {}
        self.named: dict[str, None] = {}
        self._missing: dict[str, None] = {}
        self._functions: set[str] = set()
        self._renames = False

    def note(self, sentence: str) -> None:
        self.unknown[sentence] = None

    def read(self, script: str, levels: int) -> str | None:
        """Analyze a script, and scripts nested in it up to this number of levels; return why it isn't run.

        Raises:
            ScriptSyntaxError: It can't be parsed.
        """
        parsed = self._parse(script)
        self._missing.update(dict.fromkeys(parsed.missing))
        self._functions.update(parsed.functions)
        for command in parsed.commands:
            if not command.is_assignment_only and command.name not in parsed.functions:
                for text in self._nested_scripts(command):
                    if not self.read_part(text, levels - 1):
                        self.note("It runs a nested script that can't be parsed.")
        for name in parsed.functions:
            if name in self._commands:
                self.note(f"It defines its own function {name}.")
        if parsed.is_cut:
            self.note("It is too long to analyze completely.")
        return parsed.refusal

    def read_part(self, script: str, levels: int) -> bool:
        """Analyze a part of a script; return whether it could be parsed."""
        if levels:
            with suppress(ScriptSyntaxError):
                self.read(script, levels)
                return True
        return False

    def missing(self) -> Iterator[MissingCommand]:
        """Return the commands that look like tools and don't exist."""
        if self._renames:
            return
        packs = tuple({name.partition(".")[0] + "_" for name in self._commands if "." in name})
        own = [command.names[0] for command in dict.fromkeys(self._commands.values())]
        for name in self._missing:
            if name in self._commands or name in self._functions:
                continue
            near = get_close_matches(name, own, cutoff=_NEAR) or get_close_matches(name, self._commands, cutoff=_NEAR)
            if near or "." in name or name.startswith(packs):
                yield MissingCommand(name, tuple(near or get_close_matches(name, own)))

    def note_unparsed(self, script: str) -> None:
        """Add notes on constructs that may run commands but that the parser doesn't report."""
        for pattern, sentence in _UNSEEN:
            if pattern.search(script):
                self.note(sentence)
        if _has_hidden_command(script):
            self.note(_UNSEEN[-1][1])
        seen = {call.tool for call in self.calls}
        for name in dict.fromkeys(_NAMES.findall(script)):
            if name in self._commands and (tool := self._commands[name].names[0]) not in seen:
                self.named[tool] = None
                self.note(f"It contains the name {tool} and may call it in a way that can't be analyzed.")

    def _nested_scripts(self, command: ParsedCommand) -> Iterator[str]:
        """Record the call of a command, and yield the scripts that it runs."""
        name, words = command.name, command.args
        if name is None:
            self.note("A command's name is only known when the script runs.")
        elif name in self._commands:
            self.calls.append(_call(self._commands[name], tuple(words)))
        elif "/" in name:
            self.note(f"{name} runs a file with unknown content.")
        elif name == "eval" or name in _SHELLS:
            text = _joined(words) if name == "eval" else _script_of_c(words)
            if text is not None:
                yield text
            else:
                self.note(f"{name} runs a script that is only known when this one runs.")
        elif name in _READERS:
            self._renames = True
            self.note(f"{name} may redefine names.")
        elif name in _WRAPPERS:
            self._note_wrapped(name, words)
        elif name in _AWK and any(word is None or _RUNS_COMMANDS.search(word) for word in words):
            self.note(f"{name} may run commands that are only known when the script runs.")

    def _note_wrapped(self, name: str, words: Sequence[str | None]) -> None:
        at = next((index for index, word in enumerate(words) if word in self._commands), None)
        if at is not None:
            self.calls.append(_call(self._commands[words[at] or ""], (*words[at + 1 :], None)))
            return
        runners = _RUNNERS | {"."} if name in ("builtin", "command") else _RUNNERS
        if name == "xargs":
            runners |= _WRAPPERS  # which run words of the input
        is_file = any("/" in command for command in _wrapped(name, words))
        if None in words or name in _ALWAYS_UNKNOWN or runners & set(words) or is_file or _runs_input(name, words):
            self.note(f"{name} runs a command that is only known when the script runs.")


def _call(command: ScriptCommand, words: tuple[str | None, ...]) -> ExpectedCall:
    known = [word for word in words if word is not None]
    if len(known) < len(words):
        return ExpectedCall(command.names[0], words, None, command.mistakes(words))
    try:
        return ExpectedCall(command.names[0], words, command.arguments(known, None), command.mistakes(words))
    except FormFaults:
        return ExpectedCall(command.names[0], words, None, command.mistakes(words))


def _joined(words: Sequence[str | None]) -> str | None:
    known = [word for word in words if word is not None]
    return " ".join(known) if len(known) == len(words) else None


def _script_of_c(words: Sequence[str | None]) -> str | None:
    """Return the script after a shell's `-c`; None if a file may come before it."""
    if "-c" not in words[:-1]:
        return None
    at = words.index("-c")
    text = words[at + 1]
    only_options = all(word is not None and word.startswith(("-", "+")) for word in words[:at])
    return None if text is None or text.startswith("-") or not only_options else text


def _wrapped(name: str, words: Sequence[str | None]) -> Iterator[str]:
    """Yield the known words that a wrapper may run."""
    known = [word or "" for word in words]
    if name == "find":
        yield from (word for before, word in pairwise(known) if before in _RUN_OF_FIND)
    else:
        yield from islice((word for word in known if not _OPTION.fullmatch(word)), 1)


def _runs_input(name: str, words: Sequence[str | None]) -> bool:
    """Return whether `xargs` puts its input in place of the command."""
    if name != "xargs":
        return False
    rest = iter(word or "" for word in words)
    for word in rest:
        if word.startswith("-I"):
            mark = word[2:] or next(rest, "")
            return next((one for one in rest if not one.startswith("-")), "") == mark
    return False


def _has_hidden_command(script: str) -> bool:
    """Return whether a command substitution is within `${…}` or `((…))`."""
    depth = 0
    for found in _WITHIN.finditer(script):
        if found["open"]:
            depth += 1
        elif found["close"]:
            depth = max(depth - 1, 0)
        elif depth:
            return True
    return False
