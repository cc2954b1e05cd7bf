"""Servers of other authors: all their tools are listed, open as forms and run.

They are found in the folder that `PEGBOARD_REAL_SERVERS` names, or on the PATH; each one that is missing is skipped::

    npm install --prefix DIR @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem
    python -m venv DIR/venv
    DIR/venv/bin/pip install mcp-server-time mcp-server-git mcp-server-fetch
    python -m venv DIR/old
    DIR/old/bin/pip install mcp-server-sqlite 'mcp<2'
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pygit2
import pytest

from pegboard.forms import Form
from pegboard.models import ServerConfig, ToolCall, ToolResult, ToolSpec
from pegboard.models.server import Elicitation, ElicitationAnswer, SamplingRequest
from pegboard.runtime import Runtime

Start = Callable[..., Any]

FOLDER = Path(os.environ.get("PEGBOARD_REAL_SERVERS", "/nonexistent"))  # tests don't see this variable
INSTALL = "install it as the module's docstring says"
UNRUN = frozenset({
    "everything.trigger-long-running-operation", "everything.simulate-research-query", "everything.get-env",
    "everything.gzip-file-as-resource", "everything.toggle-subscriber-updates",
    "everything.toggle-simulated-logging",
})  # fmt: skip
"""Tools that take long, need the internet, or run until the connection ends."""


class Agreeable:
    """A person who accepts everything, with the form's defaults."""

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        return ElicitationAnswer(action="accept", content={"name": "Ada"})

    async def log_in(self, server: str, url: str) -> bool:
        return False

    async def approve_sampling(self, request: SamplingRequest) -> bool:
        return False


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Return a function that starts an installed server and returns its runtime; skip if it isn't installed."""
    opened: list[Runtime] = []

    async def start(name: str, program: str, *args: str, **config: object) -> Runtime:
        folders = (FOLDER / "node_modules" / ".bin", FOLDER / "venv" / "bin", FOLDER / "old" / "bin")
        path = os.pathsep.join(map(str, folders))
        command = shutil.which(program, path=path) or shutil.which(program)
        if command is None:
            pytest.skip(f"{program} is not installed; {INSTALL}")
        runtime = Runtime.from_environment()
        opened.append(runtime)
        runtime.tools.scan()
        fields = {"name": name, "command": command, "args": args, "timeout": 60.0, **config}
        runtime.servers.add(ServerConfig.model_validate(fields))
        runtime.servers.ask_with(Agreeable())
        await runtime.servers.connect()
        [status] = runtime.servers.all()
        assert status.state == "ready", status
        return runtime

    yield start
    for runtime in opened:
        await runtime.close()


def tools(runtime: Runtime, pack: str) -> list[str]:
    """Return the names of a server's tools, each of which opens as a form that can be read back."""
    specs = [spec for spec in runtime.tools.all() if spec.pack == pack]
    for spec in specs:
        Form(spec.input_schema).faults()
    assert specs
    return [spec.name for spec in specs]


async def call(runtime: Runtime, name: str, **arguments: Any) -> ToolResult:
    """Call a tool."""
    return (await runtime.result(ToolCall(name=name, args=arguments, source="form", timeout=60)))[1]


@pytest.mark.promise("MCP-1", "MCP-4", "MCP-6")
async def test_the_reference_server_lists_opens_and_runs_all_its_tools(start: Start) -> None:
    runtime = await start("everything", "mcp-server-everything")
    names = tools(runtime, "everything")
    assert (await call(runtime, "everything.echo", message="hi")).data == "Echo: hi"
    for name in sorted({*names} - UNRUN):
        spec = next(spec for spec in runtime.tools.all() if spec.name == name)
        form = Form(spec.input_schema)
        form.load(_examples(spec))
        result = await call(runtime, name, **form.arguments())
        assert result.ok or (result.error is not None and result.error.message), name
        assert result.error is None or result.error.code == "execution_error", (name, result.error)
    resources = await runtime.servers.resources("everything")
    assert isinstance(resources, tuple)
    contents = await runtime.servers.read("everything", resources[0].uri)
    assert isinstance(contents, tuple)
    assert contents[0].text
    prompts = await runtime.servers.prompts("everything")
    assert isinstance(prompts, tuple)
    assert prompts


def _examples(spec: ToolSpec) -> dict[str, Any]:
    """Return arguments for the required parameters of a tool."""
    examples = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
    schema: dict[str, Any] = spec.input_schema
    parts = {name: schema["properties"][name] for name in schema.get("required", ())}
    texts = {"uri": "data:text/plain,text"}
    return {
        name: part.get("enum", [examples.get(part.get("type"), texts.get(part.get("format"), "text"))])[0]
        for name, part in parts.items()
    }


@pytest.mark.promise("MCP-1")
async def test_the_filesystem_server_reads_and_writes_files(start: Start, tmp_path: Path) -> None:
    runtime = await start("files", "mcp-server-filesystem", str(tmp_path), roots=(str(tmp_path),))
    assert "files.read_text_file" in tools(runtime, "files")
    file = str(tmp_path / "a.txt")
    assert (await call(runtime, "files.write_file", path=file, content="one\n")).ok
    assert "one" in str((await call(runtime, "files.read_text_file", path=file)).data)
    refused = await call(runtime, "files.read_text_file", path="/etc/passwd")
    assert refused.error is not None
    assert "Access denied" in refused.error.message


@pytest.mark.promise("MCP-1")
async def test_the_time_server_converts_times(start: Start) -> None:
    runtime = await start("clock", "mcp-server-time", "--local-timezone", "UTC")
    assert len(tools(runtime, "clock")) == 2
    result = await call(
        runtime, "clock.convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
    )
    assert result.ok, result.error
    assert "21:00" in str(result.data)


@pytest.mark.promise("MCP-1")
async def test_the_git_server_shows_a_repository(start: Start, tmp_path: Path) -> None:
    pygit2.init_repository(str(tmp_path))
    (tmp_path / "new.txt").write_text("new")
    runtime = await start("repository", "mcp-server-git", "--repository", str(tmp_path))
    tools(runtime, "repository")
    result = await call(runtime, "repository.git_status", repo_path=str(tmp_path))
    assert "new.txt" in str(result.data)


@pytest.mark.promise("MCP-1")
async def test_the_fetch_server_reports_an_address_that_it_cannot_reach(start: Start) -> None:
    runtime = await start("pages", "mcp-server-fetch", "--ignore-robots-txt")
    assert tools(runtime, "pages") == ["pages.fetch"]
    result = await call(runtime, "pages.fetch", url="http://127.0.0.1:9/")
    assert result.error is not None
    assert "127.0.0.1:9" in result.error.message


@pytest.mark.promise("MCP-1")
async def test_the_sqlite_server_runs_queries(start: Start, tmp_path: Path) -> None:
    runtime = await start("database", "mcp-server-sqlite", "--db-path", str(tmp_path / "a.db"))
    tools(runtime, "database")
    assert (await call(runtime, "database.create_table", query="CREATE TABLE t (a INTEGER)")).ok
    assert (await call(runtime, "database.write_query", query="INSERT INTO t VALUES (7)")).ok
    assert "7" in str((await call(runtime, "database.read_query", query="SELECT a FROM t")).data)
