"""However Pegboard ends, the terminal is restored and the running call is in the history."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from terminals import pegboard

from pegboard.models import CallRecord
from pegboard.runtime import Runtime

PACK = '''
"""Hangs."""
import time
from pegboard.sdk import hints, log

@hints(read_only=True, timeout=60)
def hang(*, marker: str) -> str:
    """Hangs.

    Args:
        marker: A file to write at the beginning.
    """
    open(marker, "w").close()
    log("it hangs now")
    time.sleep(60)
    return ""
'''

SIGNALS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]


@pytest.fixture(autouse=True)
def _signals_are_not_ignored() -> Iterator[None]:
    """Let child processes inherit the default action of each signal, even if the tests run under `nohup`."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, action in before.items():
        signal.signal(number, action)


def _until(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, f"not so after a while: {what}"
        time.sleep(0.02)


def _records() -> list[CallRecord]:
    return [record for record in Runtime.from_environment().history.records() if record.tool == "hanging.hang"]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.promise("SEC-7", "STO-3")
def test_the_app_restores_the_terminal_at_a_signal(number: signal.Signals, code: int) -> None:
    with pegboard() as terminal:
        terminal.read_until("type to filter")
        assert terminal.modes["1049"]
        assert terminal.modes["1000"]
        terminal.process.send_signal(number)
        assert terminal.read_all() == code
        assert terminal.is_as_before
        assert "Traceback" not in terminal.output


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "a closed terminal"])
def test_a_call_of_the_app_that_runs_at_its_end_is_recorded(
    how: str, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    folder, marker = write_pack("hanging.py", PACK), tmp_path / "marker"
    with pegboard("--packs", str(folder)) as terminal:
        terminal.read_until("type to filter")
        terminal.type("hanging")
        terminal.read_until("Hangs.")
        terminal.type("\r")
        terminal.read_until("A file to write")
        terminal.type(str(marker))
        terminal.read_until("/marker")
        terminal.type("\x12")  # ctrl+r
        terminal.until(marker.exists, "the call runs")
        if how == "a closed terminal":
            terminal.hang_up()
            terminal.process.wait(40)
        else:
            terminal.process.send_signal(getattr(signal, how))
            terminal.read_all()
            assert terminal.is_as_before
        assert terminal.process.returncode == (143 if how == "SIGTERM" else 129)
    assert [record.ok for record in _records()] == [False]


@pytest.mark.promise("SEC-7")
def test_an_app_that_continues_without_a_stop_restores_the_terminal_at_its_end() -> None:
    with pegboard() as terminal:
        terminal.read_until("type to filter")
        for _ in range(3):
            terminal.output = ""
            terminal.process.send_signal(signal.SIGCONT)
            terminal.read_until("\x1b[?1049h")
        terminal.type("\x11")  # ctrl+q
        assert terminal.read_all() == 0
        assert terminal.is_as_before


@pytest.mark.parametrize("how", ["SIGTSTP", "SIGSTOP"])
def test_an_app_that_continues_after_a_stop_draws_the_whole_page_again(how: str) -> None:
    with pegboard() as terminal:
        terminal.read_until("type to filter")
        terminal.type("time.now")
        terminal.read_until("Return the current time.")
        terminal.read_rest()
        terminal.process.send_signal(getattr(signal, how))
        os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED)
        terminal.read_rest()
        terminal.output = ""
        terminal.process.send_signal(signal.SIGCONT)
        terminal.read_until("Return the current time.")


STOPPING = '''
"""Stops its client."""
import os
import signal
from pegboard.sdk import hints

@hints(read_only=True)
def stop(*, size: int, client: int) -> str:
    """Stop the client, as ctrl+z on its terminal does, and return a text.

    Args:
        size: Length of the text.
        client: Process id of the client.
    """
    os.kill(client, signal.SIGSTOP)
    return "x" * size
'''


