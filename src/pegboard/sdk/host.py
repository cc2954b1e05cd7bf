"""The host of running tools: receives their progress and messages, and provides secrets, configuration and packs."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from pegboard.sdk.local_packs import LocalPacks

    CallerKind = Literal["user", "agent"]


class Host:
    """Backend of the SDK's functions in plain scripts and tests; a worker installs its own subclass.

    All methods are thread-safe and work with or without an event loop. A plain script uses the imported packs, the
    packs on the packs path, and the environment.
    """

    _own_packs: LocalPacks | None = None

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Report progress; ignored in a plain script."""

    def log(self, message: str) -> None:
        """Show a message; in a plain script, on standard error."""
        print(message, file=sys.stderr)  # noqa: T201 - a plain script has no other place for messages

    def call(self, tool: str, arguments: Mapping[str, object]) -> object:
        """Call a tool and return its result.

        Args:
            tool: Qualified name.
            arguments: Arguments by parameter name or alias.

        Raises:
            ValueError: The tool does not exist. The message is that of `names.not_found`.
            TypeError: The arguments don't match its parameters.
            ToolFailed: The tool raised `ToolFailed`.
            RuntimeError: The tool raised another exception.
        """
        return self._packs.call(tool, arguments, self.log)

    def packs(self) -> Mapping[str, Sequence[str]]:
        """Return the available packs, each with the names of its tools."""
        return self._packs.packs()

    def refresh(self) -> None:
        """Update `packs` and `aliases`; they are always up to date in a plain script."""

    def aliases(self) -> Mapping[str, str]:
        """Return the aliases of all tools, each with the qualified name."""
        return self._packs.aliases()

    def sources(self) -> Mapping[str, str]:
        """Return the source files of the packs that have one."""
        return self._packs.sources()

    def secret(self, pack: str | None, name: str) -> str | None:
        """Return a secret, or None if it is missing or not granted to the pack; log the latter.

        Args:
            pack: Calling pack; None for code outside a file, such as an interactive session.
            name: Name of the secret.
        """
        return self._packs.secret(pack, name, self.log)

    def find_secret(self, name: str) -> tuple[str | None, str]:
        """Return the source of a secret, or None and the reason why it is missing; never its value."""
        return self._packs.find_secret(name)

    def config(self, pack: str | None) -> Mapping[str, object]:
        """Return the configuration of a pack."""
        return self._packs.config(pack)

    def pack_of(self, namespace: Mapping[str, object]) -> str | None:
        """Return the pack that these module globals belong to, or None."""
        return self._packs.pack_of(namespace)

    def running_pack(self) -> str | None:
        """Return the pack whose call is running in this context, or None."""
        return self._packs.running_pack()

    def caller(self) -> CallerKind:
        """Return who started the call; in a plain script, the user."""
        return "user"

    @property
    def _packs(self) -> LocalPacks:
        if self._own_packs is None:
            from pegboard.sdk.local_packs import LocalPacks

            self._own_packs = LocalPacks.of_environment()
        return self._own_packs


class _Current:
    host = Host()


def install(host: Host) -> None:
    """Make `host` the backend of the SDK's functions in this process."""
    _Current.host = host


def installed() -> Host:
    """Return the current backend of the SDK's functions."""
    return _Current.host


def progress(done: float, total: float | None = None, message: str = "") -> None:
    """Report the progress of the running call.

    Pegboard shows a progress bar. In a plain script, nothing happens::

        for number, path in enumerate(paths, 1):
            ...
            progress(number, len(paths), path)

    Args:
        done: Completed amount, in any unit.
        total: Total amount, in the same unit; None if unknown.
        message: Description of the current step.
    """
    _Current.host.progress(done, total, message)


def caller() -> CallerKind:
    """Return who started the running call: `user`, or `agent` for a model or an MCP client.

    A nested call has the caller of the outer one: if a model's script runs a tool that calls your tool, the caller is
    `agent`. Use this to refuse operations that are reserved to the user::

        if caller() == "agent":
            raise ToolFailed("Only the user may publish. Ask them to run this tool.")
    """
    return _Current.host.caller()


def log(message: str) -> None:
    """Show a message while the tool runs; in a plain script, print it to standard error."""
    _Current.host.log(message)
