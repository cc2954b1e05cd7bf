"""The data that crosses Pegboard's boundaries, each type defined once.

A `ToolSpec` describes a tool, a `ToolCall` asks for one, a `ToolResult` answers it; `CallEvent`s tell what happens
in between, a `CallRecord` is what is kept of it. A `Preset` is an argument object with a name. A `Problem` is anything
wrong that a user should see and can mend; a `Fault` is one thing wrong with an argument object.
"""

from pegboard.models.call import CallSource, ToolCall
from pegboard.models.events import ApprovalRequested, CallEvent, Finished, Log, Progress, Started
from pegboard.models.model import JsonObject, Model
from pegboard.models.preset import Preset
from pegboard.models.problem import Fault, Problem
from pegboard.models.record import CallRecord, ToolUses
from pegboard.models.requirement import HealthRow, Requirement, Thing
from pegboard.models.result import ErrorCode, ResultMeta, ToolError, ToolResult, Truncation
from pegboard.models.saved_script import SavedScript
from pegboard.models.script import ExpectedCall, MissingCommand, ScriptAnalysis
from pegboard.models.spec import (
    Handler,
    Hints,
    Location,
    McpHandler,
    PackHandler,
    ScriptHandler,
    ToolInfo,
    ToolSpec,
    ToolState,
)

__all__ = [
    "ApprovalRequested",
    "CallEvent",
    "CallRecord",
    "CallSource",
    "ErrorCode",
    "ExpectedCall",
    "Fault",
    "Finished",
    "Handler",
    "HealthRow",
    "Hints",
    "JsonObject",
    "Location",
    "Log",
    "McpHandler",
    "MissingCommand",
    "Model",
    "PackHandler",
    "Preset",
    "Problem",
    "Progress",
    "Requirement",
    "ResultMeta",
    "SavedScript",
    "ScriptAnalysis",
    "ScriptHandler",
    "Started",
    "Thing",
    "ToolCall",
    "ToolError",
    "ToolInfo",
    "ToolResult",
    "ToolSpec",
    "ToolState",
    "ToolUses",
    "Truncation",
]
