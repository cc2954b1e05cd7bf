"""A server without an SDK that misbehaves: `python hostile_server.py MODE`, or `… MODE http PORT`.

It speaks protocol 2025-11-25 and serves the tools `ok` and `bad`; what else it does depends on the mode.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

sys.set_int_max_str_digits(0)
MODE = sys.argv[1]
IS_STREAM = MODE.endswith("-stream")
"""Whether each response over HTTP is an event."""
MODE = MODE.removesuffix("-stream")
DIES = {"dies": True}
ESCAPES = "\x1b]0;owned\x07\x1b[2J[bold red]x[/]\u202e\x00"
LINES = b"y\n" * 1000
BABBLE = {"garbage": b"log: " + b"x" * 1000 + b"\n", "lines": LINES, "endless": b"x" * 65536, "failing": LINES}
PAGES: dict[str, tuple[Any, ...]] = {
    "html": (200, "text/html", b"<html><head><title>Welcome</title></head></html>"),
    "missing": (404, "text/html", b"<html><title>404 Not Found</title></html>"),
    "get-only": (405, "text/plain", b"Method Not Allowed", ("allow", "GET")),
    "login": (401, "application/json", b'{"error": "invalid_token"}', ("www-authenticate", "Bearer")),
    "broken": (503, "text/plain", b"The database is down." + ESCAPES.encode()),
    "moved": (302, "text/plain", b"", ("location", "http://127.0.0.1:9/elsewhere")),
    "gzip": (200, "application/json", b"\x1f\x8b", ("content-encoding", "gzip")),
}
"""Responses to everything, over HTTP: status, media type, body, headers."""
FORGETFUL: dict[str, tuple[Any, ...]] = {
    "forgets": (404, "text/plain", b"Unknown session"),
    "forgets-400": (400, "application/json", b'{"error": {"code": -32000, "message": "No valid session ID provided"}}'),
}
"""Responses to requests of a session that has ended, over HTTP; the first call ends its session."""
NO_SESSION = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}'
NO_TENANT = b'{"jsonrpc": "2.0", "error": {"code": -32001, "message": "Unknown tenant", "data": "acme"}}'
PAGES |= {
    "no-tenant": (404, "application/json", NO_TENANT),
    "no-route": (404, "application/json", b'{"error": {"message": "No such route"}}'),
    "no-tenant-400": (400, "application/json", NO_TENANT),
}
REFUSED_CALLS: dict[str, tuple[Any, ...]] = {
    "broken-calls": PAGES["broken"],
    "no-session": (404, "application/json", NO_SESSION),
    "no-tenant-for-calls": PAGES["no-tenant"],
}
"""Responses to every call, over HTTP."""
FAILING_CALLS = {"fails-404": 404, "fails-400": 400}
"""Status of the responses to calls, over HTTP; the calls have run, and their errors mention a session."""
STREAMED = {"twice", "elicit", "withdrawn", "flood", "stdout"}
"""Modes that answer a call with a stream of events, over HTTP."""

_lock = threading.Lock()
_counts = {"calls": 0, "changes": 0}
_answers: dict[object, threading.Event] = {}
_received: dict[object, Any] = {}


PLAIN: dict[str, Any] = {"name": "ok", "description": "Fine.", "inputSchema": {"type": "object"}}
BAD: dict[str, Any] = {"name": "bad", "description": "Misbehave.", "inputSchema": {"type": "object"}}
PATHS = {"type": "object", "properties": {"path": {"type": "string", "description": "A path."}}}
TOTAL = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
TEXTS = {"description": ESCAPES, "title": ESCAPES}
NAMES = ("ok", "ok", "o k", "o/k", "о́к", "🔧", "", "a" * 300, "a" * 299 + "b", "-x", "..", "ok\n")
SCHEMAS: dict[str, Any] = {
    "no_schema": "none",
    "null_schema": None,
    "dangling": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}},
    "remote": {"type": "object", "$ref": "http://127.0.0.1:9/schema.json"},
    "invalid": {"type": "object", "properties": {"a": {"type": "any"}}},
    "loop": {"type": "object", "$ref": "#"},
}
LISTS: dict[str, list[Any]] = {
    "many": [{**PLAIN, "name": f"tool_{number}", "inputSchema": PATHS} for number in range(5000)],
    "names": [{**PLAIN, "name": name} for name in NAMES],
    "schemas": [
        PLAIN,
        *({**PLAIN, "name": name, "inputSchema": schema} for name, schema in SCHEMAS.items()),
        {**PLAIN, "name": "odd_output", "outputSchema": [1]},
        {**PLAIN, "name": "odd_annotations", "annotations": {"readOnlyHint": "yes", "title": 5}},
        {**PLAIN, "name": "odd_text", "description": 7, "title": ["x"], "icons": "none", "execution": 3},
        {"description": "no name"},
        "nonsense",
        None,
    ],
    "flaws": [
        {**PLAIN, "inputSchema": {"type": "object", "properties": {f"p{n}": {"type": "any"} for n in range(12)}}},
    ],
    "unreadable": [
        {**BAD, "inputSchema": {"type": "object", "x": json.loads("[" * 400 + "]" * 400)}},
        {**BAD, "name": "half", "description": "\ud800"},
        {**BAD, "name": "\ud800"},
        PLAIN,
    ],
    "tasks": [
        {**BAD, "execution": {"taskSupport": "required"}},
        {**PLAIN, "execution": {"taskSupport": "optional"}},
    ],
    "digits": [{**PLAIN, "inputSchema": {"type": "object", "maxProperties": 10**5000}}],
    "escapes": [
        {**TEXTS, "name": f"ok{ESCAPES}", "inputSchema": {"type": "object", "properties": {ESCAPES: TEXTS}}},
        {**BAD, **TEXTS},
    ],
    "icons": [
        {
            **PLAIN,
            "title": "All fine",
            "icons": [
                {"src": "https://example.org/a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"},
                {"src": "data:image/png;base64,AA=="},
                {"src": "javascript:alert(1)"},
                {"src": "file:///etc/passwd"},
                {"src": "data:image/png;base64," + "A" * 200_000},
                {"src": 7},
                "x",
            ],
        },
        {**BAD, "title": 5, "icons": "none", "annotations": {"title": "All bad"}},
    ],
    "titles": [
        {**PLAIN, "name": "get_user", "title": "Get User"},
        {**PLAIN, "name": "getUser2", "title": "Get User (2)"},
        {**PLAIN, "name": "find", "title": "Find a user"},
        {"name": "list_users", "title": "List Users", "inputSchema": {"type": "object"}},
    ],
    "required": [
        {**PLAIN, "inputSchema": {**PATHS, "required": ["file", "path"]}},
        {**BAD, "inputSchema": {**PATHS, "required": ["file"], "additionalProperties": False}},
        {**PLAIN, "name": "fine", "inputSchema": {**PATHS, "required": ["path"]}},
        {**PLAIN, "name": "either", "inputSchema": {**PATHS, "required": ["file"], "anyOf": [PATHS]}},
    ],
    "readonly": [{**PLAIN, "annotations": {"readOnlyHint": True, "destructiveHint": False}}, BAD],
    "mismatch": [{**BAD, "outputSchema": TOTAL}, {**PLAIN, "outputSchema": TOTAL}],
}


def tools() -> dict[str, Any]:
    """Return one page of the list of tools."""
    match MODE:
        case "cursor":
            return {"tools": [PLAIN], "nextCursor": "again"}
        case "cursors":
            return {"tools": [], "nextCursor": str(time.time_ns())}
        case "heavy":
            heavy = [{**PLAIN, "name": f"t{time.time_ns()}", "description": "x" * 10_000_000}]
            return {"tools": heavy, "nextCursor": str(time.time_ns())}
        case "churn":
            return {"tools": [PLAIN, {**BAD, "name": f"version_{_counts['changes']}"}]}
        case _:
            return {"tools": LISTS.get(MODE, [PLAIN, BAD])}


def contents(method: str) -> dict[str, Any]:
    """Return one page of a list of resources, templates or prompts."""
    kind = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}.get(method, "prompts")
    address = {"resources": "uri", "resourceTemplates": "uriTemplate"}.get(kind, "title")
    number = time.time_ns()
    item = {address: f"memo://{number}", "name": f"item_{number}"}
    match MODE:
        case "cursor":
            return {kind: [{**item, address: "memo://same", "name": "same"}], "nextCursor": "again"}
        case "cursors":
            return {kind: [], "nextCursor": str(number)}
        case "many":
            items = [{address: f"memo://{at}", "name": f"item_{at}"} for at in range(12_000)]
            return {kind: items}
        case "heavy":
            return {kind: [{**item, "description": "x" * 10_000_000}], "nextCursor": str(number)}
        case "names":
            return {kind: [{address: "memo://one", "name": name} for name in (*NAMES, 7, None)]}
        case _:
            good = {address: "memo://one", "name": "one", "arguments": [{"name": "lang", "title": "Language of all"}]}
            two = {address: "memo://two", "name": "two"}
            return {kind: [good, {address: 7}, "x", {"title": "no name"}, two]}


class Peer:
    """One connection: writes messages, and waits for answers to its own requests."""

    def write(self, message: object) -> None:
        """Write one message."""
        self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        """Write bytes to stdout."""
        with _lock:
            while data:
                data = data[os.write(1, data) :]

    def ask(self, number: str, method: str, params: dict[str, Any]) -> None:
        """Send a request and wait for its answer."""
        answered = _answers[number] = threading.Event()
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answered.wait(60)

    def die(self) -> None:
        """End the server."""
        os.write(2, b"I can't go on.\n")
        os._exit(3)

    def handle(self, message: dict[str, Any]) -> None:
        """Answer one message of the client."""
        method, number = message.get("method"), message.get("id")
        if method is None:
            if (answered := _answers.pop(number, None)) is not None:
                _received[number] = message.get("result")
                answered.set()
            return
        if number is None:
            return
        if method == "initialize" and MODE == "silent":
            return
        result = self.result(method, message.get("params") or {}, number)
        if result is not None:
            self.write({"jsonrpc": "2.0", "id": number, **result})

    def result(self, method: str, params: dict[str, Any], number: object) -> dict[str, Any] | None:
        """Return the answer to a request; None if there is none."""
        if method == "initialize":
            version = "1999-01-01" if MODE == "version" else "2025-11-25"
            odd = ESCAPES if MODE == "escapes" else ""
            info = {"name": f"hostile{odd}", "version": f"0{odd}"}
            return {
                "result": {
                    "protocolVersion": version,
                    "capabilities": {name: {"listChanged": True} for name in ("tools", "resources", "prompts")},
                    "serverInfo": info,
                    "instructions": odd + "\n".join(f"Rule {line} of the server." for line in range(60)) + odd,
                }
            }
        if method == "tools/list":
            return {"result": tools()}
        lists = {"resources/list", "resources/templates/list", "prompts/list"}
        if method in lists - ({"resources/templates/list"} if MODE == "untemplated" else set()):
            return {"result": contents(method)}
        if method == "tools/call":
            return self.call(params, number)
        if MODE == "hologram" and method == "prompts/get":
            good = {"role": "user", "content": {"type": "text", "text": "Hello."}}
            strange = {"role": "assistant", "content": {"type": "hologram", "data": 1}}
            return {"result": {"messages": [good, strange, {"role": "robot", "content": good["content"]}, "x"]}}
        if MODE == "hologram" and method == "resources/read":
            uri = params["uri"]
            return {"result": {"contents": [{"uri": uri, "text": "fine"}, {"uri": uri, "hologram": 1}, None]}}
        return {"error": {"code": -32601, "message": "Method not found" + ESCAPES * (MODE == "escapes")}}

    def call(self, params: dict[str, Any], number: object) -> dict[str, Any] | None:  # noqa: C901 - a case per mode
        """Return the result of a call, or misbehave."""
        _counts["calls"] += 1
        text = {"content": [{"type": "text", "text": "fine"}]}
        if MODE == "third" and _counts["calls"] % 3 == 0:
            self.die()
            return None
        if params.get("name") != "bad":
            return {"result": text}
        match MODE:
            case "twice":
                self.write({"jsonrpc": "2.0", "id": number, "result": text})
                return {"result": {"content": [{"type": "text", "text": "other"}]}}
            case "other_id":
                self.write({"jsonrpc": "2.0", "id": 987654, "result": text})
                return None
            case "huge":
                return {"result": {"content": [{"type": "text", "text": "x" * 60_000_000}]}}
            case "huge_tail":
                body = json.dumps({"result": {"content": [{"type": "text", "text": "x" * 60_000_000}]}})[:-1]
                self.raw(f'{body},"id":{number},"jsonrpc":"2.0"}}\n'.encode())
                return None
            case "elicit":
                schema = {"type": "object", "properties": {"name": {"type": "string", "default": "nobody"}}}
                for turn in range(100_000):
                    self.ask(f"q{turn}", "elicitation/create", {"message": "Well?", "requestedSchema": schema})
                return {"result": text}
            case "withdrawn":
                question = {"message": "Well?", "requestedSchema": {"type": "object", "properties": {}}}
                for turn in range(40):
                    self.write({"jsonrpc": "2.0", "id": turn, "method": "elicitation/create", "params": question})
                    withdrawn = {"requestId": turn, "reason": "timeout"}
                    self.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": withdrawn})
                self.ask("q", "roots/list", {})
                return {"result": {"content": [{"type": "text", "text": json.dumps(_received["q"])}]}}
            case "question":
                schema = {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 30}},
                    "required": ["name"],
                }
                self.ask("q", "elicitation/create", {"message": "Who?", "requestedSchema": schema, "mode": "form"})
                return {"result": text}
            case "questions":
                age = {"type": "integer", "default": 30}
                form = {"requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}, "age": age}}}
                asked = {name: threading.Event() for name in "abc"}
                _answers.update(asked)
                lines = [
                    {"jsonrpc": "2.0", "id": name, "method": "elicitation/create", "params": {**form, "message": name}}
                    for name in asked
                ]
                self.raw(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
                for answered in asked.values():
                    answered.wait(60)
                return {"result": {"content": [{"type": "text", "text": json.dumps(_received, sort_keys=True)}]}}
            case "url" | "url_again":
                visit = {"mode": "url", "message": "Sign in.", "url": "https://example.org/in", "elicitationId": "1"}
                if _counts["calls"] > 1 and MODE == "url":
                    return {"result": text}
                return {"error": {"code": -32042, "message": "Sign in first.", "data": {"elicitations": [visit]}}}
            case "slow":
                time.sleep(1)
                return {"result": text}
            case "flood":
                progress = {"progressToken": (params.get("_meta") or {}).get("progressToken"), "progress": 1}
                line = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}).encode()
                self.raw((line + b"\n") * 20_000)
                return {"result": text}
            case "escapes":
                os.write(2, ESCAPES.encode("utf-8", "replace") + b"\n")
                return {"result": {"isError": True, "content": [{"type": "text", "text": ESCAPES}]}}
            case "mismatch":
                return {"result": {**text, "structuredContent": {"total": "many"}, "_meta": {"trace": "abc"}}}
            case "content":
                return {"result": {"content": 5}}
            case "hologram":
                return {"result": {"content": [*text["content"], {"type": "hologram", "data": 1}, {"type": "image"}]}}
            case "nothing":
                return {"result": None}
            case "stdout":
                self.raw(b"debug: about to answer\n\n{broken\n\xff\xfe\n[1,2]\n")
                return {"result": text}
            case _:
                return {"error": {"code": -32000, "message": "No."}}

    def babble(self, data: bytes) -> None:
        """Write the same text for ever."""
        while True:
            self.raw(data)

    def churn(self) -> None:
        """Change all lists every 50 ms."""
        while True:
            time.sleep(0.05)
            _counts["changes"] += 1
            for what in ("tools", "resources", "prompts"):
                self.write({"jsonrpc": "2.0", "method": f"notifications/{what}/list_changed"})


class Stdio(Peer):
    """The server on stdin and stdout."""

    def serve(self) -> None:
        """Serve until stdin ends."""
        if MODE in BABBLE:
            self.babble(BABBLE[MODE])
        if MODE == "stderr":
            threading.Thread(target=lambda: [os.write(2, b"e" * 99_999 + b"\n") for _ in range(1000)]).start()
        if MODE == "churn":
            threading.Thread(target=self.churn, daemon=True).start()
        if MODE == "stays":
            import signal

            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for line in sys.stdin.buffer:
            threading.Thread(target=self.handle, args=(json.loads(line),), daemon=True).start()
        if MODE == "stays":
            time.sleep(3600)


def session_id() -> str:
    """Return the id of the session that hasn't ended."""
    return str(min(1, _counts["calls"]))


