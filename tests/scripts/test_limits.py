"""Limits of scripts, and their messages."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.scripts import Limits, OrchestratorTool, OrchestratorToolBuilder, Sandboxes

Build = Callable[..., OrchestratorTool]

BOMBS = {
    "endless loop": ("while :; do :; done", "commands"),
    "endless arithmetic loop": ("for ((;;)); do :; done", "commands"),
    "deep recursion": ("f() { f; }; f", "16 levels deep"),
    "recursion through eval": ('x=\'$(eval "$x")\'; eval "$x"', "nested too deeply"),
    "nested too deeply": ("$(" * 200 + "echo" + ")" * 200, "nested too deeply"),
    "doubling variable": ("x=a; while :; do x=$x$x; done", "10 MB"),
    "a million words": ("echo {1..1000000}", "brace range"),
    "400 MB in a pipe": ("dd if=/dev/zero bs=1M count=400 | wc -c", "32 MB"),
    "endless jq": ("jq -n 'def f: f; f'", "longer than 2 s"),
    "sleep": ("sleep 1000", "longer than 2 s"),
    "a signal that is not heard": ("trap '' TERM INT ALRM HUP; sleep 1000", "longer than 2 s"),
    "eval of eval": ('x=\'eval "$x"\'; eval "$x"', "nested too deeply"),
    "a stack that overflows": ("time " * 20_000 + "echo", "nested too deeply"),
    "echo of each line of 200 kB": (
        "printf '%0100d\\n' {1..2000} > f; while read -r line; do echo $line; done < f > copy",
        "read more than 100 MB",
    ),
    "too much to read": ("seq 100000 > f; while :; do cat f >/dev/null; done < f", "read more than 100 MB"),
}

SAID_BY_THE_COMMAND = {
    "yes": ("yes > f; tail -n 1 f", "y\n", "file too large"),
    "a file too large": ("big 20000000 > f; wc -c < f", "", "file too large"),
    "endless awk": ("awk 'BEGIN { while (1) {} }'", "", "iteration limit"),
    "jq that collects": ("jq -n '[range(1e9)] | length'", "", "size limit"),
    "a range too long": ("for i in {1..20000}; do echo $i; done", "{1..20000}\n", "{1..20000} is not expanded"),
    "letters too many": ("echo {a..z}{a..z}{a..z}{a..z} | wc -w", "27694\n", "produces at most 50,000 words"),
    "a file system too full": (
        "big 9000000 > f; for i in {1..15}; do cp f f$i || break; done; ls | wc -l",
        "11\n",
        "filesystem full",
    ),
    "a zip bomb": ("head -c 1000000 /dev/zero | gzip | gunzip | wc -c", "0\n", "zip bomb"),
    "a format too wide": ("printf '%1000000000s' x | wc -c", "0\n", "exceeds limit"),
    "an endless sed": ("echo a | sed ':a;ba'", "a\n", "loop limit"),
    "a deep awk": ("awk 'function f(x) { return f(x) } BEGIN { f(1) }'", "", "depth limit"),
    "a string of awk's": ("awk 'BEGIN { s = \"a\"; while (1) s = s s }'", "", "string size limit"),
    "parallel without end": ("parallel echo ::: {1..300} ::: {1..300} | wc -l", "0\n", "at most 10,000 jobs"),
}


def _big(args: list[str], stdin: str | None) -> str:
    del stdin
    return "x" * int(args[0])


@pytest.fixture
def tool(plain: Build) -> OrchestratorTool:
    built = plain(big=_big)
    built.limits = Limits(seconds=30)
    return built


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(("script", "said"), BOMBS.values(), ids=BOMBS.keys())
async def test_a_bomb_is_stopped_and_reported_and_its_output_is_kept(
    tool: OrchestratorTool, script: str, said: str
) -> None:
    if "longer" in said:
        tool.limits = Limits(seconds=2)
    async with asyncio.timeout(60):
        result = await tool.execute(f"echo before; echo also >&2\n{script}\necho after")
    assert said in result.stderr.splitlines()[-1]
    assert "pegboard: the script was stopped: " in result.stderr
    assert result.exit_code == (124 if "longer" in said else 2 if script.startswith("$(") else 125)
    # A script that can't be parsed never starts.
    assert result.stdout == ("" if script.startswith(("$(", "echo {", "time ")) else "before\n")


@pytest.mark.promise("SCR-5")
async def test_a_command_that_reads_nothing_within_while_read_does_not_count_the_input(tool: OrchestratorTool) -> None:
    script = "printf '%0100d\\n' {1..2000} > f; while read -r line; do echo $line </dev/null; done < f | cmp - f"
    result = await tool.execute(script)
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


@pytest.mark.promise("SCR-5")
async def test_a_fork_bomb_is_stopped_by_the_limit_that_it_reaches_first(tool: OrchestratorTool) -> None:
    tool.limits = Limits(seconds=2)
    async with asyncio.timeout(60):
        result = await tool.execute("echo before; :() { :|:& }; :\necho after")
    *_, last = result.stderr.splitlines()
    assert last.startswith("pegboard: the script was stopped: ")
    assert ("longer than 2 s" in last, result.exit_code) in {(True, 124), (False, 125)}
    assert result.stdout.startswith("before\n")


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(("script", "printed", "said"), SAID_BY_THE_COMMAND.values(), ids=SAID_BY_THE_COMMAND.keys())
async def test_truncated_results_are_always_reported(
    tool: OrchestratorTool, script: str, printed: str, said: str
) -> None:
    result = await tool.execute(script)
    assert result.stdout == printed
    assert said in result.stderr


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo began; seq 400000 | jq -c . 2>/dev/null | wc -l", "jq: output limit exceeded (1048576 bytes)"),
        ("echo began; if ! seq 400000 | jq . &>/dev/null; then echo invalid; fi", "jq: output limit exceeded"),
        ("echo began; awk 'BEGIN { while (1) {} }' 2>/dev/null", "awk: loop iteration limit"),
        ("echo began; { echo a | sed ':a;ba'; } 2>/dev/null", "a loop of sed exceeded its limit"),
    ],
)
async def test_a_limit_is_reported_although_the_script_discards_error_messages(
    tool: OrchestratorTool, script: str, said: str
) -> None:
    result = await tool.execute(script)
    assert (result.stdout, result.exit_code) == ("began\n", 125)
    assert said in result.stderr


async def test_discarded_error_messages_change_neither_output_nor_exit_code(tool: OrchestratorTool) -> None:
    script = """set -eu
