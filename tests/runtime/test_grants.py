"""Access of packs to secrets and configuration: verified with real packs in real processes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any  # Results may be any JSON value.

import pytest

from pegboard.models import Problem, ToolCall
from pegboard.runtime import Runtime

PACKS = Path(__file__).parents[1] / "packs"
CONFIG = """
[packs.keeper]
unit = "dozen"
since = 2024-05-01
secrets = ["LISTED_KEY"]

[packs.asking]
secrets = "OTHER_KEY, LISTED_KEY"
"""
ASKING = '''
from pegboard.sdk import get_secret

def ask(*, name: str) -> int | None:
    """Asks for a secret whose name only the running program knows, and tells how long it is."""
    secret = get_secret(name)
    return None if secret is None else len(secret)
'''


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a secret of the pack `keeper` in the environment and return it."""
    value = f"sk_live_{secrets.token_hex(16)}"
    monkeypatch.setenv("KEEPER_KEY", value)
    return value


@pytest.fixture
def open_packs(
    home: Path,
    write_pack: Callable[[str, str], Path],
    open_runtime: Callable[..., Runtime],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Runtime]:
    """Return a function that opens a runtime with the packs `keeper`, `spy` and `asking`, and a number of workers."""

    def build(workers: int = 1, config: str = CONFIG) -> Runtime:
        monkeypatch.setenv("PEGBOARD_TOOLS__WORKERS", str(workers))
        (home / "config.toml").write_text(config)
        for name in ("keeper.py", "spy.py"):
            write_pack(name, (PACKS / name).read_text())
        return open_runtime(write_pack("asking.py", ASKING))

    return build


def _refusals(runtime: Runtime) -> list[Problem]:
    """Return the problems about secrets that packs weren't granted."""
    return [problem for problem in runtime.problems() if "was not granted" in problem.message]


async def _data(runtime: Runtime, tool: str, **args: object) -> Any:
    call = ToolCall.model_validate({"name": tool, "args": args, "source": "form", "timeout": 60})
    _, result = await runtime.result(call)
    assert result.ok, result.error
    return result.data


@pytest.mark.promise("SDK-10", "CFG-1")
async def test_a_pack_sees_its_own_config_and_no_other(open_packs: Callable[..., Runtime]) -> None:
    runtime = open_packs()
    assert await _data(runtime, "keeper.both") == ["dozen", "2024-05-01", "none", 7]
    assert await _data(runtime, "spy.config") == [None, {}]


@pytest.mark.promise("SDK-10", "STO-2")
async def test_a_pack_gets_the_secret_that_its_file_names(open_packs: Callable[..., Runtime], secret: str) -> None:
    seen = await _data(open_packs(), "keeper.look")
    assert (seen["length"], seen["end"], seen["config"]) == (len(secret), secret[-4:], "dozen")


@pytest.mark.promise("SDK-1", "SDK-10")
async def test_a_pack_that_is_called_by_another_has_its_own_secrets_and_not_the_callers(
    open_packs: Callable[..., Runtime], secret: str
) -> None:
    seen = await _data(open_packs(), "keeper.ask")
    assert seen["mine"]["length"] == len(secret)
    assert seen["theirs"]["found"] == []


@pytest.mark.promise("SDK-10", "STO-2")
@pytest.mark.parametrize("workers", [1, 3])
async def test_no_pack_finds_anothers_secret_wherever_it_looks(
    open_packs: Callable[..., Runtime], secret: str, workers: int
) -> None:
    runtime = open_packs(workers)
    before = await _data(runtime, "spy.look")
    kept = await _data(runtime, "keeper.look")
    after = await _data(runtime, "spy.look")
    again = await _data(runtime, "keeper.look")
    assert kept["end"] == again["end"] == secret[-4:]
    assert [before["found"], after["found"]] == [[], []]
    assert kept["pid"] not in {before["pid"], after["pid"]}


