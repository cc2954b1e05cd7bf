"""`pegboard watch --hook`: pass an event of an agent to the observer of its session, and print the decision.

The agent waits for this program before and after every call, so it imports little; the observer stays until the session
ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from pegboard.config.paths import Paths
from pegboard.history.notify import SocketAddresses
from pegboard.storage import locked, make_folder, tighten
from pegboard.watch.link import spawn

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_SECONDS = 3600
"""Time after which the agent ends a hook and makes the call anyway, as `pegboard adopt` configures it."""
ANSWER_SECONDS = LIMIT_SECONDS - 100.0
"""Time for a decision, after which this program blocks the call."""
QWEN_SECONDS = 50.0
"""The same for Qwen Code, which makes the call after a minute, whatever limit its settings have."""
SHORT_SECONDS = 20.0
"""Time for the answer if there is nothing to decide."""
MOST_BYTES = 16 * 2**20
"""Size of an event beyond which it isn't read."""
BLOCKED = 2
"""Exit code with which a hook blocks a call; the agent passes stderr to the model."""
FAILED = 1
"""Exit code of a hook that failed; the agent makes the call, except for Copilot."""
CALLS = ("PreToolUse", "BeforeTool")
"""Events before a call: only these wait for a decision, and only these can block the call."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "ash"})
OF_QWEN = "tool_call_id"
"""Key that only calls of Qwen Code have."""
SESSION_KEYS = ("parentAgentId", "session_id", "sessionId", "conversation_id")
"""Keys of the session; a subagent of Copilot CLI has its own id, and the session of its parent."""
OBSERVER = "pegboard.watch.hooks.observer"

_ATTEMPTS = 3
_LONGEST_WALK = 16
_PROC = "/proc"
_PS_SECONDS = 2.0


def run(name: str) -> NoReturn:
    """Handle the event on stdin, and exit.

    Args:
        name: Name of the agent in rules and records.
    """
    paths = Paths.from_environment()
    is_call, passes = True, FAILED
    try:
        body = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(MOST_BYTES + 1)
        event = _read(body)
        is_call = event.get("hook_event_name") in CALLS
        if is_of_copilot(event):
            is_call, passes = is_call_of_copilot(event), 0
        process = agent_process()
        header = json.dumps({"name": name, "process": process, "size": len(body)})
        seconds = QWEN_SECONDS if OF_QWEN in event else ANSWER_SECONDS
        seconds = seconds if is_call and _may_reject(paths) else SHORT_SECONDS
        answer = _ask(paths, _session_of(event, process), header.encode() + b"\n" + body, seconds)
    except (OSError, ValueError, KeyboardInterrupt) as error:
        reason = str(error) or type(error).__name__
        reason = "no one answered in time" if isinstance(error, TimeoutError) else reason
        reason = "ctrl+c interrupted the hook" if isinstance(error, KeyboardInterrupt) else reason
        answer = {"output": "", "failure": reason, "messages": []}
    for message in answer["messages"]:
        sys.stderr.write(f"pegboard watch: {message}\n")
    if answer["failure"]:
        blocks = is_call and _may_reject(paths)
        sys.stderr.write(f"pegboard watch: {answer['failure']}.{' The call was not made.' if blocks else ''}\n")
        sys.exit(BLOCKED if blocks else passes)
    with suppress(OSError):  # The agent no longer waits.
        os.write(1, answer["output"].encode())
    sys.exit()


def _may_reject(paths: Paths) -> bool:
    """Return whether rules or a pause may apply to a call; if none can, a failure doesn't concern the agent."""
    return os.path.lexists(paths.approvals) or os.path.lexists(paths.brake)


def is_of_copilot(event: dict[str, Any]) -> bool:
    """Return whether an event is one of GitHub Copilot CLI, which leaves out the event's name."""
    return "sessionId" in event and "hook_event_name" not in event


def is_call_of_copilot(event: dict[str, Any]) -> bool:
    """Return whether an event of Copilot CLI comes before a call."""
    return "toolArgs" in event and event.get("toolResult") is None and event.get("error") is None


