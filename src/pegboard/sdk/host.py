"""Who stands behind a running tool: hears what it says, and gives what it asks for."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from pegboard.sdk.shelf import Shelf

    CallerKind = Literal["user", "agent"]


class Host:
    """What the functions of the SDK talk to; this one serves plain scripts and tests.

    A worker installs its own. Every method may be called from any thread, with or without an event loop. What a plain
    script has stands on its shelf: packs that were imported, those on the packs path, and the environment.
    """

    _own_shelf: Shelf | None = None

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Takes how far the tool is: nobody watches a plain script."""

    def log(self, message: str) -> None:
        """Takes a line for whoever watches: in a plain script, standard error."""
        print(message, file=sys.stderr)  # noqa: T201 - standard error is where a script narrates

    def call(self, tool: str, arguments: Mapping[str, object]) -> object:
        """Calls a tool and gives what it returns.

        Args:
            tool: The qualified name.
            arguments: By the names of the parameters, or their other names.

        Raises:
            ValueError: There is no such tool, in the words of `names.not_found`.
            TypeError: The arguments don't fit its parameters.
            ToolFailed: It failed in its author's words.
            RuntimeError: It failed otherwise.
        """
        return self._shelf.call(tool, arguments)

    def packs(self) -> Mapping[str, Sequence[str]]:
        """Gives the packs that can be called, each with the names of its functions that are tools."""
        return self._shelf.packs()

    def refresh(self) -> None:
        """Look again for packs: what `packs` and `aliases` return next is as it is now."""

    def aliases(self) -> Mapping[str, str]:
        """Return the other names of tools, as they are called, each with the qualified name."""
        return self._shelf.aliases()

    def sources(self) -> Mapping[str, str]:
        """Gives the files of those packs that have one."""
        return self._shelf.sources()

    def secret(self, pack: str | None, name: str) -> str | None:
        """Gives a secret if it is there and the pack was granted it; says in the log if it wasn't.

        Args:
            pack: Who asks; None for code that is in no file, such as what is typed into an interpreter.
            name: The secret's name.
        """
        return self._shelf.secret(pack, name, self.log)

    def find_secret(self, name: str) -> tuple[str | None, str]:
        """Gives where a secret comes from; None and the reason if it is missing. Never its value."""
        return self._shelf.find_secret(name)

    def config(self, pack: str | None) -> Mapping[str, object]:
        """Gives the config of a pack."""
        return self._shelf.config(pack)

    def pack_of(self, namespace: Mapping[str, object]) -> str | None:
        """Gives the pack whose code runs with these globals; None if they are no pack's."""
        return self._shelf.pack_of(namespace)

    def running_pack(self) -> str | None:
        """Gives the pack whose call runs here, for code that stands in no pack; None if none does."""
        return self._shelf.running_pack()

    def caller(self) -> CallerKind:
        """Return who started the call; a plain script is run by the user."""
        return "user"

    @property
    def _shelf(self) -> Shelf:
        if self._own_shelf is None:
            from pegboard.sdk.shelf import Shelf

            self._own_shelf = Shelf.of_environment()
        return self._own_shelf


class _Place:
    host = Host()


def install(host: Host) -> None:
    """Puts `host` behind the functions of the SDK, for the whole process."""
    _Place.host = host


def installed() -> Host:
    """Gives the host that stands behind the functions of the SDK."""
    return _Place.host


def progress(done: float, total: float | None = None, message: str = "") -> None:
    """Tells whoever watches the call how far the tool is, while it runs.

    Args:
        done: How much is done, in any unit.
        total: How much there is to do, in the same unit; None if unknown.
        message: What is being done now.
    """
    _Place.host.progress(done, total, message)


def caller() -> CallerKind:
    """Return who started the running call: `user`, or `agent` for a model, an MCP client and what they run in turn.

    A tool that another tool calls has the caller of that one, and a tool in a model's script the model. Use this to
    refuse what only the user may do.
    """
    return _Place.host.caller()


def log(message: str) -> None:
    """Shows a line to whoever watches the call, while the tool runs."""
    _Place.host.log(message)
