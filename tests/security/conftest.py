"""Import path of these tests: the modules of `fakes` and of the tests of the interface, by their names."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "fakes"), str(TESTS / "tui")]
