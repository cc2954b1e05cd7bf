"""The loop of model turns and tool calls, independent of any interface: a stream of typed events."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.ask.allowance import AskLimits
    from pegboard.ask.loop import Ask
    from pegboard.ask.turn import TurnRecord

__all__ = ["Ask", "AskLimits", "TurnRecord"]

_ON_DEMAND = {
    "Ask": "loop",
    "AskLimits": "allowance",
    "TurnRecord": "turn",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
