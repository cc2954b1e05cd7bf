"""An MCP server over HTTP that requires a login, and its authorization server."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit


class OAuthServer:
    """The state of both servers; attributes change how they behave."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        """Path and parameters of each request to the authorization server."""
        self.known_as: list[str] = []
        """Names of the clients that began a session."""
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, str] = {}
        """Valid access tokens → scope."""
        self.refresh_tokens: set[str] = set()
        self.used: set[str] = set()
        """Refresh tokens that were used; using one again ends the login, as with many authorization servers."""
        self.together: threading.Barrier | None = None
        """Holds back refreshes until several are sent, or until it breaks."""
        self.expires_in: float = 3600
        self.issuer: str | None = None
        """The issuer in the metadata; the server's own by default."""
        self.answering_issuer: str | None = None
        """The issuer in the answer to a login; that of the metadata by default."""
        self.authorization_server: str | None = None
        """The authorization server in the metadata of the MCP server; this one by default."""
        self.endpoints: dict[str, str | bool] = {}
        """Endpoints and more in the metadata that differ from the usual ones."""
        self.registers = True
        """Whether clients can register themselves."""
        self.clients: list[str] = []
        """Ids of the clients that registered themselves; requests of one that is removed are rejected."""
        self.call_scope = "write"
        """The scope that calls require."""
        self.denies = False
        """Whether the user refuses the login."""
        self.refresh_status = 200
        """HTTP status of refreshes."""
        self.silent = ""
        """Path of requests that are never answered."""
        self._closing = threading.Event()
        self.rejects_all = False
        """Whether the MCP server rejects every token, such as one for another audience."""
        self.requires_login = True
        self.meeting: threading.Barrier | None = None
        """Holds back the results of calls until several have arrived; calls fail if it breaks."""
        self.revocation_status: int | None = None
        """HTTP status of revocations; None if there is no address for them."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"state": self}))

    @property
    def origin(self) -> str:
        """The address of both servers."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        """The address of the MCP endpoint."""
        return f"{self.origin}/mcp"

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Serve requests."""
        thread = Thread(target=self._http.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._closing.set()
            self._http.shutdown()
            self._http.server_close()
            thread.join(5)

    def delay(self, path: str) -> bool:
        """Return whether a request is never answered; wait until the server ends if so."""
        return path == self.silent and self._closing.wait()

    def paths(self) -> list[str]:
        """Return the paths of the requests to the authorization server."""
        return [path for path, _ in self.requests]

    def token(self, scope: str) -> dict[str, Any]:
        """Issue tokens."""
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.tokens[access] = scope
        self.refresh_tokens.add(refresh)
        return {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "scope": scope,
        }


class _Handler(BaseHTTPRequestHandler):
    state: OAuthServer

    def do_GET(self) -> None:
        state, parts = self.state, urlsplit(self.path)
        if state.delay(parts.path):
            return
        query = dict(parse_qsl(parts.query))
        if parts.path.startswith("/.well-known/oauth-protected-resource"):
            self._answer({"resource": state.url, "authorization_servers": [state.authorization_server or state.origin]})
        elif parts.path == "/.well-known/oauth-authorization-server":
            self._answer(
                {
                    "issuer": state.issuer or state.origin,
                    "authorization_endpoint": f"{state.origin}/authorize",
                    "token_endpoint": f"{state.origin}/token",
                    **({"registration_endpoint": f"{state.origin}/register"} if state.registers else {}),
                    **({"revocation_endpoint": f"{state.origin}/revoke"} if state.revocation_status else {}),
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
                    **state.endpoints,
                }
            )
        elif parts.path == "/authorize" and self._is_forgotten(query):
            state.requests.append(("/authorize", query))
            self._answer({"error": "invalid_client"}, 400)
        elif parts.path == "/authorize":
            state.requests.append(("/authorize", query))
            code = secrets.token_hex(8)
            state.codes[code] = query
            back = {"error": "access_denied"} if state.denies else {"code": code}
            if state.endpoints.get("authorization_response_iss_parameter_supported"):
                back["iss"] = state.answering_issuer or state.issuer or state.origin
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri']}?{urlencode({**back, 'state': query['state']})}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._answer({}, 405 if parts.path == "/mcp" else 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.state.delay(urlsplit(self.path).path):
            return
        match urlsplit(self.path).path:
            case "/register" if self.state.registers:
                sent = json.loads(body)
                self.state.requests.append(("/register", {"redirect": sent["redirect_uris"][0]}))
                self.state.clients.append(f"registered-{len(self.state.requests)}")
                self._answer({**sent, "client_id": self.state.clients[-1]}, 201)
            case "/token":
                self._token({key: values[0] for key, values in parse_qs(body.decode()).items()})
            case "/revoke":
                form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
                self.state.requests.append(
                    ("/revoke", {**form, "authorization": self.headers.get("Authorization", "")})
                )
                if self.state.revocation_status == 200:
                    self.state.tokens.pop(form["token"], None)
                    self.state.refresh_tokens.discard(form["token"])
                self._answer({}, self.state.revocation_status or 404)
            case "/mcp":
                self._message(json.loads(body))
            case _:
                self._answer({}, 404)

    def _token(self, form: dict[str, str]) -> None:
        state = self.state
        state.requests.append(("/token", {**form, "authorization": self.headers.get("Authorization", "")}))
        if self._is_forgotten(form):
            self._answer({"error": "invalid_client"}, 401)
            return
        if form["grant_type"] == "refresh_token":
            if state.refresh_status != 200:
                answer = state.token("read") if state.refresh_status < 300 else {"title": "Maintenance"}
                self._answer(answer, state.refresh_status)
                return
            if state.together is not None:
                with suppress(threading.BrokenBarrierError):
                    state.together.wait()
            if form["refresh_token"] in state.used:
                state.tokens.clear()
                state.refresh_tokens.clear()
            state.used.add(form["refresh_token"])
            if form["refresh_token"] not in state.refresh_tokens:
                self._answer({"error": "invalid_grant"}, 400)
                return
            state.refresh_tokens.discard(form["refresh_token"])
            self._answer(state.token("read"))
            return
        asked = state.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        self._answer(state.token(asked.get("scope", "read")))

    def _is_forgotten(self, form: dict[str, str]) -> bool:
        client = form.get("client_id", "")
        return client.startswith("registered") and client not in self.state.clients

    def _message(self, message: dict[str, Any]) -> None:
        state = self.state
        scope = state.tokens.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        challenge = f'Bearer resource_metadata="{state.origin}/.well-known/oauth-protected-resource/mcp"'
        if state.rejects_all:
            scope = None
        if scope is None and not state.requires_login:
            scope = state.call_scope
        if scope is None:
            self._answer({}, 401, {"WWW-Authenticate": f'{challenge}, scope="read"'})
            return
        if message["method"] == "tools/call" and state.call_scope not in scope.split():
            missing = f'error="insufficient_scope", scope="{state.call_scope}"'
            self._answer({}, 403, {"WWW-Authenticate": f"{challenge}, {missing}"})
            return
        if message["method"] == "tools/call" and state.meeting is not None:
            try:
                state.meeting.wait()
            except threading.BrokenBarrierError:
                self._answer({}, 500)
                return
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "vault", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "save", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "saved"}]},
        }
        if message["method"] == "initialize":
            state.known_as.append(message["params"]["clientInfo"]["name"])
        if "id" not in message:
            self._answer(None, 202)
        elif message["method"] in results:
            self._answer({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})
        else:
            error = {"code": -32601, "message": "Method not found"}
            self._answer({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _answer(self, value: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
