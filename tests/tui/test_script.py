"""The Script place: writing, running, watching."""

from __future__ import annotations

from pathlib import Path

import pytest
from script_stage import on_script


@pytest.mark.promise("SCR-6", "TUI-1")
async def test_a_script_is_run_and_its_calls_and_output_are_seen(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.run("work.look here | jq -r .seen\necho oops >&2; exit 3")
        assert stage.calls[0].startswith("✗ script")
        assert [row.split()[:2] for row in stage.calls[1:]] == [["✓", "work.look"]]
        assert stage.printed == ["  here", "! oops"]
        assert "✗ exit 3" in stage.text
