"""What a script will call, as far as can be known without running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Final, NamedTuple

from pegboard.errors import FormFaults, PegboardError
from pegboard.models import ExpectedCall, MissingCommand, ScriptAnalysis
from pegboard.scripts.commands import Command

_DEEPEST: Final = 8
_NEAR: Final = 0.8
"""How similar a command must be to a tool's name to be taken for a misspelled one."""
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
        re.compile(r"\$\{[^}\n]{0,60}(?:\$\(|`)|\(\([^)\n]{0,60}(?:\$\([^(]|`)|\[(?:\$\(|`)"),
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
    missing: Sequence[str] = ()
    """The names of commands that bash doesn't have; tools among them."""


class UnreadableError(PegboardError):
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
    reading = _Reading(commands, parse)
    failure = None
    try:
        reading.read(script, _DEEPEST)
    except UnreadableError as error:
        failure = str(error)
        reading.note("What stands before the place where it can't be read runs nevertheless.")
        if (place := _LINE.search(failure)) is not None:
            reading.read_within("\n".join(script.split("\n")[: int(place[1]) - 1]), _DEEPEST)
    reading.look_for_the_rest(script)
    return ScriptAnalysis(tuple(reading.calls), tuple(reading.unknown), failure, tuple(reading.missing()))


class _Reading:
    """What is found in a script, while it is read.

    Args:
        commands: What may be called, by name.
        parse: What reads a script.
    """

    def __init__(self, commands: Mapping[str, Command], parse: Parse) -> None:
        self._commands = commands
        self._parse = parse
        self.calls: list[ExpectedCall] = []
        self.unknown: dict[str, None] = {}
        self._missing: dict[str, None] = {}
        self._functions: set[str] = set()
        self._renames = False

    def note(self, sentence: str) -> None:
        """Notes what can't be known."""
        self.unknown[sentence] = None

    def read(self, script: str, levels: int) -> None:
        """Reads a script, and those within it as deep as that many levels.

        Raises:
            UnreadableError: It can't be read.
        """
        parsed = self._parse(script)
        self._missing.update(dict.fromkeys(parsed.missing))
        self._functions.update(parsed.functions)
        for command in parsed.commands:
            if not command.is_assignment_only and command.name not in parsed.functions:
                for text in self._texts_of(command):
                    self.read_within(text, levels - 1)
        for name in parsed.functions:
            if name in self._commands:
                self.note(f"It has a function of its own called {name}.")
        if parsed.is_cut:
            self.note("It is too long to be read to its end.")

    def read_within(self, script: str, levels: int) -> None:
        """Reads a script that is run within another one, as far as it can be read."""
        if levels:
            with suppress(UnreadableError):
                self.read(script, levels)
                return
        self.note("It runs a text within that can't be read.")

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

    def look_for_the_rest(self, script: str) -> None:
        """Notes what may run commands that the parser doesn't tell of."""
        for pattern, sentence in _UNSEEN:
            if pattern.search(script):
                self.note(sentence)
        seen = {call.tool for call in self.calls}
        for name in dict.fromkeys(_NAMES.findall(script)):
            if name in self._commands and (tool := self._commands[name].names[0]) not in seen:
                self.note(f"It names {tool}, and may call it in a way that can't be seen.")

    def _texts_of(self, command: ParsedCommand) -> Iterator[str]:
        """Notes what a command calls, and gives the scripts that it runs."""
        name, words = command.name, command.args
        if name is None:
            self.note("A command's name is only known when the script runs.")
        elif name in self._commands:
            self.calls.append(_call(self._commands[name], tuple(words)))
        elif "/" in name:
            self.note(f"{name} runs a file that may hold anything.")
        elif name == "eval" or name in _SHELLS:
            text = _joined(words) if name == "eval" else _behind_c(words)
            if text is not None:
                yield text
            else:
                self.note(f"{name} runs a text that is only known when the script runs.")
        elif name in _READERS:
            self._renames = True
            self.note(f"{name} may give names another meaning.")
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
        if None in words or name in _ALWAYS_UNKNOWN or runners & set(words):
            self.note(f"{name} runs a command that is only known when the script runs.")


def _call(command: Command, words: tuple[str | None, ...]) -> ExpectedCall:
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


def _behind_c(words: Sequence[str | None]) -> str | None:
    """Gives the text that a shell is given behind `-c`."""
    text = words[words.index("-c") + 1] if "-c" in words[:-1] else None
    return None if text is None or text.startswith("-") else text