echo '{"a": [1, 2]}' | jq -c .a 2>/dev/null
jq . <<< '{' 2>/dev/null || echo "invalid $?"
jq -n '[' 2>errors || head -c 10 errors
jq -n --arg x 'a  b' '$x' 2>&1 | tr -s ' '
echo 'x y' | awk '{ print $2 }' 2>/dev/null
ls -A /tmp"""
    result = await tool.execute(script)
    assert (result.stdout, result.stderr, result.exit_code) == (
        '[1,2]\ninvalid 5\njq: error:"a b"\ny\n', "", 0
    )  # fmt: skip


ODD = {
    "${x@P}": ("x='$(echo in)'; echo ${x@P}", "in\n", ""),
    "${x@Q}": ('x="it\'s"; echo ${x@Q}', "'it'\\''s'\n", ""),
    "/dev/tcp": ("echo hi > /dev/tcp/127.0.0.1/80; echo $?", "1\n", "No such file"),
    "exec 3<>": ("exec 3<>f; echo hi >&3; exec 3>&-; cat f", "hi\n", ""),
    "printf -v": ("printf -v x %03d 7; echo $x", "007\n", ""),
    "read -t": ("read -t 50 x; echo $?; read -t 1 y <<< in; echo $y", "1\nin\n", ""),
    "read without stdin": ("read x || cat; echo $?", "0\n", ""),
    "trap": ("trap 'echo bye' EXIT; trap 'echo failed' ERR; false; echo on", "failed\non\nbye\n", ""),
    "time": ("time echo hi", "hi\n", "real"),
    "select": ("echo 2 | select x in a b; do echo $x; break; done", "b\n", ""),
    "coproc": ("coproc echo hi; echo $?", "0\n", ""),
    "kill": ("kill -9 1; echo alive", "", ""),
    "kill all": ("kill -9 -1; echo alive", "alive\n", "usage"),
    "ulimit": ("ulimit -v unlimited; echo $?", "0\n", ""),
    "a large index": ("a[999999999999]=1; echo ${#a[@]}", "1\n", ""),
    "a number too large": (
        "echo $((9223372036854775807 + 1)); echo $((1 / 0)); echo on",
        "-9223372036854775808\n",
        "0",
    ),
    "names in a circle": ("declare -n a=b; declare -n b=a; echo [$a]; a=1", "[]\n", "circular"),
    "links in a circle": ("ln -s a b; ln -s b a; cat a; echo $?", "1\n", "symbolic links"),
    "all of it deleted": ("rm -rf /; rm -rf /*; echo on", "on\n", ""),
    "a built-in loaded": ("enable -f /lib/x.so x; echo $?", "1\n", "not supported"),
    "system": ("awk 'BEGIN { system(\"/usr/bin/python3 -c 0\") }'; echo id | sed e; echo $?", "1\n", "not available"),
    "no number of jobs": ("echo a | xargs -P x echo; parallel -j -1 echo ::: a", "", "-P must be a number, at least 0"),
    "a placeholder that parallel lacks": ("parallel echo {.} ::: a; echo $?", "2\n", "{.} is not supported"),
    "a placeholder without items": ("parallel echo {2} ::: a; echo $?", "2\n", "{2} has no items"),
    "a separator that parallel lacks": ("parallel echo ::: a :::+ b; echo $?", "2\n", ":::+ is not supported"),
    "a flag behind the command": ("echo a | xargs echo -P2", "-P2 a\n", ""),
    "no end of quotes": ('echo "a\'b" | xargs -P2 echo; echo $?', "2\n", "No closing quotation"),
    "items that are commands": ("parallel echo ::: '; big 9' '$(big 9)'", "; big 9\n$(big 9)\n", ""),
    "a function like a tool": ("big() { echo mine; }; big 9; command big 3", "mine\nxxx", ""),
    "zero bytes": ("big \"$(printf '3\\0')\"", "xxx", ""),
}


@pytest.mark.parametrize(("script", "printed", "said"), ODD.values(), ids=ODD.keys())
async def test_odd_scripts_neither_escape_nor_crash(
    tool: OrchestratorTool, script: str, printed: str, said: str
) -> None:
    result = await tool.execute(script)
    assert result.stdout == printed
    assert said in result.stderr
    assert "pegboard:" not in result.stderr


async def test_thousands_of_items_exceed_no_limit(tool: OrchestratorTool) -> None:
    tool.limits = Limits(seconds=30)
    assert (
        await tool.execute("seq 3000 | xargs -P 8 -n 1 echo | wc -l; parallel echo ::: {1..3000} | wc -l")
    ).stdout == ("3000\n3000\n")


@pytest.mark.promise("SCR-5")
async def test_too_much_output_is_truncated_and_reported_and_the_script_continues(tool: OrchestratorTool) -> None:
    result = await tool.execute("big 900000; big 900000; echo done > f; exit 3")
    assert (len(result.stdout), result.exit_code) == (1_000_000, 125)
    assert result.stderr == "pegboard: the result is incomplete: stdout was truncated after 1,000,000 bytes\n"


async def test_truncation_keeps_whole_characters(plain: Build) -> None:
    tool = plain()
    tool.limits = replace(tool.limits, output=10)
    result = await tool.execute("echo ünïcödé; echo more >&2")
    assert result.stdout == "ünïcöd"
    assert "stdout was truncated after 10 bytes" in result.stderr


@pytest.mark.promise("SCR-5")
async def test_a_script_that_runs_out_of_memory_affects_no_other_script() -> None:
    small = Limits(memory=160 * 2**20, seconds=20)
    tool = OrchestratorToolBuilder("small").limits(small).build()
    try:
        result = await tool.execute("echo before; jq -n '[limit(1e9; repeat(\"x\"))]'")
        assert result.stdout == "before\n"
        assert "its process needed more than 160 MiB of memory" in result.stderr
        assert (await tool.execute("echo next")).stdout == "next\n"
    finally:
        tool.close()


async def test_calls_are_limited(plain: Build) -> None:
    tool = plain(big=_big)
    tool.limits = replace(tool.limits, calls=3)
    result = await tool.execute("for i in 1 2 3 4; do big 1; done")
    assert (result.stdout, result.exit_code) == ("xxx", 1)
    assert result.stderr == "big: a script makes at most 3 calls\n"


@pytest.mark.promise("SCR-5")
async def test_a_tool_that_hangs_ends_at_its_timeout_and_the_script_continues(sandboxes: Sandboxes) -> None:
    release = threading.Event()

    class Hang:
        name, description = "hang", "Waits."

        def call(self, args: list[str], stdin: str | None) -> str:
            del args, stdin
            release.wait(60)
            return "too late\n"

    class Late:
        name, description = "late", "Fails."

        def call(self, args: list[str], stdin: str | None) -> str:
            raise TimeoutError("The portal took too long.")

    tool = OrchestratorToolBuilder("it").sandboxes(sandboxes).tool(Hang(), seconds=0.2).tool(Late()).build()
    async with asyncio.timeout(20):
        result = await tool.execute("echo before; hang; echo $?; late || echo other; hang | cat & wait; echo after")
    release.set()
    assert result.stdout == "before\n124\nother\nafter\n"
    assert result.stderr == (
        "hang: It took longer than 0.2 s.\nlate: The portal took too long.\nhang: It took longer than 0.2 s.\n"
    )
    details = [made.result.error.detail for made in result.calls if made.result.error]
    assert details == ["timeout", None, "timeout"]


SECRET = "hidden-from-scripts"


@pytest.mark.promise("SCR-5")
async def test_a_script_sees_nothing_of_the_machine(
    plain: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    monkeypatch.setenv("SCRIPT_SECRET", SECRET)
    ways = [
        f"cat {file}", f"echo $(<{file})", f"source {file}", f". {file}", f"ln -s {file} l; cat l", f"cat < {file}",
        f"mapfile -t a < {file}; echo ${{a[0]}}", f"bash {file}", f"while read x; do echo $x; done < {file}",
        f"find {tmp_path} -type f", f"ls {tmp_path}", f"jq -R . {file}", f"awk '{{print}}' {file}", f"grep . {file}",
        f"sed '' {file}", f"tar cf - {tmp_path}", f"cp {file} /tmp/x; cat /tmp/x", f"cd {tmp_path} && cat secret",
        f"cat /proc/{os.getpid()}/environ", "cat /proc/*/environ", "cat /proc/self/cmdline", "env", "printenv", "set",
        "echo $SCRIPT_SECRET", "declare -p", "awk 'BEGIN { for (k in ENVIRON) print ENVIRON[k] }'", "jq -n env",
        f"cat /proc/self/root{file}", f"cat /proc/1/root{file}", f"cat ../../../../../../../..{file}",
    ]  # fmt: skip
    result = await plain().execute("\n".join(f"( {way} )" for way in ways))
    assert SECRET not in result.stdout + result.stderr


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(
    "way",
    [
        "/usr/bin/python3", "exec /usr/bin/python3", "python3 -c 'print(6 * 7)'", "perl -e 'print 42'", "curl -s http://127.0.0.1:{port}",
        "wget -qO- http://127.0.0.1:{port}", "exec 3<>/dev/tcp/127.0.0.1/{port}", "nc 127.0.0.1 {port}",
        "ssh localhost", "sqlite3 :memory: 'select 42'", "git init",
    ],
)  # fmt: skip
async def test_a_script_starts_no_program_and_opens_no_connection(plain: Build, way: str) -> None:
    connected: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda reader, writer: connected.append(writer), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        result = await plain().execute(f"{way.format(port=port)} || echo refused")
    assert result.stdout in ("refused\n", "")
    assert result.stderr
    assert connected == []


async def test_a_process_that_was_killed_between_two_scripts_is_replaced(plain: Build, sandboxes: Sandboxes) -> None:
    idle = sandboxes.take()
    os.kill(idle.pid, signal.SIGKILL)
    await asyncio.to_thread(idle._process.wait, 30)
    sandboxes.give_back(idle)
    assert (await plain().execute("echo next")).stdout == "next\n"


async def test_a_process_that_is_killed_ends_its_script_and_the_output_is_kept() -> None:
    shared = Sandboxes(512 * 2**20)
    victim = shared.take()
    shared.give_back(victim)
    tool = OrchestratorToolBuilder("it").sandboxes(shared).build()
    printed = asyncio.Event()
    running = asyncio.create_task(tool.execute("echo before; sleep 50", on_event=lambda event: printed.set()))
    async with asyncio.timeout(30):
        await printed.wait()
        os.kill(victim.pid, signal.SIGKILL)
        result = await running
    assert (result.stdout, result.exit_code) == ("before\n", 125)
    assert "or was killed" in result.stderr
    shared.close()


STARTS = """
import asyncio
from pegboard.scripts import OrchestratorToolBuilder, Sandboxes
shared = Sandboxes(2**29)
idle = shared.take()
shared.give_back(idle)
tool = OrchestratorToolBuilder("it").sandboxes(shared).build()
script = "echo begun; jq -n 'def f: f; f'"
asyncio.run(tool.execute(script, on_event=lambda event: print(idle.pid, flush=True)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the end of another's child")
def test_the_process_of_a_script_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True) as us:
        assert us.stdout is not None
        theirs = int(us.stdout.readline())
        descriptor = os.pidfd_open(theirs)
        us.kill()
    try:
        assert select.select([descriptor], [], [], 20)[0], "it still runs"
    finally:
        os.close(descriptor)
