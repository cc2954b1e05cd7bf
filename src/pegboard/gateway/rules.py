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
from pegboard.models.rule_scope import matches_exactly


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
        self._sessions: dict[str, tuple[Rule, ...]] = {}

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
        if call.session is not None and any(_fits(rule, spec, call) for rule in self._sessions.get(call.session, ())):
            return Verdict("allow", f"A rule of this session allows {spec.name}.")
        if problem is not None:
            return Verdict("ask", f"The rules can't be read: {problem.message}")
        if fitting:
            number, action = fitting[-1]
            said = "allows" if action == "allow" else "wants to be asked about"
            return Verdict(action, f"A rule of {self._name} {said} {spec.name}.", number)
        if spec.hints.read_only:
            return Verdict("allow", f"{spec.name} only reads.")
        manner = "may delete or overwrite" if spec.hints.destructive else "may change things"
        return Verdict("ask", f"{spec.name} {manner}.")

    # Rules that approvals add

    def fits(self, rule: Rule, spec: ToolSpec, call: ToolCall) -> bool:
        """Tell whether a rule matches a call."""
        return _fits(rule, spec, call)

    def add(self, rule: Rule, session: str | None = None) -> None:
        """Add a rule, in memory for a session or as the last of the file.

        Raises:
            RulesError: The file can't be changed; it is also one of the `problems`.
        """
        if session is not None:
            with self._lock:
                self._sessions[session] = (*self._sessions.get(session, ()), rule)
            return
        self._unkept = None
        try:
            self.change(None, lambda text: text.with_added(rule))
        except RulesError as error:
            message = f"The rule of an approval was not added: {error}"
            file = shown(self._file) if self._file is not None else ""
            self._unkept = Problem(message=message, severity="warning", file=file)
            raise

    def remove(self, rule: Rule, session: str | None = None) -> None:
        """Remove a rule that `add` added: the last one that is equal.

        Raises:
            RulesError: It isn't there any more, or the file can't be changed.
        """
        if session is not None:
            with self._lock:
                rules = self._sessions.get(session, ())
                at = _last_index(rules, rule)
                self._sessions[session] = (*rules[:at], *rules[at + 1 :])
            return
        seen = self.read()
        at = _last_index(seen.rules, rule)
        self.change(seen, lambda text: text.without(at))

    # The rules themselves, for whoever edits them

    def read(self) -> RuleFile:
        """Gives the rules as their file has them now."""
        text = "" if self._file is None else read_text(self._file)
        if isinstance(text, Problem):
            return RuleFile(file=shown(self._file), problem=text)
        rules, problem = ((), None) if self._file is None else _parsed(text, self._file)
        return RuleFile(file=shown(self._file), rules=rules, problem=problem, text=text)

    def change(self, seen: RuleFile | None, change: Callable[[RuleText], str]) -> RuleFile:
        """Change the file atomically.

        Args:
            seen: The rules that the change is based on; None if it fits whatever the file contains.
            change: Returns the new text.

        Raises:
            RulesError: The file was changed since, or it can't be changed or written.
        """
        if self._file is None:
            raise RulesError("There is no file for rules.")
        with self._lock:
            try:
                with _held(self._file):
                    now = self.read()
                    if now.problem is not None or (seen is not None and now.text != seen.text):
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
    if rule.exactly is not None and not matches_exactly(rule.exactly, spec, call.args):
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


def _last_index(rules: Sequence[Rule], rule: Rule) -> int:
    found = [at for at, one in enumerate(rules) if one == rule]
    if not found:
        raise RulesError("The rule was not removed because it isn't there any more.")
    return found[-1]


@lru_cache(maxsize=500)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern.

    `?` is one character and `*` are any, both within a folder; `**` goes across folders. In brackets, as in `[*]`,
    `*`, `?` and `[` stand for themselves.
    """
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"} | {
        f"[{sign}]": re.escape(sign) for sign in "*?["
    }
    parts = re.split(r"(\[[*?[]\]|\*\*/|\*\*|\*|\?)", pattern)
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
