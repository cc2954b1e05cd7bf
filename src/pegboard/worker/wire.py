"""Protocol between worker and executor: JSON objects, one per line, over two pipes.

Executor → worker: one request at a time, and replies to the questions of the running tool::

    {"id": 7, "pack": "fs", "file": "/…/fs.py", "function": "read_file", "args": {…}, "keep": "/…/ab12.json",
     "limit": 1000000, "images": true, "caller": "user" | "agent", "config": {…},
     "secrets": {"NAME": "…" | null}, "environment": {"NAME": "…"}}
    {"reply": 1, "data": …, "file": null | "/…/cd34.json", "error": null | {…}}
    {"reply": 2, "packs": {"fs": {"tools": ["read_file", …], "aliases": {…}, "file": "/…/fs.py"}, …}}
    {"reply": 3, "source": null | "environment", "reason": ""}

Worker → executor: `ready` at the start; then for each request any number of messages, and one answer with `data`::

    {"ready": 1234}
    {"id": 7, "log": "text"}
    {"id": 7, "done": 3, "total": 10, "message": "…"}
    {"id": 7, "ask": 1, "call": "fs.read_file", "args": {…}}
    {"id": 7, "ask": 2, "packs": true}
    {"id": 7, "ask": 3, "secret": "NAME"}
    {"id": 7, "refused": "NAME"}
    {"id": 7, "ms": 1.5, "size": 12, "data": …, "error": null | {…}, "truncated": null | {…}, "spent": false}

`caller`: who started the call, as in `pegboard.sdk.caller`.
`keep`: file for a result larger than `limit` bytes. A reply with a `file` has its data there.
`images`: whether images in a result are saved beside that file.
`config`, `secrets`: configuration of the pack and secrets granted to it; omitted if empty.
`environment`: variables for packs that are not built in; omitted if empty.
    A worker that received `config`, `secrets` or `environment` runs only that pack.
`ready`: process id of the worker.
`ask` with `secret`: question for the source of a secret, not its value.
`refused`: secret that was requested but not granted.
`spent`: whether the worker must not be reused.
`error`: has `code`, `message`, `detail`, `faults`, `traceback`, and `said` if the tool raised `ToolFailed`.

Messages with another `id` than the running request are ignored.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_REST = 8_000_000
"""Maximum size of a message without its data in bytes, such as an error or a long log message."""


def line(message: Mapping[str, object]) -> bytes:
    """Return a message as a line of JSON, in ASCII to preserve text that has no UTF-8 form.

    Raises:
        TypeError, ValueError, RecursionError: The message has no JSON form.
    """
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
