"""API clients created on first use."""

from __future__ import annotations

from threading import RLock

from pegboard.sdk.granted import get_secret

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    ClientT = TypeVar("ClientT")


def lazy_client(factory: Callable[[], ClientT], secret_name: str | None = None) -> Callable[[], ClientT | None]:
    """Return a thread-safe function that creates a client on its first call and reuses it afterwards.

    If the factory raises, the exception propagates, and the next call tries again::

        client = lazy_client(lambda: httpx.Client(timeout=10))


        def fetch(*, url: str) -> str:
            return client().get(url).text

    Args:
        factory: Function that creates the client.
        secret_name: Secret that the client requires. While it is missing, the returned function returns None, and once
            it changes, another client is created. Write it as a literal: naming it here grants it to the pack.

    Returns:
        A function that returns the client, or None if the secret is missing.
    """
    building = RLock()
    built: dict[str | None, ClientT] = {}
    """The client, by the secret with which it was created."""

    def client() -> ClientT | None:
        secret = None if secret_name is None else get_secret(secret_name)
        if secret_name is not None and secret is None:
            return None
        with building:
            if secret not in built:
                made = factory()
                built.clear()
                built[secret] = made
            return built[secret]

    return client
