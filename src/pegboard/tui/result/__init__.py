"""Result pane: follows a call and shows its result."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.tui.result.chart import ChartView
    from pegboard.tui.result.error import ErrorView
    from pegboard.tui.result.image import ImageView
    from pegboard.tui.result.pane import ResultPane
    from pegboard.tui.result.segments import SegmentView, WholeTextHits
    from pegboard.tui.result.table import TableView
    from pegboard.tui.result.tree import TreeView

__all__ = [
    "ChartView",
    "ErrorView",
    "ImageView",
    "ResultPane",
    "SegmentView",
    "TableView",
    "TreeView",
    "WholeTextHits",
]

_ON_DEMAND = {
    "ChartView": "chart",
    "ErrorView": "error",
    "ImageView": "image",
    "ResultPane": "pane",
    "SegmentView": "segments",
    "TableView": "table",
    "TreeView": "tree",
    "WholeTextHits": "segments",
}
"""Name → module, imported on first use: an idle app shows no result."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
