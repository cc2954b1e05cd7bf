"""Copying the call in a form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stage import GivenRuntime, Stage, on_stage, tool
from textual import events

from pegboard.models import JsonObject
from pegboard.tui.dialogs.copy_as import CopyScreen
from pegboard.tui.widgets.pick_list import PickList


async def open_copy(stage: Stage) -> None:
    """Open the copy formats."""
    await stage.press("ctrl+right_square_bracket")
    await stage.until(lambda: isinstance(stage.app.screen, CopyScreen), "the ways are listed")


@pytest.mark.promise("TUI-3", "TUI-5")
@pytest.mark.parametrize(
    ("keys", "copied"),
    [
        ([], "pegboard tools invoke fs.read_file --arg 'path=a b.txt'"),
        (["down"], "fs.read_file --path 'a b.txt'"),
        (["s", "c", "l"], "fs.read_file --path 'a b.txt'"),
        (["down", "down"], '{\n  "path": "a b.txt"\n}'),
        (["p", "y"], 'call_tool("fs.read_file", path="a b.txt")'),
    ],
)
async def test_a_call_is_copied_as_it_is_shown(given: GivenRuntime, keys: list[str], copied: str) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a b.txt")
        await open_copy(stage)
        await stage.press(*keys)
        await stage.until_seen(copied.splitlines()[0])
        await stage.press("enter")
        await stage.until(lambda: stage.app.clipboard == copied, "it is copied")
        await stage.until_seen("Copied")
        assert stage.app.screen is stage.screen


@pytest.mark.promise("TUI-3")
async def test_an_mcp_request_is_copied(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a")
        await open_copy(stage)
        await stage.press("end", "enter")
        await stage.until(lambda: stage.app.clipboard, "it is copied")
        request = json.loads(stage.app.clipboard)
        assert request["params"] == {"name": "fs.read_file", "arguments": {"path": "a"}}


@pytest.mark.promise("TUI-3")
async def test_credentials_of_a_given_server_are_masked_in_the_preview(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given.tools, "options", lambda _: ("--mcp", "far=server --token sesame-4711"))
    async with on_stage(given) as stage:
        await stage.open("read")
        await stage.type("a")
        await open_copy(stage)
        await stage.until_seen("secrets are masked here, but copied in plain text")
        await stage.until_seen("--mcp")
        assert "sesame" not in stage.text
        await stage.press("enter")
        await stage.until(lambda: "--token sesame-4711" in stage.app.clipboard, "it is copied in plain text")


@pytest.mark.promise("TUI-3")
async def test_a_secret_is_masked_in_the_preview_and_copied_in_plain_text(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, tools=[tool("web.login", api_key={"type": "string"})])
    async with on_stage(given) as stage:
        await stage.open("login")
        await stage.type("hush")
        await open_copy(stage)
        await stage.until_seen("secrets are masked here, but copied in plain text")
        await stage.until_seen("••••")
        assert "hush" not in stage.text
        await stage.press("enter")
        await stage.until(lambda: "api_key=hush" in stage.app.clipboard, "it is copied whole")


async def test_an_invalid_call_can_be_copied_with_a_warning(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.open("read")
        await open_copy(stage)
        await stage.until_seen("1 validation error: copied unchanged")


async def test_a_long_preview_is_scrolled_by_pages(given: GivenRuntime) -> None:
    given.found = [tool("p.long", items={"type": "array", "items": {"type": "integer"}})]
    async with on_stage(given, size=(80, 24)) as stage:
        await stage.open("long")
        stage.form.load({"items": [*range(1000, 1200)]})
        await open_copy(stage)
        await stage.press("down", "down")
        await stage.until_seen('"items": [')
        await stage.press("pagedown")
        await stage.until(lambda: '"items": [' not in stage.text, "it is scrolled")
        assert stage.app.screen.query_one(PickList).has_focus


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("way", ["Command line", "JSON", "Python", "MCP request"])
async def test_a_copied_call_is_the_same_when_pasted(tmp_path: Path, way: str) -> None:
    odd = tool(
        "p.odd",
        text={"type": "string"},
        lines={"type": "string"},
        numbers={"type": "array", "items": {"type": "integer"}},
        deep={"type": "object", "properties": {"a.b": {"type": "string"}, "n": {"type": ["number", "null"]}}},
        rest={"type": "object", "additionalProperties": {"type": "boolean"}},
    )
    arguments: JsonObject = {
        "text": 'it\'s "$HOME" `id` \\ !',
        "lines": "one\n\ttwo\nthrée 🪵",
        "numbers": [1, 12345678901234567890],
        "deep": {"a.b": "--args", "n": None},
        "rest": {"": True, "a=b": False},
    }
    async with on_stage(GivenRuntime(tmp_path, tools=[odd])) as stage:
        await stage.until(lambda: stage.screen.settled, "its form is shown")
        stage.form.load(arguments)
        await open_copy(stage)
        await stage.press(*("space" if sign == " " else sign for sign in way), "enter")
        await stage.until(lambda: stage.app.clipboard, "it is copied")
        stage.form.load({})
        stage.list.focus()
        stage.app.post_message(events.Paste(stage.app.clipboard))
        await stage.until(lambda: stage.form.form and stage.form.form.draft() == arguments, "the form is filled again")
        assert stage.form.submit() == arguments
