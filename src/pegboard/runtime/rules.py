"""The rules by which calls of models and other agents run, ask or are rejected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pegboard import models
from pegboard.registry import AllowList
from pegboard.runtime.tools import ALLOW_FIX

if TYPE_CHECKING:
    from pegboard.gateway import Verdict
    from pegboard.models import Problem, ToolCall
    from pegboard.models.approval import AddedRule
    from pegboard.models.rule import Rule, RuleFile
    from pegboard.ports import Approver
    from pegboard.runtime.parts import Parts


class ApprovalRules:
    """The rules of `approvals.toml` and of sessions, and the approver for calls that no rule decides.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def approve_with(self, approver: Approver | None, rule_added: Callable[[AddedRule], object] | None = None) -> None:
        """Set the approver for calls that need approval.

        Args:
            approver: Decides on each call. Without one, such calls are rejected.
            rule_added: Receives every rule that an approval adds, and every one that couldn't be added.
        """
        self._parts.gateway.approver = approver
        self._parts.gateway.rule_added = rule_added

    def hold_with(self, held: Callable[[ToolCall], str] | None) -> None:
        """Set what holds calls of models and other agents that rules allow, until the approver decides.

        Args:
            held: Returns why a call must wait; empty if it needn't.
        """
        self._parts.gateway.held = held

    @contextmanager
    def unattended(self, session: str) -> Iterator[None]:
        """Reject calls of a session that need approval, instead of asking the approver."""
        self._parts.gateway.unattended.add(session)
        try:
            yield
        finally:
            self._parts.gateway.unattended.discard(session)

    def approve_in_advance(self, patterns: Sequence[str]) -> tuple[Problem, ...]:
        """Approve calls of matching tools in advance for the life of this runtime; rules can still deny them.

        Args:
            patterns: Patterns as in an allow list. A call that a model wrote as text needs the exact name of its tool.

        Returns:
            A warning for each pattern that matches no tool.
        """
        self._parts.rules.approve_in_advance(patterns)
        unmatched = AllowList(patterns).unmatched(self._parts.usable())
        messages = (
            f'"{pattern}" approves no tool because no tool that can be used matches it.' for pattern in unmatched
        )
        return tuple(models.Problem(message=message, fix=ALLOW_FIX, severity="warning") for message in messages)

    def problems(self, *, missing: bool) -> tuple[Problem, ...]:
        """Return the problems of the rules; load nothing if there is no file with rules.

        Args:
            missing: Whether to include rules for packs that aren't installed.
        """
        parts = self._parts
        if not parts.is_built("rules") and not os.path.lexists(parts.paths.approvals):
            return ()
        if not parts.registry.scanned:
            return parts.rules.problems
        return parts.rules.check(parts.registry.tools(), servers=parts.settings.mcp.servers, missing=missing)

    def matches(self, rule: Rule, call: ToolCall) -> bool:
        """Return whether a rule matches a call; False if its tool doesn't exist."""
        spec = self._parts.usable_tool(call.name)
        return spec is not None and self._parts.rules.fits(rule, spec, call)

    def existing(self, server: str) -> str:
        """Return which rules of the file allow calls of a server that is new or changed, as a sentence; read the disk.

        They may have been made for another server of that name. Empty if there are none.
        """
        return self._parts.rules.existing(server)

    def undo(self, added: AddedRule) -> None:
        """Remove a rule that an approval added; write the disk if it is permanent.

        Raises:
            UnknownRuleError: The rule no longer exists.
            RulesError: The file can't be changed.
        """
        self._parts.rules.remove(added.rule, added.session)

    def verdict(self, call: ToolCall) -> Verdict | None:
        """Return the decision of the rules on a call of a model or MCP client; read the disk.

        Returns None if the tool doesn't exist.
        """
        spec = self._parts.usable_tool(call.name)
        return None if spec is None else self._parts.rules.verdict(spec, call)

    def allow(self, call: ToolCall) -> bool:
        """Return whether the rules allow a call of a model or MCP client without approval; read the disk."""
        verdict = self.verdict(call)
        return verdict is not None and verdict.action == "allow"

    def read(self) -> RuleFile:
        """Return the rules of the file; read the disk."""
        return self._parts.rules.read()

    def add(self, seen: RuleFile | None, rule: Rule) -> RuleFile:
        """Append a rule, which takes precedence over earlier ones; write the disk.

        Like every change of a rule, return the new rules and preserve the rest of the file.

        Args:
            seen: The rules as last read; None to add the rule whatever they are now.
            rule: The new rule.

        Raises:
            RulesError: The file was changed since, its rules are written in an unusual way, or it can't be written.
        """
        return self._parts.rules.change(seen, lambda text: text.with_added(rule))

    def change(self, seen: RuleFile, at: int, rule: Rule) -> RuleFile:
        """Replace a rule; see `add`."""
        return self._parts.rules.change(seen, lambda text: text.with_changed(at, rule))

    def remove(self, seen: RuleFile, at: int) -> RuleFile:
        """Delete a rule and the comments directly above and below it; see `add`."""
        return self._parts.rules.change(seen, lambda text: text.without(at))

    def move(self, seen: RuleFile, at: int, to: int) -> RuleFile:
        """Move a rule, since the last rule that matches a call applies; see `add`."""
        return self._parts.rules.change(seen, lambda text: text.with_moved(at, to))
