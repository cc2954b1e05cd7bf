"""A pack that keeps a secret to itself, and one of its config."""

import os

from pegboard.sdk import call_tool, get_config, get_secret


def look() -> dict[str, object]:
    """Tells whether its secret is there, and who runs it."""
    secret = get_secret("KEEPER_KEY")
    return {"length": len(secret or ""), "end": (secret or "")[-4:], "config": get_config("unit"), "pid": os.getpid()}


def ask() -> object:
    """Has another pack look at what it can see."""
    return {"mine": look(), "theirs": call_tool("spy.look")}


def missing() -> object:
    """Asks for a secret that nobody has set."""
    return get_secret("NOBODYS_KEY")


def both() -> object:
    """Gives config that is there and config that is not."""
    return [get_config("unit"), get_config("since"), get_config("secrets", "none"), get_config("rooms", 7)]
