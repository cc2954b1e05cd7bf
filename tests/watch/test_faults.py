"""Many concurrent calls, and one process that is killed at a random moment: all others continue or end cleanly."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import command_of, descendants, is_alive
from terminals import Terminal, pegboard
from watched import PLAIN_SERVER, PROGRAM, eventually, records

from pegboard.brake import Answer, AnsweredError, Questions
from pegboard.config import Paths
from pegboard.history import History
from pegboard.history.schema import RUNNING
from pegboard.watch.link import CLIPPED_CLIENT, OPENED, REJECT, VERDICT, clip, frames, pack
from pegboard.watch.observer import Observer

COUNT = 200
CLIENT = str(Path(PLAIN_SERVER).with_name("calling_client.py"))
PACK = '''
import os, time
from pegboard.sdk import hints

@hints(read_only=True)
def later(*, number: int, seconds: float) -> int:
    """Wait."""
    with open({log!r}, "a") as log:
        print(os.getpid(), file=log)
    time.sleep(seconds / 20)
    return number

def delete(*, number: int, seconds: float) -> int:
    """Delete."""
    return number
'''
TOOLS = ",".join([*["{}later"] * 19, "{}delete"])


@contextmanager
def open_app(home: Path) -> Iterator[Terminal]:
    """Open the app in a terminal that is read all the time; end it after the block."""
    with pegboard() as terminal:
        is_over = threading.Event()

        def read() -> None:
            while not is_over.is_set():
                try:
                    terminal._read()
                except OSError:  # the app has ended
                    return

        reading = threading.Thread(target=read)
        reading.start()
        try:
            eventually(lambda: [*(home / "state" / "questions" / "open").glob("*.open")])
            yield terminal
        finally:
            is_over.set()
            reading.join()


class Caller:
    """The client as a process.

    Args:
        front: Text before the names of the tools.
        command: The command that it starts.
    """

    def __init__(self, front: str, *command: str) -> None:
        tools = TOOLS.replace("{}", front)
        line = [sys.executable, CLIENT, str(COUNT), tools, *command]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.strip())
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Wait until so many responses have arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.lines) >= count, 60), f"only {len(self.lines)} responses"

    @property
    def end(self) -> tuple[int, int]:
        """Number of responses, and the exit code of what it started."""
        said, responses, code = self.lines[-1].split()
        assert said == "end"
        return int(responses), int(code)

    def close(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self._reading.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def ours(home: Path) -> set[int]:
    """Return all running processes that use this test's state folder, however they were started."""
    mark = f"PEGBOARD_STATE_DIR={home}/state".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
        except OSError:
            continue
    return {pid for pid in found - {os.getpid()} if is_alive(pid)}


@contextmanager
def approving(questions: Questions) -> Iterator[None]:
    """Approve every call that waits."""
    is_over = threading.Event()

    def approve() -> None:
        while not is_over.wait(0.02):
            for question in questions.pending():
                try:
                    questions.answer(question.id, Answer("approve"))
                except AnsweredError:
                    continue

    answering = threading.Thread(target=approve)
    answering.start()
    try:
        yield
    finally:
        is_over.set()
        answering.join()


def no_call_runs() -> bool:
    """Return whether no recorded call runs, as another process sees it."""
    paths = Paths.from_environment()
    history = History(paths.database, paths.results)
    try:
        history.mark_interrupted()
        count = f"SELECT count(*) FROM calls WHERE status = {RUNNING}"
        return history.act(lambda database: database.select(count)) == [(0,)]
    finally:
        history.close()


def processes(program: str, app: Terminal, caller: Caller, log: Path) -> dict[str, int]:
    """Return the processes that can be killed."""
    proxy, *below = descendants(caller.process.pid)
    found = {"app": app.process.pid, "client": caller.process.pid, "proxy": proxy}
    if program == "serve":
        found["server"] = int(log.read_text().split()[0])
        return found
    for victim, word in (("server", b"plain_server"), ("observer", b"pegboard.watch.observer")):
        matching = [pid for pid in below if word in command_of(pid)]
        if matching:
            found[victim] = matching[-1]  # below its keeper, which was forked from the proxy
    return found


CASES = [
    *[("watch", victim, seed) for victim in ("app", "proxy", "server", "client", "observer") for seed in (1, 2)],
    *[("serve", victim, seed) for victim in ("app", "proxy", "server", "client") for seed in (1, 2)],
]


