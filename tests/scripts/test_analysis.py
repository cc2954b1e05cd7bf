"""Analysis of scripts: their calls, as far as they can be known before a script runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.runtime import Runtime
from pegboard.scripts import Limits, OrchestratorTool


@pytest.fixture
def tool(shop: Runtime) -> OrchestratorTool:
    return shop.scripts.orchestrator()


def test_literal_calls_are_known_with_their_arguments(tool: OrchestratorTool) -> None:
    found = tool.analyze("shop.get_user 7 | jq .name; for i in 1 2; do shop_words 'a b' --loud --tags x; done")
    assert [(call.tool, call.args) for call in found.calls] == [
        ("shop.get_user", {"id": 7}),
        ("shop.words", {"text": "a b", "loud": True, "tags": ["x"]}),
    ]
    assert (found.unknown, found.error) == ((), None)


def test_calls_that_are_only_known_at_run_time_are_marked(tool: OrchestratorTool) -> None:
    [call] = tool.analyze('shop.words "$(date)" --limit 2').calls
    assert (call.words, call.args) == ((None, "--limit", "2"), None)


@pytest.mark.parametrize(
    "script",
    [
        "eval 'shop.buy tea'",
        'bash -c "shop.buy tea"',
        "f() { shop.buy tea; }; f",
        "x=$(shop.buy tea)",
        "cat <(shop.buy tea)",
        "if shop.buy tea; then :; fi",
        "(shop.buy tea) & wait",
        "eval \"eval 'shop.buy tea'\"",
    ],
)
def test_calls_are_found_in_every_construct(tool: OrchestratorTool, script: str) -> None:
    assert [(call.tool, call.args) for call in tool.analyze(script).calls] == [("shop.buy", {"thing": "tea"})]


@pytest.mark.parametrize("script", ["xargs -n 1 shop.buy", "timeout 5 shop.buy tea", "parallel shop.buy ::: a b"])
def test_a_tool_that_another_command_calls_is_found(tool: OrchestratorTool, script: str) -> None:
    [call] = tool.analyze(script).calls
    assert (call.tool, call.args) == ("shop.buy", None)


@pytest.mark.parametrize(
    "script",
    [
        "$tool tea",
        'eval "$text"',
        "echo 'shop.buy tea' | bash",
        "source ./more",
        "alias get=shop.buy",
        "shop.get_user() { shop.buy tea; }; shop.get_user 7",
        'xargs -n 1 "$tool"',
        "parallel 'x={}; $x' ::: a b",
        "trap 'shop.buy tea' EXIT",
        "eval 'if then'",
        # Each of these calls the tool.
        'awk \'BEGIN { system("shop." "buy tea") }\'',
        "awk 'BEGIN { \"shop.buy tea\" | getline }'",
        "echo 'BEGIN { system(\"shop.buy tea\") }' > f; awk -f f",
        "x='$(shop.buy tea)'; echo ${x@P}",
        "PS4='$(shop.buy tea)'; set -x; :",
        "declare 'a[$(shop.buy tea)]=1'",
        'echo "${a[$(shop.buy tea)]}" ${x:-$(shop.buy tea)}',
        "(( $(shop.buy tea) ))",
        "echo $((1 + $(shop.buy tea)))",
        "echo shop.buy tea > f; chmod +x f; ./f",
        "compgen -C 'shop.buy tea'",
        "echo shop.buy | xargs -I{} {} tea",
        "bash -c -- 'shop.buy tea'",
        "command eval 'shop''.buy tea'",
        "printf 'shop.%s tea' buy > f; bash f -c true",
        "printf 'shop.%s tea' buy | xargs env",
        "printf 'shop.%s tea' buy | xargs -n 3 timeout 5",
        "printf 'shop.%s' buy | xargs -I CMD CMD tea",
        "printf 'shop.%s' buy | xargs -I% -n1 % tea",
        "printf 'a:\\n\\tshop.%s tea' buy | make -f -",
        "flock lock -c 'shop.''buy tea'",
        "env A=1 ./f",
        "timeout 5 ./f",
        "echo | xargs ./f",
        "find . -name f -exec ./f \\;",
        "PATH=. f",
        "echo ${x:-" + "z" * 70 + "$(shop.$(echo buy) tea)}",
        "((\n1 +\n$(shop.$(echo buy) tea) ))",
        "help shop.buy",
    ],
)
def test_constructs_that_cant_be_analyzed_are_noted(tool: OrchestratorTool, script: str) -> None:
    assert tool.analyze(script).unknown


@pytest.mark.parametrize(
    "script",
    [
        "for i in 1 2; do shop.get_user $i; done | awk '{ print $1 }' | sort | uniq -c",
        'shop.get_user 7 | xargs -n 1 echo; find . -name x; x=${y:-z}; echo $((1 + 2)) ${a[1]} "$(shop.get_user 7)"',
        "shop.get_user 7 | xargs -I X echo X; find ./src -name x; timeout 5 cat ./f; bash -e -c 'echo x'",
    ],
)
def test_scripts_that_can_be_analyzed_have_no_notes(tool: OrchestratorTool, script: str) -> None:
    found = tool.analyze(script)
    assert {call.tool for call in found.calls} == {"shop.get_user"}
    assert found.unknown == ()


PIECES = [
    "get", "'g'et", "echo get", "$x", "$(", ")", "`", "(", "{", "}", ";", "\n", "&", "||", "|", "if", "then", "fi",
    "x=get", "eval", "bash -c", "bash", "'", '"', "xargs -I{}", "{}", "parallel",
    "awk 'BEGIN { system(\"g\" \"et\") }'", "trap", "EXIT", "<<<", "<<E\nget\nE\n", "<(", "$((", "))", "${x@P}",
    "${x:-", "source /dev/stdin", "alias x=get", "f()", "f", "exec", "env",
    "!", "a[", "]=1", "declare", "for i in get; do", "done", "timeout 1", "#",
]  # fmt: skip


@pytest.mark.promise("SCR-5")
def test_no_script_makes_an_unexpected_call(plain: Callable[..., OrchestratorTool]) -> None:
    tool = plain(get=lambda args, stdin: "1\n")
    tool.limits = Limits(seconds=2, commands=1_000, iterations=200)

    @settings(max_examples=150)
    @given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8))
    def check(pieces: list[str]) -> None:
        script = " ".join(pieces)
        found = tool.analyze(script)
        if not found.calls and not found.unknown:
            assert asyncio.run(tool.execute(script)).calls == ()

    check()


@pytest.mark.parametrize(
    "script", ["shop.buy a &\nshop.buy b &\nwait", "for x in 1 2; do shop.buy tea & done; wait", "x=1\n>out"]
)
def test_known_commands_are_not_reported_as_unknown(tool: OrchestratorTool, script: str) -> None:
    assert tool.analyze(script).unknown == ()


def test_errors_are_found_before_it_runs(tool: OrchestratorTool) -> None:
    [call] = tool.analyze("shop.get_user ada").calls
    assert call.args is None
    assert call.faults[0].startswith("--id: ")


def test_a_syntax_error_is_reported_with_the_lines_that_still_run(tool: OrchestratorTool) -> None:
    found = tool.analyze("shop.buy tea\nshop.get_user $x\nif then\nshop.nap 1")
    assert found.error is not None
    assert [call.tool for call in found.calls] == ["shop.buy", "shop.get_user"]
    assert found.unknown[0] == "Complete commands before the syntax error will still run."
    assert tool.analyze("shop.buy tea; echo 'b").unknown
    written = tool.analyze("shop.buy tea\nfor one in a b; do\nshop.nap 1\n")
    assert [call.tool for call in written.calls] == ["shop.buy"]
    unfinished = tool.analyze("if true; then\nshop.buy tea")  # the lines above the error can't be parsed either
    assert not any("nested" in sentence for sentence in unfinished.unknown)
    assert unfinished.unknown[0] == "Complete commands before the syntax error will still run."


@pytest.mark.promise("SCR-5")
def test_a_script_that_crashes_the_parser_affects_no_other_script(tool: OrchestratorTool) -> None:
    breaking = "time " * 20_000 + "echo"
    assert tool.analyze(f"{breaking} shop.buy").error == "it is nested too deeply, or takes too long to parse"
    within = tool.analyze(f"eval '{breaking}'; eval 'shop.buy tea'; shop.buy milk")
    assert within.unknown == ("It runs a nested script that can't be parsed.",)
    assert within.calls[-1].args == {"thing": "milk"}
    assert tool.analyze("shop.buy tea").calls[0].args == {"thing": "tea"}


def test_nothing_is_run(plain: Callable[..., OrchestratorTool]) -> None:
    called: list[list[str]] = []

    def get(args: list[str], stdin: str | None) -> str:
        del stdin
        called.append(args)
        return ""

    plain(get=get).analyze("get; $(get); eval get")
    assert called == []
