"""Calls on a machine of a cluster: the part of a remote engine that runs there.

Each call runs in one of Pegboard's own worker processes, started by the process of the cluster's worker. That costs a
millisecond and a process, and keeps every promise of local calls: a tool that hangs, crashes or exhausts memory fails
only its own call instead of ending the cluster's worker with the calls of others, the time limit ends it, and it sees
neither the environment of the cluster's worker nor the secrets of other packs.

A task is one call or several. It is bound to one process (`Node.id`) and has an id that runs only once in it: if the
cluster repeats a task by itself, as Dask does after it loses a worker, the second attempt is refused.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections import OrderedDict
from contextlib import aclosing, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final  # Any: fields of a message

from pegboard import __version__
from pegboard.batch.bundle import digest_of
from pegboard.batch.node_folder import NodeFolder
from pegboard.built_in import BUILT_IN_PACKS
from pegboard.executor import Executor
from pegboard.models import Finished, PackHandler, Requirement, ToolCall, ToolResult, ToolSpec
from pegboard.ports import Granted

LEASE_SECONDS: Final = 300.0
"""Time after which a batch is forgotten whose submitting process sends no renewal."""
_MOST_IDS: Final = 100_000
REFUSED: Final = "refused"
"""Key of the answer to a task that may not run here; its value is the reason, one of the following."""
REPEATED: Final = "repeated"
FORGOTTEN: Final = "forgotten"
"""This process has released the batch, so the task never started."""
REPLACED: Final = "replaced"
"""The task is bound to an earlier process, which may have started it."""
WAITS: Final = "waits"
"""Key of the answer to a call that was not started."""
CANCELLED: Final = ToolResult.failed("execution_error", "The call was cancelled.", "cancelled")
"""Result of a call that was cancelled before it started."""


class Node:
    """State of one process of a cluster: installed packs, a worker pool and its event loop."""

    def __init__(self) -> None:
        self.id = os.urandom(16).hex()
        self._folder: NodeFolder | None = None
        self._specs: dict[str, ToolSpec] = {}
        self._executors: dict[str, Executor] = {}
        self._grants: dict[str, _NodeGrants] = {}
        self._renewed: dict[str, float] = {}
        self._seen = _LatestIds()
        self._cancelled = _LatestIds()
        self._guard = threading.Lock()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="pegboard-node", daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._release_abandoned(), self._loop)

    def install(
        self, batch: str, digest: str, file: str, files: dict[str, bytes], spec: str, limits: dict[str, int]
    ) -> None:
        """Store a pack and a tool of it for one batch, whose secrets and workers no other batch shares."""
        found = ToolSpec.model_validate_json(spec)
        assert isinstance(found.handler, PackHandler), "only these are sent"
        if files and (digest_of(files) != digest or any(map(_leads_out, files))):
            raise ValueError("the files of the pack were changed on their way")
        with self._guard:
            self._folder = self._folder or NodeFolder()
            if files:
                folder = self._folder.path / digest
                folder.mkdir(mode=0o700, exist_ok=True)
                for name, content in files.items():
                    (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    (folder / name).write_bytes(content)
                path = folder / file
            else:
                path = BUILT_IN_PACKS / file
            handler = found.handler.model_copy(update={"file": str(path)})
            self._renewed[batch] = time.monotonic()
            if batch in self._executors:  # its calls may be running
                return
            self._specs[batch] = found.model_copy(update={"handler": handler})
            self._grants[batch] = grants = _NodeGrants()
            results = self._folder.path / "results"
            results.mkdir(mode=0o700, exist_ok=True)
            self._executors[batch] = Executor(
                results=results,
                grants=grants,
                memory_limit=limits["memory_limit"],
                log_limit=limits["log_limit"],
                result_limit=limits["result_limit"],
                save_images=False,  # the files here are deleted after the batch
            )

    def run(self, message: str) -> str:
        """Run calls one after another; block until they have finished, or took too long to start more."""
        task: dict[str, Any] = json.loads(message)
        with self._guard:
            if task["node"] != self.id:
                return json.dumps({REFUSED: REPLACED})
            if task["attempt"] in self._seen:
                return json.dumps({REFUSED: REPEATED})
            if task["batch"] not in self._specs:
                return json.dumps({REFUSED: FORGOTTEN})
            self._seen.add([task["attempt"]])
        return asyncio.run_coroutine_threadsafe(self._run(task), self._loop).result()

    async def _run(self, task: dict[str, Any]) -> str:
        spec, executor = self._specs[task["batch"]], self._executors[task["batch"]]
        self._grants[task["batch"]].granted = Granted(task["config"], task["secrets"])
        began, size = time.monotonic(), 0
        answers: list[dict[str, Any]] = []
        for message in task["calls"]:
            if answers and (size > task["bytes"] or time.monotonic() - began > task["seconds"]):
                answers.append({WAITS: True})
                continue
            described = json.loads(message)
            timeout = described.pop("timeout")
            answer = await self._call(executor, spec, ToolCall.model_validate(described), timeout)
            size += len(answer["result"]) + len(answer["whole"] or "")
            answers.append(answer)
        return json.dumps({"answers": answers, "seconds": time.monotonic() - began})

    async def _call(
        self,
        executor: Executor,
        spec: ToolSpec,
        call: ToolCall,
        timeout: float,  # noqa: ASYNC109 - it bounds the tool
    ) -> dict[str, Any]:
        if call.id in self._cancelled:
            return answer_of(CANCELLED)
        async with aclosing(executor.run(spec, call, timeout=timeout)) as events:
            async for event in events:
                if isinstance(event, Finished) and event.owner == call.id:
                    whole = None
                    if event.result.meta.truncated is not None:
                        whole = await asyncio.to_thread(_take_file, event.result.meta.truncated.file)
                    return answer_of(event.result, whole)
        raise AssertionError("a call always ends with Finished")

    def renew(self, batch: str) -> None:
        """Keep a batch for another `LEASE_SECONDS`."""
        with self._guard:
            if batch in self._renewed:
                self._renewed[batch] = time.monotonic()

    async def release(self, batch: str) -> None:
        """Forget a batch with its secrets, end its processes, and delete all files after the last one."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._release(batch), self._loop))

    async def _release(self, batch: str) -> None:
        with self._guard:
            self._renewed.pop(batch, None)
            self._specs.pop(batch, None)
            self._grants.pop(batch, None)
            executor = self._executors.pop(batch, None)
        if executor is not None:
            await executor.close()  # first, because its processes may write to the folder
        with self._guard:
            if not self._specs and self._folder is not None:
                self._folder.delete()
                self._folder = None

    async def _release_abandoned(self) -> None:
        """Release the batches whose submitting process has ended without doing so."""
        while True:
            await asyncio.sleep(LEASE_SECONDS / 10)
            with self._guard:
                old = [one for one, at in self._renewed.items() if at < time.monotonic() - LEASE_SECONDS]
            for batch in old:
                await self._release(batch)

    def cancel(self, call_ids: list[str]) -> None:
        """End running calls, and don't start those that wait here or are still on their way."""
        with self._guard:
            self._cancelled.add(call_ids)
        for executor in [*self._executors.values()]:
            for call_id in call_ids:
                asyncio.run_coroutine_threadsafe(executor.cancel(call_id), self._loop)


