"""The data types that packages exchange, each defined once.

A `ToolSpec` describes a tool, a `ToolCall` requests a call, a `ToolResult` is its result. `CallEvent`s report the
progress of a call, and a `CallRecord` is its record in the history. A `Preset` is a saved argument object. A `Problem`
is a discovery or configuration issue for the user to fix; a `Fault` is one validation error of an argument object.
"""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.models.agent import Agent
    from pegboard.models.call import OF_CLIENTS, CallSource, ToolCall
    from pegboard.models.events import ApprovalRequested, CallEvent, Finished, Log, Progress, Started
    from pegboard.models.model import DataModel, JsonObject
    from pegboard.models.preset import Preset
    from pegboard.models.problem import Fault, Problem
    from pegboard.models.record import (
        UNFINISHED,
        CallCount,
        CallRecord,
        CallState,
        DroppedCalls,
        HistoryPage,
        HistoryQuery,
        ParsedQuery,
        QueryProblem,
        RecordedCall,
        ToolUses,
    )
    from pegboard.models.requirement import HealthRow, Requirement, RequirementKey
    from pegboard.models.result import ErrorCode, LogPart, ResultMeta, ToolError, ToolResult, Truncation
    from pegboard.models.saved_script import SavedScript
    from pegboard.models.script import ExpectedCall, MissingCommand, ScriptAnalysis
    from pegboard.models.server import (
        Elicitation,
        ElicitationAction,
        ElicitationAnswer,
        OAuthClient,
        SamplingRequest,
        ServerConfig,
        ServerStatus,
    )
    from pegboard.models.server_state import ServerState
    from pegboard.models.spec import (
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
    "OF_CLIENTS",
    "UNFINISHED",
    "Agent",
    "ApprovalRequested",
    "CallCount",
    "CallEvent",
    "CallRecord",
    "CallSource",
    "CallState",
    "DataModel",
    "DroppedCalls",
    "Elicitation",
    "ElicitationAction",
    "ElicitationAnswer",
    "ErrorCode",
    "ExpectedCall",
    "Fault",
    "Finished",
    "HealthRow",
    "Hints",
    "HistoryPage",
    "HistoryQuery",
    "JsonObject",
    "Location",
    "Log",
    "LogPart",
    "McpHandler",
    "MissingCommand",
    "OAuthClient",
    "PackHandler",
    "ParsedQuery",
    "Preset",
    "Problem",
    "Progress",
    "QueryProblem",
    "RecordedCall",
    "Requirement",
    "RequirementKey",
    "ResultMeta",
    "SamplingRequest",
    "SavedScript",
    "ScriptAnalysis",
    "ScriptHandler",
    "ServerConfig",
    "ServerState",
    "ServerStatus",
    "Started",
    "ToolCall",
    "ToolError",
    "ToolInfo",
    "ToolResult",
    "ToolSpec",
    "ToolState",
    "ToolUses",
    "Truncation",
]

_ON_DEMAND = {
    "Agent": "agent",
    "ApprovalRequested": "events",
    "CallCount": "record",
    "CallEvent": "events",
    "CallRecord": "record",
    "CallSource": "call",
    "CallState": "record",
    "DataModel": "model",
    "DroppedCalls": "record",
    "Elicitation": "server",
    "ElicitationAction": "server",
    "ElicitationAnswer": "server",
    "ErrorCode": "result",
    "ExpectedCall": "script",
    "Fault": "problem",
    "Finished": "events",
    "HealthRow": "requirement",
    "Hints": "spec",
    "HistoryPage": "record",
    "HistoryQuery": "record",
    "JsonObject": "model",
    "Location": "spec",
    "Log": "events",
    "LogPart": "result",
    "McpHandler": "spec",
    "MissingCommand": "script",
    "OAuthClient": "server",
    "OF_CLIENTS": "call",
    "PackHandler": "spec",
    "ParsedQuery": "record",
    "Preset": "preset",
    "Problem": "problem",
    "Progress": "events",
    "QueryProblem": "record",
    "RecordedCall": "record",
    "Requirement": "requirement",
    "RequirementKey": "requirement",
    "ResultMeta": "result",
    "SamplingRequest": "server",
    "SavedScript": "saved_script",
    "ScriptAnalysis": "script",
    "ScriptHandler": "spec",
    "ServerConfig": "server",
    "ServerState": "server_state",
    "ServerStatus": "server",
    "Started": "events",
    "ToolCall": "call",
    "ToolError": "result",
    "ToolInfo": "spec",
    "ToolResult": "result",
    "ToolSpec": "spec",
    "ToolState": "spec",
    "ToolUses": "record",
    "UNFINISHED": "record",
    "Truncation": "result",
}
"""Name → module, imported on first use: most commands, and the first frame of the app, need few of the types."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
