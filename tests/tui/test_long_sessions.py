"""The app stays open all day, beside agents and editors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import on_stage

from pegboard.runtime import Runtime

PACK = '''
"""Letters."""

def write(*, body: str) -> str:
    """Write a letter."""
    return body
'''


@pytest.mark.promise("DSC-6")
@pytest.mark.usefixtures("freezing")
async def test_dialogs_that_are_open_while_a_pack_changes_are_freed(write_pack: Callable[[str, str], Path]) -> None:
    runtime = Runtime.from_environment(packs=[write_pack("letter.py", PACK)])
    async with on_stage(runtime) as stage:
        await stage.press("f1")
        help_ = weakref.ref(stage.app.screen)
        write_pack("letter.py", PACK.replace("body: str", "body: str, copies: int = 1"))
        await stage.app.action_rescan().wait()
        await stage.until(lambda: "copies" in str(stage.app.tool_scan.catalogue.entries), "the change is listed")
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the help is closed")

        def is_freed() -> bool:
            gc.collect()
            return help_() is None

        await stage.until(is_freed, "the help is freed")
