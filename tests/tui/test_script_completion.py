"""Completion in the script editor, and the places of findings."""

from __future__ import annotations

from pathlib import Path

import pytest
from script_stage import PACK, on_script, write_work
from stage import tool

from pegboard.tui.script.bash import NOTHING
from pegboard.tui.script.completion import Known, complete

SEARCH = tool(
    "shop.search",
    "Search products.",
    query={"type": "string"},
    order={"type": "string", "enum": ["price", "newest first"], "default": "price"},
    exact={"type": "boolean", "default": False},
    path={"type": "string", "default": "."},
)


def offered(line: str, folder: Path | None = None, script: str = "") -> list[str]:
    """Return the labels that are offered at the end of a line."""
    known = Known({"shop.search": SEARCH, "shop_search": SEARCH}, {"helper"}, script or line, folder)
    found = complete(line, NOTHING, known)
    return [one.label for one in found.suggestions] if found is not None else []


@pytest.mark.promise("SCR-5")
def test_commands_are_completed_where_a_command_is_expected() -> None:
    assert offered("sho")[:2] == ["shop.search", "shop_search"]
    assert offered("echo hi | sear") == ["shop.search", "shop_search"]
    assert offered("x=$(hel")[0] == "helper"
    assert "jq" in offered("cat a | j")
    assert offered("echo sho") == []


@pytest.mark.promise("SCR-5")
def test_flags_and_their_values_are_completed() -> None:
    assert offered("shop.search --") == ["--query", "--order", "--exact", "--path", "--help"]
    assert offered("shop.search --order price --") == ["--query", "--exact", "--path", "--help"]
    assert offered("shop.search tea --order ") == ["price", "'newest first'"]
    assert offered("shop.search tea --order=p") == ["price"]
    assert offered("shop.search --exact ") == []
    assert offered("echo $(shop.search --or") == ["--order"]


@pytest.mark.promise("SCR-5")
def test_paths_are_completed_for_tools_and_files_of_the_script_for_commands(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "to do.txt").touch()
    (tmp_path / ".hidden").touch()
    assert offered("shop.search tea --path ", tmp_path) == ["notes/"]
    assert offered("shop.search tea --path notes/", tmp_path) == ["'notes/to do.txt'"]
    assert offered("shop.search tea --path .h", tmp_path) == [".hidden"]
    assert offered("shop.search tea --path nowhere/", tmp_path) == []
    assert offered("cat o", script="shop.search tea > out.txt\ncat o") == ["out.txt"]


def test_a_link_that_cannot_be_followed_is_completed_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "closed").symlink_to("x" * 300)  # no one may follow it, not even root
    assert offered("shop.search tea --path ", tmp_path) == ["closed", "notes/"]


def test_nothing_is_completed_within_quotes_and_here_documents() -> None:
    assert offered('echo "sho') == []
    assert offered("echo 'sho") == []
    assert offered("shop.search 'a b") == []


@pytest.mark.promise("SCR-5")
async def test_tab_accepts_a_completion_while_typing(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press(*"work.lo")
        await stage.until_seen("▸ work.look")
        await stage.press("tab", *"--of")
        await stage.until_seen("▸ --often")
        await stage.press("tab", "3")
        assert stage.editor.text == "work.look --often 3"


@pytest.mark.promise("SCR-5")
async def test_enter_breaks_the_line_unless_a_completion_was_chosen(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press(*"work.s")
        await stage.until_seen("▸ work.say")
        await stage.press("enter")
        assert stage.editor.text == "work.s\n"
        await stage.press(*"work_w")
        await stage.until_seen("▸ work_wait")
        await stage.press("up", "enter")
        assert stage.editor.text == "work.s\nwork_wait "


@pytest.mark.promise("SCR-5")
async def test_escape_closes_the_completions_and_keeps_the_focus(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press(*"work.lo")
        await stage.until_seen("▸ work.look")
        await stage.press("escape")
        await stage.until(lambda: "▸ work.look" not in stage.text, "the list is closed")
        assert stage.editor.has_focus
        await stage.press("ctrl+f")
        await stage.until_seen("▸ work.look")


@pytest.mark.promise("SCR-5")
async def test_a_completion_replaces_the_selected_placeholder(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press(*"work.big <size>", *["shift+left"] * 6, "ctrl+f")
        await stage.until_seen("No completions here.")
        await stage.press("ctrl+a", "delete", *"work.look --o<flag>", *["shift+left"] * 6, "ctrl+f")
        await stage.until_seen("▸ --often")
        await stage.press("tab")
        assert stage.editor.text == "work.look --often "


NESTED = '''
from typing import TypedDict

class Range(TypedDict):
    least: int

@hints(read_only=True)
def find(*, size: Range) -> str:
    """Find something."""
    return ""
'''


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(
    ("script", "column"),
    [
        ('work.look "$where" --oftn 2', 20),
        ("work.look --oftn 2 a", 11),
        ("work.find --size.least many", 11),
        ("work.find --size '{\"least\": true}'", 11),
    ],
)
async def test_a_finding_about_a_flag_is_at_the_flag(tmp_path: Path, script: str, column: int) -> None:
    async with on_script(tmp_path) as stage:
        (write_work(tmp_path) / "work.py").write_text(PACK + NESTED)
        await stage.until(lambda: "work.find" in stage.place.analyzer.names, "it is known")
        await stage.write(script)
        await stage.looked_at(f"line 1, column {column}: work.")


@pytest.mark.promise("SCR-5")
async def test_findings_are_marked_in_the_editor_with_line_and_column(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.write("echo start\n  work.big --size ten\nwork.lok x")
        await stage.until(lambda: "line 2, column 12: work.big: --size: must be" in stage.findings, "it is found")
        assert "line 3, column 1: " in stage.findings
        underlined = [span for span in stage.editor.get_line(1).spans if "underline" in str(span.style)]
        assert [(span.start, span.end) for span in underlined] == [(11, 17)]
        await stage.until_seen("line 3, column 1")
        await stage.pilot.pause()
        await stage.pilot.click("#findings", offset=(3, 1))
        await stage.until(lambda: stage.editor.cursor_location == (2, 0), "the cursor is at the second finding")


async def test_ctrl_j_is_a_line_break_in_the_editor(tmp_path: Path) -> None:
    async with on_script(tmp_path) as stage:
        await stage.press(*"  a", "ctrl+j", "b")
        assert stage.editor.text == "  a\n  b"
        assert not stage.place.running
