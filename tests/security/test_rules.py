"""Approval rules apply however a call spells its tool, its arguments and its paths, and fail closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest
from pydantic import JsonValue

from pegboard.gateway.rules import Rules
from pegboard.mcp.specs import tool_specs
from pegboard.models import Finished, JsonObject, Problem, ServerConfig, ToolCall, ToolSpec
from pegboard.models.approval import Approval
from pegboard.models.rule_scope import session_rule
from pegboard.runtime import Runtime

PACK = '''
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from pegboard.sdk import aliases, hints


@dataclass
class Target:
    path: str = "public"
    force: bool = False
    copies: list[str] = field(default_factory=list)


def pay(*, amount: float = 5, count: int = 1, exact: Decimal | None = None, anything: Any = None) -> str:
    """Pays."""
    return str(amount)


def remove(
    *,
    path: str = "public/a",
    files: list[str] | None = None,
    place: Path | None = None,
    target: Target | None = None,
    note: str = "",
    force: bool = False,
    mode: Literal["soft", "hard"] = "soft",
    at: datetime | None = None,
    owner: UUID | None = None,
) -> str:
    """Removes."""
    return path


@aliases("erase", "book.wipe", path="where")
@hints(read_only=True)
def drop(*, path: str = "public") -> str:
    """Drops."""
    return path
'''

DENY_SECRET = '[[rule]]\ndeny = "book.remove"\nwhere = { path = "secret/**" }\n[[rule]]\nallow = "book.*"'
ALLOW_SRC = '[[rule]]\nallow = "book.remove"\nwhere = { path = "src/**" }'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with a secret folder, a link to it, and a link out of `src`."""
    here = tmp_path / "w"
    for name in ("secret", "src", "public"):
        (here / name).mkdir(parents=True)
        (here / name / "a").write_text("a")
    (here / "link").symlink_to("secret")
    (here / "src" / "out").symlink_to(here / "secret")
    (here / "alias.txt").symlink_to(here / "secret" / "a")
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], folder: Path) -> Runtime:
    return open_runtime(write_pack("book.py", PACK))


def _rules(runtime: Runtime, text: str) -> None:
    runtime.paths.approvals.parent.mkdir(parents=True, exist_ok=True)
    runtime.paths.approvals.write_text(text, encoding="utf-8")


async def _call(runtime: Runtime, name: str, args: JsonObject) -> Finished:
    call = ToolCall(name=name, args=args, source="ask", session="s")
    events = [event async for event in runtime.call(call)]
    assert isinstance(events[-1], Finished)
    return events[-1]


async def _ran(runtime: Runtime, tool: str, **args: JsonValue) -> bool:
    """Return whether a model's call runs; fail the test if it ends for a reason other than the rules."""
    result = (await _call(runtime, f"book.{tool}", args)).result
    assert result.ok or (result.error is not None and result.error.detail == "denied"), result.error
    return result.ok


@pytest.mark.promise("SEC-4", "ASK-7")
async def test_a_denied_call_stays_denied_while_an_editor_saves_the_rules(runtime: Runtime) -> None:
    text = '[[rule]]\ndeny = "book.drop"'
    _rules(runtime, text)
    assert not await _ran(runtime, "drop")
    _rules(runtime, "")  # many editors empty a file before they write it
    writer = Timer(0.1, _rules, (runtime, text))
    writer.start()
    assert not await _ran(runtime, "drop")
    writer.join()
    _rules(runtime, "")
    assert await _ran(runtime, "drop"), "no rule denies a call if the file stays empty"


@pytest.mark.promise("SEC-4", "ASK-7")
async def test_a_number_is_denied_in_every_spelling(runtime: Runtime) -> None:
    _rules(runtime, '[[rule]]\ndeny = "book.pay"\nwhere = { amount = "1000" }\n[[rule]]\nallow = "book.*"')
    for amount in (1000, 1000.0, 1e3, 10.00e2):
        assert not await _ran(runtime, "pay", amount=amount), amount
    for amount in (100, 1000.5, -1000):
        assert await _ran(runtime, "pay", amount=amount), amount
    _rules(runtime, '[[rule]]\ndeny = "book.pay"\nwhere = { amount = 1000.0 }\n[[rule]]\nallow = "book.*"')
    assert not await _ran(runtime, "pay", amount=1000)
    for pattern in ("1e3", "1E3", "1_000", "+1000", "1000.00", "100?", "1*"):
        _rules(runtime, f'[[rule]]\ndeny = "book.pay"\nwhere = {{ amount = "{pattern}" }}\n[[rule]]\nallow = "*"')
        for amount in (1000, 1000.0):
            assert not await _ran(runtime, "pay", amount=amount), (pattern, amount)


