"""Secrets and configuration of the calling pack."""

from __future__ import annotations

from pegboard.sdk.host import installed
from pegboard.sdk.requester import calling_pack

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from typing import Any  # configuration has the types that the author of the pack expects


def get_secret(name: str, *, extra: bool = False) -> str | None:
    """Return a secret, or None if it is missing or not granted to the calling pack.

    A pack is granted the secrets that its source names as literals: in `@requires_secret`, or as the argument of
    `get_secret`, `api_headers` or `lazy_client`. `[packs.NAME] secrets` in the configuration grants more::

        key = get_secret("SEARCH_KEY")
        if key is None:
            raise ToolFailed("SEARCH_KEY is missing. Set it with: pegboard auth set SEARCH_KEY")

    Args:
        name: Name of the secret, written like an environment variable: `SEARCH_KEY`.
        extra: Whether the tools work completely without the secret, so that Pegboard doesn't report it as missing.
            Write it as a literal: it is read from the source.
    """
    del extra
    return installed().secret(calling_pack(), name)


def get_config(key: str, default: object = None) -> Any:  # noqa: ANN401 - see above
    """Return a value from the configuration of the calling pack, the table `[packs.NAME]`.

    Args:
        key: Key in the table.
        default: Value to return if the key is missing.
    """
    return installed().config(calling_pack()).get(key, default)
