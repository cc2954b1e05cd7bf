"""Which calls of models and other agents run, ask, or are refused: the user's rules, in a file that they can read."""

from __future__ import annotations

import fcntl
import json
import os
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from pydantic import JsonValue

from pegboard.config.files import read_text, shown
from pegboard.errors import RulesError
from pegboard.gateway.rule_text import HEAD, RuleText, read_rules
from pegboard.models import Problem, ToolCall, ToolSpec
from pegboard.models.rule import Rule, RuleAction, RuleFile
from pegboard.registry import AllowList


class Verdict(NamedTuple):
    """What the rules say of one call."""

    action: RuleAction
    reason: str
    """Why, as a sentence."""
    rule: int | None = None
    """Which rule of the file says so, from 0; None where it is none."""


class Rules:
    """The rules of the file, which is read again when it changes, and the approvals of this process's sessions.

    A file that can't be used allows nothing, since what it would deny isn't known: then every call asks, of tools that
    only read too.

    Args:
        file: Where the rules are, which needn't be there; without one, only sessions' approvals are kept.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = Lock()
        self._mark: tuple[int, int] | None = None
        self._rules: tuple[Rule, ...] = ()
        self._problem: Problem | None = None
        self._unkept: Problem | None = None
        self._sessions: set[tuple[str, str]] = set()
        self._in_advance = AllowList(())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was wrong with the file when it was last read or written."""
        return tuple(problem for problem in (self._problem, self._unkept) if problem is not None)

    def verdict(self, spec: ToolSpec, call: ToolCall) -> Verdict:
        """Says whether a call would run, ask or be refused; reads the file if it changed.

        Args:
            spec: The tool.
            call: The call, its arguments by the names of the schema.
        """
        with self._lock:
            self._refresh()
            rules, problem = self._rules, self._problem
        fitting = [(number, rule.action) for number, rule in enumerate(rules) if _fits(rule, spec, call)]
        denying = next((number for number, action in fitting if action == "deny"), None)
        if denying is not None:
            return Verdict("deny", f"A rule of {self._name} denies {spec.name}.", denying)
        if call.from_text:
            if problem is None and self._in_advance.names(spec):
                return Verdict("allow", f"{spec.name} was approved by name in advance.")
            return Verdict("ask", f"The model wrote the call of {spec.name} as text, where it may only quote it.")
        if call.session is not None and (call.session, spec.name) in self._sessions:
            return Verdict("allow", f"{spec.name} was allowed in this session.")
        if problem is not None:
            return Verdict("ask", f"The rules can't be read: {problem.message}")
        if self._in_advance.admits(spec):
            return Verdict("allow", f"{spec.name} was approved in advance.")
        if fitting:
            number, action = fitting[-1]
            said = "allows" if action == "allow" else "wants to be asked about"
            return Verdict(action, f"A rule of {self._name} {said} {spec.name}.", number)
        if spec.hints.read_only:
            return Verdict("allow", f"{spec.name} only reads.")
        manner = "may delete or overwrite" if spec.hints.destructive else "may change things"
        return Verdict("ask", f"{spec.name} {manner}.")

    def allow_in_session(self, spec: ToolSpec, call: ToolCall) -> None:
        """Lets the tool's calls of this session run from now on, as long as this process lives."""
        if call.session is not None:
            self._sessions.add((call.session, spec.name))

    def approve_in_advance(self, patterns: Sequence[str]) -> None:
        """Let the calls of matching tools run as long as this process lives, unless a rule denies them.

        A call that a model wrote as text runs only where a pattern is the tool's exact name.
        """
        self._in_advance = AllowList(patterns)

    def allow_always(self, spec: ToolSpec) -> None:
        """Adds a rule to the file that lets the tool run from now on; that it couldn't be done is a problem."""
        if self._file is None:
            return
        rule = f"\n[[rule]]\nallow = {json.dumps(_literal(spec.name))}\n"
        with self._lock:
            try:
                with _held(self._file):
                    head = "" if self._file.exists() else HEAD
                    # one write at the end keeps what the user wrote, in whatever shape
                    with self._file.open("a", encoding="utf-8") as opened:
                        opened.write(head + rule)
            except OSError as error:
                message = f"The approval can't be kept: {error.strerror or error}."
                self._unkept = Problem(message=message, severity="warning", file=shown(self._file))

    # The rules themselves, for whoever edits them

    def read(self) -> RuleFile:
        """Gives the rules as their file has them now."""
        text = "" if self._file is None else read_text(self._file)
        if isinstance(text, Problem):
            return RuleFile(file=shown(self._file), problem=text)
        rules, problem = ((), None) if self._file is None else _parsed(text, self._file)
        return RuleFile(file=shown(self._file), rules=rules, problem=problem, text=text)

    def change(self, seen: RuleFile, change: Callable[[RuleText], str]) -> RuleFile:
        """Changes the file, as a whole and at once.

        Args:
            seen: The rules as they were when the change was thought of.
            change: Gives the text that shall stand there.

        Raises:
            RulesError: Somebody else has changed the file since, or it can't be changed or written.
        """
        if self._file is None:
            raise RulesError("There is no file for rules.")
        with self._lock:
            try:
                with _held(self._file):
                    now = self.read()
                    if now.problem is not None or now.text != seen.text:
                        why = now.problem.message if now.problem is not None else "It was changed meanwhile."
                        raise RulesError(f"{self._name} was left as it is. {why}")
                    _replace(self._file, change(RuleText(now.text or HEAD)))
            except OSError as error:
                raise RulesError(f"{self._name} can't be written: {error.strerror or error}.") from error
        return self.read()

    @property
    def _name(self) -> str:
        return self._file.name if self._file else "the rules"

    def _refresh(self) -> None:
        if self._file is None:
            return
        try:
            status = self._file.stat()
            mark = status.st_mtime_ns, status.st_size
        except OSError:
            mark = (0, 0)
        if mark != self._mark:
            self._mark = mark
            read = self.read()
            self._rules, self._problem = read.rules, read.problem


