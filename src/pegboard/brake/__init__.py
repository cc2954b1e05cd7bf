"""The brake: calls of other agents that wait for a person, and the pause of all their calls.

Everything is files in the state folder that only the user can read, so any Pegboard process can ask, answer and pause,
and no process has to run for it. `questions` asks and answers, `question` has the data of both, `presence` the
processes that show the calls to a person, and `state` the pause.
"""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.brake.presence import Presence
    from pegboard.brake.question import Answer, AnswerTerm, Question, RuleOutcome
    from pegboard.brake.questions import NOT_SHOWN, RESUMED, RULE, AnsweredError, AskedQuestion, BrakeError, Questions
    from pegboard.brake.state import Brake, BrakeState

__all__ = [
    "NOT_SHOWN",
    "RESUMED",
    "RULE",
    "Answer",
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

_ON_DEMAND = {
    "Answer": "question",
    "AnswerTerm": "question",
    "AnsweredError": "questions",
    "AskedQuestion": "questions",
    "Brake": "state",
    "BrakeError": "questions",
    "BrakeState": "state",
    "NOT_SHOWN": "questions",
    "Presence": "presence",
    "Question": "question",
    "Questions": "questions",
    "RESUMED": "questions",
    "RULE": "questions",
    "RuleOutcome": "question",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
