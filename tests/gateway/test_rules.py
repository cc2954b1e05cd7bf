"""Decisions on calls of models: by the user's rules and by approvals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.errors import RulesError
from pegboard.gateway.rules import Rules, Verdict
from pegboard.models import (
    ApprovalRequested,
    CallEvent,
    CallSource,
    Finished,
    HistoryQuery,
    JsonObject,
    McpHandler,
    Started,
    ToolCall,
    ToolSpec,
)
from pegboard.models.approval import AddedRule, Approval, ApprovalAnswer
from pegboard.models.rule import Rule, RuleFile
from pegboard.models.rule_scope import exact_rule, pattern_rule, session_rule, suggested_patterns
from pegboard.runtime import Runtime

PACK = '''
from pegboard.sdk import call_tool, hints

@hints(read_only=True)
def read(*, path: str = "a.txt") -> str:
    """Reads."""
    return path

def write(*, path: str = "src/default.txt", text: str = "", tags: list[str] | None = None, force: bool = False) -> str:
    """Writes."""
    return f"{path}: {text}"

@hints(destructive=True)
def drop(*, path: str) -> str:
    """Deletes."""
    return path

@hints(read_only=True)
def through(*, path: str) -> str:
    """Says that it only reads, and writes by way of another tool."""
    return call_tool("book.write", path=path)
'''


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> Runtime:
    return open_runtime(write_pack("book.py", PACK))


def _rule(runtime: Runtime, text: str) -> None:
    runtime.paths.approvals.parent.mkdir(parents=True, exist_ok=True)
    runtime.paths.approvals.write_text(text, encoding="utf-8")


def _action(runtime: Runtime, tool: str, args: JsonObject | None = None, source: CallSource = "ask") -> str:
    verdict = runtime.rules.verdict(ToolCall(name=f"book.{tool}", args=args or {}, source=source))
    assert verdict is not None
    return verdict.action


class _Person:
    """An approver with prepared answers that records the calls; simulates a person at the keyboard."""

    def __init__(self, *answers: Approval) -> None:
        self._answers = iter(answers)
        self.asked: list[ToolCall] = []

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        self.asked.append(call)
        return next(self._answers)


async def _call(
    runtime: Runtime, tool: str, source: CallSource = "ask", session: str | None = "s", **args: object
) -> tuple[list[CallEvent], Finished]:
    call = ToolCall.model_validate({"name": f"book.{tool}", "args": args, "source": source, "session": session})
    events = [event async for event in runtime.call(call)]
    assert isinstance(events[-1], Finished)
    return events, events[-1]


async def _made(runtime: Runtime, tool: str, args: JsonObject) -> bool:
    """Run a call of a model with these arguments and return whether it ran."""
    call = ToolCall(name=f"book.{tool}", args=args, source="ask", session="s")
    return (await runtime.result(call))[1].ok


@pytest.mark.promise("ASK-7")
def test_without_rules_read_only_tools_run_and_others_need_approval(runtime: Runtime) -> None:
    assert [_action(runtime, tool) for tool in ("read", "write", "drop")] == ["allow", "ask", "ask"]


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize(
    ("rules", "args", "action"),
    [
        ('[[rule]]\nallow = "book.*"', {}, "allow"),
        ('[[rule]]\nallow = ["other.*", "book.write"]', {}, "allow"),
        ('[[rule]]\nallow = "book.writ"', {}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "src/**" }', {"path": "src/a/b.py"}, "allow"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "src/**" }', {"path": "docs/b.md"}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "src/**" }', {"path": "src/../.ssh/id"}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "src/*" }', {"path": "src/a/b.py"}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "src/**/b.??" }', {"path": "src/b.py"}, "allow"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = ["docs/*", "src/*"] }', {"path": "src/b"}, "allow"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "src/*" }', {}, "allow"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "src/*", text = "a" }', {"path": "src/b"}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { force = "false" }', {"force": True}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { tags = "a*" }', {"tags": ["a1", "a2"]}, "allow"),
        ('[[rule]]\nallow = "book.write"\nwhere = { tags = "a*" }', {"tags": ["a1", "b"]}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { tags = "a*" }', {"tags": []}, "ask"),
        ('[[rule]]\ndeny = "book.write"\nwhere = { tags = "a*" }', {"tags": ["a1", "b"]}, "deny"),
        ('[[rule]]\nallow = "book.write"\nwhere = { text = "café" }', {"text": "cafe\u0301"}, "ask"),
        ('[[rule]]\nallow = "book.write"\nwhere = { path = "café/*" }', {"path": "cafe\u0301/a"}, "ask"),
        ('[[rule]]\ndeny = "book.write"\nwhere = { text = "café" }', {"text": "cafe\u0301"}, "deny"),
        ('[[rule]]\ndeny = "book.write"\nwhere = { path = "café/*" }', {"path": "cafe\u0301/a"}, "deny"),
        ('[[rule]]\ndeny = "book.write"\nwhere = { path = "/etc/**" }', {"path": "//etc/../etc/x"}, "deny"),
        ('[[rule]]\nallow = "*"\n[[rule]]\nask = "book.write"', {}, "ask"),
        ('[[rule]]\nask = "book.write"\n[[rule]]\nallow = "*"', {}, "allow"),
        ('[[rule]]\ndeny = "book.write"\n[[rule]]\nallow = "*"', {}, "deny"),
        ('[[rule]]\nallow = "book.*"\nscope = "mcp"', {}, "ask"),
        ('[[rule]]\nallow = "book.*"\nscope = "ask"', {}, "allow"),
    ],
)
def test_a_rule_decides_by_tool_arguments_and_scope(
    runtime: Runtime, rules: str, args: JsonObject, action: str
) -> None:
    _rule(runtime, rules)
    assert _action(runtime, "write", args) == action


@pytest.mark.promise("ASK-7", "SEC-4")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[rule]", "not valid TOML"),
        pytest.param(f"x = {'1' * 5000}", "it has a number with too many digits", id="digits"),
        (
            '[[rule]]\nallow = "a"\ndeny = "b"',
            "Rule 1 should have exactly one of allow, ask",
        ),
        (
            '[[rule]]\nallow = "*"\n[[rule]]\nalow = "b"',
            "In rule 2, `alow` is not a known key. Use `allow`, `ask`, `deny`, `where`, `exactly`, `scope`.",
        ),
        ('[[rule]]\nallow = "*"\nscope = "mpc"', "In rule 1, `scope` should be 'ask' or 'mcp'."),
        (
            "[[rule]]\nallow = 3\nexactly = [1]",
            "In rule 1, `allow` should be a list, but is a number. In rule 1, `exactly` should be text, but is a list.",
        ),
        ('[[rule]]\nallow = "*"\nwhere = "x"', "In rule 1, `where` should be a table, but is text."),
        ('[[rule]]\nask = "*"\nexactly = "{}"', "Rule 1 should use `exactly` only with `allow`, and without `where`."),
        ('rule = ["a"]', "Rule 1 should be a table, but is text."),
        ("rules = 3", "`rules` is not a known key. Use `rule`."),
    ],
)
def test_while_the_rules_cannot_be_read_every_call_of_a_model_needs_approval(
    runtime: Runtime, text: str, told: str
) -> None:
    _rule(runtime, text)
    assert [_action(runtime, tool) for tool in ("read", "write")] == ["ask", "ask"]
    [problem] = [problem for problem in runtime.problems() if problem.file == str(runtime.paths.approvals)]
    assert told in problem.message
    assert problem.message.endswith(".")
    _rule(runtime, '[[rule]]\nallow = "*"\n')
    assert _action(runtime, "write") == "allow"


@pytest.mark.promise("ASK-7", "EXE-7")
@pytest.mark.parametrize("source", ["form", "cli", "script"])
async def test_rules_do_not_apply_to_calls_of_the_user(runtime: Runtime, source: CallSource) -> None:
    _rule(runtime, '[[rule]]\ndeny = "*"')
    events, finished = await _call(runtime, "write", source)
    assert finished.result.ok
    assert not any(isinstance(event, ApprovalRequested) for event in events)


@pytest.mark.promise("ASK-7")
async def test_a_denied_call_does_not_ask_for_approval(runtime: Runtime) -> None:
    _rule(runtime, '[[rule]]\ndeny = "book.read"')
    person = _Person(Approval(answer="once"))
    runtime.rules.approve_with(person)
    _, finished = await _call(runtime, "read", "mcp")
    assert finished.result.error is not None
    assert (finished.result.error.detail, person.asked) == ("denied", [])
    assert "approvals.toml" in finished.result.error.message


@pytest.mark.promise("ASK-7")
async def test_nested_calls_of_a_model_need_approval_too(runtime: Runtime) -> None:
    _, finished = await _call(runtime, "through", path="a")
    assert finished.result.error is not None
    assert "this run can't ask for approval" in finished.result.error.message
    person = _Person(Approval(answer="once"))
    runtime.rules.approve_with(person)
    _, finished = await _call(runtime, "through", path="a")
    assert finished.result.data == "a: "
    assert [call.name for call in person.asked] == ["book.write"]


@pytest.mark.promise("ASK-7")
async def test_approval_once_applies_to_one_call(runtime: Runtime) -> None:
    person = _Person(Approval(answer="once"), Approval(answer="reject", reason="Not there."))
    runtime.rules.approve_with(person)
    events, finished = await _call(runtime, "write", text="a")
    assert isinstance(events[0], ApprovalRequested)
    assert events[0].call.args == {"text": "a"}
    assert "may change data" in events[0].reason
    assert finished.result.ok
    _, finished = await _call(runtime, "write", text="a")
    assert finished.result.error is not None
    assert finished.result.error.detail == "denied"
    assert "Not there." in finished.result.error.message


@pytest.mark.promise("ASK-7")
async def test_approval_for_the_session_applies_to_that_tool_in_that_session(runtime: Runtime) -> None:
    no = Approval(answer="reject")
    rule = Rule(allow=("book.write",))
    runtime.rules.approve_with(_Person(Approval(answer="session", rule=rule), no, no))
    assert (await _call(runtime, "write"))[1].result.ok
    assert (await _call(runtime, "write", text="other"))[1].result.ok
    assert not (await _call(runtime, "write", session="other"))[1].result.ok
    assert not (await _call(runtime, "drop", path="a"))[1].result.ok
    assert not runtime.paths.approvals.exists()


@pytest.mark.promise("ASK-7")
async def test_approval_always_adds_a_rule_for_every_process(
    runtime: Runtime, open_runtime: Callable[..., Runtime]
) -> None:
    _rule(runtime, '# mine\n[[rule]]\ndeny = "book.write"\nwhere = { path = "secret/**" }')
    runtime.rules.approve_with(_Person(Approval(answer="always", rule=Rule(allow=("book.write",)))))
    assert (await _call(runtime, "write"))[1].result.ok
    text = runtime.paths.approvals.read_text()
    assert text.startswith("# mine\n")
    assert '[[rule]]\nallow = "book.write"\n' in text
    other = open_runtime(*runtime.folders)
    assert (await _call(other, "write", session="other"))[1].result.ok
    assert not (await _call(other, "write", path="secret/a"))[1].result.ok, "what is denied stays denied"
    assert not (await _call(other, "drop", path="a"))[1].result.ok


@pytest.mark.promise("ASK-7")
async def test_an_approval_whose_rule_cannot_be_written_applies_to_the_call_and_is_a_problem(runtime: Runtime) -> None:
    class Blocker(_Person):
        """An approver that makes the file unwritable before it answers."""

        async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
            runtime.paths.approvals.mkdir(parents=True)
            return await super().decide(spec, call)

    added: list[AddedRule] = []
    runtime.rules.approve_with(Blocker(Approval(answer="always", rule=Rule(allow=("book.write",)))), added.append)
    assert (await _call(runtime, "write"))[1].result.ok
    assert any("was not added" in problem.message for problem in runtime.problems())
    assert "was not added" in added[0].problem


@pytest.mark.promise("ASK-7", "SEC-4")
@pytest.mark.parametrize("old", [None, '[[rule]]\nallow = "book.*"'], ids=["first", "changed"])
async def test_a_call_that_comes_while_the_rules_are_read_waits_for_them(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, old: str | None
) -> None:
    is_reading, go, read, verdict = threading.Event(), threading.Event(), Rules.read, Rules.verdict
    waiting: list[ToolCall] = []

    def read_slowly(self: Rules) -> RuleFile:
        found = read(self)
        is_reading.set()
        assert go.wait(30)
        return found

    def count(self: Rules, spec: ToolSpec, call: ToolCall) -> Verdict:
        waiting.append(call)
        if len(waiting) == 2:
            go.set()
        return verdict(self, spec, call)

    if old is not None:
        _rule(runtime, old)
        assert await _made(runtime, "read", {})
    _rule(runtime, '[[rule]]\ndeny = "book.read"')
    monkeypatch.setattr(Rules, "read", read_slowly)
    monkeypatch.setattr(Rules, "verdict", count)
    first = asyncio.create_task(_made(runtime, "read", {}))
    assert await asyncio.to_thread(is_reading.wait, 30)
    second = asyncio.create_task(_made(runtime, "read", {}))
    second.add_done_callback(lambda _: go.set())
    assert not any(await asyncio.wait_for(asyncio.gather(first, second), 30))


@pytest.mark.promise("ASK-5")
async def test_a_rule_is_reported_even_if_the_call_is_cancelled_while_it_is_written(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_writing, go, add = threading.Event(), threading.Event(), Rules.add

    def add_later(self: Rules, rule: Rule, session: str | None = None, *, destructive: bool = True) -> None:
        is_writing.set()
        assert go.wait(30)
        add(self, rule, session, destructive=destructive)

    monkeypatch.setattr(Rules, "add", add_later)
    added: list[AddedRule] = []
    rule = Rule(allow=("book.write",))
    runtime.rules.approve_with(_Person(Approval(answer="always", rule=rule)), added.append)
    call = asyncio.create_task(_call(runtime, "write"))
    assert await asyncio.to_thread(is_writing.wait, 30)
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
    go.set()
    await asyncio.wait([call], timeout=30)
    assert call.cancelled()
    assert [(one.rule, one.problem) for one in added] == [(rule, "")]
    assert 'allow = "book.write"' in runtime.paths.approvals.read_text()


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize("answer", ["session", "always"])
async def test_a_rule_that_does_not_match_the_approved_call_is_not_added(
    runtime: Runtime, answer: ApprovalAnswer
) -> None:
    added: list[AddedRule] = []
    other = Rule(allow=("book.*",), where={"path": ("other/**",)})
    no = Approval(answer="reject")
    runtime.rules.approve_with(_Person(Approval(answer=answer, rule=other), no), added.append)
    assert (await _call(runtime, "write", path="a"))[1].result.ok
    assert "doesn't match this call" in added[0].problem
    assert not (await _call(runtime, "write", path="other/a"))[1].result.ok
    assert not runtime.rules.read().rules


@pytest.mark.promise("ASK-7", "SEC-4")
async def test_no_rule_of_a_session_is_added_while_the_file_cannot_be_read(runtime: Runtime) -> None:
    _rule(runtime, "[[rule]]\ndeny = 5\n")
    added: list[AddedRule] = []
    rule = Rule(allow=("book.write",))
    runtime.rules.approve_with(_Person(Approval(answer="session", rule=rule), Approval(answer="reject")), added.append)
    assert await _made(runtime, "write", {})
    assert "The rule was not added: No rule applies while approvals.toml can't be read" in added[0].problem
    _rule(runtime, "")
    assert not await _made(runtime, "write", {})


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize("permanent", [False, True])
@pytest.mark.parametrize(
    ("approved", "others"),
    [
        ({"path": "a*b"}, [{"path": "axb"}, {"path": "a*b", "force": True}, {"path": "a*b", "tags": ["x"]}]),
        ({"path": "[*]?"}, [{"path": "*x"}, {"path": "[x]?"}, {"path": "*?"}]),
        ({"path": "../a"}, [{"path": "a"}, {"path": "../a/"}, {}]),
        ({"tags": ["a", "b"]}, [{"tags": ["b", "a"]}, {"tags": ["a"]}, {"tags": []}, {"tags": None}]),
        ({"text": "é'\"\n\ud83d\ude00"}, [{"text": "e"}, {"text": ""}]),
        ({}, [{"text": "x"}, {"force": True}]),
    ],
)
async def test_a_rule_with_exactly_matches_only_these_arguments(
    runtime: Runtime, approved: JsonObject, others: list[JsonObject], permanent: bool
) -> None:
    spec = runtime.tools.get("book.write")
    assert spec is not None
    rule = exact_rule(spec, ToolCall(name="book.write", args=approved, source="ask"))
    no = Approval(answer="reject")
    answer: ApprovalAnswer = "always" if permanent else "session"
    added: list[AddedRule] = []
    runtime.rules.approve_with(_Person(Approval(answer=answer, rule=rule), *[no] * 9), added.append)
    assert await _made(runtime, "write", approved)
    assert not added[0].problem
    assert await _made(runtime, "write", approved)
    assert await _made(runtime, "write", {**approved, "force": False}), "that is the default"
    for other in others:
        assert not await _made(runtime, "write", other)
    assert not (await _call(runtime, "drop", path="a"))[1].result.ok
    runtime.rules.undo(added[0])
    assert not await _made(runtime, "write", approved)
    with pytest.raises(RulesError, match="no longer exists"):
        runtime.rules.undo(added[0])


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize("lasts", ["session", "always"])
async def test_undoing_a_rule_keeps_those_that_were_added_later(runtime: Runtime, lasts: ApprovalAnswer) -> None:
    rules = [Rule(allow=("book.write",), where={"path": (path,)}) for path in ("a", "b")]
    no = Approval(answer="reject")
    added: list[AddedRule] = []
    person = _Person(*(Approval(answer=lasts, rule=rule) for rule in rules), no)
    runtime.rules.approve_with(person, added.append)
    for path in ("a", "b"):
        assert await _made(runtime, "write", {"path": path})
    runtime.rules.undo(added[0])
    assert await _made(runtime, "write", {"path": "b"})
    assert not await _made(runtime, "write", {"path": "a"})


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize("lasts", ["session", "always"])
async def test_an_approval_of_exact_arguments_pins_the_defaults_of_that_time(
    runtime: Runtime, write_pack: Callable[[str, str], Path], lasts: ApprovalAnswer
) -> None:
    spec = runtime.tools.get("book.write")
    assert spec is not None
    rule = exact_rule(spec, ToolCall(name="book.write", args={"path": "a"}, source="ask"))
    runtime.rules.approve_with(_Person(Approval(answer=lasts, rule=rule), *[Approval(answer="reject")] * 2))
    assert await _made(runtime, "write", {"path": "a"})
    write_pack("book.py", PACK.replace("force: bool = False", "force: bool = True"))
    assert not await _made(runtime, "write", {"path": "a"})
    assert not await _made(runtime, "write", {"path": "a", "force": True})
    assert await _made(runtime, "write", {"path": "a", "force": False})


NESTED = '''
from dataclasses import dataclass
from typing import Literal

@dataclass
class Options:
    path: str
    force: bool = False
    kind: Literal["options"] = "options"

@dataclass
class Other:
    name: str
    kind: Literal["other"] = "other"

def wipe(*, given: {type}) -> str:
    """Wipes."""
    return str(given)
'''


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("Options", {"path": "a"}),
        ("Options | None = None", {"path": "a"}),
        ("Options | Other", {"path": "a"}),
        ("list[Options]", [{"path": "a"}, {"path": "b", "force": False}]),
        ("dict[str, Options]", {"x": {"path": "a"}}),
    ],
)
async def test_an_approval_of_exact_arguments_pins_the_defaults_within_objects_too(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], type_: str, given: JsonObject
) -> None:
    source = NESTED.replace("{type}", type_)
    runtime = open_runtime(write_pack("book.py", source))
    spec = runtime.tools.get("book.wipe")
    assert spec is not None
    rule = exact_rule(spec, ToolCall(name="book.wipe", args={"given": given}, source="ask"))
    runtime.rules.approve_with(_Person(Approval(answer="session", rule=rule), Approval(answer="reject")))
    assert await _made(runtime, "wipe", {"given": given})
    assert await _made(runtime, "wipe", {"given": given})
    write_pack("book.py", source.replace("force: bool = False", "force: bool = True"))
    assert not await _made(runtime, "wipe", {"given": given})


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_the_approval_of_a_session_ends_when_the_tool_becomes_destructive(
    runtime: Runtime, write_pack: Callable[[str, str], Path]
) -> None:
    spec = runtime.tools.get("book.write")
    assert spec is not None
    rule = session_rule(spec, ToolCall(name="book.write", args={}, source="ask"))
    runtime.rules.approve_with(_Person(Approval(answer="session", rule=rule), Approval(answer="reject")))
    assert await _made(runtime, "write", {"path": "a"})
    assert await _made(runtime, "write", {"path": "b"})
    write_pack("book.py", PACK.replace("def write(", "@hints(destructive=True)\ndef write("))
    assert not await _made(runtime, "write", {"path": "c"})


@pytest.mark.promise("ASK-7", "SEC-4")
@pytest.mark.parametrize(("edits", "action"), [([{"path": "a/x"}], "allow"), ([{"path": "a/x"}, {"text": "y"}], "ask")])
def test_a_rule_that_allows_items_of_a_list_requires_the_value_in_each(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], edits: list[JsonObject], action: str
) -> None:
    source = 'from typing import Any\n\ndef edit(*, edits: list[dict[str, Any]]) -> None:\n    """Edits."""\n'
    runtime = open_runtime(write_pack("book.py", source))
    _rule(runtime, '[[rule]]\nallow = "book.edit"\nwhere = { "edits.path" = "a/**" }')
    assert _action(runtime, "edit", {"edits": [*edits]}) == action


@pytest.mark.promise("ASK-7", "SEC-2")
async def test_a_tool_that_changes_while_its_call_waits_is_not_called(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_TOOLS__WORKERS", "1")
    source = """
        import time
        from pathlib import Path
        from pegboard.sdk import hints

        @hints(read_only=True)
        def wait(*, until: str) -> None:
            '''Waits for a file.'''
            while not Path(until).exists():
                time.sleep(0.01)

        @hints(read_only=True)
        def look() -> str:
            '''Looks.'''
            return "looked"
        """
    pack = write_pack("book.py", source)
    gate = pack.parent / "gate"
    runtime = open_runtime(pack)
    calls = [
        ToolCall(name="book.wait", args={"until": str(gate)}, source="ask"),
        ToolCall(name="book.look", source="ask"),
    ]
    running = []
    for call in calls:
        running.append(asyncio.ensure_future(runtime.result(call)))
        async with asyncio.timeout(20):
            while not runtime.activity.page(HistoryQuery(tools=(call.name,))).calls:  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(0.01)
    before, _, after = source.rpartition("read_only")
    write_pack("book.py", f"{before}destructive{after}")
    gate.touch()
    (_, waited), (_, looked) = await asyncio.wait_for(asyncio.gather(*running), 60)
    assert waited.ok
    assert looked.error is not None
    assert "the tool changed while the call was waiting" in looked.error.message


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize(
    "args",
    [
        {"path": "a*b"},
        {"path": "[*]?[a]"},
        {"path": "src/a", "tags": ["x", "y*"], "force": True},
        {"path": "a\nb\x1b"},
        {"text": "x" * 5_000},
        {"tags": ["t"] * 100},
    ],
)
def test_suggested_patterns_match_the_call_that_they_come_from(runtime: Runtime, args: JsonObject) -> None:
    spec = runtime.tools.get("book.write")
    assert spec is not None
    call = ToolCall(name="book.write", args=args, source="ask")
    patterns = suggested_patterns(spec, call, str.isprintable)
    assert runtime.rules.matches(pattern_rule(call, patterns), call)
    path = next(pattern for name, pattern in patterns if name == "path")
    other = call.model_copy(update={"args": {**args, "path": "axb"}})
    assert runtime.rules.matches(pattern_rule(call, patterns), other) is (path == "**")


@pytest.mark.promise("ASK-7", "SEC-2")
def test_suggested_patterns_of_objects_match_only_the_call_that_they_come_from(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    source = 'def edit(*, options: dict[str, float | str], edits: list[dict[str, str]]) -> str:\n    """Edits."""\n'
    runtime = open_runtime(write_pack("book.py", source))
    spec = runtime.tools.get("book.edit")
    assert spec is not None
    args: JsonObject = {"options": {"new": "*", "count": 1}, "edits": [{"old": "b", "new": "a"}]}
    call = ToolCall(name="book.edit", args=args, source="ask")
    rule = pattern_rule(call, suggested_patterns(spec, call, str.isprintable))
    assert runtime.rules.matches(rule, call)
    others: list[JsonObject] = [
        {**args, "options": {"new": "x", "count": 1}},
        {**args, "options": {"new": "*", "count": 1, "more": "x"}},
        {**args, "edits": [{"old": "b", "new": "a"}, {"old": "b", "new": "c"}]},
    ]
    assert not any(runtime.rules.matches(rule, call.model_copy(update={"args": other})) for other in others)


@pytest.mark.promise("SEC-2", "STO-2")
async def test_arguments_with_a_secret_are_not_written_into_a_rule(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOK_TOKEN", "s3cr3t-value-of-the-book")
    source = PACK.replace("import call_tool, hints", "import call_tool, get_secret, hints") + (
        '\n\ndef token() -> str | None:\n    """Uses the secret."""\n    return get_secret("BOOK_TOKEN")\n'
    )
    runtime = open_runtime(write_pack("book.py", source))
    args: JsonObject = {"text": "s3cr3t-value-of-the-book"}
    call = ToolCall(name="book.write", args=args, source="ask")
    added: list[AddedRule] = []
    spec = runtime.tools.get("book.write")
    assert spec is not None
    once, always = Approval(answer="once"), Approval(answer="always", rule=exact_rule(spec, call))
    runtime.rules.approve_with(_Person(once, always), added.append)
    assert (await _call(runtime, "token"))[1].result.ok, "the secret is known as one from here on"
    assert await _made(runtime, "write", args)
    assert "contain a secret" in added[0].problem
    assert not runtime.rules.read().rules


def test_a_rule_with_exactly_is_checked(runtime: Runtime) -> None:
    for text in (
        'deny = "a.b"\nexactly = "{}"',
        'allow = "a.b"\nexactly = "[]"',
        'allow = "a.b"\nexactly = "{"',
        'allow = "a.b"\nwhere.x = "y"\nexactly = "{}"',
    ):
        _rule(runtime, f"[[rule]]\n{text}\n")
        assert runtime.rules.read().problem is not None


@pytest.mark.promise("ASK-7")
async def test_edited_arguments_are_validated_again_and_run(runtime: Runtime) -> None:
    runtime.rules.approve_with(
        _Person(Approval(answer="once", args={"text": "better"}), Approval(answer="once", args={"text": 3}))
    )
    events, finished = await _call(runtime, "write", text="a")
    assert finished.result.data == "src/default.txt: better"
    started = next(event for event in events if isinstance(event, Started))
    assert started.call.args == finished.call.args == {"text": "better"}
    assert runtime.history.records()[0].args == {"text": "better"}
    _, finished = await _call(runtime, "write", text="a")
    assert finished.result.error is not None
    assert finished.result.error.code == "invalid_args"
    assert [fault.path for fault in finished.result.error.faults] == ["/text"]


@pytest.mark.promise("ASK-7", "SEC-4")
def test_a_rule_applies_to_the_default_of_a_union_and_only_a_prohibition_to_null_for_any_value(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    pack = 'def go(*, to: str | int = "prod", via: str | None = None) -> None:\n    """Go."""\n'
    runtime = open_runtime(write_pack("book.py", pack))
    cases: list[tuple[str, JsonObject, str]] = [
        ('deny = "book.go"\nwhere = { to = "prod" }', {}, "deny"),
        ('deny = "book.go"\nwhere = { to = "prod" }', {"to": "test"}, "ask"),
        ('allow = "book.go"\nwhere = { to = "prod" }', {}, "allow"),
        ('allow = "book.go"\nwhere = { to = "test" }', {}, "ask"),
        ('allow = "book.go"\nwhere = { via = "*" }', {}, "ask"),
        ('allow = "book.go"\nwhere = { via = "null" }', {"via": None}, "allow"),
        ('deny = "book.go"\nwhere = { via = "*" }', {"via": None}, "deny"),
    ]
    for rule, args, action in cases:
        _rule(runtime, f"[[rule]]\n{rule}\n")
        assert _action(runtime, "go", args) == action, (rule, args)


@pytest.mark.promise("ASK-7", "SEC-4", "WAT-4")
def test_a_rule_that_denies_a_value_applies_if_a_tool_that_is_not_described_may_have_it_as_a_default(
    tmp_path: Path,
) -> None:
    file = tmp_path / "approvals.toml"
    spec = ToolSpec(
        name="mail.send", pack="mail", input_schema={}, handler=McpHandler(server="mail", tool="send", listed=False)
    )
    file.write_text('[[rule]]\ndeny = "mail.send"\nwhere = { "parts.path" = "/etc/*" }\n', encoding="utf-8")
    rules = Rules(file)
    described = spec.model_copy(update={"handler": McpHandler(server="mail", tool="send")})
    parts: list[tuple[JsonObject, str, str]] = [
        ({}, "deny", "ask"),
        ({"parts": []}, "deny", "ask"),
        ({"parts": [{"path": "/tmp/a"}]}, "ask", "ask"),
        ({"parts": [{"path": "/tmp/a"}, {"text": "b"}]}, "deny", "ask"),
        ({"parts": [{"path": "/tmp/a"}, {"path": "/etc/b"}]}, "deny", "deny"),
    ]
    for args, unknown, known in parts:
        call = ToolCall(name="mail.send", args=args, source="ask")
        assert [rules.verdict(one, call).action for one in (spec, described)] == [unknown, known], args


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("pattern", "covers"),
    [
        ("mail.send", True),
        ("mail.*", True),
        ("*.send", True),
        ("*delete*", True),
        ("*_file", True),
        ("mai*create", True),
        ("[lm]ail?s*", True),
        ("*", True),
        ("mail", False),
        ("mails.*", False),
        ("other.mail.*", False),
        ("m.*", False),
        ("mailbox*", False),
    ],
)
def test_every_rule_that_may_allow_a_tool_of_a_pack_is_named(tmp_path: Path, pattern: str, covers: bool) -> None:
    file = tmp_path / "approvals.toml"
    file.write_text(f'[[rule]]\nallow = "{pattern}"\n', encoding="utf-8")
    assert ("rules that cover mail" in Rules(file).existing("mail")) is covers


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize("text", ["sNaN", "-snan12", "NaN", "Infinity", "1e999999999999999999", "", "5_0", "\u0665"])
def test_any_text_can_be_compared_with_the_number_of_a_rule(tmp_path: Path, text: str) -> None:
    file = tmp_path / "approvals.toml"
    handler = McpHandler(server="mail", tool="send")
    spec = ToolSpec(name="mail.send", pack="mail", input_schema={}, handler=handler)
    for pattern, value in (("7", text), (text, 7), (text, 7.5), (text, "8")):
        file.write_text(f'[[rule]]\ndeny = "mail.send"\nwhere = {{ amount = "{pattern}" }}\n', encoding="utf-8")
        call = ToolCall(name="mail.send", args={"amount": value}, source="ask")
        assert Rules(file).verdict(spec, call).action == "ask", (pattern, value)


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("args", "denied", "allowed"),
    [
        ({"path": "/tmp/a"}, "ask", "allow"),
        ({"path": "/tmp/a", "Path": "/etc/a"}, "deny", "ask"),
        ({"PATH": "/etc/a"}, "deny", "ask"),
        ({"path": "/tmp/a", "Path": "/tmp/b"}, "ask", "allow"),
        ({"path": "/tmp/a", "User": "/etc/a"}, "ask", "allow"),
    ],
)
def test_rules_read_the_names_of_arguments_without_regard_to_case_as_servers_in_go_do(
    tmp_path: Path, args: JsonObject, denied: str, allowed: str
) -> None:
    file = tmp_path / "approvals.toml"
    schema: JsonObject = {"properties": {"path": {"type": "string"}, "user": {}, "User": {}}}
    spec = ToolSpec(name="fs.read", pack="fs", input_schema=schema, handler=McpHandler(server="fs", tool="read"))
    for rule, action in (
        ('deny = "fs.read"\nwhere = { user = "*" }', "ask"),
        ('deny = "fs.read"\nwhere = { path = "/etc/*" }', denied),
        ('allow = "fs.read"\nwhere = { path = "/tmp/*" }', allowed),
    ):
        file.write_text(f"[[rule]]\n{rule}\n", encoding="utf-8")
        assert Rules(file).verdict(spec, ToolCall(name="fs.read", args=args, source="ask")).action == action, rule


@pytest.mark.promise("ASK-7")
def test_rules_are_checked_again_for_other_tools_although_these_have_the_addresses_of_earlier_ones(
    tmp_path: Path,
) -> None:
    file = tmp_path / "approvals.toml"
    file.write_text('[[rule]]\nask = "mail.send"\n', encoding="utf-8")
    rules = Rules(file)

    def problems(tool: str) -> int:
        handler = McpHandler(server="mail", tool=tool)
        return len(rules.check([ToolSpec(name=f"mail.{tool}", pack="mail", input_schema={}, handler=handler)]))

    assert [(problems("drop"), problems("send")) for _ in range(50)] == [(1, 0)] * 50
