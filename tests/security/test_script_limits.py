"""No script result is silently wrong: unsupported features are errors, and no mistake of a caller hangs it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from typing import Any  # what callers pass by mistake may be anything

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.models import CallEvent, Started
from pegboard.scripts import Limits, OrchestratorTool, ScriptResult
from pegboard.scripts.calculator import CalculationError, calculate

LONE = "\ud800"


class Tool:
    """A `CallableTool` made from a function."""

    def __init__(self, name: str, work: Callable[[list[str], str | None], Any]) -> None:
        self.name = name
        self.description = f"Do {name}."
        self._work = work

    def call(self, args: list[str], stdin: str | None) -> Any:
        return self._work(args, stdin)


def _raise(error: BaseException) -> Any:
    raise error


def _raising(error: BaseException) -> Callable[[list[str], str | None], object]:
    return lambda args, stdin: _raise(error)


def _returning(value: object) -> Callable[[list[str], str | None], object]:
    return lambda args, stdin: value


@pytest.fixture
def tool() -> Iterator[OrchestratorTool]:
    """Yield an orchestrator with tools that misbehave."""
    builder = OrchestratorTool.builder("it").limits(Limits(seconds=30))
    builder.tool(Tool("big", lambda args, stdin: "x" * int(args[0])))
    errors: list[BaseException] = [
        SystemExit(3),
        KeyboardInterrupt(),
        StopIteration(),
        asyncio.CancelledError(),
        GeneratorExit(),
    ]
    for error in errors:
        builder.tool(Tool(f"raises_{type(error).__name__}", _raising(error)))
    builder.tool(Tool("surrogate", lambda args, stdin: f"a{LONE}b"))
    builder.tool(Tool("surrogate_error", lambda args, stdin: _raise(ValueError(f"a{LONE}b"))))
    for value in (None, 3, b"text", ["text"], object()):
        builder.tool(Tool(f"returns_{type(value).__name__}", _returning(value)))
    built = builder.build()
    yield built
    built.close()


async def _run(tool: OrchestratorTool, script: str) -> ScriptResult:
    async with asyncio.timeout(25):
        return await tool.execute(script)


WHOLE = {
    "seq": ("seq 1 300000 | tail -1", "300000\n"),
    "seq without end": ("seq 1 99999999999 | head -n 2", "1\n2\n"),
    "seq of decimals": ("seq 0.1 0.1 0.3", "0.1\n0.2\n0.3\n"),
    "seq of large numbers": ("seq 9007199254740992 9007199254740993", "9007199254740992\n9007199254740993\n"),
    "seq in a loop": ("for i in $(seq -w 8 10); do echo -n $i,; done; seq -s / 3", "08,09,10,1/2/3\n"),
    "seq in a long loop": (
        "for id in $(seq 1000000000000 1000000079999); do last=$id; done; echo $last", "1000000079999\n"),
    "seq in a substitution": ("x=$(seq 300000); echo ${#x}", "1988894\n"),
    "seq in a job": ("(seq 300000 & wait) | tail -n 1; cat <(seq 300000) | tail -n 1", "300000\n300000\n"),
    "seq by xargs": ("x=$(echo 300000 | xargs seq); echo ${#x}", "1988894\n"),
    "seq that is read in part": ("seq 12000000 | head -n 1", "1\n"),
    "yes": ("yes | head -c 5000000 | wc -c", "5000000\n"),
    "yes in a substitution": ("x=$(yes no | head -n 2); echo $x", "no no\n"),
    "zeros": ("head -c 3000000 /dev/zero | wc -c", "3000000\n"),
    "random bytes": ("head -c 3000000 /dev/urandom | wc -c", "3000000\n"),
    "random bytes with another IFS": ("IFS=$'\\n\\t'; head -c 3000000 /dev/urandom | wc -c", "3000000\n"),
    "random letters": ("tr -dc a-z < /dev/urandom | head -c 9 | wc -c", "9\n"),
    "a random number": ("od -An -N4 -tu4 /dev/urandom | wc -w; xxd -p -l 8 /dev/urandom | wc -c", "1\n17\n"),
    "a device in a comment": ("  # as random as /dev/urandom; see also /dev/random\necho on", "on\n"),
    "64 jobs": ("for i in {1..60}; do sleep 0.01 & done; wait; echo on", "on\n"),
    "an EXIT trap": ("trap 'echo $?; exit 0' EXIT; (exit 4)", "4\n"),
    "an EXIT trap that fails with set -e": ("set -e; trap 'false; echo no' EXIT; echo a", "a\n"),
    "an EXIT trap that is unset": ("trap 'echo no' EXIT; trap - EXIT; (trap 'echo sub' EXIT); echo a", "sub\na\n"),
    "exit in a function": ("trap 'echo end' EXIT; f() { echo f; exit; }; f", "f\nend\n"),
    "bc": (
        "echo '2^70; scale=3; 10/3; 123456789*987654321' | bc", "1180591620717411303424\n3.333\n121932631112635269\n"),
    "decimals of a product": ("echo '2*1.55; 1.55*2; 1.5*1.25' | bc", "3.10\n3.10\n1.87\n"),
    "a substitution": ("x=$(big 3000000); echo ${#x}", "3000000\n"),
    "an array": ("a=($(seq 50000)); echo ${#a[@]} ${a[49999]}", "50000 50000\n"),
    "a here-document": ("x=$(big 3000000); wc -c <<< $x; cat <<E | wc -c\n$x\nE", "3000001\n3000001\n"),
    "a file": ("big 9000000 > f; wc -c < f", "9000000\n"),
    "jobs in a substitution": (
        "x=$(seq 3 | xargs -P 2 -I{} big 900000); echo ${#x}; x=$(parallel big ::: 900000 900000); echo ${#x}",
        "2700000\n1800000\n"),
    "a pipe": ("big 9000000 | tr x y | cat | wc -c", "9000000\n"),
}  # fmt: skip


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(("script", "printed"), WHOLE.values(), ids=WHOLE.keys())
async def test_a_result_below_the_limit_is_complete(tool: OrchestratorTool, script: str, printed: str) -> None:
    result = await _run(tool, script)
    assert (result.stdout, result.stderr, result.exit_code) == (printed, "", 0)


INCOMPLETE = {
    "seq": ("seq 1 1000000000 | tail -n 1", "seq printed more than 64 MiB"),
    "seq by xargs": ("echo 12000000 | xargs seq | tail -n 1", "seq printed more than 64 MiB"),
    "seq in a substitution": ("x=$(seq 12000000); echo ${#x}", "seq printed more than 64 MiB"),
    "yes": ("yes | sed 3q", "yes printed more than 64 MiB"),
    "yes in silence": ("yes 2>/dev/null | head -c 50000000 2>/dev/null | wc -c", "32 MB"),
    "zeros": ("head -c 300000000 /dev/zero | wc -c", "head printed more than 64 MiB"),
    "a device in silence": ("wc -c < /dev/zero 2>/dev/null", "/dev/zero ends too early"),
    "random bytes": ("cat /dev/urandom | head -c 100000 | wc -c", "/dev/urandom ends too early"),
    "many random bytes": ("od -An -v -N 100000 -tx1 /dev/urandom | wc -w", "/dev/urandom ends too early"),
    "stdout": ("big 900000; big 900000; exit 3", "stdout was truncated after 1,000,000 bytes"),
    "stderr": ("big 1500000 >&2", "stderr was truncated after 1,000,000 bytes"),
    "jobs": ("for i in {1..100}; do sleep 0.2 & done; wait; echo on", "more than 64 ran at a time"),
    "silent jobs": ("for i in {1..100}; do sleep 0.2 2>/dev/null & done; wait; echo on", "more than 64 ran at a time"),
    "a job's loop": ("while :; do :; done & wait; echo on", "a job in the background reached a limit"),
    "a job's variable": ("{ x=a; while :; do x=$x$x; done; } & wait; echo on", "background reached a limit"),
    "a trap's loop": ("trap 'while :; do :; done' EXIT; echo a", "EXIT trap"),
    "a trap's loop with set -e": ("set -euo pipefail\ntrap 'while :; do :; done' EXIT\necho a", "EXIT trap"),
    "a trap's loop with another IFS": ("IFS=$'\\n\\t'; trap 'while :; do :; done' EXIT INT; echo a", "EXIT trap"),
    "a trap's variable": ("trap 'x=a; for i in {1..99}; do x=$x$x; done' 0; echo a", "10 MB"),
    "a trap's function": ("f() { f; }; trap f EXIT; echo a", "EXIT trap"),
    "a trap of DEBUG": ("trap 'while :; do :; done' DEBUG; echo a", "100,000 commands"),
    "a loop of sed": ("echo a | sed ':a;ba'; echo on", "a loop of sed"),
    "jq": ("big 1100000 | jq -R . | wc -c", "stopped: jq: output limit exceeded (1048576 bytes)"),
    "jq that collects": ("jq -n '[range(1e9)]' | wc -l", "jq: value size limit (32000000 bytes) exceeded"),
    "awk": ("yes | head -c 12000000 | awk '{ print $0 $0 }' | wc -l", "awk: output limit exceeded (max 10MB)"),
    "a loop of awk": ("awk 'BEGIN { while (1) n++ }' | wc -l", "awk: loop iteration limit (100000) exceeded"),
    "braces": ("echo {1..20000} 2>/dev/null | wc -w", "{1..20000} is not expanded"),
    "many braces": ("echo {a..z}{a..z}{a..z}{a..z} | wc -w", "produces at most 50,000 words"),
    "a variable": ("x=a; while :; do x=$x$x; done", "10 MB"),
    "an array": ("a=($(seq 99999)); a+=(1 2 3); echo ${#a[@]}", "arrays would have more than 100,000"),
    "an array of arrays": ("a=($(seq 60000)); b=(\"${a[@]}\" \"${a[@]}\"); echo ${#b[@]}", "arrays would have more"),
    "an array from a file": ("mapfile -t a < <(seq 200000); echo ${#a[@]}", "array entry limit"),
    "a pipe": ("for i in 1 2 3 4; do big 9000000; done | wc -c", "32 MB"),
    "functions": ("f() { f; }; x=$(f 2>/dev/null); echo on", "16 levels deep"),
}  # fmt: skip


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize(("script", "reason"), INCOMPLETE.values(), ids=INCOMPLETE.keys())
async def test_a_truncated_result_is_a_failure_with_the_reason(
    tool: OrchestratorTool, script: str, reason: str
) -> None:
    result = await _run(tool, f"echo before\n{script}")
    assert result.exit_code == 125
    assert result.stdout.startswith("before\n")
    assert result.stderr.splitlines()[-1].startswith(("pegboard: the script was stopped: ", "pegboard: the result is"))
    assert reason in result.stderr.splitlines()[-1]


OVERFLOWS = [
    "2^100000",
    "9^9^9",
    "10^1000000000",
    "e(100000)",
    "scale=100000",
    "1/0",
    "obase=16; 255",
    "if (1) 2",
    "1 +",
]


@pytest.mark.promise("SCR-5")
@pytest.mark.parametrize("program", OVERFLOWS)
async def test_bc_fails_rather_than_return_a_wrong_number(tool: OrchestratorTool, program: str) -> None:
    result = await _run(tool, f"set -o pipefail; echo '{program}' | bc -l")
    assert (result.stdout, result.exit_code) == ("", 1)
    assert result.stderr.startswith("bc: ")


def _bc(program: str) -> str:
    env = {"BC_LINE_LENGTH": "0"}
    ran = subprocess.run(["bc"], input=program + "\n", capture_output=True, text=True, env=env, timeout=20, check=False)
    return "error" if ran.stderr else ran.stdout.strip()


_NUMBERS = st.one_of(st.integers(0, 10**12).map(str), st.decimals(0, 1000, places=3).map(str))
_PROGRAMS = st.recursive(
    _NUMBERS,
    lambda inner: st.one_of(
        st.builds("{}{}{}".format, inner, st.sampled_from("+-*/%"), inner),
        st.builds("({})".format, inner),
        st.builds("(-{})".format, _NUMBERS),
        st.builds("({})^{}".format, inner, st.integers(-2, 4)),
    ),
    max_leaves=6,
)


@settings(max_examples=40)
@given(scale=st.sampled_from([0, 2, 20]), program=_PROGRAMS)
def test_bc_calculates_like_the_real_one(scale: int, program: str) -> None:
    text = f"scale={scale}; {program}"
    try:
        ours = "\n".join(calculate(text, library=False))
    except CalculationError:
        ours = "error"
    try:
        assert ours == _bc(text)
    except FileNotFoundError:
        pytest.skip("this machine has no bc")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises_SystemExit", "The tool raised SystemExit: 3."),
        ("raises_KeyboardInterrupt", "The tool raised KeyboardInterrupt."),
        ("raises_StopIteration", "The tool raised StopIteration."),
        ("raises_CancelledError", "The tool raised CancelledError."),
        ("raises_GeneratorExit", "The tool raised GeneratorExit."),
        ("returns_NoneType", "The tool returned NoneType instead of str. Return the text to print."),
        ("returns_int", "The tool returned int instead of str. Return the text to print."),
        ("returns_bytes", "The tool returned bytes instead of str. Return the text to print."),
        ("returns_list", "The tool returned list instead of str. Return the text to print."),
        ("returns_object", "The tool returned object instead of str. Return the text to print."),
        ("surrogate_error", "a?b"),
    ],
)
async def test_a_tool_that_breaks_its_contract_fails_alone(tool: OrchestratorTool, name: str, reason: str) -> None:
    result = await _run(tool, f"{name} || echo code $?")
    assert (result.stdout, result.stderr, result.exit_code) == ("code 1\n", f"{name}: {reason}\n", 0)


async def test_half_a_surrogate_pair_that_a_tool_returns_is_replaced(tool: OrchestratorTool) -> None:
    assert (await _run(tool, "surrogate")).stdout == "a?b"


@pytest.mark.parametrize("script", [5, None, b"echo", ["echo"]])
async def test_a_script_that_is_not_text_is_an_error(tool: OrchestratorTool, script: Any) -> None:
    with pytest.raises(TypeError, match="The script must be a str, not "):
        await _run(tool, script)
    with pytest.raises(TypeError, match="The script must be a str, not "):
        tool.analyze(script)


@pytest.mark.parametrize(("script", "character"), [(f"echo {LONE}", 6), (f"# {LONE}", 3), (LONE, 1)])
async def test_a_script_that_has_no_encoding_is_an_error(tool: OrchestratorTool, script: str, character: int) -> None:
    with pytest.raises(ValueError, match=f"can't be encoded as UTF-8: character {character} is half of"):
        await _run(tool, script)


@pytest.mark.parametrize(
    "build",
    [
        lambda builder: builder.env("A", 3),
        lambda builder: builder.env(3, "a"),
        lambda builder: builder.env("A", None),
        lambda builder: builder.env("A=B", "a"),
        lambda builder: builder.env("", "a"),
        lambda builder: builder.env("A", LONE),
        lambda builder: builder.env("A", "a\0b"),
        lambda builder: builder.limits(5),
        lambda builder: builder.short_description(5),
        lambda builder: builder.tool(5),
        lambda builder: builder.tool(lambda args, stdin: ""),
        lambda builder: type(builder)(5),
    ],
)
def test_an_argument_that_a_builder_can_not_use_is_an_immediate_error(build: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"must be|not a valid name|contains a null|can't be encoded"):
        build(OrchestratorTool.builder("it"))


@pytest.mark.parametrize("kind", [object, Started])
async def test_a_callback_that_raises_ends_the_script_with_its_error(tool: OrchestratorTool, kind: type) -> None:
    def raises(event: CallEvent) -> None:
        if isinstance(event, kind):
            _raise(LookupError("the callback broke"))

    async with asyncio.timeout(10):
        with pytest.raises(LookupError, match="the callback broke"):
            await tool.execute("big 3; sleep 20; big 4", on_event=raises)
    assert (await _run(tool, "echo next")).stdout == "next\n"
