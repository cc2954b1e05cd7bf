"""What the tests of the screen share; `stage`, `chat_stage` and the fakes are imported by their names."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "fakes")]

from stage import GivenRuntime  # noqa: E402 - only now it can be found


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """A runtime with five tools."""
    return GivenRuntime(tmp_path)


@pytest.fixture(autouse=True)
def _apps_are_let_go_of() -> Iterator[None]:
    """Lets the collector see again what an app had set aside: that app is gone, and many more will come."""
    yield
    gc.unfreeze()
