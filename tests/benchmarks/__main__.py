"""Prints every figure beside its limit: `python tests/benchmarks [NAME ...]`.

Each module here has `measure()`, which gives rows of (figure, measured, limit, comment); a figure holds when what was
measured is not over its limit. Ratios are taken within one run, since machines are noisy.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

Row = tuple[str, float, float, str]


def main(names: list[str]) -> int:
    """Measures the named modules, or all, and gives 1 if a figure is over its limit."""
    here = Path(__file__).parent
    chosen = names or sorted(file.stem for file in here.glob("[!_]*.py"))
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