@pytest.mark.promise("SEC-4")
async def test_numbers_that_the_tool_gets_as_one_are_denied_as_one_and_never_allowed_as_one(runtime: Runtime) -> None:
    big = 2**53
    _rules(runtime, f'[[rule]]\ndeny = "book.pay"\nwhere = {{ amount = "{big}" }}\n[[rule]]\nallow = "*"')
    assert not await _ran(runtime, "pay", amount=big + 1), "as a float it is the same number"
    _rules(runtime, f'[[rule]]\nallow = "book.pay"\nwhere = {{ amount = "{big}" }}')
    assert not await _ran(runtime, "pay", amount=big + 1)
    assert await _ran(runtime, "pay", amount=float(big))
    _rules(runtime, '[[rule]]\ndeny = "book.pay"\nwhere = { exact = "1000", anything = "7" }\n[[rule]]\nallow = "*"')
    for exact, anything in (("1e3", 7.0), ("1000.0", " 7 "), (1000, "7e0")):
        assert not await _ran(runtime, "pay", exact=exact, anything=anything), (exact, anything)


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("where", "args"),
    [
        ('force = "false"', {}),
        ("force = false", {"force": False}),
        ('force = "False"', {}),
        ('mode = "soft"', {}),
        ('mode = "h*"', {"mode": "hard"}),
        ('files = "null"', {"files": None}),
        ('files = "*.key"', {"files": ["a", "b.key"]}),
        ('files = "secret/**"', {"files": ["public/a", "./src/../secret/a"]}),
        ('"target.path" = "secret/**"', {"target": {"path": "secret//a"}}),
        ('target.path = "secret/**"', {"target": {"path": "public/../secret"}}),
        ('target.path = "public"', {"target": {}}),
        ("target.force = false", {"target": {"path": "a"}}),
        ('"target.copies" = "secret/*"', {"target": {"path": "a", "copies": ["x", "link/a"]}}),
        ('note = "rm *"', {"note": "rm -rf /tmp/a"}),
        ('note = "caf\u00e9"', {"note": "cafe\u0301"}),
        ('note = "secret/**"', {"note": "link/a"}),
        ('at = "2025-01-02T03:04:05Z"', {"at": "2025-01-02T04:04:05+01:00"}),
        ('owner = "0b5c2e4e-8d1f-4a52-9a3b-0d8f9a6c7e11"', {"owner": "0B5C2E4E-8D1F-4A52-9A3B-0D8F9A6C7E11"}),
        ('note = "[*]"', {"note": "*"}),
    ],
)
async def test_a_value_is_denied_by_its_type_in_lists_objects_and_as_a_default(
    runtime: Runtime, where: str, args: dict[str, JsonValue]
) -> None:
    _rules(runtime, f'[[rule]]\ndeny = "book.remove"\nwhere = {{ {where} }}\n[[rule]]\nallow = "*"')
    assert not any(problem.file == str(runtime.paths.approvals) for problem in runtime.problems())
    assert not await _ran(runtime, "remove", **args)


@pytest.mark.promise("SEC-4", "ASK-7")
async def test_a_path_is_denied_in_every_spelling(runtime: Runtime, folder: Path) -> None:
    (folder / "caf\u00e9").mkdir()
    spellings = [
        "secret/a", "secret", "secret/", "./secret/a", "secret//a", "//secret/../" + str(folder) + "/secret/a",
        "public/../secret/a", "../w/secret/a", f"{folder}/secret/a", f"{folder}/./secret//a/", "link/a", "link",
        "src/out/a", "alias.txt", "secret/new/file", "link/../secret/a", " secret/a", "secret/a ",
        f"/{folder}/secret/a",
        "/proc/self/cwd/secret/a", f"/proc/self/root{folder}/secret/a", f"file://{folder}/secret/a",
        f"file:{folder}/s%65cret/a", "secret/a\0", "\0",
    ]  # fmt: skip
    for pattern in (
        "secret/**",
        "./secret/**",
        "../w/secret/**",
        f"{folder}/secret/**",
        "link/**",
        "secret//**",
        "secre?/**",
        "secret/",
    ):
        rule = f'[[rule]]\ndeny = "book.remove"\nwhere = {{ path = "{pattern}" }}\n[[rule]]\nallow = "book.*"'
        _rules(runtime, rule)
        for path in spellings:
            assert not await _ran(runtime, "remove", path=path), (pattern, path)
        for path in ("public/a", "secrets/a", "src/a"):
            assert await _ran(runtime, "remove", path=path), (pattern, path)
    _rules(runtime, DENY_SECRET.replace("secret/**", "caf\u00e9/*"))
    assert not await _ran(runtime, "remove", path="cafe\u0301/x")
    _rules(runtime, DENY_SECRET.replace("path =", "place ="))
    assert not await _ran(runtime, "remove", place="link/a")


