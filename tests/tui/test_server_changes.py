"""Open resources and lists of MCP servers follow what the servers announce."""

from __future__ import annotations

import pytest
from servers import CHANGING_SERVER, call
from stage import Stage
from test_servers import ready, select, server, with_servers

from pegboard.models import Problem
from pegboard.tui.dialogs.result import ResultScreen
from pegboard.tui.widgets.pick_list import PickList

VERSIONS = pytest.mark.parametrize("version", [(), ("2025-11-25",)], ids=["2026-07-28", "2025-11-25"])


async def log_of(stage: Stage) -> str:
    """Return the subscriptions that the server has had."""
    read = await stage.app.runtime.servers.read("peer", "memo://log")
    assert not isinstance(read, Problem)
    return read[0].text or ""


async def change(stage: Stage, tool: str) -> None:
    """Let the server change something."""
    _, result = await stage.app.runtime.result(call(f"peer.{tool}"))
    assert result.ok, result


@VERSIONS
@pytest.mark.promise("MCP-6")
async def test_an_open_resource_is_updated_until_it_is_closed(version: tuple[str, ...]) -> None:
    async with with_servers(server(CHANGING_SERVER, *version)) as stage:
        await ready(stage)
        await select(stage)
        await stage.until_seen(version[0] if version else "2026-07-28")
        await stage.until_seen("memo://now")
        stage.screen.query_one("ServerPage PickList").focus()
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, ResultScreen), "the resource is open")
        await stage.until_seen("version 0")
        await stage.until_seen("Updated when the server changes it")
        await change(stage, "edit")
        await stage.until_seen("version 1")
        await stage.until_seen("Updated by the server at")
        assert await log_of(stage) == '["subscribed memo://now"]'
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "the resource is closed")
        while "unsubscribed memo://now" not in await log_of(stage):  # bounded by the test's time limit
            pass


@VERSIONS
@pytest.mark.promise("MCP-6")
async def test_a_changed_list_of_resources_is_read_again_and_keeps_the_marked_line(version: tuple[str, ...]) -> None:
    async with with_servers(server(CHANGING_SERVER, *version)) as stage:
        await ready(stage)
        await select(stage)
        await stage.until_seen("memo://log")
        contents = stage.screen.query_one("ServerPage PickList", PickList)
        contents.focus()
        await stage.press("end")
        await change(stage, "append")
        await stage.until_seen("memo://1")
        assert contents.marked is not None
        assert "memo://log" in contents.draw(contents.marked, 80, is_selected=True).plain
        await stage.type("log")
        await change(stage, "append")
        await stage.until(lambda: contents.total == 4, "the list is updated")
        assert contents.row_count == 1
        contents.post_message(PickList.Chosen(9))  # as if the list has become shorter after the key
        await stage.pilot.pause()
        assert stage.app.crash is None