def _read(body: bytes) -> dict[str, Any]:
    """Return an event.

    Raises:
        ValueError: It isn't one.
    """
    if len(body) > MOST_BYTES:
        raise ValueError(f"the event has more than {MOST_BYTES:,} bytes")
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise ValueError("stdin has no event; configure this command as a hook of an agent")  # noqa: TRY004 - input
    return event


def _session_of(event: dict[str, Any], process: int) -> str:
    named = next((event[key] for key in SESSION_KEYS if isinstance(event.get(key), str)), "")
    return named or f"process {process}"


def agent_process() -> int:
    """Return the id of the agent's process: the first ancestor of this one that isn't a shell."""
    process = os.getppid()
    with suppress(OSError, ValueError):
        for _ in range(_LONGEST_WALK):
            parent, names = _parent_by_proc(process) if os.path.isdir(f"{_PROC}/self") else _parent_by_ps(process)  # noqa: PTH112
            if SHELLS.isdisjoint(names):
                break
            process = parent
    return process


def _parent_by_proc(process: int) -> tuple[int, set[str]]:
    """Return the parent of a process and its names: its own and that of its program.

    Raises:
        OSError: The process has ended.
    """
    with open(f"{_PROC}/{process}/stat", "rb") as file:  # noqa: PTH123 - pathlib delays the agent
        about = file.read()
    names = {about[about.index(b"(") + 1 : about.rindex(b")")].decode("utf-8", "replace")}
    with suppress(OSError):  # A script has its own name, but the program of its shell.
        names.add(os.path.basename(os.readlink(f"{_PROC}/{process}/exe")))  # noqa: PTH115, PTH119 - as above
    return int(about.rpartition(b")")[2].split()[1]), names


def _parent_by_ps(process: int) -> tuple[int, set[str]]:
    """Return the same on systems without `/proc`, such as macOS, where the name is the path of the program.

    Raises:
        OSError, ValueError: That is unknown.
    """
    import subprocess

    command = ["ps", "-o", "ppid=,comm=", "-p", str(process)]
    try:
        shown = subprocess.run(  # noqa: S603 - no text of others
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PS_SECONDS, check=False
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise OSError(str(error)) from None
    parent, _, program = shown.decode("utf-8", "replace").strip().partition(" ")
    return int(parent), {program.strip().rpartition("/")[2].removeprefix("-")}


def _ask(paths: Paths, session: str, message: bytes, seconds: float) -> dict[str, Any]:
    """Return the observer's answer to a message; start the observer if it doesn't run.

    Args:
        paths: Pegboard's paths.
        session: The session.
        message: The message.
        seconds: Time for the answer.

    Raises:
        OSError: It can't be started, or doesn't answer in time.
        ValueError: It answers with something else.
    """
    name = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    make_folder(paths.hooks)
    tighten(paths.hooks)
    for _ in range(_ATTEMPTS):  # An observer may end while a hook connects to it.
        with _connected(paths.hooks, f"{name}.sock") as link:
            link.settimeout(seconds)
            answer = b""
            with suppress(BrokenPipeError, ConnectionResetError):
                link.sendall(message)
                while chunk := link.recv(2**16):
                    answer += chunk
        if answer:
            found = json.loads(answer)
            assert isinstance(found, dict), "it answers with an object"
            return found
    raise OSError("the process that records calls has ended")


def _connected(folder: Path, name: str) -> socket.socket:
    """Return a connection to the observer, which is started if it doesn't run.

    Raises:
        OSError: It can't be started.
    """
    with SocketAddresses(folder) as addresses:
        address = addresses.of(name)
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return _connection(address)
        with locked(folder / name):
            with suppress(FileNotFoundError, ConnectionRefusedError):
                return _connection(address)  # Another hook has started it meanwhile.
            with suppress(FileNotFoundError):
                os.unlink(address)  # noqa: PTH108 - not the path
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(address)
                listener.listen(128)
                spawn(OBSERVER, listener.fileno(), os.fspath(folder / name))
            return _connection(address)


def _connection(address: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(address)
    except OSError:
        link.close()
        raise
    return link
