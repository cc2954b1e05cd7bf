"""Explanations of failed connections: what failed, why, and what to do."""

from __future__ import annotations

import re
import shlex
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx2
from mcp.client import InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS, SUPPORTED_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pegboard.data.urls import url_parts
from pegboard.mcp.client_variables import invalid_variable, proxy_setting
from pegboard.mcp.session import LostSession
from pegboard.mcp.stderr_lines import telling_line
from pegboard.mcp.texts import NOT_JSON_RPC, RESPONSE, OwnWords, UnsendableError, is_old_transport, quotation, with_data
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from pegboard.mcp.http import LastResponse
    from pegboard.mcp.process import ServerProcess
    from pegboard.models.server import ServerConfig

ERRORS: Final = (
    MCPError, ExceptionGroup, RuntimeError, ValueError, OSError, httpx2.HTTPError, httpx2.InvalidURL,
    httpx2.StreamError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream,
)  # fmt: skip
"""What the SDK raises for a server's sake."""

_VERSIONS: Final = f"{SUPPORTED_PROTOCOL_VERSIONS[0]} to {SUPPORTED_PROTOCOL_VERSIONS[-1]}"


_UNANSWERED: Final = "Request 'server/discover' timed out"
"""Message of the SDK's own error for its first request; it tries an older one then, whose failure counts."""
_CANNOT_ASK: Final = ("no back-channel for server-initiated requests", "server-initiated requests is unavailable")
"""Words of the official SDK and of FastMCP about a question that the protocol version doesn't allow."""
_CHECK_AUTHORIZATION: Final = "Start it, or correct its address in the metadata of the server."
_NOT_TLS: Final = frozenset({"HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "WRONG_VERSION_NUMBER"})
"""Reasons of OpenSSL for an answer that isn't TLS."""
_ADDRESS: Final = re.compile(r"https?:|(localhost|[\w-]+(\.[\w-]+)+)(:\d+|(?=/))", re.IGNORECASE)
"""Start of an address that was given as a command."""


class ServerFailure(NamedTuple):
    """Why a server can't be used."""

    reason: str
    """One or more sentences."""
    fix: str
    is_final: bool = False
    """Whether another attempt would fail too, until the user changes something."""
    needs_login: bool = False


class UnusableServerError(Exception):
    """A server can't be started or connected to, for a known reason."""

    def __init__(self, failure: ServerFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def command_missing(config: ServerConfig, program: str) -> ServerFailure:
    """Return the failure of a command that doesn't exist."""
    where = "doesn't exist or can't be executed" if "/" in program else "was not found on the PATH"
    fix = f"Install it, or correct {_entry(config, 'command')}."
    if _ADDRESS.match(program) and not config.args:
        fix = "If it is an address, use `url`" if config.saved else "If it is an address, write it in full"
        fix += ", starting with http:// or https://."
    return ServerFailure(f"The command {program!r} {where}.", fix, True)


def folder_missing(config: ServerConfig, folder: str) -> ServerFailure:
    """Return the failure of a working directory that doesn't exist."""
    return ServerFailure(f"The working directory {folder} doesn't exist.", f"Correct {_entry(config, 'cwd')}.", True)


def folder_deleted() -> ServerFailure:
    """Return the failure of a server without `cwd` after Pegboard's own working directory was deleted."""
    return ServerFailure(
        "The working directory no longer exists.", "Start Pegboard in a folder that exists, or set `cwd`.", True
    )


def no_answer(config: ServerConfig, process: ServerProcess | None, seconds: float) -> ServerFailure:
    """Return the failure of a server that didn't answer in time."""
    reason = f"The server didn't answer within {seconds:g} s."
    if process is not None and process.reader.garbage:
        reason += f" It printed text on stdout instead of messages: {quotation(process.reader.sample)}."
        return ServerFailure(reason, _try_yourself(config))
    if process is not None and config.saved:
        fix = f"If it needs more time to start, set a longer {_entry(config, 'timeout')}. {_try_yourself(config)}"
        return ServerFailure(reason, fix)
    return ServerFailure(reason, _try_yourself(config) or f"Check {config.url}, or set a longer `timeout`.")


def more_time(config: ServerConfig, seconds: float) -> str:
    """Return how to allow the calls of a server more time than these seconds.

    Args:
        config: The server.
        seconds: Time limit of a call; another than the server's own is of the setting for tools, which precedes it.
    """
    is_own = config.saved and seconds == config.timeout
    setting = f"a longer {_entry(config, 'timeout')}" if is_own else "`timeouts` under `[tools]` in the configuration"
    return f"If it needs more time, set {setting}, or pass `--timeout` on the command line."


def stray_output(lines: int, sample: str) -> ServerFailure:
    """Return that a server prints on stdout, which it can be used despite.

    Args:
        lines: Number of lines that weren't messages.
        sample: The first of them.
    """
    verb = "isn't" if lines == 1 else "aren't"
    reason = f"The server printed {count(lines, 'line')} on stdout that {verb} MCP, such as {quotation(sample)}."
    return ServerFailure(reason, "Configure the server to log to stderr.")


def ended(config: ServerConfig, process: ServerProcess) -> ServerFailure:
    """Return the failure of a server process that ended."""
    if process.reader.is_flooded:
        reason = f"The server flooded stdout with text that isn't messages: {quotation(process.reader.sample)}."
        return ServerFailure(reason, "Configure the server to log to stderr.")
    reason = f"The server ended with {process.exit}." if process.exit else "The server closed its stdout."
    lines = process.stderr
    said = telling_line(lines)
    if said:
        where = "Its last line on stderr" if said == lines[-1].strip() else "It wrote to stderr"
        reason += f" {where}: {quotation(said)}."
    elif process.reader.garbage:
        reason += f" It printed on stdout: {quotation(process.reader.sample)}."
    return ServerFailure(reason, _try_yourself(config))


def login_needed(config: ServerConfig, why: str) -> ServerFailure:
    """Return the failure of a server at which the user must log in."""
    fix = f"Run `pegboard mcp login {config.name}`."
    if not config.saved:
        fix = "Add it with `pegboard mcp add`, then run `pegboard mcp login`."
    return ServerFailure(why, fix, is_final=True, needs_login=True)


def authorization_unreachable(url: str, error: BaseException) -> ServerFailure | None:
    """Return the failure of a connection that ended with a request to the authorization server; None if it didn't.

    Args:
        url: Address of the request; empty if it was answered.
        error: What the SDK raised.
    """
    cause = next((one for one in _causes(error) if isinstance(one, httpx2.TransportError)), None)
    if not url or cause is None:
        return None
    if isinstance(cause, httpx2.ReadTimeout):
        return authorization_silent(url)
    reason = f"The authorization server can't be reached at {url}: {quotation(str(cause) or type(cause).__name__)}."
    return ServerFailure(reason, _CHECK_AUTHORIZATION)


def authorization_silent(url: str) -> ServerFailure:
    """Return the failure of an authorization server that didn't answer in time.

    Args:
        url: Address of the request.
    """
    return ServerFailure(f"The authorization server didn't answer in time at {url}.", _CHECK_AUTHORIZATION)


def explain(
    config: ServerConfig, error: BaseException, process: ServerProcess | None, last: LastResponse | None
) -> ServerFailure:
    """Return why connecting failed, as the user should read it.

    Args:
        config: The server.
        error: What the SDK raised.
        process: Its process, for a stdio server.
        last: The last response, for an HTTP server.
    """
    causes = [*_causes(error)]
    version = _version_mismatch(causes)
    if version is not None:
        return version
    # Before the end of the process, which Pegboard ends itself after such an answer.
    if process is not None and (answer := _invalid_answer(config, causes)) is not None:
        return answer
    if process is not None and not process.pid:
        reason = f"The server can't be started: {quotation(str(getattr(causes[-1], 'strerror', '') or causes[-1]))}."
        return ServerFailure(reason, _try_yourself(config))
    if process is not None and process.exit:
        return ended(config, process)
    if last is not None and (http := _http_failure(config, causes, last)) is not None:
        return http
    if (answer := _invalid_answer(config, causes)) is not None:
        return answer
    if process is not None:
        return no_answer(config, process, config.timeout) if process.reader.garbage else ended(config, process)
    return ServerFailure(f"The connection failed: {quotation(str(causes[-1]) or type(causes[-1]).__name__)}.", "")


def _invalid_answer(config: ServerConfig, causes: list[BaseException]) -> ServerFailure | None:
    """Return the failure that an answer of the server explains; None if the connection just ended."""
    for cause in causes:
        if isinstance(cause, ValidationError):
            return ServerFailure(
                f"The server's response is not valid MCP: {validation_text(cause)}.", "Report this to its author."
            )
        if isinstance(cause, MCPError) and cause.message == NOT_JSON_RPC:
            return ServerFailure(NOT_JSON_RPC, f"Check {_entry(config, 'url')}.", is_final=True)
        if isinstance(cause, MCPError) and cause.code != CONNECTION_CLOSED and cause.message != _UNANSWERED:
            fix = "Report this to the server's author." if config.url is None else f"Check {_entry(config, 'url')}."
            if isinstance(cause.data, OwnWords):
                return ServerFailure(cause.message, fix)
            return ServerFailure(f"The server rejected the connection: {quotation(cause.message)}.", fix)
        if isinstance(cause, ValueError) and config.url is None:
            return ServerFailure(f"{RESPONSE} can't be read: {quotation(str(cause))}.", "Report this to its author.")
    return None


def validation_text(error: ValidationError) -> str:
    """Return the first validation error in one line."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])[:200]
    return f"{where}: {first['msg']}" if where else first["msg"]


def login_error(error: BaseException) -> str:
    """Return why a login failed, in one line; of an invalid response, name the field without its secret value."""
    text = str(error).strip().split("\n")[0]
    cause = error if isinstance(error, ValidationError) else error.__cause__ or error.__context__
    if not isinstance(cause, ValidationError) or "validation error" not in text:
        return text
    what, colon, _ = text.rpartition(": ")
    return f"{what}{colon}{validation_text(cause)}"


def _version_mismatch(causes: list[BaseException]) -> ServerFailure | None:
    for cause in causes:
        if isinstance(cause, RuntimeError) and "protocol version" in str(cause):
            spoken = str(cause).rpartition(": ")[2]
        elif isinstance(cause, MCPError) and cause.code == UNSUPPORTED_PROTOCOL_VERSION:
            supported = cause.data.get("supported") if isinstance(cause.data, dict) else None
            spoken = ", ".join(map(str, supported)) if isinstance(supported, list) else cause.message
        else:
            continue
        reason = f"The server speaks MCP protocol version {quotation(spoken)}; Pegboard speaks {_VERSIONS}."
        return ServerFailure(reason, "Update the server or Pegboard.", True)
    return None


def _http_failure(config: ServerConfig, causes: list[BaseException], last: LastResponse) -> ServerFailure | None:
    entry = _entry(config, "url")
    if (invalid := invalid_variable()) is not None:
        return ServerFailure(*invalid)
    return (
        _proxy_failure(config, causes, last)
        or _tls_or_name_failure(config, causes, entry)
        or _answer_failure(config, last, entry)
        or _network_failure(config, causes, entry)
    )


def _host(config: ServerConfig) -> str:
    return urlsplit(config.url or "").hostname or config.url or ""


def _proxy_failure(config: ServerConfig, causes: list[BaseException], last: LastResponse) -> ServerFailure | None:
    """Return the failure of the proxy through which the server is reached, or None."""
    found = _proxy(config.url or "")
    if found is None:
        return None
    address, setting = found
    reason = f"requires a login (HTTP {last.status})" if last.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED else ""
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            reason = "can't be found"
        elif isinstance(cause, ConnectionRefusedError):
            reason = "can't be reached (connection refused)"
        elif isinstance(cause, httpx2.ConnectTimeout):
            reason = "didn't answer in time"
        elif isinstance(cause, httpx2.ProxyError):
            reason = f"refused the connection: {quotation(str(cause))}"
    if not reason:
        return None
    fix = f"Correct {setting}, or add {_host(config)} to the variable NO_PROXY."
    return ServerFailure(f"The proxy {address} {reason}." if address else "The address of the proxy is invalid.", fix)


def _proxy(url: str) -> tuple[str, str] | None:
    """Return the address of the proxy for a URL and the setting that names it, or None if it has no proxy.

    The address has no credentials; it is empty if it is invalid.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    kind = next((kind for kind in (parts.scheme, "all") if proxies.get(kind)), None)
    if kind is None or proxy_bypass(parts.hostname or ""):
        return None
    address = url_parts(proxies[kind] if "://" in proxies[kind] else f"//{proxies[kind]}").netloc.rpartition("@")[2]
    return address, proxy_setting(kind)


def _tls_or_name_failure(config: ServerConfig, causes: list[BaseException], entry: str) -> ServerFailure | None:
    """Return the failure of a connection that couldn't be made; the cause says most about it."""
    host = _host(config)
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            if cause.reason in _NOT_TLS:
                fix = f"If it has no TLS, use http:// instead of https:// in {entry}."
                return ServerFailure(f"{host} didn't answer with TLS.", fix)
            reason = getattr(cause, "verify_message", "") or cause.reason or str(cause)
            fix = f"Check {entry}. For a private certificate authority, set SSL_CERT_FILE to its certificate."
            is_final = isinstance(cause, ssl.SSLCertVerificationError)
            return ServerFailure(f"The TLS connection to {host} failed: {reason}.", fix, is_final)
        if isinstance(cause, socket.gaierror):
            return ServerFailure(f"The host {host} can't be found.", f"Check {entry} and the network.")
        if isinstance(cause, ConnectionRefusedError):
            fix = f"Start the server, or check {entry}."
            return ServerFailure(f"Nothing listens at {config.url} (connection refused).", fix)
    return None


def _answer_failure(config: ServerConfig, last: LastResponse, entry: str) -> ServerFailure | None:
    """Return the failure that the last response explains."""
    url, fix = config.url, f"Check {entry}; MCP endpoints often end in /mcp."
    if last.too_long:
        return ServerFailure(
            "The server's response exceeds the size limit of a message.", "Report this to the server's author."
        )
    if last.status in (401, 403):
        return _login(config, last)
    said = f" It said: {quotation(last.text)}." if last.text else ""
    if is_old_transport(url or "", last.status):
        reason = f"{url} accepts no messages (HTTP {last.status}); it seems to use the old HTTP+SSE transport.{said}"
        return ServerFailure(
            reason, f"Use the URL of its streamable HTTP endpoint in {entry}; it often ends in /mcp.", True
        )
    if last.is_html or (last.status == 200 and last.kind not in ("application/json", "text/event-stream")):
        what = "an HTML page" if last.is_html else f"{last.kind or 'no media type'}"
        return ServerFailure(
            f"{url} answered with {what} (HTTP {last.status}), not with MCP messages.{said}", fix, True
        )
    if 300 <= last.status < 400:
        return ServerFailure(f"{url} redirects to another address.{said}", f"Use that address in {entry}.", True)
    if last.status >= 500 or last.status == 429:
        return ServerFailure(f"The server at {url} failed (HTTP {last.status}).{said}", "Try again later.")
    if last.status >= 400 and last.is_error:
        reason = f"The server at {url} rejected the connection (HTTP {last.status}).{said}"
        return ServerFailure(reason, f"Check {entry}.", True)
    if last.status >= 400:
        return ServerFailure(f"{url} is not an MCP endpoint (HTTP {last.status}).{said}", fix, True)
    return None


def _network_failure(config: ServerConfig, causes: list[BaseException], entry: str) -> ServerFailure | None:
    host, fix = _host(config), f"Check {entry} and the network."
    for cause in causes:
        if isinstance(cause, httpx2.TimeoutException):
            return ServerFailure(f"{host} didn't answer in time.", fix)
        if isinstance(cause, httpx2.TransportError | OSError):
            return ServerFailure(
                f"The connection to {host} failed: {quotation(str(cause) or type(cause).__name__)}.", fix
            )
    return None


def _login(config: ServerConfig, last: LastResponse) -> ServerFailure:
    said = f" It said: {quotation(last.text)}." if last.text else ""
    if last.status == 401:
        if any(header.lower() == "authorization" for header in config.headers):
            reason = f"The server rejected the `Authorization` header (HTTP 401).{said}"
            return ServerFailure(reason, f"Correct {_entry(config, 'headers')}.", True, needs_login=True)
        return login_needed(config, f"The server requires a login (HTTP 401).{said}")
    return ServerFailure(
        f"The server refuses access (HTTP 403).{said}", f"Check your account, or {_entry(config, 'headers')}.", True
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group, and what caused them, the deepest causes first."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
        return
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    for one in reversed(chain):
        if isinstance(one, BaseExceptionGroup):
            yield from _causes(one)
        elif isinstance(one, Exception):
            yield one


def _entry(config: ServerConfig, key: str) -> str:
    return f"`{key}` in `[mcp.servers.{config.name}]`" if config.saved else "the value of `--mcp`"


def _try_yourself(config: ServerConfig) -> str:
    if config.command is None:
        return ""
    command = shlex.join([config.command, *config.args])
    folder = f" in the folder {config.cwd}" if config.cwd else ""
    return f"Run the command in a terminal{folder} to see more: {command if len(command) <= 200 else config.command}"


def cannot_ask(config: ServerConfig, protocol: str, message: str) -> str:
    """Return what to do about a call that failed because its server can't ask under a protocol version; mostly empty.

    Args:
        config: The server.
        protocol: The version in use.
        message: The server's own words.
    """
    if protocol not in MODERN_PROTOCOL_VERSIONS or not any(sign in message for sign in _CANNOT_ASK):
        return ""
    entry = f"`[mcp.servers.{config.name}]`" if config.saved else "its entry, after adding it with `pegboard mcp add`"
    fix = f'set `protocol = "{LATEST_HANDSHAKE_VERSION}"` in {entry}'
    return f"The server can't ask in this way with protocol {protocol}; to let it ask, {fix}."


def request_failure(pack: str, error: MCPError) -> str:
    """Return that a request to a server failed, and why: the server's own words, or Pegboard's about its response."""
    if isinstance(error.data, OwnWords):
        return f"The request to the server {pack} failed. {error.message}"
    return f"The server {pack} answered with an error: {quotation(error_text(error))}."


def unanswered(what: str, error: Exception) -> str:
    """Return that a request failed without a response, and why.

    Args:
        what: Start of the sentence, such as "The call of files.read".
        error: Raised by the SDK instead of a response.
    """
    if isinstance(error, InputRequiredRoundsExceededError):
        return f"{what} failed. The server asked for input more than {error.max_rounds} times."
    if isinstance(error, UnsendableError):
        return f"{what} was not sent because it {error}."
    return f"{what} failed: {quotation(str(error) or type(error).__name__)}."


def error_text(error: MCPError) -> str:
    """Return the message of a server's error, with its data if it has any."""
    data = None if isinstance(error.data, LostSession | OwnWords) else error.data
    return with_data(error.message, data)
