"""The rules that approvals added since the start; the last one can be undone."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from textual.app import App
from textual.notifications import SeverityLevel

from pegboard.brake import Answer, Question, Questions
from pegboard.errors import RulesError, UnknownRuleError
from pegboard.results.clean import clean_line
from pegboard.tui.commands import key_of

if TYPE_CHECKING:
    from pegboard.models.approval import AddedRule
    from pegboard.runtime import Runtime

_TOAST_SECONDS = 10.0
_OUTCOME_SECONDS = 10.0
_POLL_SECONDS = 0.05
_BEGINNING, _END = 250, 100
"""Characters of a long toast that are shown: a rule may contain whole files as arguments."""


class RuleUndo:
    """The added rules, the newest last.

    Args:
        app: The app that shows the toasts.
        runtime: The runtime that removes rules.
    """

    def __init__(self, app: App[None], runtime: Runtime) -> None:
        self._app = app
        self._runtime = runtime
        self._added: list[AddedRule] = []
        self._one_at_a_time = asyncio.Lock()

    def added(self, added: AddedRule) -> None:
        """Show a toast for an added rule, with the key that undoes it, or the reason why it wasn't added."""
        if added.problem:
            self._notify(f"{added.problem} The call runs once.", severity="warning")
            return
        self._added.append(added)
        duration = "for this session" if added.session is not None else "permanently"
        key = key_of(self._app, "app.undo_rule")
        self._notify(f"Rule added {duration}: {added.rule}. {key or 'Undo the last rule'} undoes it.")

    async def added_elsewhere(self, questions: Questions, question: Question, answer: Answer) -> None:
        """Wait until the process that asked has added the rule of an answer, and show a toast.

        Only a permanent rule can be undone here; that of a session is in the memory of that process.

        Args:
            questions: Have the outcome.
            question: The call.
            answer: The answer.
        """
        end = monotonic() + _OUTCOME_SECONDS
        outcome = None
        while outcome is None and monotonic() < end:
            await asyncio.sleep(_POLL_SECONDS)
            outcome = await asyncio.to_thread(questions.rule_outcome, question)
        if outcome is None:
            text = f"No rule for {question.tool} was added: its process didn't confirm it, or another rule denies it."
            self._notify(text, severity="warning")
        elif outcome.problem:
            self._notify(f"{outcome.problem} The call runs once.", severity="warning")
        elif answer.lasts == "always" and answer.rule is not None:
            from pegboard.models.approval import AddedRule

            self.added(AddedRule(rule=answer.rule))
        elif answer.rule is not None:
            self._notify(f"Calls of {question.tool} that match the rule run in this session of {question.agent}.")
        else:
            arguments = "exactly these" if outcome.is_exact else "any"
            self._notify(f"{question.tool} runs with {arguments} arguments in this session of {question.agent}.")

    async def undo(self) -> None:
        """Remove the newest rule; if that fails, it can be tried again."""
        async with self._one_at_a_time:
            await self._undo_newest()

    async def _undo_newest(self) -> None:
        if not self._added:
            self._notify("No rule was added since Pegboard started.")
            return
        added = self._added[-1]
        try:
            await asyncio.to_thread(self._runtime.rules.undo, added)
        except UnknownRuleError as error:
            self._added.remove(added)
            self._notify(str(error), severity="error")
        except RulesError as error:
            key = key_of(self._app, "app.undo_rule")
            self._notify(f"{error} {key or 'Undo the last rule'} tries again.", severity="error")
        else:
            self._added.remove(added)
            self._notify(f"Rule removed: {added.rule}. Such calls ask again.")

    def _notify(self, text: str, severity: SeverityLevel = "information") -> None:
        self._app.run_worker(self._show(text, severity), group="rule-toasts")

    async def _show(self, text: str, severity: SeverityLevel) -> None:
        """Show a toast without the secrets that the arguments of a rule may contain."""
        shown = clean_line(await asyncio.to_thread(self._runtime.redacted, text))
        if len(shown) > _BEGINNING + _END:
            shown = f"{shown[:_BEGINNING]} … {shown[-_END:]}"
        self._app.notify(shown, severity=severity, timeout=_TOAST_SECONDS, markup=False)
