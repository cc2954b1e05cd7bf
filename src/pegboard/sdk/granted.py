"""What a pack may know: its own secrets and its own config."""

from __future__ import annotations

import re

from pegboard.sdk.host import installed
from pegboard.sdk.requester import asking

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from typing import Any  # config is outside data, whose type only its author knows

_UNEXPANDED = re.compile(r"\$\{[A-Za-z_][\w:.-]*\}")


def get_secret(name: str, *, extra: bool = False) -> str | None:
    """Gives a secret of the pack that asks; None if there is none, or if the pack wasn't granted it.

    A pack is granted the secrets that its file names: in `@requires_secret`, or as a literal argument of this
    function, `api_headers` and `lazy_client`; and those that `[packs.NAME] secrets` lists in the configuration.

    Args:
        name: What it is called, as an environment variable is: `SEARCH_KEY`.
        extra: Whether the tools do all that they say without it, so that nobody need be told where it is missing.
            Read from the source: write it as a literal.
    """
    del extra
    return installed().secret(asking(), name)


def get_config(key: str, default: object = None) -> Any:  # noqa: ANN401 - see above
    """Gives a value of `[packs.NAME]` in the configuration, NAME being the pack that asks.

    Args:
        key: The name of the value.
        default: What to give where there is none.
    """
    return installed().config(asking()).get(key, default)


def flaw(value: str | None) -> str | None:
    """Says what makes a secret as good as missing, without its value; None if nothing does."""
    if value is None:
        return "is not set"
    if not value.strip():
        return "is empty"
    if _UNEXPANDED.search(value):
        return "is a variable that nothing put a value into: `${…}` stands in it as it is"
    return None


def not_granted(pack: str, name: str) -> str:
    """Says that a pack asked for a secret that it wasn't granted, and what to do about it."""
    return (
        f"The pack {pack} was not granted the secret {name}: name it in the pack's file as a literal, "
        f'or write `secrets = ["{name}"]` under `[packs.{pack}]` in the configuration.'
    )
