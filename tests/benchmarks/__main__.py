"""Print every figure with its limit: `python tests/benchmarks [NAME ...]`.

Each module here has a function `measure()`, which returns rows of (figure, measured value, limit, comment). A figure
passes if its value doesn't exceed its limit. Ratios compare values of the same run, because machines are noisy.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

Row = tuple[str, float, float, str]


def main(names: list[str]) -> int:
    """Measure the named modules, or all; return 1 if a figure exceeds its limit, 2 for an unknown name."""
    here = Path(__file__).parent
    known = sorted(file.stem for file in here.glob("[!_]*.py"))
    if unknown := sorted({*names} - {*known}):
        print(f"Unknown: {', '.join(unknown)}. The benchmarks are {', '.join(known)}.", file=sys.stderr)
        return 2
    os.environ["COLORTERM"] = "truecolor"  # with fewer colors, the app converts each, or has another theme
    chosen = names or known
    over = 0
    print(f"{'figure':<72} {'measured':>10} {'limit':>8}")
    for name in chosen:
        rows: list[Row] = importlib.import_module(name).measure()
        for figure, measured, limit, comment in rows:
            holds = measured <= limit
            over += not holds
            print(f"{figure:<72} {measured:>10.3f} {limit:>8.3f} {'ok' if holds else 'OVER'}  {comment}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