@pytest.mark.promise("SEC-4")
async def test_a_path_in_the_home_folder_is_denied_with_and_without_its_sign(runtime: Runtime, home: Path) -> None:
    for pattern in ("~/.ssh/**", f"{home}/.ssh/**", "**/.ssh/**"):
        _rules(runtime, DENY_SECRET.replace("secret/**", pattern))
        for path in ("~/.ssh/id", "~//.ssh/./id", f"{home}/.ssh/id", f"../../../../../../../../..{home}/.ssh/id"):
            assert not await _ran(runtime, "remove", path=path), (pattern, path)


@pytest.mark.promise("SEC-4")
async def test_paths_of_a_pack_with_roots_start_there(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], folder: Path, home: Path
) -> None:
    (home / "config.toml").write_text(f'[packs.book]\nroots = ["{folder / "secret"}"]')
    runtime = open_runtime(write_pack("book.py", PACK))
    _rules(runtime, DENY_SECRET)
    assert not await _ran(runtime, "remove", path="a")
    _rules(runtime, ALLOW_SRC)
    assert not await _ran(runtime, "remove", path=f"{folder}/src/a")
    assert await _ran(runtime, "remove", path="src/a")


@pytest.mark.promise("SEC-4", "ASK-7")
async def test_a_path_is_allowed_only_by_its_target(runtime: Runtime, folder: Path) -> None:
    _rules(runtime, ALLOW_SRC)
    for path in ("src/a", "./src/a", f"{folder}/src/a", "src//new/b"):
        assert await _ran(runtime, "remove", path=path), path
    leaving = ["src/out/a", "src/out", "src/../secret/a", "src/a/../../secret/a", "secret/a", "/src/a", "src", "SRC/a"]
    for path in [*leaving, "src\0/a", "~/src/a", " src/a", "src/..\\a"]:
        assert not await _ran(runtime, "remove", path=path), path
    _rules(runtime, ALLOW_SRC.replace("path", "note"))
    assert await _ran(runtime, "remove", note="src/a")
    assert not await _ran(runtime, "remove", note="src/out/a"), "a path under another name"


@pytest.mark.promise("SEC-4", "ASK-7")
async def test_aliases_are_denied_like_the_names_that_they_replace(runtime: Runtime) -> None:
    for tool in ("book.drop", "erase", "book.wipe", "er*", "book.w*"):
        _rules(runtime, f'[[rule]]\ndeny = "{tool}"')
        for name in ("book.drop", "erase", "book.wipe"):
            result = (await _call(runtime, name, {})).result
            assert result.error is not None, (tool, name)
            assert result.error.detail == "denied", (tool, name)
    for key in ("path", "where"):
        _rules(runtime, f'[[rule]]\ndeny = "erase"\nwhere = {{ {key} = "secret/**" }}')
        assert not await _ran(runtime, "drop", where="secret/a")
        assert not await _ran(runtime, "drop", path="link/a")
        assert await _ran(runtime, "drop", path="public")


@pytest.mark.promise("SEC-4")
async def test_an_alias_with_a_dot_gets_no_tool_past_an_allow_rule(runtime: Runtime) -> None:
    _rules(runtime, '[[rule]]\nask = "book.drop"\n[[rule]]\nallow = "book.wipe"')
    assert not await _ran(runtime, "drop")
    [problem] = _told(runtime)
    assert "another name of book.drop" in problem.message


class _Editor:
    """An approver that edits the arguments."""

    def __init__(self, **args: JsonValue) -> None:
        self._args = args

    async def decide(self, _spec: ToolSpec, _call: ToolCall) -> Approval:
        return Approval(answer="once", args=self._args)


