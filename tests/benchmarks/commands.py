"""Cost of the command line: CPU seconds of whole processes."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

_RUNS = 9


def _cpu_seconds(*arguments: str) -> float:
    """Run the program once; return the CPU seconds, user and system, of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "pegboard", *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> list[tuple[str, float, float, str]]:
    """Return the median CPU seconds of `tools list` with a warm index and of `--help`."""
    # without byte code on disk every import compiles, which no user's machine does twice
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        rows = []
        for figure, limit, arguments in (
            ("pegboard tools list, warm index: CPU s", 0.2, ("tools", "list")),
            ("pegboard --help: CPU s", 0.1, ("--help",)),
        ):
            _cpu_seconds(*arguments)
            rows.append((figure, statistics.median(_cpu_seconds(*arguments) for _ in range(_RUNS)), limit, ""))
    return rows
