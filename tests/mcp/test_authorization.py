"""Logins to MCP servers: OAuth in the browser, tokens that are kept, refreshed and forgotten."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from oauth_server import OAuthServer
from processes import until

from pegboard.mcp import authorization
from pegboard.models import ServerConfig, ServerStatus, ToolCall, ToolResult
from pegboard.models.server import Elicitation, ElicitationAnswer, OAuthClient, SamplingRequest
from pegboard.runtime import Runtime


class Person:
    """A person in front of a browser.

    Args:
        agrees: Whether they log in when asked.
    """

    def __init__(self, *, agrees: bool = True) -> None:
        self.agrees = agrees
        self.visited: list[str] = []

    async def log_in(self, server: str, url: str) -> bool:
        self.visited.append(url)
        if self.agrees:
            await asyncio.to_thread(self._visit, url)
        return self.agrees

    def _visit(self, url: str) -> None:
        """Visit a page that leads back to Pegboard."""
        redirect = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        with pytest.raises(urllib.error.HTTPError):  # another program can't end the login
            urllib.request.urlopen(f"{redirect}?code=stolen&state=guess", timeout=10)
        with urllib.request.urlopen(url, timeout=10) as page:
            assert b"Pegboard" in page.read()

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        raise AssertionError(elicitation)

    async def approve_sampling(self, request: SamplingRequest) -> bool:
        raise AssertionError(request)


class Stranded(Person):
    """A person to whom the login page shows an error."""

    def __init__(self) -> None:
        super().__init__()
        self.has_seen = asyncio.Event()

    async def log_in(self, server: str, url: str) -> bool:
        await asyncio.to_thread(self._see, url)
        self.has_seen.set()
        return True

    def _see(self, url: str) -> None:
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(url, timeout=10)


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    """Serve an MCP endpoint that requires a login."""
    with OAuthServer().running() as server:
        yield server


class Session:
    """One run of Pegboard with that server.

    Args:
        runtime: The runtime.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    async def connect(self) -> ServerStatus:
        await self.runtime.servers.connect()
        [status] = self.runtime.servers.all()
        return status

    async def log_in(self, person: Person) -> str:
        """Return why the login failed; empty if it didn't."""
        self.runtime.servers.ask_with(person)
        problem = await self.runtime.servers.log_in("vault")
        return str(problem or "")

    async def save(self) -> ToolResult:
        return (await self.runtime.result(ToolCall(name="vault.save", args={}, source="form")))[1]


@pytest.fixture
async def session(server: OAuthServer) -> AsyncIterator[object]:
    """Return a function that starts a run of Pegboard."""
    opened: list[Runtime] = []

    def start(**config: object) -> Session:
        runtime = Runtime.from_environment()
        opened.append(runtime)
        runtime.servers.add(ServerConfig.model_validate({"name": "vault", "url": server.url, **config}))
        return Session(runtime)

    yield start
    for runtime in opened:
        await runtime.close()


def stored(home: Path) -> Path:
    """Return the file of the only login; these tests have no keyring."""
    [file] = (home / "data" / "logins").glob("*.json")
    return file


@pytest.mark.promise("MCP-7")
async def test_a_login_is_kept_in_a_private_file_and_used_by_later_runs(
    server: OAuthServer, session: object, home: Path
) -> None:
    first = session()  # type: ignore[operator]  # a function
    status = await first.connect()
    assert (status.state, status.reason) == ("needs login", "The server requires a login.")
    assert "pegboard mcp login vault" in status.fix
    assert server.requests == [], "without the user, nothing is registered"
    person = Person()
    assert await first.log_in(person) == ""
    assert server.paths() == ["/register", "/authorize", "/token"]
    asked = dict(server.requests)["/authorize"]
    assert (asked["code_challenge_method"], asked["resource"], asked["scope"]) == ("S256", server.url, "read")
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    assert stored(home).stat().st_mode & 0o777 == 0o600
    assert (await first.connect()).state == "ready"
    kept = "".join(message.text for message in first.runtime.servers.messages("vault"))
    assert "tools/list" in kept
    assert not [token for token in server.tokens if token in kept], "requests for a login aren't messages"
    assert "code_verifier" not in kept
    assert (await session().connect()).state == "ready"  # type: ignore[operator]  # as above
    assert set(server.known_as) == {"pegboard"}
    assert server.paths().count("/authorize") == 1


