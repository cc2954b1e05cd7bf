"""The user's answer to a call awaiting approval."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from pegboard.models.model import DataModel, JsonObject
from pegboard.models.rule import Rule

ApprovalAnswer = Literal["once", "session", "always", "reject"]
"""Run this call; run it and add a rule for the session; run it and add a permanent rule; don't run it."""


class Approval(DataModel):
    """The answer to one `ApprovalRequested`."""

    answer: ApprovalAnswer
    reason: str = ""
    """The user's reason for a rejection; the caller reads it."""
    by_person: bool = True
    """Whether a person decided; False for a rejection because no person could be asked."""
    args: JsonObject | None = None
    """The arguments that the user edited, or None. They are validated again."""
    rule: Rule | None = None
    """The rule to add. `session` keeps it in memory for the call's session, `always` writes it to the file."""

    @model_validator(mode="after")
    def _check_rule(self) -> Approval:
        if (self.rule is not None) != (self.answer in {"session", "always"}):
            raise ValueError("the answers session and always need a rule, other answers have none")
        if self.rule is not None and self.rule.action != "allow":
            raise ValueError("the rule of an approval allows calls")
        return self


class AddedRule(DataModel):
    """A rule that an approval added, or the reason why it couldn't be added."""

    rule: Rule
    session: str | None = None
    """The session that the rule belongs to; None for a permanent rule."""
    problem: str = ""
    """Why the rule wasn't added; empty if it was."""
    call: str = ""
    """Id of the call that was approved."""
