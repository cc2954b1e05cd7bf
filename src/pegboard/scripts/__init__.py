"""Scripts: many tools behind one bash script, in a sandbox.

An `OrchestratorTool` runs scripts whose commands are tools: those of the registry, whose calls take the road that all
calls take, and whatever is a `CallableTool`. Build it with `OrchestratorTool.builder`::

    tool = OrchestratorTool.builder("shop").short_description("Look into the shop.").tool(get_user).build()
    result = await tool.execute("get_user 7 | jq -r .name")

The engine is bashkit, in a child process per running script.
"""

from pegboard.models import ExpectedCall, ScriptAnalysis
from pegboard.scripts.commands import CallableTool, Command, Origin
from pegboard.scripts.execution import Limits, MadeCall, ScriptResult
from pegboard.scripts.orchestrator import OrchestratorTool, OrchestratorToolBuilder
from pegboard.scripts.record import script_of
from pegboard.scripts.runner import NAME, ScriptRunner, ScriptSource
from pegboard.scripts.sandbox import Sandboxes

__all__ = [
    "NAME",
    "CallableTool",
    "Command",
    "ExpectedCall",
    "Limits",
    "MadeCall",
    "OrchestratorTool",
    "OrchestratorToolBuilder",
    "Origin",
    "Sandboxes",
    "ScriptAnalysis",
    "ScriptResult",
    "ScriptRunner",
    "ScriptSource",
    "script_of",
]
