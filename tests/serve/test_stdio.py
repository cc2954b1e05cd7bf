"""`pegboard serve` over stdio, with the client of the official SDK in both protocol versions."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, LoggingMessageNotificationParams, TextContent, ToolListChangedNotification
from processes import descendants, is_alive, until
from serving import MODES, Connect, allow, records

from pegboard.models import Agent

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}

KINDS = """
import ipaddress
from dataclasses import InitVar, dataclass
from datetime import datetime, time, timedelta
from typing import Optional, TypedDict
from pydantic import BaseModel, Field, computed_field
from pegboard.sdk import hints

class User(BaseModel):
    user_id: int = Field(alias="userId")

class Area(BaseModel, extra="forbid"):
    width: float

    @computed_field
    def area(self) -> float:
        return self.width**2

@dataclass
class Job:
    name: str
    seed: InitVar[int]

class Event(TypedDict):
    at: time

""" + "".join(
    f'@hints(read_only=True)\ndef {name}() -> {annotation}:\n    """Return one."""\n    return {value}\n\n'
    for name, annotation, value in (
        ("at", "datetime", "datetime(2024, 1, 2, 3, 4, 5)"),
        ("length", "timedelta", "timedelta(seconds=-5)"),
        ("mean", "float", 'float("nan")'),
        ("means", "list[Optional[float]]", '[1.5, float("inf")]'),
        ("user", "Optional[User]", "User(userId=7)"),
        ("area", "Optional[Area]", "Area(width=2)"),
        ("job", "Optional[Job]", 'Job("a", 3)'),
        ("event", "Optional[Event]", '{"at": time(10, 30)}'),
        ("address", "ipaddress.IPv4Address", 'ipaddress.IPv4Address("1.2.3.4")'),
    )
)


def text(result: Any) -> str:
    """Return the first text of a result."""
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.promise("MCP-2")
async def test_a_client_lists_the_tools_with_their_schemas_and_annotations(connect: Connect) -> None:
    async with connect("--tool-allow", "kit.*") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {f"kit_{name}" for name in ("add", "describe", "write", "talk", "fail", "lie", "wait")}
    add = tools["kit_add"]
    assert add.description == "Add two numbers."
    assert add.input_schema["required"] == ["a", "b"]
    assert add.annotations is not None
    assert add.annotations.read_only_hint is True
    assert add.output_schema is not None
    assert add.output_schema["properties"]["result"] == {"type": "integer"}


@pytest.mark.promise("MCP-2")
async def test_every_provider_accepts_the_names_of_the_tools_and_their_own_names_work_too(
    connect: Connect, write_pack: Callable[[str, str], Path], home: Path
) -> None:
    allow(home, "a*.*")
    long = f"{'long_' * 20}name"
    names = ("b_c", "b", long, f"{long}r")
    write_pack(
        "a.py", "".join(f'def {name}() -> str:\n    """Name itself."""\n    return "{name}"\n' for name in names)
    )
    write_pack("a_b.py", 'def c() -> str:\n    """Name itself."""\n    return "c"\n')
    async with connect("--tool-allow", "a.*,a_b.*") as client:
        offered = [tool.name for tool in (await client.list_tools()).tools]
        for name in offered:
            # the strictest known: 64 characters, of which clients use up to 16 for the server's name
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,48}", name)
        assert len(set(offered)) == 5
        assert "a_b" in offered
        assert "a_b_c" not in offered, "the name of two tools"
        assert {text(await client.call_tool(name, {})) for name in offered} == {"c", *names}
        for name in names:
            assert text(await client.call_tool(f"a.{name}", {})) == name


@pytest.mark.promise("MCP-2")
async def test_results_are_structured_and_repeated_as_text(connect: Connect) -> None:
    async with connect() as client:
        number = await client.call_tool("kit_add", {"a": 2, "b": 3})
        thing = await client.call_tool("kit_describe", {"name": "hook"})
    assert number.structured_content == {"result": 5}
    assert text(number) == "5"
    assert thing.structured_content == {"name": "hook"}
    assert json.loads(text(thing)) == {"name": "hook"}


@pytest.mark.promise("MCP-2", "DSC-4")
async def test_results_of_every_kind_match_their_output_schema(
    connect: Connect, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("kinds.py", KINDS)
    async with connect() as client:
        results = {
            tool.name.removeprefix("kinds_"): await client.call_tool(tool.name, {})
            for tool in (await client.list_tools()).tools
            if tool.name.startswith("kinds_")
        }
    assert {name: text(result) for name, result in results.items() if result.is_error} == {}
    assert {name: (result.structured_content or {}).get("result") for name, result in results.items()} == {
        "at": "2024-01-02T03:04:05",
        "length": "-P0DT5S",
        "mean": "NaN",
        "means": [1.5, "Infinity"],
        "user": {"user_id": 7},
        "area": {"width": 2.0, "area": 4.0},
        "job": {"name": "a"},
        "event": {"at": "10:30:00"},
        "address": "1.2.3.4",
    }


CLASSES = """
from dataclasses import dataclass, field
from typing import TypedDict
from pegboard.sdk import hints