@pytest.mark.promise("MCP-7")
async def test_an_expired_or_revoked_token_is_refreshed_without_the_user(
    server: OAuthServer, session: object, home: Path
) -> None:
    server.expires_in = 1  # less than the time before the expiry at which tokens are refreshed
    first = session()  # type: ignore[operator]
    assert await first.log_in(Person()) == ""
    assert (await session().connect()).state == "ready"  # type: ignore[operator]
    assert dict(server.requests)["/token"]["grant_type"] == "refresh_token"
    server.expires_in = 3600
    assert (await session().connect()).state == "ready"  # type: ignore[operator]
    server.tokens.clear()
    assert (await session().connect()).state == "ready"  # type: ignore[operator]
    assert server.paths().count("/authorize") == 1
    server.tokens.clear()
    server.refresh_tokens.clear()
    status = await session().connect()  # type: ignore[operator]
    assert (status.state, status.reason) == ("needs login", "The login expired.")
    assert server.paths().count("/authorize") == 1


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("how", ["expired", "revoked"])
async def test_two_processes_that_need_a_new_token_refresh_it_once(
    server: OAuthServer, session: object, how: str
) -> None:
    server.expires_in = 1 if how == "expired" else 3600
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    server.expires_in = 3600
    server.tokens.clear()
    server.together = threading.Barrier(2, timeout=2.0)
    first, second = await asyncio.gather(session().connect(), session().connect())  # type: ignore[operator]
    assert (first.state, second.state) == ("ready", "ready")
    assert [form["grant_type"] for path, form in server.requests if path == "/token"][1:] == ["refresh_token"]


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("requires_login", [False, True])
async def test_calls_of_a_server_run_concurrently_even_if_it_sends_nothing_before_the_result(
    server: OAuthServer, session: object, requires_login: bool
) -> None:
    server.requires_login, server.call_scope = requires_login, "read"
    run = session()  # type: ignore[operator]
    if requires_login:
        assert await run.log_in(Person()) == ""
    await run.connect()
    server.meeting = threading.Barrier(3, timeout=20.0)
    results = await asyncio.gather(run.save(), run.save(), run.save())
    assert [result.data for result in results] == ["saved"] * 3


@pytest.mark.promise("MCP-2")
async def test_any_number_of_calls_over_http_runs_at_the_same_time(server: OAuthServer, session: object) -> None:
    server.requires_login = False
    run = session()  # type: ignore[operator]
    await run.connect()
    server.meeting = threading.Barrier(110, timeout=30.0)
    results = await asyncio.gather(*(run.save() for _ in range(110)))
    assert [result.data for result in results] == ["saved"] * 110


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("expires_in", [1, 3600])
async def test_concurrent_calls_with_a_token_that_is_no_longer_valid_refresh_it_once(
    server: OAuthServer, session: object, expires_in: int
) -> None:
    server.call_scope = "read"
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    server.expires_in = expires_in
    server.tokens.clear()
    await run.connect()
    refreshes = [form for path, form in server.requests if path == "/token"]
    server.expires_in = 3600
    server.tokens.clear()
    results = await asyncio.gather(run.save(), run.save(), run.save())
    assert [result.data for result in results] == ["saved"] * 3
    assert len([form for path, form in server.requests if path == "/token"]) == len(refreshes) + 1


