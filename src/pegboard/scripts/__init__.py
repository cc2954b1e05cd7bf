"""Scripts: many tools in one bash script, in a sandbox.

An `OrchestratorTool` runs scripts whose commands are tools: those of the registry, called through the call pipeline,
and any `CallableTool`. Build it with `OrchestratorTool.builder`::

    tool = OrchestratorTool.builder("shop").short_description("Query the shop.").tool(get_user).build()
    result = await tool.execute("get_user 7 | jq -r .name")

The engine is bashkit, in one child process for each running script.
"""

from typing import TYPE_CHECKING

from pegboard.models import ExpectedCall, ScriptAnalysis
from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.scripts.commands import CallableTool, CallOrigin, ScriptCommand
    from pegboard.scripts.execution import Limits, MadeCall, ScriptResult
    from pegboard.scripts.orchestrator import OrchestratorTool, OrchestratorToolBuilder
    from pegboard.scripts.record import script_of
    from pegboard.scripts.runner import NAME, ScriptRunner, ScriptSource
    from pegboard.scripts.sandbox import Sandboxes

__all__ = [
    "NAME",
    "CallOrigin",
    "CallableTool",
    "ExpectedCall",
    "Limits",
    "MadeCall",
    "OrchestratorTool",
    "OrchestratorToolBuilder",
    "Sandboxes",
    "ScriptAnalysis",
    "ScriptCommand",
    "ScriptResult",
    "ScriptRunner",
    "ScriptSource",
    "script_of",
]

_ON_DEMAND = {
    "CallOrigin": "commands",
    "CallableTool": "commands",
    "Limits": "execution",
    "MadeCall": "execution",
    "NAME": "runner",
    "OrchestratorTool": "orchestrator",
    "OrchestratorToolBuilder": "orchestrator",
    "Sandboxes": "sandbox",
    "ScriptCommand": "commands",
    "ScriptResult": "execution",
    "ScriptRunner": "runner",
    "ScriptSource": "runner",
    "script_of": "record",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