class Place(TypedDict):
    \"\"\"A place.\"\"\"
    city: str

@dataclass
class Tree:
    name: str
    parts: list["Tree"] = field(default_factory=list)

@hints(read_only=True)
def place() -> Place:
    \"\"\"Return one.

    Returns:
        Where it is.
    \"\"\"
    return {"city": "Ulm"}

@hints(read_only=True)
def tree() -> Tree:
    \"\"\"Return one.\"\"\"
    return Tree("a", [Tree("b")])
"""


@pytest.mark.promise("MCP-2", "DSC-4")
async def test_an_object_of_a_class_is_structured_content_itself(
    connect: Connect, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("classes.py", CLASSES)
    async with connect() as client:
        tools = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        place = await client.call_tool("classes_place", {})
        tree = await client.call_tool("classes_tree", {})
    assert place.structured_content == {"city": "Ulm"}
    assert tree.structured_content == {"name": "a", "parts": [{"name": "b", "parts": []}]}
    schema = tools["classes_place"]
    assert schema is not None
    assert {key: schema[key] for key in ("type", "description", "properties", "required")} == {
        "type": "object",
        "description": "Where it is.",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }


async def test_failures_are_results_that_the_model_can_read(connect: Connect) -> None:
    async with connect() as client:
        failed = await client.call_tool("kit_fail", {})
        invalid = await client.call_tool("kit_add", {"a": "two"})
        lie = await client.call_tool("kit_lie", {})
        with pytest.raises(MCPError, match=r"Unknown tool: kit_nothing"):
            await client.call_tool("kit_nothing", {})
    assert failed.is_error
    assert text(failed) == "No such shelf."
    assert failed.structured_content == {"shelf": 4}
    assert invalid.is_error
    assert "b: is required" in text(invalid)
    assert lie.is_error
    assert "doesn't match its output schema" in text(lie)


FAILURES = """
from pegboard.sdk import ToolFailed, hints

@hints(read_only=True)
def count(*, name: str) -> int:
    \"\"\"Count the items of one kind.\"\"\"
    raise ToolFailed("No such item.", data={"known": ["saw"]})

@hints(read_only=True)
def clear() -> None:
    \"\"\"Return nothing.\"\"\"
"""


async def test_a_failure_has_no_structured_content_which_contradicts_the_output_schema(
    connect: Connect, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("shelves.py", FAILURES)
    async with connect() as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        failed = await client.call_tool("shelves_count", {"name": "axe"})
        nothing = await client.call_tool("shelves_clear", {})
    assert failed.is_error
    assert [getattr(block, "text", None) for block in failed.content] == ["No such item.", '{"known":["saw"]}']
    assert (schemas["shelves_count"] is None, failed.structured_content) == (False, None)
    assert (schemas["shelves_clear"], nothing.structured_content, text(nothing)) == (None, None, "null")
    assert schemas["kit_fail"] is None


LARGE = """
from pegboard.sdk import hints

@hints(read_only=True)
def lie() -> list[str]:
    \"\"\"Return something else than declared.\"\"\"
    return ["x" * 2_000_000, 7]