def _parsed(text: str, file: Path) -> tuple[tuple[Rule, ...], Problem | None]:
    """Reads the rules; of a file with a fault none, for what it denies isn't known."""
    try:
        return read_rules(text), None
    except ValueError as error:
        fix = "Until it is mended, every call of a model or an MCP client asks."
        return (), Problem(message=str(error), fix=fix, file=shown(file))


def _fits(rule: Rule, spec: ToolSpec, call: ToolCall) -> bool:
    """Tells whether a rule is about a call."""
    from fnmatch import fnmatchcase

    if rule.scope is not None and rule.scope != call.source:
        return False
    if not any(fnmatchcase(spec.name, pattern) for pattern in rule.tools):
        return False
    return all(_argument_fits(rule, patterns, _value(spec, call, name)) for name, patterns in rule.where.items())


def _argument_fits(rule: Rule, patterns: Sequence[str], value: JsonValue) -> bool:
    """Tells whether an argument fits; of a list, every item where the rule allows, and any where it doesn't."""
    if value is None:
        return False
    items = value if isinstance(value, list) else [value]
    fitting = (any(_text_fits(rule, pattern, _text(item)) for pattern in patterns) for item in items)
    return bool(items) and (all(fitting) if rule.allow else any(fitting))


def _text_fits(rule: Rule, pattern: str, text: str) -> bool:
    matches = _compiled(pattern).fullmatch
    if rule.allow:
        # `src/../../etc` begins with `src/`, and is elsewhere
        return ".." not in re.split(r"[/\\]", text) and matches(text) is not None
    return matches(text) is not None or matches(posixpath.normpath(re.sub("/+", "/", text))) is not None


def _value(spec: ToolSpec, call: ToolCall, name: str) -> JsonValue:
    """Gives an argument, or what the tool takes where it was left out."""
    if name in call.args:
        return call.args[name]
    properties = spec.input_schema.get("properties")
    described = properties.get(name) if isinstance(properties, Mapping) else None
    return described.get("default") if isinstance(described, Mapping) else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _literal(name: str) -> str:
    """Gives a pattern that only fits this name."""
    return re.sub(r"[*?[]", lambda sign: f"[{sign[0]}]", name)


@lru_cache(maxsize=500)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern: `?` is a character and `*` are any, both within a folder; `**` goes across."""
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(signs.get(part, re.escape(part)) for part in parts), re.DOTALL)


@contextmanager
def _held(file: Path) -> Iterator[None]:
    """Keeps other processes of ours from changing the file meanwhile; makes its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _replace(file: Path, text: str) -> None:
    """Writes a file so that nobody ever sees half of it; where it is a link, that which it leads to."""
    file = file.resolve()
    descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with open(descriptor, "wb") as out:  # noqa: PTH123 - a descriptor is no path
            with suppress(FileNotFoundError):
                os.fchmod(descriptor, file.stat().st_mode & 0o777)
            out.write(text.encode())
            out.flush()
            os.fsync(descriptor)
        Path(draft).replace(file)
    finally:
        Path(draft).unlink(missing_ok=True)
