"""Main loop of the worker process: receives requests, runs them one by one, and sends answers."""

from __future__ import annotations

import os
import sys
from _thread import RLock, allocate_lock, start_new_thread
from contextlib import suppress
from itertools import count
from json import loads
from os import getpid, write
from time import perf_counter

from pegboard.sdk.failure import ToolFailed
from pegboard.sdk.host import Host, install
from pegboard.sdk.values import NotSerializableError, encode
from pegboard.worker.errors import failure
from pegboard.worker.inbox import Inbox
from pegboard.worker.invocation import Caller, CallOutcome, flush_native
from pegboard.worker.isolation import ProcessState, configure, confine
from pegboard.worker.leftovers import Leftovers
from pegboard.worker.wire import LONGEST_REST

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any  # fields of messages, described in `wire`

    from pegboard.sdk.host import CallerKind

_PROGRESS_SECONDS = 0.02
_LONGEST_PROGRESS_MESSAGE = 1_000
_LOG_PIECE = 65_536
"""Maximum length of one log message in characters; longer ones are split."""


def main() -> None:
    """Serve requests until the end of the pipe.

    Command-line arguments: descriptor of the requests, descriptor of the answers, memory limit in bytes.
    """
    requests, answers, memory_limit = map(int, sys.argv[1:4])
    sys.argv[1:] = []
    confine(memory_limit)
    for descriptor in (requests, answers):
        os.set_inheritable(descriptor, False)
    for stream in (sys.stdout, sys.stderr):
        configure(stream)
    inbox = Inbox(requests)
    worker = Worker(answers, inbox)
    while request := inbox.request():
        worker.serve(request)
    worker.close()