@hints(read_only=True)
def words() -> list[str]:
    \"\"\"Return what is declared.\"\"\"
    return ["x" * 2_000_000]
"""


async def test_a_large_result_that_does_not_match_its_output_schema_reaches_the_client_as_a_failure(
    connect: Connect, write_pack: Callable[[str, str], Path]
) -> None:
    write_pack("large.py", LARGE)
    async with connect() as client:
        await client.list_tools()  # From here on, the client rejects what doesn't match.
        lie = await client.call_tool("large_lie", {})
        right = await client.call_tool("large_words", {})
    assert lie.is_error
    assert "doesn't match its output schema: #2 must be text" in text(lie)
    assert text(lie).endswith('x",7]')
    assert right.structured_content == {"result": ["x" * 2_000_000]}


@pytest.mark.promise("EXE-7", "MCP-2")
async def test_calls_of_unknown_tools_and_of_those_that_are_not_allowed_are_recorded(connect: Connect) -> None:
    async with connect("--tool-allow", "kit.add") as client:
        for name in ("kit.write", "kit.nothing"):
            with pytest.raises(MCPError, match=f"Unknown tool: {name}") as raised:
                await client.call_tool(name, {"file": "a"})
            assert raised.value.code == INVALID_PARAMS
    for name, detail in (("kit.write", "not_allowed"), ("kit.nothing", None)):
        (record,) = records(name)
        assert (record.source, record.args) == ("serve", {"file": "a"})
        assert record.error is not None
        assert (record.error.code, record.error.detail) == ("tool_not_found", detail)


@pytest.mark.promise("ASK-7")
async def test_a_tool_that_changes_something_needs_a_rule_which_the_result_names(
    connect: Connect, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    async with connect() as client:
        denied = await client.call_tool("kit_write", {"file": str(file)})
        assert denied.is_error
        assert 'allow = "kit.write"' in text(denied)
        assert str(home / "approvals.toml") in text(denied)
        assert not file.exists()
        (home / "approvals.toml").write_text(
            text(denied).partition("[[rule]]")[1] + text(denied).partition("[[rule]]")[2].partition("A `where`")[0]
        )
        allowed = await client.call_tool("kit_write", {"file": str(file)})
    assert not allowed.is_error
    assert file.read_text() == "written"


async def test_a_rule_that_denies_a_call_does_not_lead_to_another(connect: Connect, home: Path) -> None:
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "kit.add"\nscope = "mcp"\n')
    async with connect() as client:
        denied = await client.call_tool("kit_add", {"a": 1, "b": 1})
    assert denied.is_error
    assert "[[rule]]" not in text(denied)


@pytest.mark.promise("MCP-2")
async def test_calls_are_recorded_with_their_client(connect: Connect) -> None:
    async with connect(is_child=True) as client:
        await client.call_tool("kit_add", {"a": 1, "b": 1})
        await client.call_tool("kit_describe", {"name": "x"})
    done = records()
    assert {record.tool for record in done} == {"kit.add", "kit.describe"}
    assert {record.source for record in done} == {"serve"}
    sessions = {record.session for record in done}
    assert len(sessions) == 1
    agent = Agent.of_session(sessions.pop())
    assert agent is not None
    assert (agent.name, agent.process) == ("mcp", os.getpid())


async def test_output_and_progress_arrive_during_the_call(connect: Connect) -> None:
    logged: list[str] = []
    reported: list[tuple[float, float | None, str | None]] = []

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        logged.append(str(params.data))

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async with connect(logging_callback=on_log, log_level="debug") as client:
        result = await client.call_tool("kit_talk", {}, progress_callback=on_progress)
    assert text(result) == "done"
    assert reported == [(1, 2, "half")]
    assert {"printed", "complained", "logged"} <= set(logged)


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
async def test_a_client_that_sets_a_level_gets_no_messages_below_it(connect: Connect, version: str) -> None:
    logged: list[str] = []

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        logged.append(str(params.data))

    if version == "2025-11-25":  # later clients state it in each request
        async with connect(logging_callback=on_log) as client:
            await client.set_logging_level("warning")
            assert text(await client.call_tool("kit_talk", {})) == "done"
            assert logged == []
            await client.set_logging_level("info")
            await client.call_tool("kit_talk", {})
        assert "logged" in logged


async def test_a_cancelled_call_ends_and_is_recorded_as_cancelled(connect: Connect, tmp_path: Path) -> None:
    file = tmp_path / "file"
    async with connect() as client:
        calling = asyncio.create_task(client.call_tool("kit_wait", {"file": str(file)}))
        await until(file.exists)
        calling.cancel()
        await until(lambda: records("kit.wait"))
        assert text(await client.call_tool("kit_add", {"a": 1, "b": 2})) == "3"
    (record,) = records("kit.wait")
    assert record.error is not None
    assert record.error.detail == "cancelled"


async def test_a_client_reads_nothing_after_the_working_directory_was_deleted(connect: Connect, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    (folder / "a.txt").write_text("hello")
    async with connect(cwd=folder) as client:
        assert text(await client.call_tool("fs_read_file", {"path": "a.txt"})) == "hello"
        shutil.rmtree(folder)
        for path in ("a.txt", "etc/hostname", "/etc/hostname", str(folder / "a.txt")):
            result = await client.call_tool("fs_read_file", {"path": path})
            assert result.is_error
            assert "The working directory no longer exists." in text(result)
        assert text(await client.call_tool("kit_add", {"a": 1, "b": 2})) == "3"


async def test_a_client_learns_about_a_new_tool(
    connect: Connect, version: str, write_pack: Callable[[str, str], Path]
) -> None:
    changed = asyncio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    new = 'from pegboard.sdk import hints\n\ndef fresh() -> str:\n    """Be new."""\n    return "new"\n'
    async with asyncio.timeout(60), connect("--tool-allow", "kit.*,fresh.*", message_handler=on_message) as client:
        before = await client.list_tools()
        if MODES[version] == "legacy":
            write_pack("fresh.py", new)
            await changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as events:
                write_pack("fresh.py", new)
                await anext(aiter(events))
        after = await client.list_tools(cache_mode="refresh")
    assert {tool.name for tool in after.tools} - {tool.name for tool in before.tools} == {"fresh_fresh"}


async def test_a_long_list_has_pages(connect: Connect, write_pack: Callable[[str, str], Path]) -> None:
    functions = (f'def f{number}() -> None:\n    """Do nothing."""\n' for number in range(700))
    write_pack("many.py", "\n".join(functions))
    names: list[str] = []
    async with connect("--tool-allow", "many.*") as client:
        cursor = None
        pages = 0
        while cursor is not None or not pages:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor, pages = page.next_cursor, pages + 1
        with pytest.raises(MCPError, match="cursor is invalid"):
            await client.list_tools(cursor="nonsense!")
    assert pages == 2
    assert sorted(names) == sorted(f"many_f{number}" for number in range(700))


async def test_scripts_are_a_tool_when_they_are_offered(connect: Connect, home: Path) -> None:
    (home / "config.toml").write_text("[scripts]\noffer = true\n")
    allow(home, "script.run")
    async with connect() as client:
        result = await client.call_tool("script_run", {"commands": "kit.add --a 2 --b 3"})
    assert result.structured_content is not None
    assert result.structured_content["stdout"].strip() == "5"
    assert {record.tool: record.parent is not None for record in records()} == {"script.run": False, "kit.add": True}


class Raw:
    """A client that writes and reads lines.

    Args:
        command: Starts the server.
    """

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def send(self, message: object) -> None:
        """Send a message, or a line as it is."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        """Read a message."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def greet(self) -> None:
        """Begin a session."""
        self.send(HELLO)
        assert self.read()["result"]["protocolVersion"] == "2025-11-25"
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: object) -> None:
        """Request a call."""
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})


