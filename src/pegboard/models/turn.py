"""Model turns as records in the history."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from pegboard.models.agent import Agent
from pegboard.models.ask import StoppedBy
from pegboard.models.call import CallSource, ToolCall
from pegboard.models.conversation import Usage
from pegboard.models.model import DataModel
from pegboard.models.record import CallRecord

TURN: Final = "turn"
"""Name of a turn in the column of the tool. It does not identify turns, because a model may call a tool by any name."""
LONGEST_TEXT: Final = 4_000
"""Maximum length of a turn's text, in characters."""


class ModelTurn(DataModel):
    """Facts about a turn that its record has in place of arguments. All texts are untrusted.

    A turn of a chat is the work on one message of the user. A turn of another agent is one response of its model.
    """

    text: str = ""
    """The start of the user's message, or of the response of another agent's model; empty if it was deleted."""
    model: str = ""
    message: int | None = None
    """Position of the user's message in the chat session."""
    steps: int = 0
    """Number of the model's responses."""
    usage: Usage = Usage.model_construct()
    stopped_by: StoppedBy = "answer"
    """What ended it, unless it failed."""

    def call(self, turn: str, source: CallSource, session: str, agent: Agent | None = None) -> ToolCall:
        """Return the turn as the call that the history records."""
        args = self.model_dump(mode="json", exclude_defaults=True)
        return ToolCall(id=turn, turn=turn, name=TURN, args=args, source=source, session=session, agent=agent)

    @classmethod
    def of(cls, record: CallRecord) -> ModelTurn:
        """Return the facts of a recorded turn, without those of a damaged record."""
        try:
            return cls.model_validate(record.args)
        except ValidationError:
            return cls()
