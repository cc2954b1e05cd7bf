"""Checks of secrets, and the messages about secrets that can't be used."""

from __future__ import annotations

import re

_UNEXPANDED = re.compile(r"\$\{[A-Za-z_][\w:.-]*\}")


def secret_problem(value: str | None) -> str | None:
    """Return why the value of a secret can't be used, without the value itself; None if it can."""
    if value is None:
        return "is not set"
    if not value.strip():
        return "is empty"
    if _UNEXPANDED.search(value):
        return "contains an unexpanded variable: `${…}`"
    return None


def not_granted_message(pack: str, name: str) -> str:
    """Return the message about a secret that a pack requested but was not granted."""
    return (
        f"The pack {pack} was not granted the secret {name}. Name the secret in the pack's file as a literal, "
        f'or write `secrets = ["{name}"]` under `[packs.{pack}]` in the configuration.'
    )
