"""Clients that are built when they are first used."""

from __future__ import annotations

from threading import RLock

from pegboard.sdk.granted import get_secret

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    ClientT = TypeVar("ClientT")


def lazy_client(factory: Callable[[], ClientT], secret_name: str | None = None) -> Callable[[], ClientT | None]:
    """Gives a function that builds a client at its first call, and gives the same one from then on.

    It may be called from many threads at once. Where the factory raises, so does the call, and the next one tries
    again.

    Args:
        factory: Builds the client.
        secret_name: A secret without which there is nothing to build: where it is missing, the function gives None.
    """
    building = RLock()
    built: list[ClientT] = []

    def client() -> ClientT | None:
        if built:
            return built[0]
        if secret_name is not None and get_secret(secret_name) is None:
            return None
        with building:
            if not built:
                built.append(factory())
        return built[0]

    return client
