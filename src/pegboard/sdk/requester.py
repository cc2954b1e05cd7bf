"""Identification of the pack that calls the SDK."""

from __future__ import annotations

import sys

from pegboard.sdk.host import installed

_OUR_MODULES = "pegboard.sdk."


def calling_pack() -> str | None:
    """Return the pack that called the SDK: the nearest one on the stack, or else the one whose call is running.

    The pack is never an argument, because a pack could then pass the name of another one.
    """
    host = installed()
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to identify the calling code
    while frame is not None:
        namespace = frame.f_globals
        if not str(namespace.get("__name__")).startswith(_OUR_MODULES):
            pack = host.pack_of(namespace)
            if pack is not None:
                return pack
        if frame.f_back is None:
            break
        frame = frame.f_back
    return host.running_pack()