class Worker(Host):
    """Host of the tools in a worker process.

    Args:
        answers: Descriptor for answers and messages.
        inbox: Source of replies.
    """

    def __init__(self, answers: int, inbox: Inbox) -> None:
        self._answers = answers
        self._inbox = inbox
        self._numbers = count(1)
        self._names: dict[str, str] = {}  # file → pack
        self._pack: str | None = None
        self._config: dict[str, object] = {}
        self._secrets: dict[str, str | None] = {}
        self._called_by: CallerKind = "agent"
        self._known_packs: dict[str, dict[str, Any]] | None = None
        self._longest_question = LONGEST_REST
        self._process = getpid()
        self._writing = RLock()
        self._request = 0
        self._progress_at = 0.0
        self._held_progress: bytes | None = None
        self._has_sender = False
        """Whether a thread waits to send the held progress."""
        self._waiting = allocate_lock()
        """Held while that thread waits; releasing it ends the wait."""
        self._waiting.acquire()
        self._caller = Caller()
        self._state = ProcessState()
        self._leftovers = Leftovers()
        # unless it forks, `multiprocessing` imports this module in the processes that it starts
        sys.modules["__main__"].__spec__ = self._caller.main
        install(self)
        self._write({"ready": self._process})

    def serve(self, request: dict[str, Any]) -> None:
        """Run one request and send its answer."""
        self._request = request["id"]
        self._pack = pack = request["pack"]
        self._names[request["file"]] = pack
        self._config = request.get("config", {})
        self._secrets = request.get("secrets", {})
        self._called_by = "user" if request.get("caller") == "user" else "agent"
        self._progress_at = 0.0
        self._known_packs = None
        self._longest_question = request["limit"] + LONGEST_REST
        install(self)  # a tool may have installed another host
        self._state.extend(request.get("environment", {}))
        outcome = self._caller.call(request["file"], request["function"], request["args"])
        if getpid() != self._process:  # the tool forked, and the child returned too
            os._exit(0)
        self._pack, self._config, self._secrets = None, {}, {}
        if self._has_sender and self._waiting.locked():
            self._waiting.release()  # otherwise the thread would be a leftover of the call
        spent = not self._state.restore() or outcome.spent or self._leftovers.any()
        flush_native()
        self._write_held_progress()
        if request["images"] and b':"image/' in outcome.data:
            _save_images(outcome, request["keep"])
        size = len(outcome.data)
        truncated = _truncate(outcome, request["keep"], request["limit"]) if size > request["limit"] else None
        head = {
            "id": self._request,
            "ms": self._caller.ms,
            "size": 0 if outcome.error is not None and outcome.data == b"null" else size,
            "error": outcome.error,
            "truncated": truncated,
            "spent": spent,
        }
        self._write_line(encode(head)[:-1] + b',"data":' + outcome.data + b"}\n")

    def close(self) -> None:
        """Close the event loop of asynchronous tools."""
        self._caller.close()

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Send progress, at most 50 times per second; the last message is always sent, though a moment later."""
        progress = {
            "id": self._request,
            "done": float(done),
            "total": None if total is None else float(total),
            "message": str(message)[:_LONGEST_PROGRESS_MESSAGE],
        }
        if getpid() != self._process:  # a forked child shares the pipe, but not the lock
            return
        with self._writing:
            now = perf_counter()
            self._held_progress = encode(progress) + b"\n"
            if now - self._progress_at >= _PROGRESS_SECONDS:
                self._progress_at = now
                self._write_held_progress()
            elif not self._has_sender:
                with suppress(RuntimeError):  # no further thread can be started; the end of the call sends it
                    start_new_thread(self._send_held_progress, ())
                    self._has_sender = True

    def _send_held_progress(self) -> None:
        """Send the last progress in a thread, as the tool may report no other for a long time."""
        self._waiting.acquire(timeout=_PROGRESS_SECONDS)
        with self._writing:
            self._has_sender = False
            self._progress_at = perf_counter()
            self._write_held_progress()

    def log(self, message: str) -> None:
        """Send a message of the tool."""
        if getpid() != self._process:  # a forked child shares the pipe, but not the lock
            super().log(message)
            return
        text = f"{message}\n"
        with self._writing:
            for start in range(0, len(text), _LOG_PIECE):
                self._write({"id": self._request, "log": text[start : start + _LOG_PIECE]})

    def call(self, tool: str, arguments: Mapping[str, object]) -> object:
        """Call another tool through Pegboard, in another process; see `Host.call`."""
        if "." not in tool and tool not in self.aliases():
            raise self._not_found(tool)
        try:
            reply = self._reply({"call": tool, "args": dict(arguments)})
        except NotSerializableError as unfit:
            raise TypeError(
                f"{tool} was not called because its arguments can't be converted to JSON: {unfit.fault}."
            ) from None
        data = reply["data"] if reply["file"] is None else _read_whole(reply["file"])
        error = reply["error"]
        if error is None:
            return data
        message = error["message"]
        match error["code"]:
            case "tool_not_found" if error["detail"] is None:
                raise self._not_found(tool)
            case "tool_not_found":
                raise ValueError(message)
            case "invalid_args":
                raise TypeError(message)
        if error["said"]:
            raise ToolFailed(message, error["detail"], data)
        raise RuntimeError(f"{tool} failed: {message}")

    def packs(self) -> Mapping[str, Sequence[str]]:
        """Return the available packs; see `Host.packs`."""
        return {name: pack["tools"] for name, pack in self._all_packs().items()}

    def refresh(self) -> None:
        """Discard the known packs, so that the next use requests them again."""
        self._known_packs = None

    def aliases(self) -> Mapping[str, str]:
        """Return the aliases of all tools; see `Host.aliases`."""
        return {
            alias: f"{name}.{function}"
            for name, pack in self._all_packs().items()
            for alias, function in pack["aliases"].items()
        }

    def sources(self) -> Mapping[str, str]:
        """Return the source files of the packs that have one."""
        return {name: pack["file"] for name, pack in self._all_packs().items() if pack["file"]}

    def secret(self, pack: str | None, name: str) -> str | None:
        """Return a secret of the running pack; see `Host.secret`."""
        if pack is not None and pack == self._pack and name in self._secrets:
            return self._secrets[name]
        if getpid() == self._process:
            self._write({"id": self._request, "refused": name})
        from pegboard.sdk.secret_checks import not_granted_message

        self.log(not_granted_message(pack or "?", name))
        return None

    def find_secret(self, name: str) -> tuple[str | None, str]:
        """Return the source of a secret; see `Host.find_secret`."""
        reply = self._reply({"secret": name})
        return reply["source"], reply["reason"]

    def config(self, pack: str | None) -> Mapping[str, object]:
        """Return the configuration of the running pack; empty for others."""
        return self._config if pack is not None and pack == self._pack else {}

    def pack_of(self, namespace: Mapping[str, object]) -> str | None:
        """Return the pack that these module globals belong to, or None if it has not run in this process."""
        return self._names.get(self._caller.file_of(namespace) or "")

    def running_pack(self) -> str | None:
        """Return the pack whose call is running, or None."""
        return self._pack

    def caller(self) -> CallerKind:
        """Return who started the running call."""
        return self._called_by

    def _all_packs(self) -> dict[str, dict[str, Any]]:
        packs = self._known_packs
        if packs is None:
            packs = self._known_packs = self._reply({"packs": True})["packs"]
        return packs

    def _not_found(self, tool: str) -> ValueError:
        from pegboard.sdk.names import not_found

        return not_found(tool, self.packs())

    def _reply(self, question: dict[str, object]) -> dict[str, Any]:
        """Send a question to Pegboard and wait for the reply."""
        if getpid() != self._process:
            raise RuntimeError("A process forked by a tool can't use Pegboard. Call other tools before the fork.")
        number = next(self._numbers)
        line = encode({"id": self._request, "ask": number, **question}) + b"\n"
        if len(line) > self._longest_question:
            raise RuntimeError(
                f"The arguments are too large: they have {len(line):,} bytes, and the limit is "
                f"{self._longest_question:,}."
            )
        return self._inbox.reply(number, lambda: self._write_line(line))

    def _write_held_progress(self) -> None:
        held, self._held_progress = self._held_progress, None
        if held is not None:
            self._write_line(held)

    def _write(self, message: dict[str, object]) -> None:
        self._write_line(encode(message) + b"\n")

    def _write_line(self, line: bytes) -> None:
        rest = memoryview(line)
        with self._writing:
            while rest:
                rest = rest[write(self._answers, rest) :]


def _save_images(outcome: CallOutcome, file: str) -> None:
    """Save the images in the data, and keep the lines with their files in the outcome.

    Args:
        outcome: Outcome of the call.
        file: File for large data; those of images are beside it.
    """
    from pegboard.results.media import MediaFiles, may_have_images, with_saved_images

    if not may_have_images(outcome.data):
        return
    folder, _, name = file.rpartition(os.sep)
    with suppress(MemoryError):
        outcome.data = encode(with_saved_images(loads(outcome.data), MediaFiles(folder, name.removesuffix(".json"))))


def _truncate(outcome: CallOutcome, file: str, limit: int) -> dict[str, object] | None:
    """Write large data to a file and keep only its start in the outcome; if that fails, set an error instead."""
    from pegboard.results.shorten import shorten

    size = len(outcome.data)
    try:
        _write_whole(file, outcome.data)
        shown, shown_bytes = shorten(loads(outcome.data), limit)
        outcome.data = encode(shown)
    except OSError as error:
        message = f"The result of {size:,} bytes could not be written to {file}: {error.strerror}."
        outcome.data, outcome.error = b"null", failure("execution_error", message, "not_kept")
        return None
    except MemoryError:
        message = f"The result of {size:,} bytes exceeds the memory limit of the tool."
        outcome.data, outcome.error = b"null", failure("execution_error", message, "out_of_memory")
        return None
    return {"shown_bytes": shown_bytes, "total_bytes": size, "file": file}


def _read_whole(file: str) -> object:
    """Read the large result of another call from its file.

    Raises:
        RuntimeError: The file can't be read.
    """
    try:
        with open(file, "rb") as whole:  # noqa: PTH123 - pathlib is too heavy for a worker
            return loads(whole.read())
    except OSError as error:
        raise RuntimeError(f"The result in {file} could not be read: {error.strerror}.") from error


def _write_whole(file: str, data: bytes) -> None:
    """Write the file of a result atomically."""
    from pegboard import storage

    storage.make_folder(os.path.dirname(file))  # noqa: PTH120 - pathlib is too heavy for a worker
    storage.write(file, data)