@pytest.mark.promise("MCP-7")
async def test_a_missing_permission_is_requested_at_the_next_login(server: OAuthServer, session: object) -> None:
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    await run.connect()
    result = await run.save()
    assert result.error is not None
    assert "The server requires more permissions: “write”." in result.error.message
    assert await run.log_in(Person()) == ""
    assert dict(server.requests)["/authorize"]["scope"] == "read write"
    await run.connect()
    assert (await run.save()).data == "saved"


@pytest.mark.promise("MCP-7")
async def test_a_login_for_a_missing_permission_keeps_those_of_earlier_logins(
    server: OAuthServer, session: object
) -> None:
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    for scope in ("write", "delete"):
        server.call_scope = scope
        run = session()  # type: ignore[operator]
        await run.connect()
        assert (await run.save()).error is not None
        assert await run.log_in(Person()) == ""
    asked = [form["scope"].split() for path, form in server.requests if path == "/authorize"]
    assert [sorted(scopes) for scopes in asked] == [["read"], ["read", "write"], ["delete", "read", "write"]]


@pytest.mark.promise("MCP-7")
async def test_a_login_that_fails_says_why(server: OAuthServer, session: object) -> None:
    run = session()  # type: ignore[operator]
    assert "The login was declined" in await run.log_in(Person(agrees=False))
    server.denies = True
    assert "access_denied" in await run.log_in(Person())
    server.denies, server.issuer = False, "http://127.0.0.1:1"
    assert "issuer mismatch" in await run.log_in(Person())
    assert server.tokens == {}


@pytest.mark.promise("MCP-7")
async def test_an_authorization_server_that_does_not_run_is_named_instead_of_the_mcp_server(
    server: OAuthServer, session: object
) -> None:
    server.authorization_server = "http://127.0.0.1:1"
    said = await session().log_in(Person())  # type: ignore[operator]
    assert "The authorization server can't be reached at http://127.0.0.1:1/" in said
    assert server.url not in said


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/register", "/token"])
async def test_a_login_ends_if_the_authorization_server_does_not_answer(
    server: OAuthServer, session: object, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorization, "_ANSWER_SECONDS", 0.2)
    server.silent = path
    said = await session().log_in(Person())  # type: ignore[operator]
    assert f"The authorization server didn't answer in time at {server.origin}{path}." in said


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize(("answer", "limit"), [(0.2, 60.0), (60.0, 0.5)], ids=["its limit", "the limit of the entry"])
async def test_a_refresh_without_an_answer_names_the_authorization_server(
    server: OAuthServer, session: object, answer: float, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorization, "_ANSWER_SECONDS", answer)
    server.expires_in = 1
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    server.silent = "/token"
    status = await session(timeout=limit).connect()  # type: ignore[operator]
    said = f"The authorization server didn't answer in time at {server.origin}/token."
    assert (status.state, status.reason) == ("failed", said)


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("status", [429, 503])
async def test_a_login_that_cannot_be_refreshed_at_present_is_used_again_later(
    server: OAuthServer, session: object, status: int
) -> None:
    server.call_scope = "read"
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    server.refresh_status = status
    server.tokens.clear()
    said = f"The login can't be refreshed: the authorization server answered with HTTP {status}"
    first = await run.connect()
    assert first.state == "failed"
    assert said in first.reason
    server.refresh_status = 200
    await run.runtime.servers.reconnect("vault")
    assert (await run.save()).data == "saved"
    server.refresh_status = status
    server.tokens.clear()
    error = (await run.save()).error
    assert error is not None
    assert said in error.message
    assert (await run.connect()).state == "ready"
    server.refresh_status = 200
    assert (await run.save()).data == "saved"


