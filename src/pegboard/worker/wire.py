"""What a worker and the executor write to each other: JSON objects, one a line, over two pipes of their own.

Executor → worker, one request at a time, and meanwhile a reply to whatever the tool asks::

    {"id": 7, "pack": "fs", "file": "/…/fs.py", "function": "read_file", "args": {…}, "keep": "/…/ab12.json",
     "limit": 1000000, "caller": "user" | "agent", "config": {…}, "secrets": {"NAME": "…" | null},
     "environment": {"NAME": "…"}}
    {"reply": 1, "data": …, "file": null | "/…/cd34.json", "error": null | {…}}
    {"reply": 2, "packs": {"fs": {"tools": ["read_file", …], "aliases": {…}, "file": "/…/fs.py"}, …}}
    {"reply": 3, "source": null | "environment", "reason": ""}

Worker → executor, at the start and then for each request any number of those between, and one of the last::

    {"ready": 1234}
    {"id": 7, "log": "text"}
    {"id": 7, "done": 3, "total": 10, "message": "…"}
    {"id": 7, "ask": 1, "call": "fs.read_file", "args": {…}}
    {"id": 7, "ask": 2, "packs": true}
    {"id": 7, "ask": 3, "secret": "NAME"}
    {"id": 7, "refused": "NAME"}
    {"id": 7, "ms": 1.5, "size": 12, "data": …, "error": null | {…}, "truncated": null | {…}, "spent": false}

`caller` is who started the call, as `pegboard.sdk.caller` returns it.
`ready` has the worker's process id. `keep` is where a result of more than `limit` bytes is written whole; where a reply
names a `file`, all of the data is there. `config` and `secrets` are what the pack may know, and `environment` has
variables for packs that aren't built in; each is left out if it is empty. A worker that received any of them
runs that pack only. It reports which secret was `refused`, and may ask where one comes from, not its value.
`spent` says that the worker should not be used again. `error` has `code`, `message`, `detail`, `faults`,
`traceback`, and `said` where the tool's author worded it. What has another `id` than the request that runs is
nobody's, and dropped.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_REST = 8_000_000
"""Bytes that a message may have beside its data: an error with all its faults, a long log line."""


def line(message: Mapping[str, object]) -> bytes:
    """Writes a request; in ASCII, so that even text that has no UTF-8 form arrives.

    Raises:
        TypeError, ValueError, RecursionError: Something in it is no JSON.
    """
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
