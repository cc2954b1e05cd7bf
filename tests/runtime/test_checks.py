"""Checks and schemas that a runtime compares."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import storage
from pegboard.checks import Checks
from pegboard.checks.model import Check, Expectations
from pegboard.checks.run import CheckRunner
from pegboard.checks.schemas import SeenSchemas
from pegboard.runtime import Runtime
from pegboard.schema.validation import Validator

TOOL = '''
def tool{}(*, x: int) -> int:
    """Return a number."""
    return x
'''


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path]) -> Runtime:
    folder = write_pack("shop.py", "".join(map(TOOL.format, range(3))))
    runtime = Runtime.from_environment(packs=[folder])
    runtime.tools.scan()
    return runtime


@pytest.mark.promise("BAT-3")
async def test_the_program_stays_responsive_while_a_result_is_validated(
    runtime: Runtime, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated, responds = asyncio.Event(), threading.Event()
    faults, loop = Validator.faults, asyncio.get_running_loop()
    answers = []

    def faults_after_an_answer(self: Validator, *arguments: object) -> object:
        if self.schema == {"type": "string"}:
            loop.call_soon_threadsafe(validated.set)
            answers.append(responds.wait(20))
        return faults(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Validator, "faults", faults_after_an_answer)
    expect = Expectations.model_validate({"schema": {"type": "string"}})
    folder = home / "data" / "checks"
    check = Check(name="one", tool="shop.tool0", arguments={"x": 1}, expect=expect, file=str(folder / "one.toml"))

    async def answer() -> None:
        async with asyncio.timeout(30):
            await validated.wait()
        responds.set()

    answering = asyncio.create_task(answer())
    async with runtime:
        [report] = [one async for one in CheckRunner(runtime, Checks(runtime.paths)).run([check])]
    await answering
    assert (report.status, answers) == ("failed", [True])


@pytest.mark.promise("BAT-4")
def test_schemas_of_the_tools_of_a_pack_are_accepted_with_one_write(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = SeenSchemas(tmp_path / "schemas")
    specs = runtime.tools.named("shop")
    seen.note(specs)
    written = []
    write = storage.write

    def note_write(file: Path, data: bytes, **options: bool) -> None:
        written.append(file)
        write(file, data, **options)

    monkeypatch.setattr(storage, "write", note_write)
    changed = [spec.model_copy(update={"input_schema": {"type": "object", "required": ["y"]}}) for spec in specs]
    seen.note(changed)
    seen.accept(changed)
    assert (len(specs), len(written)) == (3, 2)
    for spec in changed:
        known = seen.of(spec)
        assert known is not None
        assert known.baseline == seen.digest(spec)
