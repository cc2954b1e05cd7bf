"""Which pack is asking."""

from __future__ import annotations

import sys

from pegboard.sdk.host import installed

_OUR_MODULES = "pegboard.sdk."


def asking() -> str | None:
    """Gives the pack whose code called the SDK: the nearest on the stack, else the one whose call runs.

    It is never told by an argument: a pack could name another.
    """
    host = installed()
    frame = sys._getframe(1)  # noqa: SLF001 - the one way to know who calls
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