class _LatestIds:
    """The ids that were added last, as many as can matter."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, one: str) -> bool:
        return one in self._ids

    def add(self, ids: list[str]) -> None:
        """Add ids, and forget the oldest if they are too many."""
        self._ids.update(dict.fromkeys(ids))
        while len(self._ids) > _MOST_IDS:
            self._ids.popitem(last=False)


def answer_of(result: ToolResult, whole: str | None = None) -> dict[str, Any]:
    """Return the answer to a call.

    Args:
        result: The result.
        whole: The JSON of its data if it is too large to be kept in the result.
    """
    return {"result": result.model_dump_json(by_alias=True), "whole": whole}


def _take_file(name: str) -> str:
    """Return the content of a file and delete it."""
    file = Path(name)
    content = file.read_text("utf-8")
    with suppress(OSError):
        file.unlink()
    return content


class _NodeGrants:
    """Configuration and secrets that the submitting side granted to a pack. A `pegboard.ports.Grants`."""

    granted = Granted({}, {})

    def known(self, handler: PackHandler) -> Granted | None:
        """Return what came with the last call; it is the same for all calls of a batch."""
        return self.granted

    async def look_up(self, handler: PackHandler) -> Granted:
        """Return what came with the last call."""
        return self.granted

    def refuse(self, handler: PackHandler, name: str) -> None:
        """Ignore a secret that wasn't granted; it reads as missing."""

    def where(self, name: str) -> tuple[str | None, str]:
        """Return whether a secret was granted."""
        return ("the submitting machine", "") if self.granted.secrets.get(name) else (None, f"{name} is not set.")


_guard = threading.Lock()
_nodes: dict[int, Node] = {}
"""The node of this process, by its id, because a fork must not use its parent's."""


def _node() -> Node:
    with _guard:
        if os.getpid() not in _nodes:
            _nodes[os.getpid()] = Node()
        return _nodes[os.getpid()]


def describe(*, is_local: bool = False) -> dict[str, str]:
    """Return the id of this process and its version of Pegboard; a local one then ignores ctrl+c of the terminal."""
    if is_local and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return {"id": _node().id, "version": __version__}


def _leads_out(name: str) -> bool:
    """Return whether a relative path may be outside its folder."""
    return PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts


def install(batch: str, digest: str, file: str, files: dict[str, bytes], spec: str, limits: dict[str, int]) -> None:
    """Store a pack and a tool of it in this process for one batch."""
    _node().install(batch, digest, file, files, spec, limits)


def renew(batch: str) -> None:
    """Keep a batch in this process."""
    _node().renew(batch)


async def release(batch: str) -> None:
    """Forget a batch in this process."""
    await _node().release(batch)


def missing(requirements: str) -> list[str]:
    """Return a sentence for each program and library that a tool requires and this machine doesn't have."""
    from pegboard.executor.environment import worker_environment
    from pegboard.sdk.findings import report_row
    from pegboard.sdk.probes import probe_all
    from pegboard.sdk.requirements import DeclaredRequirement

    declared = [
        DeclaredRequirement(
            one.kind, one.name, version_flag=one.version_flag, min_version=one.min_version, install=one.install
        )
        for one in map(Requirement.model_validate, json.loads(requirements))
        if one.kind in ("cli", "lib") and not one.optional
    ]
    environ = worker_environment(os.environ)
    found = probe_all(declared, find_secret=lambda _: (None, ""), environ=environ)
    rows = [report_row("", requirement, result) for requirement, result in found]
    return [f"{row['error']} {row['install']}" for row in rows if row["status"] in ("missing", "outdated")]


def run_calls(message: str) -> str:
    """Run calls in this process and return the answers."""
    return _node().run(message)


def cancel_calls(call_ids: list[str]) -> None:
    """End running and waiting calls of this process."""
    _node().cancel(call_ids)