@pytest.mark.promise("SEC-4")
async def test_deny_rules_apply_to_edited_arguments_too(runtime: Runtime) -> None:
    _rules(runtime, '[[rule]]\ndeny = "book.remove"\nwhere = { path = "secret/**" }')
    runtime.rules.approve_with(_Editor(path="public/a"))
    assert await _ran(runtime, "remove", path="public/b")
    runtime.rules.approve_with(_Editor(path="link/a"))
    assert not await _ran(runtime, "remove", path="public/b")


def _told(runtime: Runtime) -> list[Problem]:
    return [problem for problem in runtime.problems() if problem.file == str(runtime.paths.approvals)]


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("rule", "line", "message"),
    [
        ('deny = "book.remvoe"', 3, "the tool 'book.remvoe' doesn't exist. Did you mean 'book.remove'?"),
        ('deny = "remove"', 3, "the tool 'remove' doesn't exist"),
        (
            'deny = "elsewhere.x"',
            3,
            "no pack 'elsewhere' is installed. Ignore this if 'elsewhere' is a server behind `pegboard watch`,",
        ),
        ('deny = "book.remove"\nwhere = { pth = "a" }', 4, "no argument 'pth'. Did you mean 'path'?"),
        ('deny = "book.remove"\nwhere = { "target.pth" = "a" }', 4, "no argument 'target.pth'"),
        (
            'deny = "book.remove"\nwhere = { force = "yes" }',
            4,
            "'yes' can never match because `force` is true or false",
        ),
        ('deny = "book.remove"\nwhere = { mode = "medium" }', 4, "`mode` is one of soft, hard"),
        (
            'deny = "book.remove"\nwhere = { path = "a*/../b" }',
            4,
            "can never match because `path` is of the type string",
        ),
        ('deny = "book.pay"\nwhere.count = "1.5"', 4, "'1.5' can never match because `count` is an integer"),
        ('deny = "book.pay"\nwhere.amount = "many"', 4, "`amount` is a number"),
    ],
)
def test_a_rule_that_can_never_match_is_a_problem_with_its_line(
    runtime: Runtime, rule: str, line: int, message: str
) -> None:
    _rules(runtime, f"# mine\n[[rule]]\n{rule}\n[[rule]]\nallow = 'book.*'\n")
    [problem] = _told(runtime)
    assert message in str(problem)
    assert problem.line == line


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("0", "'0' can never match because `copies` is an integer, at least 1, at most 9"),
        ("10", "'10' can never match"),
        ("1", ""),
        ("9.0", ""),
        ("1*", ""),
        ("1e999999999", ""),
    ],
)
def test_a_pattern_for_a_number_outside_of_its_limits_is_a_problem(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], pattern: str, message: str
) -> None:
    source = "from typing import Annotated\nfrom pydantic import Field\n"
    source += 'def copy(*, copies: Annotated[int, Field(ge=1, le=9)]):\n    """Copy."""\n'
    runtime = open_runtime(write_pack("office.py", source))
    _rules(runtime, f'[[rule]]\ndeny = "office.copy"\nwhere.copies = "{pattern}"')
    found = [problem.message for problem in _told(runtime)]
    assert [message in one for one in found] == ([True] if message else [])


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("exactly", "message"),
    [
        ('{"pth": "a"}', "pth: unknown argument"),
        ('{"force": "yes"}', "force: must be true or false"),
        ('{"target": {"path": 1}}', "target.path: must be text"),
        ('{"mode": "medium"}', "mode: must be"),
    ],
)
def test_a_rule_with_exact_arguments_that_its_tool_does_not_accept_is_a_problem(
    runtime: Runtime, exactly: str, message: str
) -> None:
    _rules(runtime, f"# mine\n[[rule]]\nallow = 'book.remove'\nexactly = '{exactly}'\n")
    [problem] = _told(runtime)
    assert "`exactly` can never match because book.remove doesn't accept these arguments: " in problem.message
    assert message in problem.message
    assert (problem.line, problem.severity) == (4, "warning")


@pytest.mark.promise("SEC-4", "ASK-7")
async def test_a_rule_with_exact_arguments_that_one_of_its_tools_accepts_can_match(runtime: Runtime) -> None:
    for tools, exactly in (("book.*", '{"amount": 3}'), ("book.remove", "{}"), ("book.pay", '{"anything": [1]}')):
        _rules(runtime, f"[[rule]]\nallow = '{tools}'\nexactly = '{exactly}'\n")
        assert not _told(runtime), exactly
    assert await _ran(runtime, "pay", anything=[1])


