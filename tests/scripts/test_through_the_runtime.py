"""Scripts over the tools of packs: through a real runtime, each call in a worker process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any  # results may be any JSON

import pytest
from pydantic import JsonValue

from pegboard.models import ApprovalRequested, CallEvent, Finished, JsonObject, Log, Started, ToolCall, ToolSpec
from pegboard.models.approval import Approval
from pegboard.runtime import Runtime

SHOP = (Path(__file__).parents[1] / "packs" / "scripted.py").read_text(encoding="utf-8")


async def _run(runtime: Runtime, script: str, seconds: float | None = None) -> dict[str, Any]:
    """Run a script and return its result."""
    events = [event async for event in runtime.scripts.run(script, timeout=seconds)]
    assert isinstance(events[-1], Finished)
    assert isinstance(events[-1].result.data, dict), events[-1].result.error
    return events[-1].result.data


async def _stdout(runtime: Runtime, script: str) -> object:
    result = await _run(runtime, script)
    assert result["stderr"] == ""
    return result["stdout"]


SCRIPTS = {
    "text with a newline": ("shop.words 'a b'; echo .$(shop.words c).; printf '1\\n' | shop.lines", "a b\n.c.\n1\n"),
    "anything else as JSON": ("shop.get_user 7", '{"id": 7, "name": "Ada", "orders": [70, 71]}\n'),
    "underscores": ("shop_get_user --id=7 | jq -r .name", "Ada\n"),
    "flags": ("shop.words a --tags b --tags '[1' --loud", "A B [1\n"),
    "stdin": ("printf 'a\\nb\\n' | shop.lines", "2\n"),
    "an object": ("shop.search --filter.name x --filter.size 3 | jq -c .filter", '{"name":"x","size":3}\n'),
    "null": ("shop.search | jq -c .", '{"filter":null,"note":null}\n'),
    "a large result is whole": ("shop.big 3000000 | wc -c", "3000001\n"),
    "join": (
        "for id in 7 8; do shop.get_user $id; done | jq -sc 'map({key: .name, value: .orders}) | from_entries'",
        '{"Ada":[70,71],"Grace":[80,81]}\n',
    ),
}


@pytest.mark.promise("SCR-2", "SCR-3")
@pytest.mark.parametrize(("script", "printed"), SCRIPTS.values(), ids=SCRIPTS.keys())
async def test_a_script_calls_tools_of_packs(shop: Runtime, script: str, printed: str) -> None:
    assert await _stdout(shop, script) == printed


RENAMED = '''
from pegboard.sdk import aliases

@aliases("desk.lookup", "cat", "desk.count", text="query")
def find(*, text: str) -> str:
    """Find."""
    return f"found {text}"

def count(*, n: int = 0) -> int:
    """Count."""
    return n
'''


@pytest.mark.promise("SCR-1", "SDK-14")
async def test_earlier_names_of_a_tool_are_commands_and_names_without_a_pack_hide_no_command(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("desk.py", RENAMED))
    script = "desk.lookup --query saw; desk_lookup nail; desk.find --text peg; desk.count; echo ok | cat"
    assert await _stdout(runtime, script) == "found saw\nfound nail\nfound peg\n0\nok\n"
    calls = runtime.scripts.orchestrator().analyze("desk.lookup --query saw").calls
    assert [(call.tool, call.args) for call in calls] == [("desk.find", {"text": "saw"})]
    assert "Also called desk_find, desk.lookup, desk_lookup." in str(await _stdout(runtime, "help desk.lookup"))


ODD = '''
"""Has an odd name."""
def größe(*, n: int = 1) -> int:
    """Gives a size."""
    return n
'''


@pytest.mark.promise("SCR-1")
async def test_tools_with_any_name_are_commands(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    folders = {write_pack(f"{pack}.py", ODD) for pack in ("1st", "my-pack", "my_pack", "own")}
    runtime = open_runtime(*folders)
    names = ["_1st_größe", "my-pack.größe", "my_pack.größe", "own.größe", "own_größe"]
    assert await _stdout(runtime, "; ".join(f"{name} --n {n}" for n, name in enumerate(names))) == "0\n1\n2\n3\n4\n"
    [record] = runtime.history.records(tool="1st.größe")
    assert runtime.scripts.from_records([record]).splitlines()[1] == "_1st_größe --n 0"


@pytest.mark.promise("SCR-2")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("shop.get_user 9", 1, "shop.get_user: There is no user 9."),
        ("shop.get_user ada", 2, "shop.get_user: --id: "),
        ("shop.get_user", 2, "shop.get_user: --id: "),
        ("shop.get_user 7 --colour red", 2, "shop.get_user: --colour: "),
        ("shop.get_user 7 8", 2, "shop.get_user: unexpected '8'"),
        ("shop.hang", 124, "0.3 s"),
        ("shop.nothing", 127, "command not found"),
    ],
)
async def test_a_call_that_fails_prints_the_reason_and_the_script_continues(
    shop: Runtime, command: str, code: int, said: str
) -> None:
    result = await _run(shop, f"{command}; echo $?")
    assert result["stdout"] == f"{code}\n"
    assert said in result["stderr"]
    assert ("usage: shop.get_user <id>" in result["stderr"]) == (code == 2)


@pytest.mark.promise("SCR-2")
@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("git status", "pegboard: scripts can't run the programs of this machine; run help to list the tools\n"),
        (
            "cat notes.txt",
            "pegboard: scripts can't see the files of this machine; read them with a tool, such as fs.read_file\n",
        ),
        (
            "sort < notes.txt",
            "pegboard: scripts can't see the files of this machine; read them with a tool, such as fs.read_file\n",
        ),
        ("curl https://example.org", "pegboard: scripts have no network; call a tool instead, such as web.fetch\n"),
        ("shop.nothing", ""),
        ("shop.get_user 9", ""),
    ],
)
async def test_a_script_that_expects_programs_files_or_network_of_the_machine_gets_a_note(
    shop: Runtime, script: str, note: str
) -> None:
    result = await _run(shop, script)
    assert "".join(line for line in result["stderr"].splitlines(keepends=True) if line.startswith("pegboard: ")) == note
    assert "pegboard: " not in (await _run(shop, f"{script}; true"))["stderr"]


@pytest.mark.promise("SCR-4")
async def test_the_help_of_a_command_contains_its_usage_and_arguments(shop: Runtime) -> None:
    told = await _stdout(shop, "shop.words --help")
    assert told == await _stdout(shop, "help shop_words")
    assert str(told).startswith(
        "usage: shop.words <text> [--tags array] [--loud] [--limit integer]\n\nReturn words as text"
    )
    assert "  --limit  integer, default 3\n" in str(told)
    assert not shop.history.records(tool="shop.words")
    prompt = shop.scripts.orchestrator().system_prompt()
    assert "- `shop.lines <text>  (stdin: text)`\n  Count lines." in prompt


TREE = '''
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Node:
    """A node.

    Attributes:
        name: Its name.
    """

    name: str
    children: list[Node]
    size: int = 1

def grow(*, root: Node, roots: list[list[Node]] | None = None) -> str:
    """Grow."""
    return root.name
'''


@pytest.mark.promise("SCR-4")
async def test_the_help_of_a_command_lists_the_fields_of_objects_as_flags(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    text = str(await _stdout(open_runtime(write_pack("tree.py", TREE)), "help tree.grow"))
    assert "  --root.name  string, required\n      Its name.\n" in text
    assert "  --root.children  array, required\n  --root.children.0.name  string, required\n" in text
    assert "  --root.size  integer, default 1\n" in text
    assert len(text.splitlines()) < 60, "a tree has no end"
    flags = "--root.name a --root.children.0.name b --root.children.0.children [] --root.size 2"
    assert await _stdout(open_runtime(write_pack("tree.py", TREE)), f"tree.grow {flags}") == "a\n"


@pytest.mark.promise("SCR-5", "SCR-6", "STO-1")
async def test_every_call_is_reported_and_recorded_with_its_script(shop: Runtime) -> None:
    events = [event async for event in shop.scripts.run("shop.get_user 7; shop.get_user 9", call_id="the-script")]
    inner = [event for event in events if isinstance(event, Started | Finished) and event.call.parent == "the-script"]
    assert [type(event) for event in inner] == [Started, Finished, Started, Finished]
    assert [event.text for event in events if isinstance(event, Log) and event.call_id == "the-script"] == [
        '{"id": 7, "name": "Ada", "orders": [70, 71]}\n',
        "shop.get_user: There is no user 9.\n",
    ]
    records = shop.history.records()
    assert [(record.tool, record.source, record.parent, record.ok) for record in records] == [
        ("shop.get_user", "script", "the-script", False),
        ("shop.get_user", "script", "the-script", True),
        ("script.run", "cli", None, True),
    ]


@pytest.mark.promise("SCR-3")
async def test_tools_of_packs_run_concurrently(shop: Runtime) -> None:
    await _stdout(shop, "shop.nap 0 & shop.nap 0 & wait")  # afterwards both workers have started
    began = time.monotonic()
    assert await _stdout(shop, "shop.nap 0.4 --word a & shop.nap 0.4 --word b & wait") == "a\nb\n"
    assert time.monotonic() - began < 0.75


@pytest.mark.promise("SCR-5")
async def test_a_tool_outside_the_allow_list_is_not_a_command(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("shop.py", SHOP), tool_allow="shop.get_user")
    result = await _run(runtime, "shop.get_user 7 | jq .id; shop.buy tea; help")
    assert result["stdout"].startswith("7\nTools:\n  shop.get_user  Return a user.\n\n")
    assert "shop.buy: command not found" in result["stderr"]


@pytest.mark.promise("SCR-5")
async def test_cancelling_a_script_ends_its_calls_within_200_ms(shop: Runtime) -> None:
    cancelled_at = 0.0
    events: list[CallEvent] = []
    async with aclosing(shop.scripts.run("echo before; shop.nap 50 & shop.nap 50 & wait", call_id="it")) as running:
        async for event in running:
            events.append(event)
            if sum(isinstance(one, Started) for one in events) == 3 and not cancelled_at:
                cancelled_at = time.monotonic()
                assert await shop.cancel("it")
    assert time.monotonic() - cancelled_at < 0.2
    ended = {event.call.name: event.result.error for event in events if isinstance(event, Finished)}
    assert ended["script.run"] is not None
    assert ended["script.run"].detail == "cancelled"
    records = shop.history.records()
    assert sorted(record.tool for record in records if not record.ok) == ["script.run", "shop.nap", "shop.nap"]
    assert all(record.duration_ms > 0 for record in records)
    assert not await shop.cancel("it")


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(
    ("script", "data"),
    [
        ("echo before; echo why >&2; shop.nap 50", {"stdout": "before\n", "stderr": "why\n"}),
        ("shop.nap 50", None),
    ],
)
async def test_the_output_of_a_cancelled_script_is_kept(shop: Runtime, script: str, data: JsonObject | None) -> None:
    async with asyncio.timeout(60), aclosing(shop.scripts.run(script, call_id="it")) as running:
        async for event in running:
            if isinstance(event, Started) and event.call.name == "shop.nap":
                await shop.cancel("it")
    [record] = shop.history.records(tool="script.run")
    assert record.error is not None
    assert record.error.detail == "cancelled"
    result = shop.history.result(record.id)
    assert result is not None
    assert result.data == data


@pytest.mark.promise("SCR-5")
async def test_a_call_that_the_script_abandons_is_cancelled(shop: Runtime) -> None:
    ended: dict[JsonValue, bool] = {}
    async with asyncio.timeout(60), aclosing(shop.scripts.run("timeout 1 shop.nap 50; shop.nap 3")) as running:
        async for event in running:
            if isinstance(event, Finished) and event.call.args.get("seconds") == 3:
                ended = {record.args["seconds"]: record.ok for record in shop.history.records(tool="shop.nap")}
    assert ended == {50: False, 3: True}


async def test_leaving_a_script_ends_its_calls(shop: Runtime) -> None:
    async with asyncio.timeout(10), aclosing(shop.scripts.run("shop.nap 50")) as running:
        async for event in running:
            if isinstance(event, Started) and event.call.name == "shop.nap":
                break
    assert [record.tool for record in shop.history.records()] == ["shop.nap", "script.run"]


@pytest.mark.promise("SCR-5")
async def test_a_call_that_the_script_abandons_is_ended(shop: Runtime) -> None:
    result = await _run(shop, "timeout 0.3 shop.nap 50; echo $?; shop.words on")
    assert (result["stdout"], result["stderr"]) == ("124\non\n", "")
    [record] = shop.history.records(tool="shop.nap")
    assert record.error is not None
    assert record.error.detail == "cancelled"


async def test_a_script_has_a_timeout_of_its_own(shop: Runtime) -> None:
    result = await _run(shop, "echo before; shop.nap 50", seconds=0.5)
    assert (result["stdout"], result["exit_code"]) == ("before\n", 124)
    assert result["stderr"] == "pegboard: the script was stopped: it took longer than 0.5 s\n"


# --- Offered to models ---


@pytest.fixture
def offering(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> Runtime:
    """Provide a runtime whose models may run scripts without approval."""
    monkeypatch.setenv("PEGBOARD_SCRIPTS__OFFER", "true")
    runtime = open_runtime(write_pack("shop.py", SHOP))
    runtime.paths.approvals.parent.mkdir(parents=True, exist_ok=True)
    runtime.paths.approvals.write_text('[[rule]]\nallow = "script.run"\n')
    return runtime


class _Asked:
    """An approver that records the calls.

    Args:
        takes: Seconds before it answers.
    """

    def __init__(self, takes: float = 0.0) -> None:
        self.about: list[str] = []
        self._takes = takes

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        del spec
        self.about.append(call.name)
        await asyncio.sleep(self._takes)
        return Approval(answer="once")


def _asked_for(script: str, **more: object) -> ToolCall:
    given = {"name": "script.run", "args": {"commands": script}, "source": "ask", "session": "s", **more}
    return ToolCall.model_validate(given)


@pytest.mark.promise("SCR-7")
def test_models_are_offered_the_tool_if_configured(shop: Runtime, offering: Runtime) -> None:
    assert shop.tools.get("script.run") is None
    spec = offering.tools.get("script.run")
    assert spec is not None
    assert spec.input_schema["required"] == ["commands"]
    assert spec.location.kind == "script"


@pytest.mark.promise("SCR-5", "SCR-7")
async def test_calls_within_a_models_script_need_the_same_approvals(offering: Runtime) -> None:
    _, refused = await offering.result(_asked_for("shop.get_user 7 | jq .id; shop.buy tea || echo refused"))
    assert isinstance(refused.data, dict)
    assert refused.data["stdout"] == "7\nrefused\n"
    assert "this run can't ask for approval" in str(refused.data["stderr"])

    asked = _Asked()
    offering.rules.approve_with(asked)
    events = [event async for event in offering.call(_asked_for("shop.buy tea"))]
    assert asked.about == ["shop.buy"]
    assert sum(isinstance(event, ApprovalRequested) for event in events) == 1
    [bought, *_] = offering.history.records(tool="shop.buy")
    assert (bought.ok, bought.source, bought.session) == (True, "ask", "s")


async def test_pending_approvals_do_not_count_towards_a_scripts_timeout(offering: Runtime) -> None:
    offering.rules.approve_with(_Asked(takes=1.0))
    _, result = await offering.result(_asked_for("shop.buy tea", timeout=0.7))
    assert isinstance(result.data, dict)
    assert (result.data["stdout"], result.data["stderr"]) == ("bought tea\n", "")


async def test_a_script_cannot_run_another_script(offering: Runtime) -> None:
    direct = await _run(offering, "script.run 'echo hi'")
    assert direct["exit_code"] == 127
    offering.rules.approve_with(_Asked())
    _, result = await offering.result(_asked_for("shop.again --commands 'echo hi'"))
    assert isinstance(result.data, dict)
    assert "can't run other scripts" in str(result.data["stderr"])


@pytest.mark.promise("SCR-6")
async def test_a_possible_start_of_a_secret_stays_in_its_own_stream(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("chatty.py", 'def say() -> None:\n    """Says it."""\n    print("hello")\n'))
    runtime._parts.redaction.add({"KEY": "sesame-opens-7"})
    said: dict[str, str] = {}
    async for event in runtime.scripts.run("printf sesame; chatty.say; echo ' street'", call_id="script"):
        if isinstance(event, Log):
            said[event.call_id] = said.get(event.call_id, "") + event.text
    assert said.pop("script").replace("null\n", "") == "sesame street\n"
    assert [*said.values()] == ["hello\n"]
