"""Import path of these tests: the modules of `fakes` and of the tests of the interface, by their names."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "fakes"), str(TESTS / "tui")]

from headless import no_invisible_work  # noqa: E402, F401 - only now it can be found; a fixture