@pytest.mark.promise("SEC-4")
def test_an_exact_default_that_the_schema_of_a_server_does_not_allow_can_match(tmp_path: Path) -> None:
    file = tmp_path / "approvals.toml"
    file.write_text('[[rule]]\nallow = \'files.write\'\nexactly = \'{"path": "a", "mode": null}\'\n')
    properties: JsonObject = {"path": {"type": "string"}, "mode": {"type": "string", "default": None}}
    listed: JsonObject = {"name": "write", "inputSchema": {"type": "object", "properties": properties}}
    [spec], _ = tool_specs(ServerConfig(name="files", command="x"), "files", [listed], ())
    rules = Rules(file)
    assert rules.verdict(spec, ToolCall(name=spec.name, args={"path": "a"}, source="ask")).action == "allow"
    assert not rules.check([spec])


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("rule", "severity", "fix"),
    [
        ('ask = "elsewhere.*"', "hint", "Ignore this if 'elsewhere' is a server behind `pegboard watch`"),
        ('deny = "*.destroy_all"', "hint", "ignore this if it is for a server behind `pegboard watch`"),
        ('deny = "boook.remove"', "warning", "Did you mean 'book.remove'?"),
    ],
)
def test_a_rule_for_a_watched_server_is_a_hint_and_a_misspelt_pack_a_problem(
    runtime: Runtime, rule: str, severity: str, fix: str
) -> None:
    _rules(runtime, f"[[rule]]\n{rule}\n")
    [problem] = _told(runtime)
    assert (problem.severity, problem.needs_action) == (severity, severity != "hint")
    assert fix in problem.fix


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[rule]", 1),
        ("[[rule]]\nallow = '*'\n[[rule]]\ndney = 'b'", 4),
        ('[[rule]]\nallow = "*"\nscope = "everyone"', 3),
        ('[[rule]]\nallow = "*"\nwhere = { path = [] }', 1),
        ('[[rule]]\nallow = "*"\n[[rule]]\ndeny = ["a", 3]', 4),
    ],
)
async def test_while_the_rules_cant_be_read_no_call_of_a_model_runs(runtime: Runtime, text: str, line: int) -> None:
    _rules(runtime, '[[rule]]\nallow = "*"')
    assert await _ran(runtime, "remove")
    _rules(runtime, text)
    assert not await _ran(runtime, "remove")
    assert not await _ran(runtime, "drop"), "what only reads might be denied"
    [problem] = _told(runtime)
    assert problem.line == line
    assert "needs approval" in problem.fix


@pytest.mark.promise("SEC-4")
def test_relative_paths_start_in_the_folder_of_the_server(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "approvals.toml"
    file.write_text(
        f'[[rule]]\nallow = "files.*"\nwhere = {{ path = "{folder}/src/*" }}\n'
        f'[[rule]]\ndeny = "files.*"\nwhere = {{ path = "{tmp_path}/other/secret/**" }}\n'
    )
    listed: JsonObject = {"name": "write", "inputSchema": {"properties": {"path": {"type": "string"}}}}
    [spec], _ = tool_specs(ServerConfig(name="files", command="x", cwd=str(tmp_path / "other")), "files", [listed], ())
    actions = {
        path: Rules(file).verdict(spec, ToolCall(name=spec.name, args={"path": path}, source="ask")).action
        for path in ("src/a", f"{folder}/src/a", "secret/a")
    }
    assert actions == {"src/a": "ask", f"{folder}/src/a": "allow", "secret/a": "deny"}


@pytest.mark.promise("SEC-4")
async def test_approvals_of_a_session_do_not_apply_while_the_rules_cannot_be_read(runtime: Runtime) -> None:
    class Person:
        async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
            return Approval(answer="session", rule=session_rule(spec, call))

    runtime.rules.approve_with(Person())
    assert await _ran(runtime, "remove")
    runtime.rules.approve_with(None)
    assert await _ran(runtime, "remove")
    _rules(runtime, "[[rule]")
    assert not await _ran(runtime, "remove")


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize("kind", ["folder", "link to nothing", "no text", "fifo"])
async def test_a_rules_file_that_is_not_a_regular_file_fails_closed(runtime: Runtime, kind: str) -> None:
    file = runtime.paths.approvals
    match kind:
        case "folder":
            file.mkdir(parents=True)
        case "link to nothing":
            file.symlink_to("gone.toml")
        case "fifo":
            os.mkfifo(file)
        case _:
            file.write_bytes(b"\xff\xfe")
    assert not await _ran(runtime, "drop")
    assert len(_told(runtime)) == 1
