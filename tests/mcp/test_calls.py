"""Calls of tools of a server that behaves, over both transports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue
from servers import HOSTILE_SERVER, SDK_SERVER, Answering, Open, call, events_of, json_list, run

from pegboard.ask.result_text import result_text
from pegboard.models import (
    CallEvent,
    Finished,
    JsonObject,
    Log,
    Progress,
    ServerConfig,
    ServerState,
)
from pegboard.runtime import Runtime

CURIOUS_SERVER = '''
from mcp.server.mcpserver import MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = MCPServer("curious")


@server.tool(structured_output=False)
async def ask() -> InputRequiredResult:
    """Ask again and again."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = ElicitRequest(params=ElicitRequestFormParams(message="Name?", requested_schema=schema))
    return InputRequiredResult(input_requests={"name": question})


server.run()
'''


def png(file: str) -> bool:
    """Return whether a file is a PNG."""
    return Path(file).read_bytes().startswith(b"\x89PNG")


def stored(file: str) -> object:
    """Return the JSON in a file."""
    return json.loads(Path(file).read_text())


@pytest.fixture(params=["stdio", "http"])
async def runtime(request: pytest.FixtureRequest, open_server: Open, serve_http: Callable[..., str]) -> Runtime:
    """Return a runtime that is connected to the server written with the SDK."""
    if request.param == "stdio":
        return await open_server(SDK_SERVER, env={"MINE_ONE": "1"})
    return await open_server(serve_http(SDK_SERVER))


@pytest.mark.promise("MCP-1", "MCP-4")
async def test_results_of_every_kind_arrive_as_data(runtime: Runtime) -> None:
    (status,) = runtime.servers.all()
    assert (status.state, status.protocol, status.server_name) == (ServerState.READY, "2026-07-28", "example/fixture")
    assert status.tools == len([spec for spec in runtime.tools.all() if spec.pack == "peer"]) >= 10
    slow = runtime.tools.get("peer.sleep")
    assert slow is not None
    assert slow.signature == "peer.sleep(*, file: string, seconds: number = 60.0)"
    assert (await run(runtime, "peer.add", a=1, b=2)).data == {"total": 3}
    assert (await run(runtime, "peer.echo", message="plain")).data == "plain"
    assert (await run(runtime, "peer.record")).data == {"id": 7, "tags": ["a", "b"]}
    text, image, link = json_list((await run(runtime, "peer.mixed")).data)
    assert text == "See:"
    kind, _, file = str(image).partition(": ")
    assert kind == "image/png, 70 B"
    assert file.startswith(f"{runtime.paths.results}/")
    assert png(file)
    assert isinstance(link, dict)
    assert link["resource"] == {"type": "resource_link", "uri": "memo://one", "name": "one", "mimeType": "text/plain"}


@pytest.mark.promise("MCP-4")
@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("1.10", "1.10"),
        ("2e3", "2e3"),
        ("-0", "-0"),
        ("0.30000000000000000001", "0.30000000000000000001"),
        ("2.5", 2.5),
        ("5\n", 5),
        ("true", True),
        ('{"price": 1.10}', {"price": 1.1}),
    ],
)
async def test_a_text_is_data_as_json_unless_it_is_a_number_that_would_look_different(
    open_server: Open, text: str, data: JsonValue
) -> None:
    runtime = await open_server(SDK_SERVER)
    result = await run(runtime, "peer.echo", message=text)
    assert result.ok
    assert (type(result.data), result.data) == (type(data), data)


@pytest.mark.promise("MCP-4")
@pytest.mark.parametrize(("structured", "fails"), [(True, False), (False, True), (True, True)])
async def test_images_beside_structured_content_and_in_errors_are_kept(
    open_server: Open, structured: bool, fails: bool
) -> None:
    runtime = await open_server(SDK_SERVER)
    events = await events_of(runtime, "peer.picture", structured=structured, fails=fails)
    assert isinstance(events[-1], Finished)
    result = events[-1].result
    assert result.ok is not fails
    line = str(result.meta.content[0] if structured else result.data)
    kind, _, file = line.partition(": ")
    assert (kind, png(file)) == ("image/png, 70 B", True)
    assert line in result_text(result, None, "1", 10_000).splitlines()
    if structured:
        assert result.data == {"dots": 1}
        assert f"content: {line}\n" in "".join(event.text for event in events if isinstance(event, Log))


@pytest.mark.promise("MCP-4")
@pytest.mark.parametrize(
    ("texts", "structure", "beside"),
    [
        (["Saved. The quota is nearly used up."], {"ok": True}, ["Saved. The quota is nearly used up."]),
        (['{"ok": true}', "Restart to apply this."], {"ok": True}, ["Restart to apply this."]),
        (['{\n  "total": 1.0,\n  "ok": true\n}'], {"ok": True, "total": 1}, []),
        (["plain"], {"result": "plain"}, []),
        (["1025"], {"result": "1025"}, []),
        (["one", '{"id": 2}'], {"result": ["one", {"id": 2}]}, []),
        ([" "], {"result": []}, []),
    ],
)
async def test_texts_that_say_more_than_the_structured_content_beside_them_are_kept(
    open_server: Open, texts: list[str], structure: JsonObject, beside: list[str]
) -> None:
    runtime = await open_server(SDK_SERVER)
    events = await events_of(runtime, "peer.say", texts=[*texts], structure=structure)
    assert isinstance(events[-1], Finished)
    result = events[-1].result
    assert result.data == structure
    assert list(result.meta.content) == beside
    assert result_text(result, None, "1", 10_000).endswith("\n".join(beside))
    log = "".join(event.text for event in events if isinstance(event, Log))
    assert [text for text in texts if f"content: {text}\n" in log] == beside


@pytest.mark.promise("MCP-4")
async def test_an_error_of_the_tool_has_the_servers_own_words(runtime: Runtime) -> None:
    result = await run(runtime, "peer.refuse")
    assert result.error is not None
    words = "Error executing tool refuse: The disk is full."
    assert (result.ok, result.error.code, result.error.message) == (False, "execution_error", words)


@pytest.mark.promise("MCP-4", "EXE-6")
async def test_a_large_result_is_stored_in_full_and_passed_on_truncated(runtime: Runtime) -> None:
    result = await run(runtime, "peer.big", size=2_000_000)
    cut = result.meta.truncated
    assert cut is not None
    assert cut.shown_bytes <= 1_000_000 < cut.total_bytes
    assert len(json_list(stored(cut.file))) > len(json_list(result.data))


@pytest.mark.promise("MCP-1")
async def test_progress_and_stderr_are_events_of_the_call(runtime: Runtime) -> None:
    events = await events_of(runtime, "peer.work", steps=3)
    *_, latest = [event for event in events if isinstance(event, Progress)]
    assert (latest.done, latest.total, latest.message) == (3, 3, "step 3")
    if runtime.servers.all()[0].stderr:
        assert "working\n" in "".join(event.text for event in events if isinstance(event, Log))
    assert isinstance(events[-1], Finished)


@pytest.mark.promise("MCP-1")
@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_cancelled_call_and_one_that_times_out_end_at_the_server_too(
    runtime: Runtime, tmp_path: Path, how: str
) -> None:
    file = tmp_path / "ended"
    sleeping = call("peer.sleep", 1.0 if how == "timeout" else 30.0, file=str(file))
    events = runtime.call(sleeping)
    finished: CallEvent | None = None
    async for event in events:
        if isinstance(event, Progress) and how == "cancel":  # the server works on it
            assert await runtime.cancel(sleeping.id)
        finished = event
    assert isinstance(finished, Finished)
    assert finished.result.error is not None
    assert finished.result.error.detail == ("cancelled" if how == "cancel" else "timeout")
    # The server handles messages in order, so it has seen the cancellation once it answers another call.
    for _ in range(100):
        assert (await run(runtime, "peer.echo", message="still here")).data == "still here"
        if file.exists():
            break
    assert file.read_text() == "cancelled"


@pytest.mark.promise("MCP-5")
async def test_a_question_of_the_server_is_answered_by_the_user(runtime: Runtime) -> None:
    answering = Answering(name="Ann")
    runtime.servers.ask_with(answering)
    assert (await run(runtime, "peer.greet")).data == "Ann is 30"
    (asked,) = answering.asked
    assert (asked.server, asked.tool, asked.message) == ("peer", "peer.greet", "Who are you?")
    assert asked.json_schema is not None


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_and_cancelling_reach_the_server(open_server: Open, action: str) -> None:
    runtime = await open_server(SDK_SERVER)
    runtime.servers.ask_with(Answering(action))
    assert (await run(runtime, "peer.greet")).data == action


@pytest.mark.promise("MCP-5")
async def test_without_anyone_to_ask_questions_are_declined(open_server: Open) -> None:
    runtime = await open_server(SDK_SERVER)
    assert (await run(runtime, "peer.greet")).data == "decline"


@pytest.mark.promise("MCP-5")
async def test_an_invalid_answer_is_not_sent(open_server: Open) -> None:
    runtime = await open_server(SDK_SERVER)
    runtime.servers.ask_with(Answering(name="Ann", age="old"))
    events = await events_of(runtime, "peer.greet")
    assert isinstance(events[-1], Finished)
    assert events[-1].result.data == "cancel"
    assert "it is invalid: age" in "".join(event.text for event in events if isinstance(event, Log))


@pytest.mark.promise("MCP-5")
async def test_questions_of_the_older_protocol_are_answered_with_defaults(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "question")
    answering = Answering(name="Ann")
    runtime.servers.ask_with(answering)
    assert (await run(runtime, "peer.bad")).data == "fine"
    assert [asked.message for asked in answering.asked] == ["Who?"]


@pytest.mark.promise("MCP-5")
async def test_a_default_of_a_question_applies_only_to_a_field_without_an_answer(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "questions")
    for answering, age in ((Answering(name="Ann"), 30), (Answering(name="Ann", age=7), 7)):
        runtime.servers.ask_with(answering)
        answers = (await run(runtime, "peer.bad")).data
        answers = json.loads(answers) if isinstance(answers, str) else answers
        assert answers == {name: {"action": "accept", "content": {"name": "Ann", "age": age}} for name in "abc"}


@pytest.mark.promise("MCP-5")
async def test_a_server_that_asks_as_older_protocols_allow_is_answered_with_an_older_protocol(
    open_server: Open, serve_http: Callable[..., str]
) -> None:
    for server in (SDK_SERVER, serve_http(SDK_SERVER)):
        newest = await open_server(server, saved=True)
        failed = await run(newest, "peer.confirm")
        assert failed.error is not None
        assert 'set `protocol = "2025-11-25"` in `[mcp.servers.peer]`' in failed.error.message
        older = await open_server(server, protocol="2025-11-25")
        older.servers.ask_with(Answering(name="Ann", age=3))
        assert older.servers.all()[0].protocol == "2025-11-25"
        assert (await run(older, "peer.confirm")).data == "accept"


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_call_that_requires_a_visit_is_repeated_after_it(open_server: Open, action: str) -> None:
    runtime = await open_server(HOSTILE_SERVER, "url")
    answering = Answering(action)
    runtime.servers.ask_with(answering)
    result = await run(runtime, "peer.bad")
    assert [asked.url for asked in answering.asked] == ["https://example.org/in"]
    assert result.ok is (action == "accept")


@pytest.mark.promise("MCP-5")
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_call_that_requires_a_visit_that_was_not_finished_names_the_page_and_the_next_step(
    open_server: Open, action: str
) -> None:
    runtime = await open_server(HOSTILE_SERVER, "url_again")
    answering = Answering(action)
    runtime.servers.ask_with(answering)
    result = await run(runtime, "peer.bad")
    assert len(answering.asked) == 1
    assert result.error is not None
    assert result.error.message == (
        "The server peer requires a visit first: “Sign in” https://example.org/in\nFinish it, then run peer.bad again."
    )


@pytest.mark.promise("MCP-5")
async def test_a_server_that_asks_without_end_is_described_without_the_words_of_the_library(
    open_server: Open, tmp_path: Path
) -> None:
    file = tmp_path / "curious.py"
    file.write_text(CURIOUS_SERVER)
    runtime = await open_server(file)
    runtime.servers.ask_with(Answering(name="Ann"))
    result = await run(runtime, "peer.ask")
    assert result.error is not None
    assert result.error.message == "The call of peer.ask failed. The server asked for input more than 10 times."


@pytest.mark.promise("MCP-5")
async def test_a_prompt_goes_to_the_model_only_after_approval(open_server: Open) -> None:
    runtime = await open_server(SDK_SERVER)
    rejecting = Answering(samples=False)
    runtime.servers.ask_with(rejecting)
    rejected = await run(runtime, "peer.ask_model")
    assert not rejected.ok
    assert rejected.error is not None
    assert "rejected" in rejected.error.message
    assert rejecting.prompts[0].messages == (("user", "What is six times seven?"),)
    assert rejecting.prompts[0].system == "Be brief."
    assert rejected.error.message == "The call of peer.ask_model failed. The user rejected the sampling request."
    runtime.servers.ask_with(Answering())
    unconfigured = await run(runtime, "peer.ask_model")
    assert unconfigured.error is not None
    assert "No model is configured. Run `pegboard config set model.name PROVIDER:NAME`." in unconfigured.error.message


@pytest.mark.promise("MCP-6")
async def test_a_server_that_has_resources_but_no_list_of_templates_has_no_templates(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "untemplated")
    resources = await runtime.servers.resources("peer")
    assert isinstance(resources, tuple)
    assert resources
    assert await runtime.servers.templates("peer") == ()


@pytest.mark.promise("MCP-5")
async def test_roots_are_the_working_directory_unless_configured(open_server: Open, tmp_path: Path) -> None:
    runtime = await open_server(SDK_SERVER)
    assert (await run(runtime, "peer.where")).data == [Path.cwd().as_uri()]
    other = await open_server(SDK_SERVER, roots=(str(tmp_path),))
    assert (await run(other, "peer.where")).data == [tmp_path.as_uri()]


@pytest.mark.promise("MCP-6")
async def test_resources_and_prompts_can_be_listed_and_opened(runtime: Runtime) -> None:
    resources = await runtime.servers.resources("peer")
    assert isinstance(resources, tuple)
    assert [one.uri for one in resources] == ["memo://one", "memo://dot"]
    templates = await runtime.servers.templates("peer")
    assert isinstance(templates, tuple)
    assert [(one.uri_template, one.variables, one.optional) for one in templates] == [
        ("memo://of/{name}", ("name",), ()),
        ("notes://all{/path*}{?limit}", ("path", "limit"), ("path", "limit")),
    ]
    for values, uri in (({"path": "a/b c"}, "notes://all/a/b%20c"), ({"limit": "2"}, "notes://all?limit=2")):
        assert await runtime.servers.expand("peer", templates[1].uri_template, values) == uri
    notes = await runtime.servers.read("peer", "notes://all/a/b%20c")
    assert isinstance(notes, tuple)
    assert notes[0].text == "5 notes in ['a', 'b c']"
    read = await runtime.servers.read("peer", "memo://one")
    assert isinstance(read, tuple)
    assert [one.text for one in read] == ["the memo"]
    dot = await runtime.servers.read("peer", "memo://dot")
    assert isinstance(dot, tuple)
    assert png(dot[0].file or "")
    missing = await runtime.servers.read("peer", "memo://nothing")
    assert "Unknown resource" in str(missing)
    prompts = await runtime.servers.prompts("peer")
    assert isinstance(prompts, tuple)
    assert [(one.name, [arg.name for arg in one.arguments]) for one in prompts] == [("review", ["topic"])]
    prompt = await runtime.servers.prompt("peer", "review", {"topic": "tea"})
    assert "Review tea." in str(prompt)
    assert "No MCP server is named 'other'" in str(await runtime.servers.prompts("other"))


@pytest.mark.promise("MCP-8")
async def test_a_server_gets_only_a_minimal_environment_and_its_own_variables(
    open_server: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_SEARCH_KEY", "sk-secret")
    monkeypatch.setenv("TOKEN_OF_MINE", "very secret")
    runtime = await open_server(SDK_SERVER, env={"MINE_ONE": "1", "MINE_TWO": "${TOKEN_OF_MINE}", "PYTHONUTF8": "1"})
    seen = (await run(runtime, "peer.environment")).data
    assert isinstance(seen, dict)
    base = {"HOME", "LANG", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
    assert set(seen) <= base | {"PEGBOARD_STARTED", "MINE_ONE", "MINE_TWO", "PYTHONUTF8"}
    assert seen["MINE_ONE"] == "1"
    assert seen["MINE_TWO"] != "very secret", "the secret is redacted in the result"
    assert "very secret" not in str(seen)


@pytest.mark.promise("MCP-4", "STO-1")
async def test_a_mismatch_with_the_output_schema_is_a_warning_and_meta_is_recorded(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "mismatch")
    asked = call("peer.bad")
    events = [event async for event in runtime.call(asked)]
    assert isinstance(events[-1], Finished)
    result = events[-1].result
    assert result.ok
    assert result.data == {"total": "many"}
    assert "doesn't match its output schema: /total" in result.meta.warnings[0]
    assert "doesn't match its output schema" in "".join(event.text for event in events if isinstance(event, Log))
    recorded = runtime.history.result(asked.id)
    assert recorded is not None
    assert recorded.meta.server_meta == {"trace": "abc"}
    unstructured = await run(runtime, "peer.ok")
    assert "no structured content" in unstructured.meta.warnings[0]


@pytest.mark.promise("EXE-3", "MCP-4")
@pytest.mark.parametrize("offset", ["", "+02:00"])
async def test_a_server_gets_and_returns_times_with_and_without_an_offset(open_server: Open, offset: str) -> None:
    runtime = await open_server(SDK_SERVER)
    result = await run(runtime, "peer.meet", day="2026-05-31T00:00:00", start=f"08:30:00{offset}")
    assert result.data == {"begin": f"2026-05-31T08:30:00{offset}"}
    assert result.meta.warnings == ()


@pytest.mark.promise("MCP-1")
async def test_calls_from_several_tasks_run_at_the_same_time(runtime: Runtime) -> None:
    import asyncio

    results = await asyncio.gather(*(run(runtime, "peer.add", a=number, b=1) for number in range(20)))
    totals: list[JsonObject] = [{"total": number + 1} for number in range(20)]
    assert [result.data for result in results] == totals


async def test_a_runtime_closes_if_the_thread_of_the_connections_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setitem(sys.modules, "pegboard.mcp.connection", None)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    runtime = Runtime.from_environment()
    runtime.servers.add(ServerConfig(name="peer", command=sys.executable, args=(str(SDK_SERVER),)))
    with pytest.raises(ImportError):
        await asyncio.wait_for(runtime.servers.connect(), 20)
    await asyncio.wait_for(runtime.close(), 20)


async def test_the_sdk_is_not_imported_on_the_event_loop(tmp_path: Path) -> None:
    import asyncio

    script = tmp_path / "check.py"
    script.write_text(
        "import asyncio, sys, threading\n"
        "from pegboard.models import ServerConfig\n"
        "from pegboard.runtime import Runtime\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'mcp' and threading.current_thread() is threading.main_thread():\n"
        "            print('imported on the event loop')\n"
        "sys.meta_path.insert(0, Finder())\n"
        "async def main():\n"
        "    runtime = Runtime.from_environment()\n"
        f"    runtime.servers.add(ServerConfig(name='peer', command={sys.executable!r}, args=({str(SDK_SERVER)!r},)))\n"
        "    await runtime.servers.connect()\n"
        "    print(runtime.servers.all()[0].state)\n"
        "    await runtime.close()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert out.decode().split("\n") == ["ready", ""]


LOGGING = """
import warnings
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

warnings.simplefilter("ignore")
server = MCPServer("logging")

@server.tool()
async def noisy(ctx: Context) -> str:
    await ctx.debug("looking for the file")
    return "done"

server.run()
"""


@pytest.mark.promise("MCP-1")
async def test_log_messages_of_every_level_are_events_of_the_call(open_server: Open, tmp_path: Path) -> None:
    script = tmp_path / "logging_server.py"
    script.write_text(LOGGING)
    events = await events_of(await open_server(script), "peer.noisy")
    assert "looking for the file" in "".join(event.text for event in events if isinstance(event, Log))