@pytest.mark.promise("MCP-7")
async def test_the_query_of_the_address_of_the_login_page_is_kept(server: OAuthServer, session: object) -> None:
    server.endpoints["authorization_endpoint"] = f"{server.origin}/authorize?tenant=a%20b&policy="
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    asked = dict(server.requests)["/authorize"]
    assert (asked["tenant"], asked["response_type"]) == ("a b", "code")


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize(("named", "own"), [("/", ""), ("", "/")], ids=["the MCP server's", "its own"])
async def test_an_issuer_without_a_path_may_end_in_a_slash_in_one_place(
    server: OAuthServer, session: object, named: str, own: str
) -> None:
    server.authorization_server, server.issuer = server.origin + named, server.origin + own
    server.endpoints["authorization_response_iss_parameter_supported"] = True
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    server.tokens.clear()
    assert (await session().connect()).state == "ready"  # type: ignore[operator]


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize(("own", "answering"), [("", "/"), ("/", ""), ("", "/other")])
async def test_an_answer_of_another_issuer_than_the_metadata_names_is_refused(
    server: OAuthServer, session: object, own: str, answering: str
) -> None:
    server.issuer, server.answering_issuer = server.origin + own, server.origin + answering
    server.endpoints["authorization_response_iss_parameter_supported"] = True
    said = await session().log_in(Person())  # type: ignore[operator]
    assert f"The login was answered by the issuer {server.answering_issuer} instead of {server.issuer}”" in said
    assert server.tokens == {}


@pytest.mark.promise("MCP-7")
async def test_a_server_that_rejects_the_token_of_a_new_login_is_named(server: OAuthServer, session: object) -> None:
    server.rejects_all = True
    said = await session().log_in(Person())  # type: ignore[operator]
    assert "You logged in, but the server vault rejects the new token (HTTP 401)." in said
    assert server.paths().count("/authorize") == 1
    server.rejects_all = False
    assert (await session().connect()).state == "ready"  # type: ignore[operator]


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("registration_endpoint", "The authorization server http://login.example isn't encrypted"),
        ("authorization_endpoint", "The login page http://login.example isn't encrypted"),
        ("token_endpoint", "The token endpoint http://login.example isn't encrypted"),
    ],
)
async def test_nothing_is_sent_to_an_authorization_server_without_encryption(
    server: OAuthServer, session: object, endpoint: str, said: str
) -> None:
    server.endpoints[endpoint] = "http://login.example/x"
    person = Person()
    assert said in await session().log_in(person)  # type: ignore[operator]
    assert person.visited == []


@pytest.mark.promise("MCP-7")
async def test_an_address_of_this_machine_needs_no_encryption(server: OAuthServer, session: object) -> None:
    server.endpoints["token_endpoint"] = "http://127.0.0.2:9/token"
    said = await session().log_in(Person())  # type: ignore[operator]
    assert "http://127.0.0.2:9" in said
    assert "encrypted" not in said


@pytest.mark.promise("MCP-7")
async def test_a_token_is_not_refreshed_without_encryption(server: OAuthServer, session: object, home: Path) -> None:
    server.expires_in = 1
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    login = json.loads(stored(home).read_text())
    login["authorization_server"]["token_endpoint"] = "http://login.example/token"
    stored(home).write_text(json.dumps(login))
    status = await session().connect()  # type: ignore[operator]
    assert status.state == "failed"
    assert "The authorization server http://login.example isn't encrypted, so nothing was sent to it" in status.reason


@pytest.mark.promise("MCP-7")
async def test_an_invalid_token_response_names_its_field_and_no_token(server: OAuthServer, session: object) -> None:
    server.expires_in = 3599.5
    said = await session().log_in(Person())  # type: ignore[operator]
    assert "Invalid token response: expires_in: Input should be a valid integer" in said
    assert not [token for token in (*server.tokens, *server.refresh_tokens) if token in said]


@pytest.mark.promise("MCP-7")
async def test_an_invalid_response_to_a_refresh_is_named_without_its_tokens(
    server: OAuthServer, session: object
) -> None:
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    server.tokens.clear()
    server.refresh_status = 201  # RFC 6749, section 5.1, requires 200
    status = await run.connect()
    assert "The login can't be refreshed: the authorization server sent no valid token." in status.reason
    assert not [token for token in (*server.tokens, *server.refresh_tokens) if token in status.reason]