@pytest.mark.slow
@pytest.mark.promise("WAT-1", "WAT-4")
@pytest.mark.parametrize(("program", "victim", "seed"), CASES)
def test_of_many_calls_those_in_flight_are_interrupted_when_a_process_is_killed(
    program: str, victim: str, seed: int, home: Path, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    chance = random.Random(f"{program} {victim} {seed}")
    log = tmp_path / "log"
    if program == "watch":
        (home / "approvals.toml").write_text('[[rule]]\nask = "plain.delete"\nscope = "mcp"\n')
        command = [PROGRAM, "watch", "--name", "plain", "--", sys.executable, "-S", PLAIN_SERVER, str(log)]
    else:
        command = [PROGRAM, "serve", "--packs", str(write_pack("kit.py", PACK.format(log=str(log))))]
    with open_app(home) as app:
        before = ours(home)
        caller = Caller("kit." if program == "serve" else "", *command)
        try:
            with approving(Questions(home / "state")):
                caller.wait_for(chance.randrange(1, 100))
                process = processes(program, app, caller, log)[victim]
                if (program, victim) == ("serve", "server"):  # it gets a call if it has none
                    os.kill(process, signal.SIGSTOP)
                    caller.wait_for(len(caller.lines) + 10)
                os.kill(process, signal.SIGKILL)
                caller.process.wait(60)
            eventually(lambda: ours(home) <= before - ({app.process.pid} if victim == "app" else set()))
        finally:
            caller.close()
        eventually(no_call_runs)
        if victim != "app":
            assert app.process.poll() is None
            app.type("\x11")  # ctrl+q
            assert app.process.wait(30) == 0
    eventually(lambda: not ours(home))

    found = records()
    ids = {record.args["number"] for record in found}
    assert len(ids) == len(found)
    answered = {int(line.split()[0]) for line in caller.lines if line[0].isdigit()}
    details = Counter(record.error.detail for record in found if record.error is not None)
    if victim == "client":
        # `serve` ends its calls; `watch` only those that waited for a person.
        assert set(details) <= ({"interrupted", "cancelled"} if program == "watch" else {"cancelled"})
        assert answered <= ids
        return
    responses, code = caller.end
    assert responses == len(answered)
    if victim == "app":
        assert (responses, code, len(found)) == (COUNT, 0, COUNT)
        assert set(details) <= {"denied"}  # Calls that waited for a person are rejected without the app.
    elif victim == "observer":
        assert (responses, code) == (COUNT, 0)
        assert set(details) <= {"interrupted"}
    elif program == "serve" and victim == "server":
        assert (responses, code, len(found)) == (COUNT, 0, COUNT)
        assert details in ({"crashed": 1}, {"cancelled": 1})
    else:
        assert (code, responses < COUNT) == (-signal.SIGKILL, True)
        # A client may cancel its calls when the connection ends, before `watch` has noticed the end.
        assert set(details) <= ({"interrupted", "cancelled"} if program == "watch" else {"interrupted"})
        assert program == "watch" or details["interrupted"] > COUNT // 10  # Also those that waited for a worker.
        # `serve` writes short calls in groups, and loses the last one.
        assert len(answered - ids) <= (0 if program == "watch" else COUNT // 10)
    if program == "watch" and victim != "observer":
        received = {json.loads(line)[1]["number"] for line in log.read_text("utf-8").splitlines()}
        assert received <= ids


@pytest.mark.promise("WAT-4")
def test_a_call_that_waits_behind_too_many_messages_to_be_checked_has_a_response(home: Path) -> None:
    ours, theirs = socket.socketpair()
    observing = threading.Thread(target=Observer(theirs).run)
    observing.start()
    with ours:
        ours.settimeout(30)
        line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"a":"%s"}}}'
        for number, text in enumerate((b"short", b"x" * 100_000), 1):
            ours.sendall(pack(OPENED, 1, 0, b"{}") + pack(CLIPPED_CLIENT, 1, number, clip(line % text)))
            verdict = next(frame for frame in frames(ours.recv) if frame.kind == VERDICT and frame.number == number)
            assert verdict.payload[:1] == REJECT
            assert json.loads(verdict.payload[1:])["id"] == 1
    observing.join(30)
    theirs.close()
