"""Requirements of a model: a key, a library, a server; checked without loading or connecting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Final

from pegboard.ask.providers.endpoint import Dialect, endpoint
from pegboard.models.model_requirements import ModelRequirements
from pegboard.sdk.distributions import extra_command

_LIBRARIES: Final[Mapping[Dialect, str]] = {"anthropic": "anthropic", "google": "google.genai"}
"""Dialect → library that is optional; the extra that installs it has the name of the dialect."""


def requirements_of(name: str, base_url: str | None, place: Callable[[str], str | None]) -> ModelRequirements:
    """Return the requirements of a model.

    Args:
        name: `provider:model`.
        base_url: The provider's URL, if not the usual one.
        place: Function that returns where a secret is set, or None; it may block.

    Raises:
        ModelError: `not_configured` if the name or the URL is invalid.
    """
    its = endpoint(name, base_url)
    found = next(((secret, at) for secret in its.secrets if (at := place(secret))), (its.secrets[0], None))
    extra = "" if _is_installed(_LIBRARIES.get(its.dialect)) else its.dialect
    return ModelRequirements(
        title=its.title,
        where=its.where,
        is_local=its.is_local,
        needs_key=its.needs_key,
        secret=found[0],
        secret_place=found[1],
        start=its.start if its.is_local else "",
        extra=extra,
        install=extra and extra_command(extra),
    )


def _is_installed(library: str | None) -> bool:
    try:
        return library is None or find_spec(library) is not None
    except ModuleNotFoundError:  # its parent package
        return False
