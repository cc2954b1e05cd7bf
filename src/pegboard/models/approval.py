"""The user's answer to a call that asks first."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from pegboard.models.model import JsonObject, Model
from pegboard.models.rule import Rule

ApprovalAnswer = Literal["once", "session", "always", "reject"]
"""Run this call; run it and add a rule for this session; run it and add a permanent rule; don't run it."""


class Approval(Model):
    """The answer to one `ApprovalRequested`."""

    answer: ApprovalAnswer
    reason: str = ""
    """Why the user rejected the call, in their words; the caller reads it."""
    args: JsonObject | None = None
    """The arguments as the user edited them, if so; they are validated again."""
    rule: Rule | None = None
    """The rule to add. `session` keeps it in memory for the call's session, `always` writes it to the file."""

    @model_validator(mode="after")
    def _has_a_rule_if_it_adds_one(self) -> Approval:
        if (self.rule is not None) != (self.answer in {"session", "always"}):
            raise ValueError("the answers session and always need a rule, the others have none")
        if self.rule is not None and self.rule.action != "allow":
            raise ValueError("the rule of an approval allows calls")
        return self


class AddedRule(Model):
    """A rule that an approval added, or the reason why it couldn't be added."""

    rule: Rule
    session: str | None = None
    """The session that it is for; None for a permanent rule."""
    problem: str = ""
    """Why it wasn't added; empty if it was."""