@pytest.mark.promise("MCP-7")
async def test_a_refused_refresh_token_is_not_used_again(server: OAuthServer, session: object) -> None:
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    await run.connect()
    server.tokens.clear()
    server.refresh_tokens.clear()
    for _ in range(3):
        assert (await run.save()).error is not None
    await session().connect()  # type: ignore[operator]
    used = [form for path, form in server.requests if path == "/token" and form["grant_type"] == "refresh_token"]
    assert len(used) == 1


@pytest.mark.promise("MCP-7")
async def test_a_login_in_another_process_makes_the_server_ready_again(server: OAuthServer, session: object) -> None:
    server.call_scope = "read"
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    await run.connect()
    server.tokens.clear()
    server.refresh_tokens.clear()
    assert (await run.save()).error is not None
    [status] = run.runtime.servers.all()
    assert (status.state, status.reason) == ("needs login", "The login expired.")
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    assert (await run.save()).data == "saved"
    await until(lambda: run.runtime.servers.all()[0].state == "ready")


@pytest.mark.promise("MCP-7")
async def test_an_authorization_server_that_registers_no_clients_needs_a_client_id(
    server: OAuthServer, session: object
) -> None:
    server.registers = False
    said = await session().log_in(Person())  # type: ignore[operator]
    assert "Registration failed: 404" in said
    assert "set `client_id` in `[mcp.servers.vault.oauth]`" in said


@pytest.mark.promise("MCP-7")
async def test_a_client_that_the_authorization_server_forgot_registers_again_after_a_login_without_an_answer(
    server: OAuthServer, session: object, home: Path
) -> None:
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    server.clients.clear()
    person = Stranded()
    attempt = asyncio.create_task(run.log_in(person))
    async with asyncio.timeout(20):
        await person.has_seen.wait()
    await until(lambda: json.loads(stored(home).read_text())["is_doubtful"])
    attempt.cancel()
    with suppress(asyncio.CancelledError):
        await attempt
    assert (await session().connect()).state == "ready", "the tokens are kept"  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    assert await run.log_in(Person()) == ""
    assert server.paths().count("/register") == 2, "the second registration is used again"


@pytest.mark.promise("MCP-7")
async def test_a_client_whose_refresh_the_authorization_server_does_not_know_registers_again_at_the_next_login(
    server: OAuthServer, session: object
) -> None:
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    server.clients.clear()
    server.tokens.clear()
    assert (await session().connect()).state == "needs login"  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    assert (await session().connect()).state == "ready"  # type: ignore[operator]


@pytest.mark.promise("MCP-7")
async def test_a_server_without_encryption_gets_no_token(session: object) -> None:
    run = session(url="http://vault.example/mcp")  # type: ignore[operator]
    assert await run.log_in(Person()) == (
        "The server vault isn't encrypted, so that others could read the token of a login."
        " Use an address that starts with https://."
    )


@pytest.mark.promise("MCP-7")
async def test_a_login_that_cannot_be_read_is_named(server: OAuthServer, session: object, home: Path) -> None:
    assert await session().log_in(Person()) == ""  # type: ignore[operator]
    stored(home).chmod(0o644)
    status = await session().connect()  # type: ignore[operator]
    assert status.state == "needs login"
    assert "Other users have access to this file (mode 644)" in status.reason


@pytest.mark.promise("MCP-7")
async def test_a_configured_client_is_used_instead_of_a_registration(server: OAuthServer, session: object) -> None:
    oauth = OAuthClient(client_id="mine", client_secret="hidden-secret")
    assert await session(oauth=oauth).log_in(Person()) == ""  # type: ignore[operator]
    assert "/register" not in server.paths()
    assert dict(server.requests)["/token"]["authorization"].startswith("Basic ")


