"""Import path of these tests: the modules of `fakes` and of the tests of the interface, by their names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "fakes"), str(TESTS / "tui")]

import headless  # noqa: E402 - only now it can be found


@pytest.fixture(autouse=True, scope="package")
def _no_invisible_work() -> Iterator[None]:
    """Share parsed CSS between apps and compose no frames that nothing displays."""
    with pytest.MonkeyPatch.context() as patch:
        headless.install(patch)
        yield
