"""What a model needs before it can answer: a key, a library, a server; found without loading or reaching anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Final

from pegboard.ask.providers.endpoint import Dialect, endpoint
from pegboard.models.model_requirements import ModelNeeds

_LIBRARIES: Final[Mapping[Dialect, str]] = {"anthropic": "anthropic", "google": "google.genai"}
"""What must be installed to speak a dialect; for the others it always is."""


def needs(name: str, base_url: str | None, place: Callable[[str], str | None]) -> ModelNeeds:
    """Gives what a model needs.

    Args:
        name: `provider:model`.
        base_url: Where the provider is, if not in its usual place.
        place: Gives where a secret comes from, None if it is missing; it may block.

    Raises:
        ModelError: `not_configured`, if it is no model's name or no place.
    """
    its = endpoint(name, base_url)
    found = next(((secret, at) for secret in its.secrets if (at := place(secret))), (its.secrets[0], None))
    return ModelNeeds(
        title=its.title,
        where=its.where,
        is_local=its.is_local,
        needs_key=its.needs_key,
        secret=found[0],
        secret_place=found[1],
        start=its.start if its.is_local else "",
        extra="" if _is_installed(_LIBRARIES.get(its.dialect)) else its.dialect,
    )


def _is_installed(library: str | None) -> bool:
    try:
        return library is None or find_spec(library) is not None
    except ModuleNotFoundError:  # the package around it
        return False