class Http(BaseHTTPRequestHandler):
    """The server on HTTP, with JSON answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if MODE in PAGES:
            return self.send(*PAGES[MODE])
        if MODE in REFUSED_CALLS and message["method"] == "tools/call":
            return self.send(*REFUSED_CALLS[MODE])
        if MODE in FORGETFUL and self.headers.get("mcp-session-id", session_id()) != session_id():
            return self.send(*FORGETFUL[MODE])
        if MODE in FAILING_CALLS and message["method"] == "tools/call":
            _counts["calls"] += 1
            error = {"code": -32602, "message": f"No such browser session, call {_counts['calls']}"}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
            return self.send(FAILING_CALLS[MODE], "application/json", body)
        if "id" not in message or "method" not in message:
            Collecting().handle(message)
            return self.send(202, "text/plain", b"")
        if message["method"] == "initialize" and MODE == "silent":
            time.sleep(60)
        if message["method"] == "tools/call" and MODE in STREAMED:
            return self.stream(lambda peer: peer.handle(message))
        if MODE in BABBLE:  # as events, as lines that are none, and as a body without an end
            kind = "application/json" if MODE == "endless" else "text/event-stream"
            status = 500 if MODE == "failing" else 200
            return self.stream(lambda peer: peer.babble(BABBLE[MODE]), kind, status)
        result = Collecting().collected(message)
        if result == DIES:
            self.close_connection = True
            return self.stream(lambda peer: None) if IS_STREAM else None
        if result is None:
            result = {"jsonrpc": "2.0", "id": 987654, "result": {"content": []}}
        has_sessions = MODE in ("churn", "no-session") or MODE in FORGETFUL or MODE in FAILING_CALLS
        session = [("mcp-session-id", session_id())] * (has_sessions and message["method"] == "initialize")
        body = json.dumps(result).encode()
        if IS_STREAM:
            return self.send(200, "text/event-stream", b"event: message\ndata: " + body + b"\n\n", *session)
        return self.send(200, "application/json", body, *session)

    def do_GET(self) -> None:
        """Offer no stream, or one that says that the lists change."""
        if MODE != "churn":
            return self.send(405, "text/plain", b"")
        return self.stream(lambda peer: peer.churn())

    def stream(self, serve: Callable[[Streaming], None], kind: str = "text/event-stream", status: int = 200) -> None:
        """Send a response of unknown length."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):  # the client is gone
            serve(Streaming(self))

    def send(self, status: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        """Send one response."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Streaming(Peer):
    """A peer that sends messages in a stream of events."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def raw(self, data: bytes) -> None:
        """Send each line as an event; in some modes, only the bytes."""
        if MODE in {"lines", "endless", "failing"}:
            self._http.wfile.write(data)
            return
        lines = data.removesuffix(b"\n").split(b"\n")
        self._http.wfile.write(b"".join(b"event: message\ndata: %b\n\n" % line for line in lines))
        self._http.wfile.flush()


class Collecting(Peer):
    """A peer that collects its answer, for HTTP."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None

    def write(self, message: object) -> None:
        """Keep the answer."""
        assert isinstance(message, dict)
        self.answer = message

    def die(self) -> None:
        """Close the connection without an answer."""
        self.answer = DIES

    def collected(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a message."""
        self.handle(message)
        return self.answer


if __name__ == "__main__":
    if sys.argv[2:3] == ["http"]:
        http = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), Http)
        print(http.server_address[1], flush=True)
        http.serve_forever()
    Stdio().serve()
