"""A pack with a secret and a setting of its own."""

import os

from pegboard.sdk import call_tool, get_config, get_secret


def look() -> dict[str, object]:
    """Return whether its secret is set, and the parent process."""
    secret = get_secret("KEEPER_KEY")
    return {"length": len(secret or ""), "end": (secret or "")[-4:], "config": get_config("unit"), "pid": os.getpid()}


def ask() -> object:
    """Let another pack look for the secret."""
    return {"mine": look(), "theirs": call_tool("spy.look")}


def missing() -> object:
    """Read a secret that is not set."""
    return get_secret("NOBODYS_KEY")


def both() -> object:
    """Return a setting that exists and one that doesn't."""
    return [get_config("unit"), get_config("since"), get_config("secrets", "none"), get_config("rooms", 7)]