@pytest.mark.promise("MCP-7")
async def test_a_login_whose_port_is_used_by_another_program_fails_with_the_reason(session: object) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        told = await session(oauth=OAuthClient(redirect_port=port)).log_in(Person())  # type: ignore[operator]
    assert f"The port {port} can't be used for the login: Address already in use" in told


@pytest.mark.promise("MCP-7")
async def test_a_logout_forgets_the_tokens_and_no_record_has_them(
    server: OAuthServer, session: object, home: Path
) -> None:
    run = session()  # type: ignore[operator]
    await run.log_in(Person())
    token = json.loads(stored(home).read_text())["tokens"]["access_token"]
    assert token not in run.runtime.redacted(f"the token {token} leaked")
    ended = await run.runtime.servers.log_out("vault")
    assert ended == (True, "The authorization server can't revoke tokens.")
    assert await run.runtime.servers.log_out("vault") == (False, "")
    assert (await session().connect()).state == "needs login"  # type: ignore[operator]


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("expires_in", [0, 3600])
async def test_a_login_that_another_process_ended_is_not_restored_by_a_refresh(
    server: OAuthServer, session: object, home: Path, expires_in: int
) -> None:
    server.call_scope = "read"
    server.expires_in = expires_in
    run = session()  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    assert (await run.connect()).state == "ready"
    assert (await run.save()).data == "saved"
    assert (await session().runtime.servers.log_out("vault")).was_logged_in  # type: ignore[operator]
    server.tokens.clear()
    error = (await run.save()).error
    assert error is not None
    assert "login" in error.message
    assert not [*(home / "data" / "logins").glob("*.json")]
    assert run.runtime.servers.all()[0].state == "needs login"


@pytest.mark.promise("MCP-7")
async def test_a_bearer_header_is_sent_with_its_secret(
    server: OAuthServer, session: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.tokens["static-token"] = "read write"
    monkeypatch.setenv("VAULT_TOKEN", "static-token")
    run = session(headers={"Authorization": "Bearer ${VAULT_TOKEN}"})  # type: ignore[operator]
    assert (await run.connect()).state == "ready"
    assert (await run.save()).data == "saved"
    monkeypatch.setenv("VAULT_TOKEN", "another-token")
    status = await session(headers={"Authorization": "Bearer ${VAULT_TOKEN}"}).connect()  # type: ignore[operator]
    assert status.state == "needs login"
    assert "`Authorization` header" in status.reason


@pytest.mark.promise("MCP-7")
@pytest.mark.parametrize("secret", [None, "hidden-secret"], ids=["a registered client", "a client with a secret"])
async def test_a_logout_revokes_the_tokens_where_the_server_can(
    server: OAuthServer, session: object, secret: str | None
) -> None:
    server.revocation_status = 200
    oauth = OAuthClient() if secret is None else OAuthClient(client_id="mine", client_secret=secret)
    run = session(oauth=oauth)  # type: ignore[operator]
    assert await run.log_in(Person()) == ""
    assert server.tokens
    assert server.refresh_tokens
    assert await run.runtime.servers.log_out("vault") == (True, "")
    assert (server.tokens, server.refresh_tokens) == ({}, set())
    sent = [form for path, form in server.requests if path == "/revoke"]
    assert [form["token_type_hint"] for form in sent] == ["refresh_token", "access_token"]
    assert all(
        ("authorization" in form and form["authorization"].startswith("Basic ")) is bool(secret) for form in sent
    )


@pytest.mark.promise("MCP-7")
async def test_a_revocation_that_fails_ends_the_login_anyway(server: OAuthServer, session: object, home: Path) -> None:
    server.revocation_status = 503
    run = session()  # type: ignore[operator]
    await run.log_in(Person())
    ended = await run.runtime.servers.log_out("vault")
    assert ended.was_logged_in
    assert "didn't revoke the refresh token (HTTP 503)" in ended.note
    assert not list((home / "data" / "logins").glob("*.json"))
