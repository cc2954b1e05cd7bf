"""The rules by which calls of models and other agents run, ask or are rejected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pegboard.gateway import Verdict
from pegboard.models import Problem, ToolCall
from pegboard.models.rule import Rule, RuleFile
from pegboard.registry import AllowList
from pegboard.runtime.tools import ALLOW_FIX

if TYPE_CHECKING:
    from pegboard.models.approval import AddedRule
    from pegboard.ports import Approver
    from pegboard.runtime.parts import Parts


class ApprovalRules:
    """The rules of `approvals.toml` and of sessions, and who is asked if none of them decides.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def approve_with(self, approver: Approver | None, rule_added: Callable[[AddedRule], object] | None = None) -> None:
        """Set who decides on calls that ask first.

        Args:
            approver: Decides on each call. Without one, such calls are rejected.
            rule_added: Receives every rule that an approval adds, and every one that couldn't be added.
        """
        self._parts.gateway.approver = approver
        self._parts.gateway.rule_added = rule_added

    def approve_in_advance(self, patterns: Sequence[str]) -> tuple[Problem, ...]:
        """Let calls of matching tools run without a question as long as this runtime lives; rules still deny.

        Args:
            patterns: As of an allow list. A call that a model wrote as text needs the exact name of its tool.

        Returns:
            A warning for each pattern that matches no tool.
        """
        self._parts.rules.approve_in_advance(patterns)
        unmatched = AllowList(patterns).unmatched(self._parts.usable())
        messages = (f'"{pattern}" approves no tool: none that may be used matches it.' for pattern in unmatched)
        return tuple(Problem(message=message, fix=ALLOW_FIX, severity="warning") for message in messages)

    def matches(self, rule: Rule, call: ToolCall) -> bool:
        """Tell whether a rule matches a call of a tool that there is."""
        spec = self._parts.usable_tool(call.name)
        return spec is not None and self._parts.rules.fits(rule, spec, call)

    def undo(self, added: AddedRule) -> None:
        """Remove a rule that an approval added; writes the disk if it is permanent.

        Raises:
            RulesError: It isn't there any more, or the file can't be changed.
        """
        self._parts.rules.remove(added.rule, added.session)

    def verdict(self, call: ToolCall) -> Verdict | None:
        """Says whether a call of a model or MCP client would run, ask or be refused; reads the disk.

        Gives None if there is no such tool.
        """
        spec = self._parts.usable_tool(call.name)
        return None if spec is None else self._parts.rules.verdict(spec, call)

    def read(self) -> RuleFile:
        """Gives the rules by which calls of models and MCP clients run, ask or are refused; reads the disk."""
        return self._parts.rules.read()

    def add(self, seen: RuleFile, rule: Rule) -> RuleFile:
        """Adds a rule as the last, which wins over those before it; writes the disk.

        Like every change of a rule, it gives the rules as they are then, and leaves all else in the file as it is.

        Args:
            seen: The rules as they were read.
            rule: The new one.

        Raises:
            RulesError: The file was changed since, its rules are written in an unusual way, or it can't be written.
        """
        return self._parts.rules.change(seen, lambda text: text.with_added(rule))

    def change(self, seen: RuleFile, at: int, rule: Rule) -> RuleFile:
        """Puts a rule in the place of one; see `add`."""
        return self._parts.rules.change(seen, lambda text: text.with_changed(at, rule))

    def remove(self, seen: RuleFile, at: int) -> RuleFile:
        """Throws a rule away, and the comments right above and below it; see `add`."""
        return self._parts.rules.change(seen, lambda text: text.without(at))

    def move(self, seen: RuleFile, at: int, to: int) -> RuleFile:
        """Puts a rule in another place, since of those that fit the last one wins; see `add`."""
        return self._parts.rules.change(seen, lambda text: text.with_moved(at, to))