@pytest.fixture
def raw(command: list[str]) -> Any:
    """Return a raw client; end its server after the test."""
    client = Raw(command)
    yield client
    client.process.kill()
    client.process.wait()
    for pipe in (client.process.stdin, client.process.stdout, client.process.stderr):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()


def test_lines_that_are_not_messages_are_answered_with_errors(raw: Raw) -> None:
    raw.greet()
    raw.send(b"nonsense")
    assert raw.read()["error"]["code"] == -32700
    raw.send([{"jsonrpc": "2.0", "id": 5, "method": "ping"}])
    assert raw.read()["error"]["code"] == -32600
    raw.send(b"")
    raw.send(b'{"x": "' + b"y" * (33 * 2**20) + b'"}')
    assert "longer than" in raw.read()["error"]["message"]
    raw.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    assert raw.read() == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"[" * 300 + b"]" * 300, "can't be read: it is nested too deeply"),
        (b"9" * 5000, "can't be read: it has a number with too many digits"),
        (b'"\\ud800"', "can't be read: it has half a character"),
        (b'"\xff"', "can't be read: it is not UTF-8"),
        (b'"' + b"y" * (33 * 2**20) + b'"', "is longer than 33554432 bytes"),
        (b"nonsense", "This is not JSON"),
    ],
    ids=["deep", "digits", "half a character", "bytes", "long", "not JSON"],
)
def test_a_request_that_cannot_be_read_is_answered_by_its_id_with_the_reason(
    raw: Raw, value: bytes, reason: str
) -> None:
    raw.greet()
    for id_ in (2, "two"):
        number = json.dumps(id_).encode()
        raw.send(b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"x":%s}}' % (number, value))
        raw.send(b'{"method":"tools/call","params":{"x":%s},"jsonrpc":"2.0","id":%s}' % (value, number))
        for answer in (raw.read(), raw.read()):
            assert answer["id"] == id_
            assert reason in answer["error"]["message"]
    raw.send(b'{"jsonrpc":"2.0","id":3,"result":%s}' % value)
    assert raw.read()["id"] is None
    raw.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    assert raw.read() == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize("id_", [None, 1.5, True, []])
