"""The approval rules: which calls of models and other agents run, need approval, or are denied."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import is_
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from pegboard import storage
from pegboard.config.files import read_text, shown, unusable
from pegboard.errors import RulesError, UnknownRuleError
from pegboard.gateway.rule_match import Folders, matches, unknown_argument
from pegboard.gateway.rule_text import HEAD, RuleText, line_of, line_of_error, read_rules
from pegboard.models import McpHandler, Problem
from pegboard.models.rule import RuleFile
from pegboard.registry import AllowList

if TYPE_CHECKING:
    from pegboard.models import ToolCall, ToolSpec
    from pegboard.models.rule import Rule, RuleAction

_NO_RULE_APPLIES = "Until it is fixed, every call of a model or an MCP client needs approval, and no rule applies."
"""Consequence of rules that can't be read."""

_LONGEST_SAVE = 0.5
"""Longest time, in seconds, for which a file may be empty while it is saved."""


class Verdict(NamedTuple):
    """The decision of the rules on one call."""

    action: RuleAction
    reason: str
    """The reason, as a sentence."""
    rule: int | None = None
    """Index of the rule in the file, from 0; None if no rule of the file decided."""


class _SessionRule(NamedTuple):
    """A rule that a person added for a session."""

    rule: Rule
    destructive: bool
    """Whether the tool was destructive when the person decided."""

    def covers(self, spec: ToolSpec) -> bool:
        """Return whether the rule applies to a tool, which may have become destructive since."""
        return self.destructive or not spec.hints.destructive


class _LastRead(NamedTuple):
    """The rules as last read."""

    mark: tuple[int, ...] | None = None
    """The mark of their file before it was read; None if it was never read."""
    file: RuleFile = RuleFile(file="")


class _Check(NamedTuple):
    """The state and the tools that the problems of rules depend on."""

    mark: tuple[int, ...] | None
    missing: bool
    specs: tuple[ToolSpec, ...]
    """Kept, so that no other tool has the address of one of them."""
    servers: frozenset[str]

    def is_same(self, other: _Check) -> bool:
        """Return whether the tools are the same objects, whose comparison would take time, and the rest is equal."""
        same_specs = len(self.specs) == len(other.specs) and all(map(is_, self.specs, other.specs))
        return same_specs and self._replace(specs=()) == other._replace(specs=())


