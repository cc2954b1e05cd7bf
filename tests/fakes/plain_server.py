"""A stdio server in a few lines, whose tools make a test's cases: `python plain_server.py [LOG]`.

Calls of the tool `later` run at the same time, all others one after the other.

It appends the name and the arguments of each call that it receives to the file LOG.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": name, "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}
    for name in ("say", "delete", "large", "die", "never", "fail", "environment", "later")
]


def task(id_: str, status: str) -> dict[str, Any]:
    """Return the state of a task; the tool is its id."""
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    return {"taskId": id_, "status": status, "ttl": None, **times}


def of_task(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request about a task."""
    match method:
        case "tools/call":
            return {"task": task(params["name"], "working")}
        case "tasks/result":
            text = {"type": "text", "text": "late"}
            return {"content": [text], "isError": params["taskId"] == "fail"}
        case "tasks/cancel":
            return task(params["taskId"], "cancelled")
        case _:
            notification = {"method": "notifications/tasks/status", "params": task(params["taskId"], "completed")}
            print(json.dumps({"jsonrpc": "2.0", **notification}), flush=True)
            return task(params["taskId"], "working")


def respond(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the response to a request."""
    params = message.get("params") or {}
    if "task" in params or "taskId" in params:
        return {"jsonrpc": "2.0", "id": message["id"], "result": of_task(message["method"], params)}
    match message.get("method"):
        case "initialize":
            server = {"name": "plain", "version": "1"}
            capabilities: dict[str, Any] = {"tools": {}}
            version = params.get("protocolVersion", "2025-11-25")
            result: Any = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server}
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            args = params.get("arguments") or {}
            if len(sys.argv) > 1:
                with Path(sys.argv[1]).open("a", encoding="utf-8") as log:
                    log.write(json.dumps([params.get("name"), args]) + "\n")
            text = str(args.get("text", "hi"))
            match params.get("name"):
                case "never":
                    return None
                case "die":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "large":
                    text = "x" * int(args.get("size", 1_000_000))
                case "environment":
                    text = json.dumps(dict(os.environ))
                case _:
                    time.sleep(float(args.get("seconds", 0)))
            content: list[dict[str, Any]] = [{"type": "text", "text": text}]
            result = {"content": content, "isError": params.get("name") == "fail"}
            if "image" in args:
                content.append({"type": "image", "mimeType": "image/png", "data": args["image"]})
                result["structuredContent"] = {"dots": 1}
            if "note" in args:
                result["_meta"] = {"note": args["note"]}
        case _:
            result = {}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


_WRITING = threading.Lock()


def answer(message: dict[str, Any]) -> None:
    """Write the response to a request, if it has one."""
    response = respond(message)
    if response is not None:
        with _WRITING:
            try:
                sys.stdout.write(json.dumps(response) + "\n")
                sys.stdout.flush()
            except BrokenPipeError:  # the client has left
                os._exit(1)


def main() -> None:
    """Serve."""
    sys.stdin.reconfigure(newline=None)  # type: ignore[union-attr]  # Servers of the MCP SDK end lines at "\r" too.
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        for one in message if isinstance(message, list) else [message]:
            if not isinstance(one, dict) or "id" not in one:
                continue
            params = one.get("params")
            if isinstance(params, dict) and params.get("name") == "later":
                threading.Thread(target=answer, args=[one]).start()
            else:
                answer(one)


if __name__ == "__main__":
    main()
