"""Shared parts of `pause`, `resume`, `stop` and `approve`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from pegboard.cli.root import TOOL_FAILED

if TYPE_CHECKING:
    from pegboard.brake import BrakeState, Question, Questions
    from pegboard.cli.approval import MaskedArguments
    from pegboard.runtime import Runtime


@dataclass(frozen=True)
class WaitingCall:
    """A pending call as it may be printed."""

    question: Question
    """The question with all secrets."""
    shown: Question
    """The question without known secrets."""

    arguments: MaskedArguments

    @classmethod
    def of(cls, runtime: Runtime, question: Question) -> WaitingCall:
        """Return the call of a question; read the disk."""
        from pegboard.cli.approval import MaskedArguments

        arguments = MaskedArguments.of(runtime, question.args)
        shown = replace(question, args=arguments.shown, reason=runtime.redacted(question.reason))
        return cls(question, shown, arguments)


def open_questions() -> Questions:
    """Return the pending calls of this user."""
    from pegboard.brake import Questions
    from pegboard.config import Paths

    return Questions(Paths.from_environment().state)


def change_brake(state: BrakeState, *, as_json: bool) -> None:
    """Pause, resume or stop calls from agents, and print the state."""
    from pegboard.cli.output import narrate, print_json

    questions = open_questions()
    brake = questions.brake
    change = {"paused": brake.pause, "stopped": brake.stop, "running": brake.resume}[state]
    try:
        change()
    except OSError as error:
        narrate(f"Calls from agents are unchanged because {brake.file} can't be changed: {error.strerror or error}.")
        raise typer.Exit(TOOL_FAILED) from error
    if as_json:
        print_json({"state": brake.state, "file": str(brake.file), "waiting": len(questions.pending())})
        return
    texts = {
        "paused": "Calls from agents are held. `pegboard resume` lets them pass.",
        "stopped": "Calls from agents are rejected. `pegboard resume` lets them pass.",
        "running": "Agents are resumed.",
    }
    narrate(texts[brake.state])


def question_json(question: Question) -> dict[str, Any]:
    """Return a pending call as `approve --json` prints it."""
    return {
        "id": question.id,
        "agent": question.agent,
        "server": question.server,
        "tool": question.tool,
        "args": question.args,
        "reason": question.reason,
        "kind": question.kind,
        "via": question.via,
        "askedAt": question.asked_at,
    }
