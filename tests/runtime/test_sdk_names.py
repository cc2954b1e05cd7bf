"""Packs and tools as other tools see them, in real worker processes: always current, and by all of their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.models import ToolCall
from pegboard.runtime import Runtime

MAKER = """
from pathlib import Path
from pegboard.sdk import aliases, call_tool, get_pack

def make(*, folder: str) -> list[object]:
    \"\"\"Write a pack, and call it.\"\"\"
    before = get_pack("made"), get_pack("maker") is not None
    Path(folder, "made.py").write_text("def hi() -> str:\\n    'Say hi.'\\n    return 'hi'\\n")
    pack = get_pack("made")
    return [before[0], before[1], pack and pack.hi(), call_tool("made.hi")]

@aliases("findThings", "maker.find")
def search(*, name: str) -> str:
    \"\"\"Find.\"\"\"
    return name

def find_by_all_names() -> list[str]:
    \"\"\"Find.\"\"\"
    pack = get_pack("maker")
    return [
        pack.search(name="a"), pack.findThings(name="b"), pack.find(name="c"),
        call_tool("findThings", name="d"), call_tool("maker.find", name="e"),
    ]
"""


@pytest.mark.promise("SDK-1", "SDK-2", "SDK-14")
async def test_a_new_pack_is_available_to_get_pack_and_call_tool_alike(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    folder = write_pack("maker.py", MAKER)
    runtime = open_runtime(folder)
    _, made = await runtime.result(ToolCall(name="maker.make", args={"folder": str(folder)}, source="form"))
    assert (made.error, made.data) == (None, [None, True, "hi", "hi"])
    _, found = await runtime.result(ToolCall(name="maker.find_by_all_names", args={}, source="form"))
    assert (found.error, found.data) == (None, list("abcde"))
