"""The language of scripts: bash, with tools as commands."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable

import pytest
from jsonschema import Draft202012Validator

from pegboard.models import CallEvent, Finished, Log, Started
from pegboard.runtime import Runtime
from pegboard.scripts import Limits, OrchestratorTool, OrchestratorToolBuilder

Build = Callable[..., OrchestratorTool]


def _user(args: list[str], stdin: str | None) -> str:
    del stdin
    if args == ["0"]:
        raise LookupError("There is no user 0.")
    return json.dumps({"id": int(args[0]), "name": f"user {args[0]}"}) + "\n"


def _shout(args: list[str], stdin: str | None) -> str:
    return " ".join([*args, stdin or "-"]).upper()


SCRIPTS = {
    "one tool": ("get_user 7", '{"id": 7, "name": "user 7"}\n'),
    "pipeline with jq": ("get_user 7 | jq -r .name", "user 7\n"),
    "variables and substitution": (
        'who=$(get_user 7 | jq -r .name); n=$((1 + 2)); echo "$who has $n"',
        "user 7 has 3\n",
    ),
    "stdin": ("echo in | shout a 'b c'", "A B C IN\n"),
    "here-document": ("x=1; shout <<END\nline $x\nEND", "LINE 1\n"),
    "fallback": ("get_user 0 2>/dev/null || echo nobody", "nobody\n"),
    "if": ("if get_user 0 2>/dev/null; then echo there; else echo $?; fi", "1\n"),
    "set -e": ("set -e; get_user 0 2>/dev/null; echo after", ""),
    "pipefail": ("set -o pipefail; get_user 0 2>/dev/null | cat; echo $?", "1\n"),
    "for": ("for i in 1 2; do get_user $i | jq .id; done", "1\n2\n"),
    "while read": ("printf '1\\n2\\n' | while read -r i; do get_user $i | jq -r .name; done", "user 1\nuser 2\n"),
    "function": ("name() { get_user $1 | jq -r .name; }; name 5", "user 5\n"),
    "array": ('a=(3 4); for i in "${a[@]}"; do get_user $i | jq .id; done; echo ${#a[@]}', "3\n4\n2\n"),
    "case": ("case $(get_user 1 | jq .id) in 1) echo one ;; *) echo other ;; esac", "one\n"),
    "environment": ("echo $REGION", "eu\n"),
    "files of its own": ("get_user 7 > a.json; jq .id a.json; rm a.json; ls", "7\n"),
    "process substitution": ("mapfile -t a < <(get_user 7 | jq -r .name); echo ${a[0]}", "user 7\n"),
    "xargs": ("printf '1 2' | xargs -n 1 get_user | jq -s length", "2\n"),
    "xargs with one that fails before others": (
        "printf '0\\n2\\n' | xargs -n 1 get_user 2>/dev/null || echo $?", '{"id": 2, "name": "user 2"}\n123\n',
    ),
    "xargs with set -e and pipefail": (
        "set -eo pipefail; printf '0\\n2\\n' | xargs -I{} get_user {} 2>/dev/null | jq .id; echo after", "2\n",
    ),
    "xargs with an unknown command": (
        "seq 2 | xargs -n 1 no_tool 2>&1 | wc -l; seq 2 | xargs no_tool 2>/dev/null; echo $?", "1\n127\n",
    ),
    "xargs with the exit code that stops it": (
        "seq 2 | xargs -rn1 sh -c 'echo $1; exit 255' sh 2>/dev/null; echo $?", "1\n124\n",
    ),
    "xargs with many jobs that don't fail": ("seq 60000 | xargs -n 1 echo | wc -l", "60000\n"),
    "xargs with wrong usage": ("seq 2 | xargs -n x echo 2>/dev/null; echo $?; seq 2 | xargs; echo $?", "1\n1 2\n0\n"),
    "xargs that shows its commands": (
        "seq 2 | xargs -tn1 echo 2>&1; seq 2 | xargs --verbose echo 2>&1", "echo 1\n1\necho 2\n2\necho 1 2\n1 2\n",
    ),
    "xargs with an optional value": (
        "echo a b | xargs --replace shout '[{}]'; seq 2 | xargs --max-lines shout", "[A B] -1 -2 -",
    ),
    "xargs at once": ("printf '1\\n2\\n' | xargs -P 4 -I{} get_user {} | jq .id", "1\n2\n"),
    "xargs at once with one that fails": (
        "printf '0\\n2\\n' | xargs -P2 -n1 get_user 2>/dev/null; echo $?",
        '{"id": 2, "name": "user 2"}\n123\n',
    ),
    "xargs at once with odd items": ("printf 'a b\\0c' | xargs -0 -P2 -n1 shout; echo", "A B -C -\n"),
    "xargs at once with joined flags": (
        "printf '1\\0002\\0' | xargs -0n1 -P2 get_user | jq .id; echo 3 | xargs -rP2 -- get_user | jq .id", "1\n2\n3\n",
    ),
    "xargs at once with white space in lines": (
        "printf ' a b \\n\\n\\tc\\xe2\\x80\\xa8d\\x1de\\n' | xargs -P2 -I% echo '[%]'", "[a b ]\n[c\u2028d\x1de]\n",
    ),
    "xargs at once without items": (
        ": | xargs -P2 echo a; echo ' ' | xargs -P2 -n1 echo b; : | xargs -rP2 echo; : | xargs -P2 -I{} echo", "a\nb\n",
    ),
    "xargs at once with quotes in lines": ("printf '\"a  b\" c\\\\ d\\n' | xargs -P2 -I% echo '[%]'", "[a  b c d]\n"),
    "parallel with white space in lines": (
        "printf ' a \\n\\nb\\xe2\\x80\\xa8c\\n' | parallel -k echo '[{}]'", "[ a ]\n[b\u2028c]\n",
    ),
    "parallel": ("parallel -j 2 get_user {} '|' jq .id ::: 1 2 3", "1\n2\n3\n"),
    "parallel with the items of several sources": (
        "parallel -kj2 echo {2}-{1} ::: a '{2}' ::: b; parallel echo {} ::: a ::: b", "b-a\nb-{2}\na b\n",
    ),
    "parallel from stdin": ("printf '1\\n0\\n' | parallel get_user 2>/dev/null | jq .id", "1\n"),
}  # fmt: skip


@pytest.fixture
def tool(plain: Build) -> OrchestratorTool:
    built = plain(get_user=_user, shout=_shout)
    built.env["REGION"] = "eu"
    return built


@pytest.mark.promise("SCR-1", "SCR-3")
@pytest.mark.parametrize(("script", "printed"), SCRIPTS.values(), ids=SCRIPTS.keys())
async def test_a_script_prints(tool: OrchestratorTool, script: str, printed: str) -> None:
    assert (await tool.execute(script)).stdout == printed


@pytest.mark.promise("SCR-2")
async def test_a_tool_that_fails_prints_the_reason_and_has_an_exit_code(tool: OrchestratorTool) -> None:
    result = await tool.execute("get_user 0")
    assert (result.stderr, result.exit_code) == ("get_user: There is no user 0.\n", 1)


async def test_expr_with_several_operators_is_an_error(tool: OrchestratorTool) -> None:
    result = await tool.execute("expr 1 + 2; expr substr abc 2 1; expr length 'a b'; expr 1 + 2 '*' 3 || echo $?")
    assert (result.stdout, result.exit_code) == ("3\nb\n3\n2\n", 0)
    assert result.stderr == "expr: only one operator is supported; use $((…)) for arithmetic\n"


async def test_a_script_has_its_own_exit_code(tool: OrchestratorTool) -> None:
    assert (await tool.execute("echo hi; exit 7")).exit_code == 7


async def test_a_syntax_error_is_reported_with_its_line(tool: OrchestratorTool) -> None:
    result = await tool.execute("echo a\necho 'b")
    assert result.exit_code == 2
    assert "line 2" in result.stderr
    assert result.stdout == "a\n"  # like bash, which reads the script while it runs


@pytest.mark.promise("SCR-6")
async def test_calls_and_output_are_reported_as_they_happen(tool: OrchestratorTool) -> None:
    heard: list[CallEvent] = []
    result = await tool.execute("echo a; get_user 7 >/dev/null; get_user 0", on_event=heard.append)
    kinds = [type(event) for event in heard]
    assert kinds == [Log, Started, Finished, Started, Finished, Log]
    calls = [event.call for event in heard if isinstance(event, Started)]
    assert [call.args for call in calls] == [{"args": ["7"]}, {"args": ["0"]}]
    assert len({call.parent for call in calls}) == 1
    assert [(made.call.id, made.result.ok) for made in result.calls] == [(calls[0].id, True), (calls[1].id, False)]


@pytest.mark.promise("SCR-3")
@pytest.mark.parametrize(
    "script",
    [
        "meet & meet & meet & wait",
        "printf '1\\n2\\n3\\n' | xargs -P 3 -n 1 meet",
        "printf '1\\0002\\0003\\0' | xargs -0rP3 -n1 meet",
        "IFS=$'\\n\\t'; printf '1\\n2\\n3\\n' | xargs -n 1 -P 3 meet",
        "parallel meet ::: 1 2 3",
    ],
    ids=["jobs", "xargs", "joined flags of xargs", "xargs with another IFS", "parallel"],
)
async def test_tools_run_concurrently(plain: Build, script: str) -> None:
    everybody = threading.Barrier(3)

    def meet(args: list[str], stdin: str | None) -> str:
        del args, stdin
        everybody.wait(20)  # raises unless three calls run concurrently
        return "met\n"

    result = await plain(meet=meet).execute(script)
    assert (result.stdout, result.stderr) == ("met\n" * 3, "")


@pytest.mark.promise("SCR-1")
async def test_concurrent_executions_share_the_tools_and_not_their_state(tool: OrchestratorTool) -> None:
    script = "test -e f && echo leaked; echo {0} > f; x={0}; get_user {0} | jq .id; cat f; echo $x"
    results = await asyncio.gather(*(tool.execute(script.format(number)) for number in range(1, 21)))
    assert [result.stdout for result in results] == [f"{number}\n" * 3 for number in range(1, 21)]


async def test_one_instance_runs_scripts_from_several_threads(tool: OrchestratorTool) -> None:
    printed: list[str] = []

    def use() -> None:
        printed.append(asyncio.run(tool.execute("get_user 3 | jq .id")).stdout)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 30)
    assert printed == ["3\n"] * 4


async def test_one_instance_has_no_limit_of_executions(tool: OrchestratorTool) -> None:
    for number in range(1_050):  # one engine would end after 1,000
        assert (await tool.execute(f"echo {number}")).stdout == f"{number}\n"


@pytest.mark.promise("SCR-4")
async def test_help_lists_the_tools_and_describes_one(tool: OrchestratorTool) -> None:
    listed = (await tool.execute("help")).stdout
    assert listed == tool.help
    assert "get_user  Does get_user.\n" in listed
    assert "And says so." in (await tool.execute("help shout")).stdout
    unknown = await tool.execute("help nobody")
    assert (unknown.exit_code, unknown.stderr) == (127, "help: unknown tool nobody; run help to list the tools\n")


@pytest.mark.promise("SCR-4")
def test_the_system_prompt_describes_input_output_commands_and_tips(tool: OrchestratorTool) -> None:
    prompt = tool.system_prompt()
    assert [line for line in prompt.splitlines() if line.startswith("#")] == [
        "# shop", "## Input", "## Output", "## Commands", "## Tips"
    ]  # fmt: skip
    assert "- `get_user [WORD]...`\n  Does get_user.\n  And says so." in prompt
    assert "receive their words and stdin as they are" in prompt
    assert "--args" not in prompt, "only tools of the registry accept that"


@pytest.mark.promise("SCR-4")
def test_the_system_prompt_describes_flags_only_with_tools_that_have_them(shop: Runtime) -> None:
    prompt = shop.scripts.orchestrator().system_prompt()
    assert "--args '{\"limit\": 3}'" in prompt
    assert "as they are and print text" not in prompt


@pytest.mark.promise("SCR-1")
async def test_a_builder_comes_from_the_class_and_has_a_short_description(tool: OrchestratorTool) -> None:
    built = OrchestratorTool.builder("it").short_description("Do it.").tool(_Named("one")).env("A", "3").build()
    try:
        assert (built.name, built.short_description, built.description) == ("it", "Do it.", "Do it.")
        assert (await built.execute("one; echo $A")).stdout == "one3\n"
    finally:
        built.close()


@pytest.mark.promise("SCR-1")
async def test_the_schemas_describe_input_and_output(tool: OrchestratorTool) -> None:
    result = await tool.execute("echo hi")
    said = {"stdout": result.stdout, "stderr": result.stderr, "exit_code": result.exit_code}
    Draft202012Validator(tool.output_schema).validate(said)
    Draft202012Validator(tool.input_schema).validate({"commands": "echo hi"})
    assert not Draft202012Validator(tool.input_schema).is_valid({})


class _Named:
    description = "Is called so."

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, args: list[str], stdin: str | None) -> str:
        del args, stdin
        return self.name


@pytest.mark.promise("SCR-1")
def test_a_builder_has_defaults_and_rejects_invalid_names() -> None:
    built = OrchestratorToolBuilder("empty").build()
    assert (built.name, built.short_description, built.env, built.limits, built.commands) == (
        "empty",
        "",
        {},
        Limits(),
        (),
    )
    for names in (["for"], ["1 b"], ["same", "same"]):
        builder = OrchestratorToolBuilder("odd")
        for name in names:
            builder.tool(_Named(name))
        with pytest.raises(ValueError, match=r"can't be a command|Two tools"):
            builder.build()


async def test_names_that_would_collide_with_underscores_keep_their_dots(plain: Build) -> None:
    tool = plain(**{"a.b_c": lambda args, stdin: "1\n", "a_b.c": lambda args, stdin: "2\n"})
    result = await tool.execute("a.b_c; a_b.c; a_b_c")
    assert (result.stdout, result.exit_code) == ("1\n2\n", 127)


@pytest.mark.promise("SCR-5")
async def test_cancelling_ends_a_script_immediately(plain: Build) -> None:
    begun = threading.Event()
    release = threading.Event()

    def hang(args: list[str], stdin: str | None) -> str:
        begun.set()
        release.wait(60)
        return ""

    running = asyncio.create_task(plain(hang=hang).execute("hang & sleep 50 & jq -n 'def f: f; f'"))
    assert await asyncio.to_thread(begun.wait, 30)
    cancelled_at = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    release.set()
    assert time.monotonic() - cancelled_at < 0.2
