"""The transport to one server, and what it says about failures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple  # Any: the types of the SDK's streams

from pegboard.mcp.environment import server_environment
from pegboard.mcp.failures import (
    ServerFailure,
    UnusableServerError,
    authorization_silent,
    authorization_unreachable,
    command_missing,
    ended,
    explain,
    folder_deleted,
    folder_missing,
    login_needed,
    no_answer,
)
from pegboard.mcp.http import LastResponse, http_streams
from pegboard.mcp.messages import MessageLog
from pegboard.mcp.process import ServerProcess

if TYPE_CHECKING:
    from pegboard.mcp.authorization import ServerAuthorization
    from pegboard.models import ServerConfig


class ServerLink(NamedTuple):
    """Transport to a server: a process, or a URL."""

    config: ServerConfig
    """The server, without secrets."""
    transport: AbstractAsyncContextManager[Any]
    process: ServerProcess | None = None
    last: LastResponse | None = None
    login: ServerAuthorization | None = None

    @property
    def login_failure(self) -> ServerFailure | None:
        """The failure of a server at which the user must log in, or whose login can't be refreshed; None otherwise."""
        if self.login is not None and self.login.needed:
            return login_needed(self.config, self.login.needed)
        if self.login is not None and self.login.not_refreshed:
            return ServerFailure(self.login.not_refreshed, "Try again later.")
        return None

    def explain(self, error: BaseException) -> ServerFailure:
        """Return why connecting failed.

        Args:
            error: What the SDK raised.
        """
        unanswered = "" if self.login is None else self.login.unanswered
        return (
            self.login_failure
            or authorization_unreachable(unanswered, error)
            or explain(self.config, error, self.process, self.last)
        )

    def no_answer(self) -> ServerFailure:
        """Return the failure of a server that didn't answer in time, or of its authorization server."""
        if self.login is not None and self.login.unanswered:
            return authorization_silent(self.login.unanswered)
        return no_answer(self.config, self.process, self.config.timeout)

    def ended(self) -> ServerFailure:
        """Return why the connection ended, as far as the transport knows."""
        return (
            ServerFailure("The connection was lost.", "") if self.process is None else ended(self.config, self.process)
        )


def link(
    config: ServerConfig,
    resolved: ServerConfig,
    *,
    authorize: Callable[[ServerConfig], ServerAuthorization | None],
    on_stderr: Callable[[str], None],
    messages: MessageLog,
) -> ServerLink:
    """Return the transport to a server; it connects when it is entered.

    Args:
        config: The server.
        resolved: The same with its secrets.
        authorize: Returns the authorization of requests.
        on_stderr: Receiver of each piece of stderr.
        messages: Receives each message.

    Raises:
        UnusableServerError: The command or its folder doesn't exist.
    """
    if resolved.url is not None:
        last, login = LastResponse(), authorize(resolved)
        streams = http_streams(resolved.url, resolved.headers, last, messages, login)
        return ServerLink(config, streams, last=last, login=login)
    assert resolved.command is not None, "a server without both has a problem"
    environment = server_environment(os.environ, resolved.env)
    program = shutil.which(resolved.command, path=environment.get("PATH"))
    if program is None:
        raise UnusableServerError(command_missing(config, resolved.command))
    try:
        folder = resolved.cwd or os.getcwd()  # noqa: PTH109 - no Path needed
    except FileNotFoundError:
        raise UnusableServerError(folder_deleted()) from None
    if not Path(folder).is_dir():
        raise UnusableServerError(folder_missing(config, folder))
    process = ServerProcess(
        str(Path(program).absolute()),
        resolved.args,
        environment=environment,
        folder=folder,
        on_stderr=on_stderr,
        messages=messages,
    )
    return ServerLink(config, process, process=process)
