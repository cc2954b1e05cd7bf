"""Keep a recorded call as a check."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.app import App

from pegboard.errors import PegboardError
from pegboard.results.clean import clean_line

if TYPE_CHECKING:
    from pegboard.checks import Check
    from pegboard.runtime import Runtime


async def keep_call(app: App[None], runtime: Runtime, call_id: str) -> None:
    """Write a check that expects the result of a recorded call, under a name that the user types.

    Args:
        app: The running app.
        runtime: Runtime with the history.
        call_id: The id of the call.
    """
    from pegboard.tui.dialogs.ask_name import ask_name

    async def keep(name: str) -> bool:
        saved = await asyncio.to_thread(_keep, runtime, call_id, name)
        app.notify(f"Kept as the check {clean_line(saved.name)} in {clean_line(saved.file)}.", markup=False)
        return True

    try:
        suggested, is_trusted = await asyncio.to_thread(_suggested, runtime, call_id)
    except PegboardError as error:
        app.notify(clean_line(str(error)), severity="error", markup=False)
        return
    note = "" if is_trusted else "It is written to your data folder, because the working directory is not trusted."
    await ask_name(app, "Keep as check", suggested, keep, note)


def _suggested(runtime: Runtime, call_id: str) -> tuple[str, bool]:
    """Return a free name for the check, and whether the working directory is trusted."""
    from pegboard.checks import Checks
    from pegboard.checks.keep import recorded

    record, _ = recorded(runtime, call_id)
    files = Checks(runtime.paths)
    return files.free_name(record.tool), files.is_trusted()


def _keep(runtime: Runtime, call_id: str, name: str) -> Check:
    from pegboard.checks import Checks
    from pegboard.checks.keep import kept_check, recorded

    record, result = recorded(runtime, call_id)
    return Checks(runtime.paths).save(kept_check(runtime, record, result, name, "snapshot"))
