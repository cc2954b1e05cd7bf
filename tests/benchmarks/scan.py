"""Cost of discovery: 1,000 files of 10 documented, typed tools, compared with `ast.parse` alone."""

from __future__ import annotations

import ast
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

FILES = 1_000
TOOLS = 10

_HEAD = '''"""Tools for {topic}."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field


class Order(StrEnum):
    """How to sort."""

    NAME = "name"
    SIZE = "size"
    DATE = "date"


@dataclass
class Window:
    """A part of the results."""

    start: int = 0
    rows: int = 10
    fields: list[str] = field(default_factory=list)


class Filter(BaseModel):
    """What to leave out."""

    pattern: str = Field(default="*", description="A glob.")
    newest: date | None = None
'''

_TOOL = '''

def {name}_{number}(
    *,
    query: str,
    path: Path = Path("."),
    limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    mode: Literal["fast", "full"] = "fast",
    order: Order = Order.NAME,
    tags: list[str] | None = None,
    window: Window | None = None,
    leave_out: Filter | None = None,
    weights: dict[str, float] | None = None,
) -> list[dict[str, str]]:
    """Find {topic} that fit a query, {number}.

    The words of the query may stand in any order. A word in quotes must stand as it is written,
    and one that begins with a minus must not be there at all.

    Args:
        query: What to look for.
        path: Where to look; the working directory unless given.
        limit: The most hits to give.
        mode: Whether to read the index only or every file.
        order: What to sort by.
        tags: Only what has all of these.
        window: Which part of the hits to give, for paging
            through many of them.
        leave_out: What to leave out.
        weights: How much each field counts.

    Returns:
        One entry per hit, the best first.

    Raises:
        ValueError: The query is empty.
    """
    if not query:
        raise ValueError("the query is empty")
    hits: list[dict[str, str]] = []
    words = [word.lower() for word in query.split() if word]
    for candidate in sorted(path.glob("**/*")):
        if tags and not all(tag in candidate.parts for tag in tags):
            continue
        text = candidate.name.lower()
        score = sum((weights or {{}}).get(word, 1.0) for word in words if word in text)
        if score > 0:
            hits.append({{"name": candidate.name, "score": f"{{score:.2f}}", "mode": mode}})
        if len(hits) >= limit:
            break
    return hits
'''

_SCAN = """
import json, sys, time
from pathlib import Path
import pegboard.discovery.scanner
from pegboard.discovery import scan
start = time.perf_counter()
specs, problems = scan([sys.argv[1]], index=Path(sys.argv[2]))
print(json.dumps([time.perf_counter() - start, len(specs), len(problems)]))
"""


def write_packs(folder: Path, files: int = FILES) -> None:
    """Write the packs to read, 10 tools each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        words = {"name": f"find{number}", "topic": f"things of kind {number}"}
        tools = "".join(_TOOL.format(number=tool, **words) for tool in range(TOOLS))
        (folder / f"pack_{number:04}.py").write_text(_HEAD.format(**words) + tools)


def _scan(packs: Path, index: Path) -> float:
    """Scan in a separate process; return the seconds of the scan itself."""
    ran = subprocess.run([sys.executable, "-c", _SCAN, packs, index], check=True, capture_output=True, text=True)
    seconds, specs, problems = json.loads(ran.stdout)
    assert (specs, problems) == (FILES * TOOLS, 0), (specs, problems)
    return float(seconds)


def _parse(packs: Path) -> float:
    gc.collect()
    sources = [path.read_bytes() for path in sorted(packs.iterdir())]
    start = time.perf_counter()
    for source in sources:
        ast.parse(source)
    return time.perf_counter() - start


def _best(run: Callable[[], float], times: int = 3) -> float:
    return min(run() for _ in range(times))


def measure() -> list[tuple[str, float, float, str]]:
    """Return rows of name, measured value, limit and comment."""
    with tempfile.TemporaryDirectory() as scratch:
        packs, index = Path(scratch, "packs"), Path(scratch, "index")
        write_packs(packs)
        parse = _best(lambda: _parse(packs))
        # Files that were written a moment ago are read again to be sure; real ones have lain for a while.
        while time.time() - max(path.stat().st_mtime for path in packs.iterdir()) < 2.5:
            time.sleep(0.1)
        cold = _best(lambda: _cold(packs, index))
        warm = _best(lambda: _scan(packs, index))
        changed = _best(lambda: _one_changed(packs, index))
    return [
        ("scan, cold", cold / parse, 1.6, f"× ast.parse alone ({cold:.2f} s against {parse:.2f} s)"),
        ("scan, warm, new process", warm / cold, 0.08, f"× the cold scan ({warm * 1000:.0f} ms)"),
        (
            "scan, one file changed",
            (changed - warm) / cold,
            10 / FILES,
            f"× the cold scan, beyond the warm one ({(changed - warm) * 1000:.1f} ms)",
        ),
    ]


def _cold(packs: Path, index: Path) -> float:
    for file in index.glob("*"):
        file.unlink()
    return _scan(packs, index)


def _one_changed(packs: Path, index: Path) -> float:
    file = packs / "pack_0500.py"
    file.write_text(file.read_text() + "\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    return _scan(packs, index)


def main() -> None:
    """Print the rows."""
    for name, measured, limit, unit in measure():
        print(f"{name:28} {measured:7.3f}  (limit {limit})  {unit}")


if __name__ == "__main__":
    main()
