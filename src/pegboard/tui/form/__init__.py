"""Argument form of a tool: one view per field, with the editor for its kind."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.tui.form.pane import FormPane

__all__ = ["FormPane"]

_ON_DEMAND = {
    "FormPane": "pane",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
