"""The loop of model turns and tool calls, independent of any interface: a stream of typed events."""

from pegboard.ask.loop import Ask, AskLimits
from pegboard.ask.turn import TurnRecord

__all__ = ["Ask", "AskLimits", "TurnRecord"]