@pytest.mark.parametrize("size", [1, 300_000])
@pytest.mark.promise("EXE-4")
def test_a_result_that_came_while_the_client_was_stopped_counts(
    size: int, write_pack: Callable[[str, str], Path]
) -> None:
    program = [sys.executable, "-m", "pegboard", "--packs", str(write_pack("stopping.py", STOPPING))]
    line = ["tools", "invoke", "stopping.stop", "--arg", f"size={size}", "--timeout", "2", "--data", "--arg"]
    client = subprocess.Popen(
        ["sh", "-c", 'exec "$@" "client=$$"', "sh", *program, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with client:
        os.waitid(os.P_PID, client.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        with pytest.raises(subprocess.TimeoutExpired):  # the time limit ends meanwhile
            client.wait(4)
        client.send_signal(signal.SIGCONT)
        out, error = client.communicate(timeout=30)
    assert (client.returncode, out.strip() == "x" * size, error) == (0, True, "")


@pytest.mark.promise("SEC-7")
def test_an_app_whose_terminal_is_closed_ends_although_sigcont_comes() -> None:
    with pegboard() as terminal:
        terminal.read_until("type to filter")
        terminal.hang_up()
        end = time.monotonic() + 40
        while terminal.process.poll() is None:
            assert time.monotonic() < end, "it has not ended"
            terminal.process.send_signal(signal.SIGCONT)
            with suppress(subprocess.TimeoutExpired):
                terminal.process.wait(0.02)
        assert terminal.process.returncode == 129


def test_the_app_ends_with_its_terminal_where_the_signal_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # Like `nohup`; child processes inherit it.
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGHUP, before)
        terminal = stack.enter_context(pegboard())
        terminal.read_until("type to filter")
        terminal.hang_up()
        assert terminal.process.wait(40) == 129


def _commands(folder: Path, marker: Path) -> dict[str, list[str]]:
    script = folder.parent / "script.sh"
    script.write_text(f"hanging.hang --marker {marker}\n")
    return {
        "tools invoke": ["tools", "invoke", "hanging.hang", "--arg", f"marker={marker}"],
        "ask": ["ask", f"hanging.hang marker={marker}"],
        "script run": ["script", "run", str(script)],
    }


@pytest.mark.parametrize("command", ["tools invoke", "ask", "script run"])
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGINT", "a closed terminal"])
@pytest.mark.promise("SEC-7", "CLI-2")
def test_a_call_of_a_command_that_runs_at_its_end_is_recorded(
    how: str, command: str, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    folder, marker = write_pack("hanging.py", PACK), tmp_path / "marker"
    arguments = _commands(folder, marker)[command]
    with pegboard("--packs", str(folder), *arguments) as terminal:
        terminal.until(marker.exists, "the call runs")
        if how == "a closed terminal":
            terminal.hang_up()
            terminal.process.wait(40)
        else:
            terminal.process.send_signal(getattr(signal, how))
            assert terminal.read_all() == 128 + getattr(signal, how)
    assert [record.ok for record in _records()] == [False]


def test_a_signal_that_is_sent_twice_does_not_cut_the_record_short(
    write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    folder, marker = write_pack("hanging.py", PACK), tmp_path / "marker"
    command = [sys.executable, "-m", "pegboard", "--packs", str(folder)]
    process = subprocess.Popen(
        [*command, "tools", "invoke", "hanging.hang", "--arg", f"marker={marker}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    _until(marker.exists, "the call runs")
    process.terminate()
    process.terminate()
    assert process.wait(30) == 143
    assert [record.ok for record in _records()] == [False]


INTERRUPTED_EARLY = """
import os, signal, sys
from pegboard.__main__ import main
from pegboard.runtime.redaction import SecretRedaction

number = int(sys.argv.pop())
renew = SecretRedaction.renew

async def interrupted(self):
    os.kill(os.getpid(), number)
    SecretRedaction.renew = renew
    await renew(self)

SecretRedaction.renew = interrupted
main()
"""


@pytest.mark.parametrize("command", ["tools invoke", "script run", "script run --json"])
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.promise("SEC-7", "CLI-2")
def test_a_signal_before_the_tool_starts_ends_the_command(
    command: str, number: signal.Signals, code: int, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    folder, marker = write_pack("hanging.py", PACK), tmp_path / "marker"
    arguments = _commands(folder, marker)[command.removesuffix(" --json")]
    line = ["--packs", str(folder), *arguments, *(["--json"] if "--json" in command else []), str(int(number))]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_EARLY, *line], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == code, done.stderr
    assert "was cancelled" in done.stderr
    assert not marker.exists()