class Rules:
    """The rules of the file, which is read again when it changes, and the approvals of this process's sessions.

    While the file can't be used, calls from agents need approval, because the rules that deny calls are unknown.

    Args:
        file: The file of the rules, which may be missing; without one, only sessions' approvals are kept.
        roots: Returns the folders that a pack is confined to; without it, the working directory.
    """

    def __init__(self, file: Path | None = None, roots: Callable[[str], Sequence[str]] | None = None) -> None:
        self._file = file
        self._path = str(file)
        self._roots = roots
        self._lock = Lock()
        self._last = _LastRead()
        """Replaced as a whole, because `quick_verdict` reads it without the lock."""
        self._checked: tuple[_Check, tuple[Problem, ...]] | None = None
        self._not_added: Problem | None = None
        self._sessions: dict[str, tuple[_SessionRule, ...]] = {}
        self._approved_in_advance = AllowList(())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the file from the last time it was read or written."""
        return tuple(problem for problem in (self._last.file.problem, self._not_added) if problem is not None)

    def verdict(self, spec: ToolSpec, call: ToolCall) -> Verdict:
        """Return the decision on a call; read the file if it changed.

        Args:
            spec: The tool.
            call: The call, its arguments by the names of the schema.
        """
        with self._lock:
            self._refresh()
            read = self._last.file
        return self._decided(spec, call, read)

    def quick_verdict(self, spec: ToolSpec, call: ToolCall) -> Verdict | None:
        """Return the decision on a call; None if it must read the file or resolve paths, which needs a thread."""
        last = self._last
        if last.mark != self._current_mark() or any(rule.where for rule in last.file.rules):
            return None
        return self._decided(spec, call, last.file)

    def _decided(self, spec: ToolSpec, call: ToolCall, read: RuleFile) -> Verdict:
        rules, problem = read.rules, read.problem
        folders = self._folders(spec)
        matching = [(number, rule.action) for number, rule in enumerate(rules) if matches(rule, spec, call, folders)]
        if is_unsaved(spec):  # Another server may have had its name when the rules were made; to deny is always safe.
            matching = [(number, action) for number, action in matching if action == "deny"]
        denying = next((number for number, action in matching if action == "deny"), None)
        if denying is not None:
            reason = f"A rule of {self._name} denies {spec.name}."
            return Verdict("deny", reason + _why(rules[denying], spec, call), denying)
        if call.from_text:
            if problem is None and self._approved_in_advance.names(spec):
                return Verdict("allow", f"{spec.name} was approved by name in advance.")
            return Verdict("ask", f"The model wrote the call of {spec.name} as text, where it may only quote it.")
        if (
            problem is not None
        ):  # The rules that deny calls are unknown, so approvals of the session don't apply either.
            return Verdict("ask", f"{self._name} can't be read: {problem.message}")
        of_session = self._sessions.get(call.session, ()) if call.session is not None else ()
        if any(one.covers(spec) and matches(one.rule, spec, call, folders) for one in of_session):
            return Verdict("allow", f"A rule of this session allows {spec.name}.")
        if self._approved_in_advance.admits(spec):
            return Verdict("allow", f"{spec.name} was approved in advance.")
        if matching:
            number, action = matching[-1]
            verb = "allows" if action == "allow" else "requires approval for"
            reason = f"A rule of {self._name} {verb} {spec.name}."
            return Verdict(action, reason + _why(rules[number], spec, call), number)
        if spec.hints.read_only:
            return Verdict("allow", f"{spec.name} is read-only.")
        manner = "may delete or overwrite data" if spec.hints.destructive else "may change data"
        if isinstance(spec.handler, McpHandler):
            return Verdict("ask", f"{spec.name} of the MCP server {spec.handler.server} {manner}.")
        return Verdict("ask", f"{spec.name} {manner}.")

    def _folders(self, spec: ToolSpec) -> Folders:
        if isinstance(spec.handler, McpHandler) and spec.handler.cwd is not None:
            return Folders((spec.handler.cwd,))
        return Folders(tuple(self._roots(spec.pack)) if self._roots else ())

    def check(
        self, specs: Sequence[ToolSpec], *, servers: Collection[str] = (), missing: bool = True
    ) -> tuple[Problem, ...]:
        """Return the problems of the file, and the rules that can never match a call of these tools; read the disk.

        Args:
            specs: Every tool that was found.
            servers: Names of configured MCP servers; rules for those that list no tools are not checked.
            missing: Whether to include rules for packs that aren't installed.
        """
        with self._lock:
            self._refresh()
            seen = _Check(self._last.mark, missing, tuple(specs), frozenset(servers))
            if self._checked is None or not self._checked[0].is_same(seen):
                self._checked = (seen, tuple(self._unmatchable(specs, servers, missing=missing)))
            return (*self.problems, *self._checked[1])

    def _unmatchable(self, specs: Sequence[ToolSpec], servers: Collection[str], *, missing: bool) -> Iterator[Problem]:
        from pegboard.gateway.rule_check import findings

        for number, rule in enumerate(self._last.file.rules):
            for found in findings(rule, specs, servers):
                if not (missing or found.is_final):
                    continue
                yield Problem(
                    message=f"In rule {number + 1}, {found.message}.",
                    fix=found.fix,
                    severity=found.severity(rule),
                    file=shown(self._file),
                    line=line_of(self._last.file.text, number, found.about),
                )

    def approve_in_advance(self, patterns: Sequence[str]) -> None:
        """Approve the calls of matching tools for the life of this process, unless a rule denies them.

        A call that a model wrote as text runs only if a pattern is the tool's exact name.
        """
        self._approved_in_advance = AllowList(patterns)

    # Rules that approvals add

    def fits(self, rule: Rule, spec: ToolSpec, call: ToolCall) -> bool:
        """Return whether a rule matches a call."""
        return matches(rule, spec, call, self._folders(spec))

    def add(self, rule: Rule, session: str | None = None, *, destructive: bool = True) -> None:
        """Add a rule: in memory for a session, else as the last one of the file.

        Args:
            rule: The rule.
            session: The session; None for the file.
            destructive: Whether a session's rule covers a destructive tool.

        Raises:
            RulesError: The file can't be changed; this is also one of the `problems`. Or, for a session, it can't be
                read, so that no rule applies.
        """
        if session is not None:
            with self._lock:
                self._refresh()
                if (unread := self._last.file.problem) is not None:
                    raise RulesError(f"No rule applies while {self._name} can't be read: {unread.message}")
                known = self._sessions.get(session, ())
                self._sessions[session] = (*known, _SessionRule(rule, destructive))
            return
        self._not_added = None
        try:
            self.change(None, lambda text: text.with_added(rule))
        except RulesError as error:
            message = f"The rule of an approval was not added: {error}"
            file = shown(self._file) if self._file is not None else ""
            self._not_added = Problem(message=message, severity="warning", file=file)
            raise

    def remove(self, rule: Rule, session: str | None = None) -> None:
        """Remove a rule that `add` added: the last equal one.

        Raises:
            UnknownRuleError: The rule no longer exists.
            RulesError: The file can't be changed.
        """
        if session is not None:
            with self._lock:
                rules = self._sessions.get(session, ())
                at = _last_index([one.rule for one in rules], rule)
                self._sessions[session] = (*rules[:at], *rules[at + 1 :])
            return
        self.change(None, lambda text: text.without(_last_index(text.rules, rule)))

    def forget(self, pack: str) -> None:
        """Drop the sessions' rules about a pack, because another server may get its name."""
        with self._lock:
            for session, rules in self._sessions.items():
                self._sessions[session] = tuple(one for one in rules if not _names_pack(one.rule, pack))

    def existing(self, pack: str) -> str:
        """Return, as a sentence, which rules of the file allow calls of a pack; empty if there are none.

        For a new or changed server: the rules may have been made for another server of its name.
        """
        found = [str(rule) for rule in self.read().rules if rule.allow and _names_pack(rule, pack)]
        return f"{self._name} has rules that cover {pack}: {'; '.join(found)}." if found else ""

    # Reading and editing the file

    def read(self) -> RuleFile:
        """Return the current rules of the file."""
        text = "" if self._file is None else _saved_text(self._file)
        if text == "" and self._file is not None and self._file.is_symlink() and not self._file.exists():
            text = unusable(self._file, "This link points to a missing file.")
        if isinstance(text, Problem):
            return RuleFile(file=shown(self._file), problem=text.model_copy(update={"fix": _NO_RULE_APPLIES}))
        rules, problem = ((), None) if self._file is None else _parsed(text, self._file)
        return RuleFile.model_construct(file=shown(self._file), rules=rules, problem=problem, text=text)

    def change(self, seen: RuleFile | None, change: Callable[[RuleText], str]) -> RuleFile:
        """Change the file atomically.

        Args:
            seen: The rules that the change is based on; None if it applies to any content.
            change: Returns the new text.

        Raises:
            RulesError: The file was changed since, or it can't be changed or written.
        """
        if self._file is None:
            raise RulesError("This runtime has no file for rules.")
        with self._lock:
            try:
                with storage.locked(self._file):
                    now = self.read()
                    if now.problem is not None or (seen is not None and now.text != seen.text):
                        why = (
                            now.problem.message
                            if now.problem is not None
                            else "Another program changed it in the meantime. Look at the rules, then try again."
                        )
                        raise RulesError(f"{self._name} was not changed. {why}")
                    storage.rewrite(self._file, change(RuleText(now.text or HEAD)).encode())
            except OSError as error:
                raise RulesError(f"{self._name} can't be written: {error.strerror or error}.") from error
        return self.read()

    @property
    def _name(self) -> str:
        return self._file.name if self._file else "the rules"

    def _current_mark(self) -> tuple[int, ...] | None:
        """Return what changes when the file changes; None without a file."""
        if self._file is None:
            return None
        try:
            status = os.stat(self._path)  # noqa: PTH116 - asked at every call, and `Path` costs three times as much
        except FileNotFoundError:
            return (int(self._file.is_symlink()),)
        except OSError as error:
            return (-(error.errno or 1),)
        return (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size)

    def _refresh(self) -> None:
        mark = self._current_mark()
        if mark is not None and mark != self._last.mark:
            self._last = _LastRead(mark, self.read())


