"""The SDK in a plain script or a test, without Pegboard."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from pegboard.sdk import ToolFailed, aliases, hints, log, progress
from pegboard.sdk.host import Host, install


@pytest.mark.promise("SDK-11", "SDK-14")
def test_decorators_leave_the_function_as_it_is() -> None:
    def double(*, number: int) -> int:
        return number * 2

    noted = hints(read_only=True, timeout=3)(aliases("twice", number="n")(double))
    assert noted is double
    assert noted(number=2) == 4


@pytest.mark.promise("SDK-11")
def test_an_unknown_hint_is_an_immediate_error() -> None:
    with pytest.raises(TypeError):
        hints(readonly=True)  # type: ignore[call-arg] # that is the mistake


@pytest.mark.promise("SDK-12")
def test_a_plain_script_logs_to_standard_error_and_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    log("halfway")
    progress(1, 2, "half")
    assert capsys.readouterr() == ("", "halfway\n")


@pytest.mark.promise("SDK-12")
def test_the_installed_host_receives_progress_and_messages() -> None:
    heard: list[tuple[object, ...]] = []

    class Listening(Host):
        def progress(self, done: float, total: float | None, message: str) -> None:
            heard.append((done, total, message))

        def log(self, message: str) -> None:
            heard.append((message,))

    install(Listening())
    try:
        progress(1)
        progress(2, 3, "two")
        log("line")
    finally:
        install(Host())
    assert heard == [(1, None, ""), (2, 3, "two"), ("line",)]


@pytest.mark.promise("SDK-13")
def test_tool_failed_keeps_message_code_and_data() -> None:
    failed = pickle.loads(pickle.dumps(ToolFailed("no such file", "not_found", {"path": "a"})))
    assert (str(failed), failed.code, failed.data) == ("no such file", "not_found", {"path": "a"})


def test_the_sdk_imports_no_slow_modules() -> None:
    script = "import sys; old = set(sys.modules); import pegboard.sdk; print(*sorted(set(sys.modules) - old))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert {name for name in done.stdout.split() if not name.startswith("pegboard")} <= {"__future__"}