def test_a_request_with_an_id_of_another_type_is_answered_with_an_error(raw: Raw, id_: object) -> None:
    raw.greet()
    raw.send({"jsonrpc": "2.0", "method": "ping"})
    raw.send({"jsonrpc": "2.0", "id": id_, "method": "ping"})
    raw.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    answer = raw.read()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "string or an integer" in answer["error"]["message"]
    assert raw.read() == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_only_the_protocol_is_on_stdout(raw: Raw) -> None:
    raw.greet()
    raw.call("kit.talk")
    message = raw.read()
    while message.get("id") != 2:
        assert message["method"] in ("notifications/message", "notifications/tools/list_changed")
        message = raw.read()
    assert message["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("end", ["eof", "SIGTERM", "SIGINT"])
async def test_the_server_ends_with_its_workers(raw: Raw, end: str, tmp_path: Path) -> None:
    raw.greet()
    raw.call("kit.wait", file=str(tmp_path / "file"))
    await until((tmp_path / "file").exists)
    started = descendants(raw.process.pid)
    assert started
    if end == "eof":
        assert raw.process.stdin is not None
        raw.process.stdin.close()
    else:
        raw.process.send_signal(signal.Signals[end])
    code = await asyncio.to_thread(raw.process.wait, 20)
    assert code == {"eof": 0, "SIGTERM": 143, "SIGINT": 130}[end]
    await until(lambda: not any(map(is_alive, started)))
    (record,) = records("kit.wait")
    assert record.error is not None
    assert record.error.detail == "cancelled"


async def test_the_server_ends_when_its_client_is_killed(command: list[str], tmp_path: Path) -> None:
    params = {"name": "kit.wait", "arguments": {"file": str(tmp_path / "file")}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    client = tmp_path / "client.py"
    client.write_text(
        "import json, subprocess, time\n"
        f"server = subprocess.Popen({command!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"for message in ({HELLO!r}, {call!r}):\n"
        "    server.stdin.write(json.dumps(message).encode() + b'\\n')\n"
        "    server.stdin.flush()\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, str(client)])  # noqa: ASYNC220 - it starts soon
    try:
        await until((tmp_path / "file").exists)
        started = descendants(process.pid)
    finally:
        process.kill()
        process.wait()
    await until(lambda: not any(map(is_alive, started)))
    (record,) = records("kit.wait")
    assert record.error is not None
    assert record.error.detail == "cancelled"