@pytest.mark.promise("SDK-10")
async def test_a_spy_that_was_granted_the_secret_finds_it_wherever_it_looks(
    open_packs: Callable[..., Runtime], write_pack: Callable[[str, str], Path], secret: str
) -> None:
    # what finds nothing elsewhere does find it where it is: else the test above would say nothing
    spy = (
        (PACKS / "spy.py")
        .read_text()
        .replace('return "KEEPER" + "_KEY"', 'get_secret("KEEPER_KEY"); return "KEEPER_KEY"')
    )
    runtime = open_packs()
    write_pack("spy.py", spy)
    found = (await _data(runtime, "spy.look"))["found"]
    assert {"sdk", "host's own", "objects", "memory"} <= set(found)


@pytest.mark.promise("SDK-10")
async def test_a_process_that_reads_from_a_worker_does_not_get_the_secret_of_another_pack(
    open_packs: Callable[..., Runtime], secret: str, tmp_path: Path
) -> None:
    runtime = open_packs()
    heard = tmp_path / "heard"
    listening = await _data(runtime, "spy.lie_in_wait", file=str(heard))
    seen = [await _data(runtime, "keeper.look") for _ in range(3)]
    assert {each["end"] for each in seen} == {secret[-4:]}
    assert listening not in {each["pid"] for each in seen}
    assert secret.encode() not in heard.read_bytes()


@pytest.mark.promise("SDK-10")
async def test_a_worker_that_knows_a_secret_is_used_again_by_its_pack(
    open_packs: Callable[..., Runtime], secret: str
) -> None:
    runtime = open_packs(2)
    pids = {(await _data(runtime, "keeper.look"))["pid"] for _ in range(5)}
    others = {(await _data(runtime, "spy.look"))["pid"] for _ in range(2)}
    assert len(pids) == 1
    assert pids.isdisjoint(others)


@pytest.mark.promise("SDK-10", "EXE-5")
async def test_packs_that_may_not_share_a_worker_take_turns(open_packs: Callable[..., Runtime], secret: str) -> None:
    runtime = open_packs()
    calls = [_data(runtime, tool) for tool in ["keeper.look", "spy.config", "keeper.both"] * 4]
    answers = await asyncio.gather(*calls)
    assert [answer["end"] for answer in answers[::3]] == [secret[-4:]] * 4
    assert answers[1::3] == [[None, {}]] * 4


@pytest.mark.promise("SDK-10", "STO-2")
async def test_a_secret_that_was_not_granted_reads_as_missing_and_is_a_problem_with_a_fix(
    open_packs: Callable[..., Runtime], secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "other value")
    runtime = open_packs()
    assert await _data(runtime, "asking.ask", name="KEEPER_KEY") is None
    assert await _data(runtime, "asking.ask", name="OTHER_KEY") == len("other value")
    [problem] = _refusals(runtime)
    assert "asking was not granted the secret KEEPER_KEY" in problem.message
    assert '`secrets = ["KEEPER_KEY"]` under `[packs.asking]`' in problem.fix
    assert secret not in str(problem)


@pytest.mark.promise("SDK-10")
async def test_the_problem_goes_when_the_file_names_the_secret(
    open_packs: Callable[..., Runtime], write_pack: Callable[[str, str], Path], secret: str
) -> None:
    runtime = open_packs()
    assert await _data(runtime, "asking.ask", name="KEEPER_KEY") is None
    write_pack("asking.py", ASKING + '\nget_secret("KEEPER_KEY")\n')
    assert await _data(runtime, "asking.ask", name="KEEPER_KEY") == len(secret)
    assert _refusals(runtime) == []


@pytest.mark.promise("SDK-10")
async def test_a_secret_that_is_not_set_reads_as_missing_and_is_not_refused(open_packs: Callable[..., Runtime]) -> None:
    runtime = open_packs()
    assert await _data(runtime, "keeper.missing") is None
    assert [problem for problem in runtime.problems() if problem.pack == "keeper"] == []


@pytest.mark.promise("STO-2")
async def test_a_changed_secret_is_used_by_the_next_call(
    open_packs: Callable[..., Runtime], secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = open_packs()
    assert (await _data(runtime, "keeper.look"))["end"] == secret[-4:]
    monkeypatch.setenv("KEEPER_KEY", "sk_live_later")
    assert (await _data(runtime, "keeper.look"))["end"] == "ater"