def _saved_text(file: Path) -> str | Problem:
    """Return the text of the file, or the problem that makes it unusable.

    Many editors empty a file before they write it. Without the rules that deny calls, these would be allowed in the
    meantime, so if the file was emptied less than 0.5 s ago, wait until it has a text or that time is over.
    """
    text = read_text(file)
    for _ in range(50):
        if text != "" or _seconds_since_change(file) > _LONGEST_SAVE:
            break
        time.sleep(_LONGEST_SAVE / 50)
        text = read_text(file)
    return text


def _seconds_since_change(file: Path) -> float:
    """Return the age of a file's content; infinity if it is missing."""
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return float("inf")


def _parsed(text: str, file: Path) -> tuple[tuple[Rule, ...], Problem | None]:
    """Return the rules of a text; none if it is invalid, because rules that deny calls may be missing."""
    try:
        return read_rules(text), None
    except ValueError as error:
        return (), Problem(message=str(error), fix=_NO_RULE_APPLIES, file=shown(file), line=line_of_error(text))


def is_unsaved(spec: ToolSpec) -> bool:
    """Return whether a tool belongs to a server that was given for this run, to which saved rules never apply."""
    return isinstance(spec.handler, McpHandler) and not spec.handler.saved


def _names_pack(rule: Rule, pack: str) -> bool:
    """Return whether a rule may apply to tools of a pack."""
    from fnmatch import fnmatchcase

    start = f"{pack}."  # A wildcard may match more than that, so it may be matched by any start of a pattern.
    return any(fnmatchcase(start, pattern[:end]) for pattern in rule.tools for end in range(1, len(pattern) + 1))


def _why(rule: Rule, spec: ToolSpec, call: ToolCall) -> str:
    """Return a sentence about an argument that the call omits, if the rule applies only because of it; else nothing."""
    name = unknown_argument(rule, spec, call) if rule.where else ""
    return f" The call omits {name}, whose default is unknown." if name else ""


def _last_index(rules: Sequence[Rule], rule: Rule) -> int:
    found = [at for at, one in enumerate(rules) if one == rule]
    if not found:
        raise UnknownRuleError("The rule was not removed because it no longer exists.")
    return found[-1]
