"""A hostile server costs only itself, in bounded time and memory, and with a message."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable

import pytest
from processes import until
from servers import HOSTILE_SERVER, SDK_SERVER, Answering, Open, call, events_of, processes_of, run, start_of

from pegboard.models import Finished, Log, Problem, ServerConfig, ServerState, ServerStatus
from pegboard.models.server_content import PromptText
from pegboard.results.clean import clean
from pegboard.runtime import Runtime
from pegboard.schema.validation import validator

pytestmark = pytest.mark.promise("MCP-1", "SEC-8")

_SECONDS = 30.0
"""Generous, because the machine may be busy; a server that isn't bounded takes forever."""


over_both = pytest.mark.parametrize("transport", ["stdio", "http"])


@pytest.fixture
def open_hostile(open_server: Open, serve_http: Callable[..., str], transport: str) -> Open:
    """Return a function that opens a runtime with the hostile server in a mode."""

    def open_hostile(mode: str, **config: object) -> Awaitable[Runtime]:
        if transport == "http":
            return open_server(serve_http(HOSTILE_SERVER, mode), **config)
        return open_server(HOSTILE_SERVER, mode, **config)

    return open_hostile


def peer(runtime: Runtime) -> ServerStatus:
    """Return the status of the hostile server."""
    status = runtime.servers.status("peer")
    assert status is not None
    return status


def problems(runtime: Runtime) -> list[Problem]:
    """Return the problems of the hostile server."""
    return [problem for problem in runtime.problems() if problem.pack == "peer"]


async def works(runtime: Runtime) -> None:
    """Check that another server works meanwhile."""
    command, *args = start_of(SDK_SERVER)
    runtime.servers.add(ServerConfig(name="good", command=command, args=tuple(args)))
    await runtime.servers.connect("good")
    assert (await run(runtime, "good.echo", message="hello")).data == "hello"


async def test_a_server_that_never_answers_fails_in_time(open_server: Open) -> None:
    began = time.monotonic()
    runtime = await open_server(HOSTILE_SERVER, "silent", timeout=2.0)
    assert time.monotonic() - began < _SECONDS
    assert peer(runtime).state is ServerState.FAILED
    assert "didn't answer within 2 s" in peer(runtime).reason
    assert [problem.message for problem in problems(runtime)] == [
        "The MCP server peer is not connected. The server didn't answer within 2 s."
    ]
    await works(runtime)


async def test_a_server_that_dies_is_started_again_for_the_next_call(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "third")
    results = [await run(runtime, "peer.ok") for _ in range(7)]
    assert [result.ok for result in results] == [True, True, False, True, True, False, True]
    error = results[2].error
    assert error is not None
    assert error.detail == "crashed"
    assert "ended with exit code 3" in error.message
    assert "“I can't go on”" in error.message


async def test_an_http_server_that_hangs_up_is_connected_again(
    open_server: Open, serve_http: Callable[..., str]
) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, "third"))
    results = [await run(runtime, "peer.ok") for _ in range(4)]
    assert [result.ok for result in results] == [True, True, False, True]
    assert results[2].error is not None
    assert "ended during the call" in results[2].error.message


async def test_a_response_that_ends_before_its_result_is_a_lost_connection_and_not_an_answer(
    open_server: Open, serve_http: Callable[..., str]
) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, "third-stream"))
    results = [await run(runtime, "peer.ok") for _ in range(4)]
    assert [result.ok for result in results] == [True, True, False, True]
    error = results[2].error
    assert error is not None
    assert error.detail == "crashed"
    assert error.message == (
        "The connection to the server peer ended during the call. The server ended its response before the result."
    )


async def test_garbage_in_a_stream_of_events_fails_only_its_call(
    open_server: Open, serve_http: Callable[..., str]
) -> None:
    runtime = await open_server(serve_http(HOSTILE_SERVER, "stdout"))
    result = await run(runtime, "peer.bad")
    assert result.error is not None
    assert result.error.message.endswith("The server's response is not valid JSON-RPC.")
    assert (await run(runtime, "peer.ok")).data == "fine"


@pytest.mark.parametrize(
    ("mode", "http", "reason"),
    [
        ("huge", False, "The server's response of 60 MB exceeds the limit of 34 MB."),
        ("huge", True, "The server's response exceeds the limit of 34 MB."),
        ("stdout", True, "The server's response is not valid JSON-RPC."),
    ],
)
async def test_what_pegboard_says_about_a_response_does_not_look_like_the_servers_words(
    open_server: Open, serve_http: Callable[..., str], mode: str, http: bool, reason: str
) -> None:
    runtime = await (open_server(serve_http(HOSTILE_SERVER, mode)) if http else open_server(HOSTILE_SERVER, mode))
    _, result = await runtime.result(call("peer.bad", _SECONDS))
    assert result.error is not None
    assert result.error.message == f"The call of peer.bad failed. {reason}"


