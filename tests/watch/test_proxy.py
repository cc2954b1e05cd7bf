"""The stdio proxy: bytes, processes, and the record."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters, stdio_client
from processes import command_of, descendants, is_alive
from servers import SDK_SERVER, start_of
from watched import PLAIN_SERVER, PROGRAM, Watched, eventually, recorded, records, result_of

from pegboard.models import Agent

MESSAGES = [
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"a":1e400}}}',
    b'{"id":1,"method":"tools\\/call"}',
    b'{"id":1,"id":1,"method":"tools/call","method":"ping"}',
    b'[{"id":1,"method":"tools/call"},{"id":1,"method":"tools/call"},3]',
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"content":"x","isError":1,"structuredContent":[[]]}}',
    b'{"jsonrpc":"2.0","id":null,"error":3}',
    b'{"method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"method":"initialize","params":{"clientInfo":{"name":3}}}',
    b'{"method":"initialize","params":[1]}',
    b'{"id":2,"method":"tools/call","params":{"name":["x"],"arguments":"y"}}',
    b'{"id":1,"result":{"tools":[{"name":"say","inputSchema":{"$ref":"#"}},7,{"name":""}]}}',
    b"[" * 5000 + b"tools/call" + b"]" * 5000,
    b'\xff\xfe{"tools/call"',
    b"",
    b"\r",
    b"{",
]


@pytest.mark.promise("WAT-1")
def test_any_bytes_pass_unchanged_in_both_directions() -> None:
    piece = st.one_of(st.sampled_from(MESSAGES), st.binary(max_size=300), st.text(max_size=100).map(str.encode))
    number = 0
    with Watched("cat") as watched:

        @settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(piece, max_size=8), st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
        def check(pieces: list[bytes], end: bytes) -> None:
            nonlocal number
            number += 1
            mark = b"\nend %d\n" % number
            sent = end.join(pieces) + mark
            watched.send(sent)
            seen = b""
            while not seen.endswith(mark):
                seen += watched.read()
            assert seen == sent

        check()
        assert watched.close() == 0


@pytest.mark.promise("WAT-1")
def test_a_line_of_100_mb_passes_with_bounded_memory() -> None:
    line = b'{"id":5,"method":"tools/call","params":{"x":"' + b"y" * 100_000_000 + b'"}}\n'
    with Watched("cat") as watched, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(watched.send, line)
        size, end = 0, b""
        while not end.endswith(b"\n"):
            end = watched.read(2**20)
            size += len(end)
        sending.result()
        assert size == len(line)
        status = Path(f"/proc/{watched.process.pid}/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0])
        assert peak < 150_000  # kB
        watched.close()
    assert "too long" in str(result_of(recorded(1)[0]).meta.warnings)


@pytest.mark.promise("WAT-1", "WAT-4")
def test_a_call_that_is_too_long_has_its_own_id_wherever_that_is(home: Path) -> None:
    arguments: list[dict[str, Any]] = [{}, {"id": "42"}]
    long = [
        json.dumps({"method": "tools/call", "params": {"name": "say", "arguments": {**more, "text": "x" * 17 * 2**20}}})
        .removesuffix("}")
        .encode()
        + b', "jsonrpc": "2.0", "id": %d}\n' % number
        for number, more in enumerate(arguments, 7)
    ]
    with Watched() as watched:
        for number, message in enumerate(long, 7):
            watched.send(message)
            assert watched.receive()["id"] == number
        (home / "approvals.toml").write_text('[[rule]]\nask = "zzz.*"\n')
        for number, message in enumerate(long, 7):
            watched.send(message, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            rejected = watched.receive()
            assert rejected["id"] == number
            assert "too long to be checked" in rejected["error"]["message"]
            assert watched.receive()["id"] == 1
        watched.close()
    assert [(one.tool, one.ok) for one in recorded(2)] == [("plain.unknown", True)] * 2


@pytest.mark.promise("WAT-1")
def test_a_long_response_ends_its_own_call_whatever_ids_are_in_its_data(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import json, sys\n"
        "slow, big = (json.loads(sys.stdin.readline()) for _ in range(2))\n"
        "rows = json.dumps([{'id': slow['id'], 'method': 'x', 'text': 'y' * (17 * 2**20)}])\n"
        'print(\'{"result":{"structuredContent":{"rows":%s},"content":[]},"jsonrpc":"2.0","id":%d}\'\n'
        "    % (rows, big['id']))\n"
        "result = {'isError': True, 'content': [{'type': 'text', 'text': 'failed'}]}\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': slow['id'], 'result': result}), flush=True)\n"
    )
    with Watched(sys.executable, "-S", str(server)) as watched:
        watched.call(1, "slow")
        watched.call(2, "big")
        assert len(watched.line()) > 17 * 2**20
        assert watched.receive()["id"] == 1
        watched.close()
    ends = {one.tool: result_of(one) for one in recorded(2)}
    assert ends["plain.big"].ok
    assert "too long" in str(ends["plain.big"].meta.warnings)
    assert ends["plain.slow"].error is not None
    assert ends["plain.slow"].error.message == "failed"


@pytest.mark.promise("WAT-1", "WAT-5")
def test_calls_are_recorded_with_agent_server_result_and_duration() -> None:
    with Watched() as watched:
        watched.initialize()
        watched.call(1, "say", text="hello", seconds=0.05)
        assert watched.receive()["result"]["content"][0]["text"] == "hello"
        watched.call("1", "fail", text="broken")
        watched.receive()
        watched.close()
    failed, said = recorded(2)
    assert (said.tool, said.args, said.source, said.ok) == (
        "plain.say",
        {"text": "hello", "seconds": 0.05},
        "watch",
        True,
    )
    assert 50 <= said.duration_ms < 5000
    assert result_of(said).data == "hello"
    assert failed.error is not None
    assert failed.error.message == "broken"
    agent = Agent.of_session(said.session)
    assert agent is not None
    assert (agent.name, agent.version, agent.process) == ("tester", "7", os.getpid())
    assert agent == Agent.of_session(failed.session)


@pytest.mark.promise("WAT-5")
def test_connections_of_a_client_are_one_agent_without_proc_too(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Agent.connected(1)
    monkeypatch.setattr("pegboard.models.agent._PROC", "/nowhere")  # macOS has none
    found = Agent.connected(1)
    difference = datetime.fromisoformat(found.started) - datetime.fromisoformat(known.started)
    assert abs(difference) <= timedelta(seconds=1), "`ps` rounds"
    assert Agent.connected(2**31 - 1).started, "a process that has ended"


@pytest.mark.promise("WAT-5")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @acme/server-files@1.2 .", "server-files"),
        ("uvx --from git+https://example.com/a/b server-git==1.2", "server-git"),
        ("uvx --some-option https://example.com/a server-git", "server-git"),
        ("docker run -i --rm -e TOKEN=x -t localhost:5000/acme/hub:1.2", "hub"),
        ("python3.12 -m git_server", "git_server"),
        ("python -mgit_server --port 1", "git_server"),
        ("env -u X TOKEN=a npx -y server-files", "server-files"),
        ("npx", "npx"),
        ("my-server --stdio", "my-server"),
    ],
)
def test_a_server_without_a_name_has_that_of_its_package_or_its_program(
    command: str, name: str, tmp_path: Path
) -> None:
    program, *args = command.split()
    runner = tmp_path / program
    runner.write_text(f"#!/bin/sh\nexec {sys.executable} -S {PLAIN_SERVER}\n")
    runner.chmod(0o700)
    with Watched(str(runner), *args, name="") as watched:
        watched.initialize()
        watched.call(1, "say", text="hello")
        watched.receive()
        watched.close()
    assert recorded(1)[0].tool == f"{name}.say"


@pytest.mark.promise("WAT-1")
def test_a_call_that_runs_as_a_task_is_recorded_with_its_later_result_or_as_unknown() -> None:
    with Watched() as watched:
        watched.initialize()

        def send(id_: int, method: str, **params: object) -> None:
            watched.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
            watched.receive()

        for id_, tool in enumerate(("say", "fail", "delete", "later", "large")):
            send(id_, "tools/call", name=tool, arguments={}, task={"ttl": 60000})
        send(11, "tasks/result", taskId="say")
        send(12, "tasks/result", taskId="fail")
        send(13, "tasks/cancel", taskId="delete")
        send(14, "tasks/get", taskId="later")
        assert watched.receive()["result"]["status"] == "working"
        watched.close()
    by_tool = {record.tool: record for record in recorded(5)}
    assert result_of(by_tool["plain.say"]).data == "late"
    failed, cancelled, unknown = (by_tool[f"plain.{tool}"].error for tool in ("fail", "delete", "large"))
    assert failed is not None
    assert failed.message == "late"
    assert cancelled is not None
    assert (cancelled.message, cancelled.detail) == ("The task was cancelled.", "cancelled")
    assert unknown is not None
    assert "outcome is unknown" in unknown.message
    assert by_tool["plain.later"].ok
    assert "didn't ask for it" in str(result_of(by_tool["plain.later"]).meta.warnings)


@pytest.mark.promise("WAT-1")
def test_images_beside_structured_content_are_recorded_unless_they_are_too_large() -> None:
    with Watched() as watched:
        watched.initialize()
        for number, name, image in ((1, "say", "iVBO"), (2, "fail", "iVBO"), (3, "say", "x" * 2**20)):
            watched.call(number, name, image=image)
            assert watched.receive()["result"]["structuredContent"] == {"dots": 1}
        watched.close()
    large, failed, said = map(result_of, recorded(3))
    assert said.data == failed.data == large.data == {"dots": 1}
    kept = ({"type": "image", "mimeType": "image/png", "data": "iVBO"},)
    assert said.meta.content == failed.meta.content == kept
    assert large.meta.content == ()
    assert "are not recorded because they are too large (1.0 MB)" in str(large.meta.warnings)


@pytest.mark.promise("WAT-1")
def test_messages_that_arrive_in_several_parts_are_recorded_whole() -> None:
    text = "0123456789" * 40_000
    with Watched() as watched:
        watched.initialize()
        watched.call(1, "say", text=text)
        assert watched.receive()["result"]["content"][0]["text"] == text
        watched.close()
    [call] = recorded(1)
    assert call.args == {"text": text}
    assert result_of(call).data == text


@pytest.mark.promise("WAT-1")
async def test_the_official_client_works_through_the_proxy() -> None:
    server = StdioServerParameters(
        command=PROGRAM,
        args=["watch", "--", *start_of(SDK_SERVER)],
        env=dict(os.environ),
    )
    async with Client(stdio_client(server)) as client:
        tools = await client.list_tools()
        assert "add" in {tool.name for tool in tools.tools}
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert result.structured_content == {"total": 5}
    assert recorded(1)[0].args == {"a": 2, "b": 3}


@pytest.mark.promise("WAT-1")
def test_the_server_has_the_environment_of_the_client_and_its_stderr() -> None:
    env = {"PATH": os.environ["PATH"], "ODD": "a=b\nc", "PEGBOARD_STATE_DIR": os.environ["PEGBOARD_STATE_DIR"]}
    with Watched(env=env) as watched:
        watched.call(1, "environment")
        seen = json.loads(watched.receive()["result"]["content"][0]["text"])
    with Watched(env=env, direct=True) as direct:
        direct.call(1, "environment")
        assert seen == json.loads(direct.receive()["result"]["content"][0]["text"])
    with Watched("sh", "-c", "echo problem >&2; exit 7") as watched:
        assert watched.process.wait(20) == 7
        assert watched.process.stderr is not None
        assert watched.process.stderr.read() == b"problem\n"


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", -9), ("kill -TERM $$", -15)])
def test_the_proxy_ends_as_its_server_ends(script: str, code: int) -> None:
    with Watched("sh", "-c", script) as watched:
        assert watched.process.wait(20) == code


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("line", "code"), [("-- cat", 0), ("--hook claude-code", 1)])
def test_a_closed_standard_stream_is_an_empty_one(line: str, code: int, closed: str) -> None:
    script = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", PROGRAM, "watch", *line.split()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, b"Traceback" in done.stderr) == (code, b"", False)


def test_a_program_that_is_missing_is_reported() -> None:
    with Watched("no-such-program-here") as watched:
        assert watched.process.wait(20) == 127
        assert watched.process.stderr is not None
        assert b"no-such-program-here was not started: No such file" in watched.process.stderr.read()


@pytest.mark.promise("WAT-1")
def test_signals_reach_the_server() -> None:
    script = "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done"
    with Watched("sh", "-c", script) as watched:
        assert watched.line() == b"ready"
        watched.process.send_signal(signal.SIGUSR1)
        assert watched.line() == b"got"
        assert watched.process.wait(20) == 5


@pytest.mark.promise("WAT-1")
@pytest.mark.parametrize("victim", ["proxy", "server"])
def test_a_killed_process_leaves_no_orphan_and_its_calls_are_interrupted(victim: str) -> None:
    with Watched() as watched:
        watched.initialize()
        for id_ in range(200):
            watched.call(id_, "say" if id_ < 199 else "never")
        for _ in range(199):
            watched.receive()
        recorded(199)
        below = descendants(watched.process.pid)
        assert below
        if victim == "proxy":
            watched.process.kill()
        else:
            watched.call(200, "die")
        watched.process.wait(20)
        eventually(lambda: not any(map(is_alive, below)))
    found = recorded(200 if victim == "proxy" else 201)
    interrupted = [one for one in found if one.error is not None and one.error.detail == "interrupted"]
    assert len(interrupted) == (1 if victim == "proxy" else 2)
    assert len({one.id for one in found}) == len(found)


@pytest.mark.promise("WAT-1")
def test_a_killed_client_leaves_no_orphan() -> None:
    code = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen([{PROGRAM!r}, 'watch', '--', 'sh', '-c', 'trap \"\" TERM; while :; do sleep 0.1; done'],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(p.pid, flush=True)\ntime.sleep(60)\n"
    )
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert client.stdout is not None
    proxy = int(client.stdout.readline())
    below = eventually(lambda: len(found := descendants(proxy)) >= 2 and found)
    client.kill()
    client.wait()
    client.stdout.close()
    eventually(lambda: not any(map(is_alive, [proxy, *below])))


@pytest.mark.promise("WAT-1")
def test_messages_pass_while_the_observer_hangs_even_if_the_system_ignores_the_flag_not_to_wait(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import socket\nsocket.MSG_DONTWAIT = 0\n")  # as on macOS
    with Watched("cat", env={**os.environ, "PYTHONPATH": str(tmp_path)}) as watched:
        watched.initialize()
        below = descendants(watched.process.pid)
        (observer,) = [pid for pid in below if b"pegboard.watch.observer" in command_of(pid)]
        os.kill(observer, signal.SIGSTOP)
        for id_ in range(30):
            message = b'{"jsonrpc":"2.0","id":%d,"result":{"content":["%s"]}}\n'
            watched.send(message % (id_, b"x" * 50_000))
            assert watched.receive()["id"] == id_
        os.kill(observer, signal.SIGCONT)
        assert watched.close() == 0


@pytest.mark.promise("WAT-1")
def test_calls_of_ten_processes_are_all_recorded_once() -> None:
    def agent(number: int) -> None:
        with Watched() as watched:
            for id_ in range(20):
                watched.call(id_, "say", number=number * 20 + id_)
            for _ in range(20):
                watched.receive()
            assert watched.close() == 0

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(agent, range(10)))
    found = recorded(200)
    assert sorted(one.args["number"] for one in found) == list(range(200))  # type: ignore[type-var]


@pytest.mark.promise("WAT-1")
def test_a_record_that_cannot_be_written_is_reported_and_calls_pass(home: Path) -> None:
    (home / "state").write_text("not a folder")
    with Watched() as watched:
        watched.call(1, "say")
        assert watched.receive()["id"] == 1
        assert watched.process.stderr is not None
        assert b"calls are not recorded" in watched.process.stderr.readline()
        watched.call(2, "say")
        assert watched.receive()["id"] == 2


@pytest.mark.promise("WAT-1")
def test_calls_pass_while_the_database_is_locked_and_are_recorded_then(home: Path) -> None:
    records()
    with sqlite3.connect(home / "state" / "history.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with Watched() as watched:
            for id_ in range(50):
                began = time.monotonic()
                watched.call(id_, "say")
                watched.receive()
                if id_:
                    assert time.monotonic() - began < 1
            watched.close()
        other.execute("ROLLBACK")
    other.close()
    assert len(recorded(50)) == 50


@pytest.mark.slow
@pytest.mark.promise("WAT-1")
def test_calls_pass_while_another_process_locks_the_database_for_30_seconds(home: Path) -> None:
    records()
    with sqlite3.connect(home / "state" / "history.db", isolation_level=None) as other, Watched() as watched:
        other.execute("BEGIN EXCLUSIVE")
        end = time.monotonic() + 30
        calls = 0
        while time.monotonic() < end:
            calls += 1
            watched.call(calls, "say", seconds=0.2)
            began = time.monotonic()
            assert watched.receive()["id"] == calls
            assert time.monotonic() - began < 5
        assert watched.process.stderr is not None
        assert b"calls are not recorded" in (said := watched.process.stderr.readline())
        assert b"locked" in said
        assert b"End the process that uses it" in said
        other.execute("ROLLBACK")
        watched.close()
    other.close()
    assert len(recorded(calls)) == calls


@pytest.fixture
def small_disk(home: Path) -> Iterator[Callable[[str], object]]:
    """Put the state folder on a disk of 2 MB; yield a function that changes the size."""
    folder = home / "state"
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "mode=700,size=2m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted")
    yield lambda size: subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.promise("WAT-1")
def test_calls_pass_while_the_disk_is_full_and_are_recorded_when_it_has_space(
    small_disk: Callable[[str], object],
) -> None:
    with Watched() as watched:
        for id_ in range(200):
            watched.call(id_, "say", number=id_, text="x" * 50_000)
            assert watched.receive()["id"] == id_
        assert watched.process.stderr is not None
        assert b"calls are not recorded" in (said := watched.process.stderr.readline())
        assert b"Free space on the disk." in said
        small_disk("64m")
        watched.call(200, "say", number=200)
        watched.receive()
        watched.close()
    assert [record.args["number"] for record in recorded(201)] == [*range(200, -1, -1)]


@pytest.mark.promise("WAT-1")
def test_calls_pass_if_files_must_not_grow() -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))  # noqa: E731
    with Watched(before=limit) as watched:
        for id_ in range(200):
            watched.call(id_, "say", text="x" * 10_000)
            assert watched.receive()["id"] == id_
        assert watched.process.stderr is not None
        assert b"calls are not recorded" in watched.process.stderr.readline()
        assert watched.process.poll() is None


@pytest.mark.promise("STO-2", "WAT-1")
def test_secrets_are_passed_on_and_redacted_in_the_record() -> None:
    env = {**os.environ, "MY_API_TOKEN": "sesame-open-4711"}
    with Watched(env=env) as watched:
        watched.call(1, "say", text="key sesame-open-4711", note="sesame-open-4711")
        assert watched.receive()["result"]["content"][0]["text"] == "key sesame-open-4711"
        watched.close()
    found = recorded(1)[0]
    assert found.args == {"text": "key «secret MY_API_TOKEN»", "note": "«secret MY_API_TOKEN»"}
    assert result_of(found).data == "key «secret MY_API_TOKEN»"
    assert result_of(found).meta.server_meta == {"note": "«secret MY_API_TOKEN»"}


@pytest.mark.promise("WAT-1")
def test_the_proxy_loads_no_heavy_library() -> None:
    line = [sys.executable, "-X", "importtime", "-m", "pegboard", "watch", "--", "true"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "pegboard.watch.proxy" in loaded
    assert not loaded & {"pydantic", "typer", "textual", "httpx", "mcp", "asyncio", "sqlite3", "subprocess"}


@pytest.mark.promise("WAT-1")
def test_a_call_with_arguments_nested_too_deeply_is_recorded_without_them_and_later_calls_too() -> None:
    nested = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"a":%s}}}\n'
    odd_id = b'{"jsonrpc":"2.0","id":%s,"result":{}}\n'
    with Watched() as watched:
        watched.initialize()
        watched.send(nested % (b"[" * 400 + b"]" * 400))
        assert watched.receive()["id"] == 1
        watched.send(odd_id % (b"[" * 900 + b"]" * 900))
        watched.line()
        watched.call(2, "say", text="later")
        assert watched.receive()["id"] == 2
        watched.close()
        assert watched.process.stderr is not None
        assert b"the process that records calls has ended" not in watched.process.stderr.read()
    later, first = recorded(2)
    assert (first.tool, first.args, later.args) == ("plain.say", {}, {"text": "later"})
    assert "nested too deeply" in str(result_of(first).meta.warnings)
