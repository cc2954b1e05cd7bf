"""Health as the interface and the commands see it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from pegboard.runtime import Runtime

PACK = '''
from pegboard.sdk import aliases, requires_cli, requires_lib, requires_secret

requires_secret("NEEDED_KEY")

@aliases("doWork")
@requires_cli("needed-here")
def work() -> str:
    """Needs a program."""
    return "done"

@requires_lib("json")
def rest() -> str:
    """Needs a library."""
    return "done"
'''


@pytest.fixture
def runtime(
    write_pack: Callable[[str, str], Path],
    open_runtime: Callable[..., Runtime],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Runtime:
    """Return a runtime with tools that have requirements; no secret is set, and there is no keyring."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    monkeypatch.chdir(tmp_path)
    return open_runtime(write_pack("needy.py", PACK), tool_allow="needy.*")


async def _checked(runtime: Runtime, tool: str | None = None, *, again: bool = False) -> set[tuple[str, str, str]]:
    async with aclosing(runtime.health.check(tool, again=again)) as rows:
        return {(row.tool, row.name, row.status) async for row in rows}


@pytest.mark.promise("SDK-9")
async def test_all_tools_one_tool_by_any_name_or_one_pack_can_be_checked(runtime: Runtime) -> None:
    work = {("needy.work", "NEEDED_KEY", "missing"), ("needy.work", "needed-here", "missing")}
    rest = {("needy.rest", "NEEDED_KEY", "missing"), ("needy.rest", "json", "ok")}
    assert await _checked(runtime, "doWork") == work
    assert await _checked(runtime, "needy.rest") == rest
    assert await _checked(runtime, "needy") == await _checked(runtime) == work | rest
    assert await _checked(runtime, "nowhere") == set()
    assert [row.tool for row in runtime.health.rows("needy.work")] == ["needy.work"] * 2


@pytest.mark.promise("SDK-9")
async def test_one_requirement_can_be_checked_again_for_every_tool_that_has_it(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _checked(runtime)
    monkeypatch.setenv("NEEDED_KEY", "hidden value")
    key = next(row.requirement for row in runtime.health.rows() if row.kind == "secret")
    async with aclosing(runtime.health.recheck([key])) as rows:
        assert sorted([(row.tool, row.name, row.status) async for row in rows]) == [
            ("needy.rest", "NEEDED_KEY", "ok"),
            ("needy.work", "NEEDED_KEY", "ok"),
        ]
    states = {spec.name: runtime.health.state(spec) for spec in runtime.tools.named("needy")}
    assert states == {"needy.rest": "ready", "needy.work": "blocked"}


async def test_a_missing_requirement_is_a_problem_with_a_fix(runtime: Runtime) -> None:
    await _checked(runtime)
    problems = {row.name: row.problem for row in runtime.health.rows("needy.work")}
    assert str(problems["needed-here"]) == (
        "`needed-here` is not on the PATH. How to get it: Install needed-here and add it to the PATH."
    )
    assert [row.problem for row in runtime.health.rows("needy.rest") if row.kind == "lib"] == [None]


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize("source", ["environment", ".env"])
async def test_the_origin_of_a_secret_is_shown_and_never_its_value(
    runtime: Runtime, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Callable[[Path], None]
) -> None:
    assert runtime.health.rows() == ()
    if source == "environment":
        monkeypatch.setenv("NEEDED_KEY", "hidden value")
    else:
        (tmp_path / ".env").write_text("NEEDED_KEY=hidden value\n")
        trust(tmp_path)
    await _checked(runtime)
    [row] = [row for row in runtime.health.rows("needy.rest") if row.kind == "secret"]
    assert (row.status, row.path, row.error) == ("ok", str(tmp_path / ".env") if source == ".env" else source, None)
    assert "hidden" not in str(runtime.health.rows())


async def test_a_secret_with_an_unset_variable_is_missing_and_reported(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDED_KEY", "${REAL_KEY}")
    await _checked(runtime)
    [row] = [row for row in runtime.health.rows("needy.rest") if row.kind == "secret"]
    assert row.status == "missing"
    assert row.error is not None
    assert "contains an unexpanded variable" in row.error


async def test_a_tool_is_ready_until_a_check_finds_it_blocked(runtime: Runtime) -> None:
    spec = runtime.tools.get("needy.work")
    assert spec is not None
    assert runtime.health.state(spec) == "ready"
    await _checked(runtime)
    assert runtime.health.state(spec) == "blocked"
    assert {row.name for row in runtime.health.rows() if row.blocks} == {"NEEDED_KEY", "needed-here"}


async def test_version_commands_run_without_the_secrets_of_the_environment(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    file = tmp_path / "bin" / "needed-here"
    file.write_text("#!/bin/sh\necho needed-here 1.0\nenv >" + str(tmp_path / "seen") + "\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("NEEDED_KEY", "hidden value")
    assert ("needy.work", "needed-here", "ok") in await _checked(runtime)
    assert "hidden" not in (tmp_path / "seen").read_text()
