"""Servers of the configuration: added, changed and removed while Pegboard runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from servers import HOSTILE_SERVER, SDK_SERVER, call, run, start_of

from pegboard.models import (
    CallEvent,
    Finished,
    Problem,
    Progress,
    ServerConfig,
    ServerState,
    ToolCall,
    ToolSpec,
)
from pegboard.models.approval import Approval
from pegboard.models.rule import Rule
from pegboard.runtime import Runtime


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    """Yield a runtime without servers."""
    async with Runtime.from_environment() as runtime:
        runtime.tools.scan()
        yield runtime


def entry(*arguments: str, script: Path = SDK_SERVER, **keys: object) -> dict[str, object]:
    """Return the configuration of a server that runs a script."""
    command, *args = start_of(script, *arguments)
    return {"command": command, "args": args, **keys}


async def until(runtime: Runtime, true: Callable[[], object]) -> None:
    """Wait until a condition is true, which depends on the servers."""
    changed, loop = asyncio.Event(), asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(changed.set)

    ignore = runtime.servers.listen(wake)
    async with asyncio.timeout(60):
        while not true():
            await changed.wait()
            changed.clear()
    ignore()


async def connect(runtime: Runtime, entry: dict[str, object]) -> tuple[str, ...]:
    """Add the server `peer` and wait until it is connected; return the notes about its credentials."""
    added = await runtime.servers.configured.add("peer", entry)
    assert not isinstance(added, Problem), added
    await runtime.servers.connect("peer")
    return added


def config() -> Path:
    """Return the configuration file."""
    return Path(os.environ["PEGBOARD_CONFIG"])


async def apply(runtime: Runtime) -> Problem | None:
    """Apply all changes of the servers."""
    changes = await asyncio.to_thread(runtime.servers.configured.changes)
    assert not isinstance(changes, Problem), changes
    return await runtime.servers.configured.apply(changes)


@pytest.mark.promise("MCP-1", "MCP-3")
async def test_an_added_server_is_used_without_a_restart_and_a_removed_one_ends(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        assert await connect(runtime, entry()) == ()
        assert (await run(runtime, "peer.add", a=1, b=2)).data == {"total": 3}
        assert runtime.servers.configured.is_removable("peer")
        assert await runtime.servers.configured.remove("peer") is None
    assert runtime.servers.all() == ()
    assert "peer" not in config().read_text()
    result = await run(runtime, "peer.add", a=1, b=2)
    assert result.error is not None
    assert result.error.code == "tool_not_found"
    assert isinstance(await runtime.servers.configured.remove("peer"), Problem)


@pytest.mark.promise("MCP-1", "MCP-3")
async def test_a_server_that_another_program_has_removed_from_the_file_ends_when_it_is_removed(
    runtime: Runtime,
) -> None:
    async with asyncio.timeout(60):
        await connect(runtime, entry())
        config().write_text("# none\n")
        assert await runtime.servers.configured.remove("peer") is None
    assert runtime.servers.all() == ()
    assert config().read_text() == "# none\n"


@pytest.mark.promise("MCP-1", "MCP-8")
async def test_a_server_that_is_removed_during_a_call_ends_with_the_call(runtime: Runtime, tmp_path: Path) -> None:
    asleep, ended = asyncio.Event(), tmp_path / "ended"
    events: list[CallEvent] = []

    async def follow() -> None:
        async for event in runtime.call(call("peer.sleep", 50.0, file=str(ended))):
            events.append(event)
            if isinstance(event, Progress):
                asleep.set()

    async with asyncio.timeout(60):
        await connect(runtime, entry())
        running = asyncio.create_task(follow())
        await asleep.wait()
        assert await runtime.servers.configured.remove("peer") is None
        await running
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.result.error is not None
    assert last.result.error.message.startswith("The connection to the server peer ended during the call.")


@pytest.mark.promise("MCP-1", "MCP-8")
async def test_requests_fail_immediately_while_their_server_is_removed(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        await connect(runtime, entry("stays", script=HOSTILE_SERVER))
        removal = asyncio.create_task(runtime.servers.configured.remove("peer"))
        await until(runtime, lambda: not runtime.servers.all())
        assert not removal.done(), "the process ignores its end"
        assert isinstance(await runtime.servers.resources("peer"), Problem)
        assert [change async for change in runtime.servers.follow("peer", "memo://one")] == []
        assert await removal is None


@pytest.mark.promise("MCP-1")
async def test_requests_that_wait_for_a_connection_fail_when_the_server_is_removed(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        await runtime.servers.configured.add("peer", entry("silent", script=HOSTILE_SERVER, timeout=3600.0))
        waiting = [
            asyncio.create_task(runtime.servers.resources("peer")),
            asyncio.create_task(runtime.servers.connect("peer")),
        ]
        await asyncio.sleep(0)
        assert await runtime.servers.configured.remove("peer") is None
        problem, _ = await asyncio.gather(*waiting)
    assert isinstance(problem, Problem)


@pytest.mark.promise("MCP-1")
async def test_calls_wait_while_their_server_is_started_again(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        await connect(runtime, entry())
        config().write_text(config().read_text() + "timeout = 50.0\n")
        applied = asyncio.create_task(apply(runtime))
        failures = []
        while not applied.done():
            result = await run(runtime, "peer.echo", message="x")
            failures += [result.error.message] if result.error is not None else []
        assert applied.result() is None
    assert len(failures) < 2, "only a call that runs at the moment of the change"
    assert all("ended during the call" in message for message in failures)


@pytest.mark.promise("MCP-1", "MCP-3")
async def test_a_change_is_completed_although_its_command_is_cancelled(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        await connect(runtime, entry("stays", script=HOSTILE_SERVER))
        old = runtime.servers.config("peer")
        keys = "".join(f"{key} = {value!r}\n" for key, value in entry().items())
        config().write_text(f"[mcp.servers.peer]\n{keys}")
        applied = asyncio.create_task(apply(runtime))
        await until(runtime, lambda: runtime.servers.config("peer") != old)
        applied.cancel()
        await runtime.servers.connect("peer")
        async with runtime.servers.configured.changing:
            assert [status.state for status in runtime.servers.all()] == [ServerState.READY]
        assert await asyncio.to_thread(runtime.servers.configured.changes) == ()


@pytest.mark.promise("SEC-2", "MCP-8")
@pytest.mark.parametrize("is_removed", [True, False])
async def test_an_approval_for_a_session_does_not_cover_another_server_of_the_same_name(
    runtime: Runtime, is_removed: bool
) -> None:
    class Person:
        async def decide(self, _spec: ToolSpec, _call: ToolCall) -> Approval:
            return Approval(answer="session", rule=Rule(allow=("peer.*",)))

    runtime.rules.approve_with(Person())
    of_model = ToolCall(name="peer.peek", source="ask", session="s")
    async with asyncio.timeout(60):
        await connect(runtime, entry())
        assert (await runtime.result(of_model))[1].ok
        verdict = await asyncio.to_thread(runtime.rules.verdict, of_model)
        assert verdict is not None
        assert verdict.action == "allow"
        if is_removed:
            await runtime.servers.configured.remove("peer")
            await runtime.servers.configured.add("peer", entry(env={"OTHER": "1"}))
        else:
            config().write_text(config().read_text() + 'env = { OTHER = "1" }\n')
            assert await apply(runtime) is None
        await runtime.servers.connect("peer")
        verdict = await asyncio.to_thread(runtime.rules.verdict, of_model)
    assert verdict is not None
    assert verdict.action == "ask"


@pytest.mark.promise("SEC-2", "MCP-8")
async def test_an_approval_that_was_pending_when_its_server_changed_runs_nothing(runtime: Runtime) -> None:
    asked, approved = asyncio.Event(), asyncio.Event()

    class Person:
        async def decide(self, _spec: ToolSpec, _call: ToolCall) -> Approval:
            asked.set()
            await approved.wait()
            return Approval(answer="session", rule=Rule(allow=("peer.*",)))

    runtime.rules.approve_with(Person())
    of_model = ToolCall(name="peer.peek", source="ask", session="s")
    async with asyncio.timeout(60):
        await connect(runtime, entry())
        waiting = asyncio.create_task(runtime.result(of_model))
        await asked.wait()
        config().write_text(config().read_text() + 'env = { OTHER = "1" }\n')
        assert await apply(runtime) is None
        await runtime.servers.connect("peer")
        approved.set()
        _, result = await waiting
        verdict = await asyncio.to_thread(runtime.rules.verdict, of_model)
    assert result.error is not None
    assert result.error.detail == "changed"
    assert verdict is not None
    assert verdict.action == "ask"


@pytest.mark.promise("MCP-3")
async def test_nothing_is_written_while_the_configuration_cannot_be_used(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        await runtime.servers.configured.add("peer", entry())
        before = "[tools]\nallow = 3\n" + config().read_text()
        config().write_text(before)
        added = await runtime.servers.configured.add("other", entry())
        removed = await runtime.servers.configured.remove("peer")
    for problem in (added, removed):
        assert isinstance(problem, Problem)
        assert "tools.allow" in problem.message
    assert config().read_text() == before
    assert [status.name for status in runtime.servers.all()] == ["peer"]


@pytest.mark.promise("MCP-3")
async def test_the_name_of_a_server_of_this_run_is_taken(runtime: Runtime) -> None:
    command, *args = start_of(SDK_SERVER)
    runtime.servers.add(ServerConfig(name="peer", command=command, args=tuple(args), saved=False))
    async with asyncio.timeout(60):
        await runtime.servers.connect("peer")
        problem = await runtime.servers.configured.add("peer", entry())
    assert isinstance(problem, Problem)
    assert "exists; choose another name" in problem.message


@pytest.mark.promise("MCP-3")
async def test_a_new_server_is_listed_by_its_name_before_those_of_this_run(runtime: Runtime) -> None:
    runtime.servers.add(ServerConfig(name="any", command="true", saved=False, enabled=False))
    async with asyncio.timeout(60):
        for name in ("second", "first"):
            await runtime.servers.configured.add(name, {"command": "true", "enabled": False})
    assert [status.name for status in runtime.servers.all()] == ["first", "second", "any"]


@pytest.mark.promise("MCP-3")
async def test_the_place_of_a_server_is_that_in_the_file_now(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        for name in ("first", "second"):
            await runtime.servers.configured.add(name, {"command": "true", "enabled": False})
        await runtime.servers.configured.remove("first")
    assert await asyncio.to_thread(runtime.servers.configured.place, "second") == (str(config()), 2)
    assert await asyncio.to_thread(runtime.servers.configured.place, "first") is None


@pytest.mark.promise("MCP-1")
async def test_a_changed_server_is_started_again_only_when_the_change_is_applied(runtime: Runtime) -> None:
    async with asyncio.timeout(60):
        await connect(runtime, entry())
        config().write_text(config().read_text() + 'tools = ["add"]\n')
        change = await runtime.reload()
        assert change.servers == ("peer",)
        assert not change.restart
        assert (await run(runtime, "peer.echo", message="x")).ok
        assert await apply(runtime) is None
        await runtime.servers.connect("peer")
        assert [spec.name for spec in runtime.tools.all() if spec.pack == "peer"] == ["peer.add"]
        config().write_text(config().read_text() + "enabled = false\n")
        assert await apply(runtime) is None
        assert [status.state for status in runtime.servers.all()] == [ServerState.DISABLED]
        assert not [spec for spec in runtime.tools.all() if spec.pack == "peer"]
        assert await asyncio.to_thread(runtime.servers.configured.changes) == ()


@pytest.mark.promise("MCP-3", "CFG-1")
async def test_a_new_server_with_a_wrong_limit_is_not_started(runtime: Runtime, tmp_path: Path) -> None:
    started = tmp_path / "started"
    config().write_text(f'[mcp.servers.peer]\ncommand = "touch"\nargs = ["{started}"]\ntools = 3\n')
    await runtime.reload()
    assert await apply(runtime) is None
    async with asyncio.timeout(60):
        await runtime.servers.connect("peer")
    (status,) = runtime.servers.all()
    assert status.state is ServerState.FAILED
    assert "mcp.servers.peer.tools" in status.reason
    assert not started.exists()


@pytest.mark.promise("MCP-3", "MCP-8")
async def test_changes_after_those_that_the_user_saw_are_not_applied(runtime: Runtime, tmp_path: Path) -> None:
    config().write_text('[mcp.servers.peer]\ncommand = "true"\n')
    seen = await asyncio.to_thread(runtime.servers.configured.changes)
    assert not isinstance(seen, Problem)
    evil = tmp_path / "evil"
    config().write_text(f'[mcp.servers.peer]\ncommand = "touch"\nargs = ["{evil}"]\n')
    problem = await runtime.servers.configured.apply(seen)
    assert problem is not None
    assert "changed again" in problem.message
    assert runtime.servers.all() == ()
    assert not evil.exists()


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(
    ("name", "keys", "reason"),
    [
        ("two words", {"command": "x"}, "A name has letters"),
        ("fs", {"command": "x"}, "A pack named fs exists"),
        ("peer", {"url": "ftp://x"}, "Its URL doesn't start with http"),
        ("peer", {"command": "x", "cwd": 3}, "`cwd`"),
        ("there", {"command": "x"}, "exists"),
    ],
)
async def test_a_server_that_cannot_be_added_is_a_problem_and_changes_nothing(
    runtime: Runtime, name: str, keys: dict[str, object], reason: str
) -> None:
    config().write_text('[mcp.servers.there]\ncommand = "true"\nenabled = false\n')
    assert await apply(runtime) is None
    before = config().read_text()
    problem = await runtime.servers.configured.add(name, keys)
    assert isinstance(problem, Problem)
    assert reason in problem.message
    assert config().read_text() == before


@pytest.mark.promise("MCP-3")
async def test_rules_that_already_cover_an_added_server_are_named(runtime: Runtime) -> None:
    rules = config().with_name("approvals.toml")
    rules.write_text('[[rule]]\nallow = "peer.*"\n\n[[rule]]\nallow = "other.*"\n\n[[rule]]\ndeny = "peer.drop"\n')
    notes = await connect(runtime, entry())
    assert notes == ("warning: approvals.toml has rules that cover peer: allow peer.*.",)


@pytest.mark.promise("MCP-3")
async def test_a_home_folder_that_cannot_be_searched_has_no_servers_of_other_clients(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / ("x" * 300)))
    assert await asyncio.to_thread(runtime.servers.configured.of_clients) == ()


async def test_reading_the_configuration_again_waits_for_a_change_of_servers(runtime: Runtime) -> None:
    for name in ("one", "two", "three"):
        added, _ = await asyncio.gather(runtime.servers.configured.add(name, entry()), runtime.reload())
        assert not isinstance(added, Problem)
        assert await asyncio.to_thread(runtime.servers.configured.changes) == ()


@pytest.mark.promise("MCP-3")
async def test_credentials_of_an_added_server_become_secrets(runtime: Runtime) -> None:
    token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
    async with asyncio.timeout(60):
        notes = await connect(runtime, entry(env={"API_TOKEN": token}))
        shown = await run(runtime, "peer.environment")
    assert isinstance(notes, tuple)
    assert "API_TOKEN is stored as the secret API_TOKEN" in notes[0]
    assert token not in config().read_text()
    assert "API_TOKEN" in str(shown.data)
    assert token not in str(shown.data)
