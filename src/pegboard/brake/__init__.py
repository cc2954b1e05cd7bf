"""The brake: calls of other agents that wait for a person, and the pause of all their calls.

Everything is files in the state folder that only the user can read, so any Pegboard process can ask, answer and pause,
and no process has to run for it. `questions` has the pending calls and their answers, `presence` the processes that
show them to a person, and `state` the pause.
"""

from pegboard.brake.presence import Presence
from pegboard.brake.questions import (
    NOT_SHOWN,
    RESUMED,
    Answer,
    AnsweredError,
    AnswerKind,
    AnswerTerm,
    AskedQuestion,
    BrakeError,
    Question,
    Questions,
    RuleOutcome,
)
from pegboard.brake.state import Brake, BrakeState

__all__ = [
    "NOT_SHOWN",
    "RESUMED",
    "Answer",
    "AnswerKind",
    "AnswerTerm",
    "AnsweredError",
    "AskedQuestion",
    "Brake",
    "BrakeError",
    "BrakeState",
    "Presence",
    "Question",
    "Questions",
    "RuleOutcome",
]