async def test_garbage_on_stdout_is_skipped_and_reported(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "stdout")
    assert (await run(runtime, "peer.bad")).data == "fine"
    assert "such as “debug: about to answer”" in peer(runtime).reason
    assert peer(runtime).fix == "Configure the server to log to stderr."


@pytest.mark.parametrize(
    ("transport", "mode", "reason"),
    [
        ("stdio", "garbage", "flooded stdout"),
        ("stdio", "lines", "flooded stdout"),
        ("stdio", "endless", "flooded stdout"),
        ("http", "garbage", "not valid JSON-RPC"),
        ("http", "lines", "didn't answer within 5 s"),
        ("http", "endless", "exceeds the size limit of a message"),
        ("http", "failing", "HTTP 500"),
    ],
)
async def test_endless_garbage_ends_the_connection(open_hostile: Open, mode: str, reason: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    runtime = await open_hostile(mode, timeout=5.0 if reason.endswith("5 s") else 60.0)
    assert peer(runtime).state is ServerState.FAILED
    assert reason in peer(runtime).reason
    assert time.monotonic() - began < _SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes
    await works(runtime)


async def test_a_hundred_megabytes_on_stderr_keep_only_the_last_lines(open_server: Open) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runtime = await open_server(HOSTILE_SERVER, "stderr")
    assert (await run(runtime, "peer.ok")).data == "fine"
    assert len(peer(runtime).stderr) <= 51
    assert all(len(line) <= 500 for line in peer(runtime).stderr)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000


@over_both
async def test_five_thousand_tools_are_listed(open_hostile: Open) -> None:
    runtime = await open_hostile("many")
    assert len([spec for spec in runtime.tools.all() if spec.pack == "peer"]) == peer(runtime).tools == 5000
    assert runtime.tools.get("peer.tool_4999") is not None


@over_both
@pytest.mark.parametrize("mode", ["cursor", "cursors", "heavy"])
async def test_a_list_without_an_end_ends_with_a_problem(open_hostile: Open, mode: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    runtime = await open_hostile(mode, timeout=60.0)
    assert time.monotonic() - began < _SECONDS
    assert peer(runtime).state is ServerState.DEGRADED
    assert any("Pegboard stopped reading it after" in problem.message for problem in problems(runtime))
    assert (runtime.tools.get("peer.ok") is not None) is (mode == "cursor")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes
    await works(runtime)


@over_both
@pytest.mark.promise("MCP-6")
@pytest.mark.parametrize(
    ("mode", "found", "said"),
    [
        ("cursor", 1, "repeats a page of its list of {}"),
        ("cursors", 0, "50 pages in a row with nothing new"),
        ("many", 10_000, "more than 10,000 {}"),
        ("heavy", 7, "more than 67 MB"),
        ("ok", 2, "3 items that are invalid"),
    ],
)
async def test_lists_of_resources_and_prompts_are_bounded_and_their_problems_shown(
    open_hostile: Open, mode: str, found: int, said: str
) -> None:
    runtime = await open_hostile(mode, timeout=60.0)
    lists = {
        "resources": await runtime.servers.resources("peer"),
        "resource templates": await runtime.servers.templates("peer"),
        "prompts": await runtime.servers.prompts("peer"),
    }
    await asyncio.to_thread(runtime.tools.scan)
    for what, listed in lists.items():
        assert not isinstance(listed, Problem), listed
        assert len(listed) == found, what
        assert any(said.format(what) in problem.message for problem in problems(runtime)), what
    assert peer(runtime).state is ServerState.DEGRADED
    await works(runtime)


@over_both
@pytest.mark.promise("MCP-6")
async def test_a_list_for_clients_of_pegboard_is_bounded_too(open_hostile: Open) -> None:
    runtime = await open_hostile("heavy", timeout=60.0)
    listed = await runtime.servers.forward("peer", "resources/list", {})
    assert isinstance(listed, dict), listed
    assert isinstance(listed["resources"], list)
    assert len(listed["resources"]) == 7


@over_both
@pytest.mark.promise("MCP-8")
async def test_odd_and_repeated_names_stay_usable(open_hostile: Open) -> None:
    runtime = await open_hostile("names")
    names = [spec.name for spec in runtime.tools.all() if spec.pack == "peer"]
    assert len(names) == len(set(names)) == 10
    assert all(len(name) <= 64 and name.isascii() and name.isprintable() and " " not in name for name in names)
    assert {"peer.ok", "peer.o_k", "peer.o_k_2", "peer.x"} < set(names)
    for name in names:
        assert (await run(runtime, name)).data == "fine"
    assert any("lists the tool “ok” more than once" in problem.message for problem in problems(runtime))


@over_both
async def test_one_invalid_schema_hides_no_other_tool(open_hostile: Open) -> None:
    runtime = await open_hostile("schemas")
    specs = [spec for spec in runtime.tools.all() if spec.pack == "peer"]
    assert len(specs) == 10
    for spec in specs:
        assert (await run(runtime, spec.name)).data == "fine", spec.name
        validator(spec.input_schema).faults({"a": 1})
    found = {problem.tool for problem in problems(runtime) if problem.severity == "warning"}
    assert found == {"peer.no_schema", "peer.null_schema", "peer.odd_output", "peer.odd_annotations"}
    resources = await runtime.servers.resources("peer")
    assert isinstance(resources, tuple)
    assert [one.uri for one in resources] == ["memo://one", "memo://two"]


@over_both
async def test_a_list_that_keeps_changing_is_read_now_and_then(open_hostile: Open) -> None:
    runtime = await open_hostile("churn")
    seen: set[str] = set()

    async def follow() -> None:
        async for _ in runtime.tools.watch():
            seen.update(spec.name for spec in runtime.tools.all() if "version" in spec.name)
            if len(seen) >= 3:
                return

    await asyncio.wait_for(follow(), _SECONDS)
    assert (await run(runtime, "peer.ok")).data == "fine"
    assert len(seen) <= 4  # of the sixty versions or more that there were
    assert 2 <= peer(runtime).content_changes <= 5
    await works(runtime)


@over_both
@pytest.mark.parametrize("mode", ["twice", "other_id"])
async def test_unexpected_responses_belong_to_no_other_call(open_hostile: Open, mode: str) -> None:
    runtime = await open_hostile(mode)
    _, result = await runtime.result(call("peer.bad", 2.0))
    if mode == "twice":
        assert result.data == "fine"
    else:
        assert result.error is not None
        assert result.error.detail == "timeout"
        assert "The server sent 1 answer to no open request" in result.error.message
    assert (await run(runtime, "peer.ok")).data == "fine"


@pytest.mark.parametrize(("mode", "http"), [("huge", False), ("huge_tail", False), ("huge", True)])
async def test_a_result_beyond_the_limit_fails_only_its_call(
    open_server: Open, serve_http: Callable[..., str], mode: str, http: bool
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runtime = await (open_server(serve_http(HOSTILE_SERVER, mode)) if http else open_server(HOSTILE_SERVER, mode))
    _, result = await runtime.result(call("peer.bad", _SECONDS))
    assert result.error is not None
    assert "exceeds the limit of 34 MB" in result.error.message
    assert (await run(runtime, "peer.ok")).data == "fine"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000


@over_both
async def test_questions_in_a_loop_are_cancelled_after_some(open_hostile: Open) -> None:
    runtime = await open_hostile("elicit")
    answering = Answering(name="Ann")
    runtime.servers.ask_with(answering)
    events = [event async for event in runtime.call(call("peer.bad", 3.0))]
    assert isinstance(events[-1], Finished)
    assert events[-1].result.error is not None
    assert events[-1].result.error.detail == "timeout"
    assert len(answering.asked) == 20
    assert "asked more than 20 questions" in "".join(event.text for event in events if isinstance(event, Log))


@over_both
async def test_questions_that_the_server_withdraws_do_not_count_as_open(open_hostile: Open) -> None:
    runtime = await open_hostile("withdrawn")
    runtime.servers.ask_with(Answering())
    assert "file://" in str((await run(runtime, "peer.bad")).data)


@over_both
async def test_arguments_that_cannot_be_sent_end_no_other_call(open_hostile: Open) -> None:
    runtime = await open_hostile("slow")
    other = asyncio.create_task(runtime.result(call("peer.bad", _SECONDS)))
    await until(lambda: any(one.method == "tools/call" for one in runtime.servers.messages("peer")))
    half = await run(runtime, "peer.ok", text="\ud83d")
    assert half.error is not None
    assert half.error.message == "The call of peer.ok was not sent because it contains half a character."
    assert (await other)[1].data == "fine"
    assert peer(runtime).state is ServerState.READY


@over_both
async def test_a_flood_of_progress_delays_no_result(open_hostile: Open) -> None:
    runtime = await open_hostile("flood")
    _, result = await runtime.result(call("peer.bad", _SECONDS))
    assert result.data == "fine"


@over_both
@pytest.mark.parametrize("mode", ["content", "nothing"])
async def test_an_invalid_response_fails_its_call(open_hostile: Open, mode: str) -> None:
    runtime = await open_hostile(mode)
    result = await run(runtime, "peer.bad")
    assert result.error is not None
    assert result.error.detail == "server_error"
    assert "not valid" in result.error.message


@pytest.mark.promise("MCP-4")
@over_both
async def test_a_block_that_cannot_be_read_is_shown_as_json_beside_the_others(open_hostile: Open) -> None:
    result = await run(await open_hostile("hologram"), "peer.bad")
    assert result.data == [
        "fine",
        '[a block of an unknown kind] {"type": "hologram", "data": 1}',
        '[an invalid block] {"type": "image"}',
    ]


@pytest.mark.promise("MCP-6")
@over_both
async def test_a_part_of_a_prompt_or_a_resource_that_cannot_be_read_is_shown_as_json_beside_the_others(
    open_hostile: Open,
) -> None:
    runtime = await open_hostile("hologram")
    prompt = await runtime.servers.prompt("peer", "one", {})
    assert isinstance(prompt, PromptText)
    assert [(message.role, message.content) for message in prompt.messages] == [
        ("user", "Hello."),
        ("assistant", '[a block of an unknown kind] {"type": "hologram", "data": 1}'),
        ("user", '[an invalid message] {"role": "robot", "content": {"type": "text", "text": "Hello."}}'),
        ("user", '[an invalid message] "x"'),
    ]
    contents = await runtime.servers.read("peer", "memo://one")
    assert isinstance(contents, tuple)
    assert [one.text for one in contents] == [
        "fine",
        '[invalid contents] {"uri": "memo://one", "hologram": 1}',
        "[invalid contents] null",
    ]


@pytest.mark.promise("SEC-5", "MCP-8")
@over_both
async def test_escape_sequences_stay_text(open_hostile: Open) -> None:
    runtime = await open_hostile("escapes")
    names = [spec.name for spec in runtime.tools.all() if spec.pack == "peer"]
    assert all(clean(name) == name for name in names)
    events = await events_of(runtime, "peer.bad")
    assert isinstance(events[-1], Finished)
    assert not events[-1].result.ok
    status = peer(runtime)
    assert all(clean(text) == text for text in (status.reason, status.fix))
    assert all(clean(problem.message) == problem.message for problem in problems(runtime))


async def test_a_server_that_ignores_its_end_is_killed(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "stays")
    (child,) = await asyncio.to_thread(processes_of, HOSTILE_SERVER, "stays")
    began = time.monotonic()
    await runtime.close()
    assert time.monotonic() - began < 15
    assert child not in await asyncio.to_thread(processes_of, HOSTILE_SERVER, "stays")


@pytest.mark.parametrize(
    ("transport", "mode"), [("stdio", "unreadable"), ("http", "unreadable"), ("http", "unreadable-stream")]
)
async def test_a_tool_that_cannot_be_passed_on_hides_no_other_tool(open_hostile: Open, mode: str) -> None:
    runtime = await open_hostile(mode)
    assert [spec.name for spec in runtime.tools.all() if spec.pack == "peer"] == ["peer.ok"]
    assert [problem.message for problem in problems(runtime)] == [
        "The tool “bad” is not offered because its description is nested too deeply.",
        "The tool “half” is not offered because its description contains half a character.",
        "The tool “?” is not offered because its description contains half a character.",
    ]
    assert (await run(runtime, "peer.ok")).ok


@over_both
async def test_a_tool_that_runs_only_as_a_task_is_not_offered_and_the_server_is_ready(open_hostile: Open) -> None:
    runtime = await open_hostile("tasks")
    assert [spec.name for spec in runtime.tools.all() if spec.pack == "peer"] == ["peer.ok"]
    (hint,) = [problem for problem in runtime.problems() if "“bad”" in problem.message]
    assert str(hint) == (
        "The tool “bad” of the server peer is not offered because it runs only as a task."
        " Pegboard doesn't support the tasks of MCP."
    )
    assert not hint.needs_action
    assert peer(runtime).state is ServerState.READY
    assert (await run(runtime, "peer.ok")).ok


async def test_a_list_that_cannot_be_read_is_the_reason_and_not_the_end_of_the_process(open_server: Open) -> None:
    runtime = await open_server(HOSTILE_SERVER, "digits")
    assert peer(runtime).reason.startswith("The server's response is not valid JSON-RPC: number out of range")
    assert "ended with" not in peer(runtime).reason
