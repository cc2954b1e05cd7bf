"""Calls of tools that were pasted as text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.forms import Pasted
    from pegboard.models import ToolSpec
    from pegboard.runtime import Runtime


async def read_paste(runtime: Runtime, spec: ToolSpec | None, text: str) -> tuple[ToolSpec, Pasted] | None:
    """Parse a call with the schema of the tool it names, or of the current tool.

    Args:
        runtime: Runtime with the tools.
        spec: The current tool.
        text: The pasted text.

    Returns:
        The tool and its arguments, or None if the text isn't a call.
    """
    from pegboard.forms import pasted

    if spec is None:
        return None
    found = await asyncio.to_thread(pasted, text, spec)
    if found is None or found.tool in {None, spec.name}:
        return (spec, found) if found is not None else None
    other = await asyncio.to_thread(runtime.tools.get, str(found.tool))
    again = await asyncio.to_thread(pasted, text, other) if other is not None else None
    return (other, again) if other is not None and again is not None else None
