"""What the tests of the screen share; `stage` is imported by its name."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stage import GivenRuntime


@pytest.fixture
def given(tmp_path: Path) -> GivenRuntime:
    """A runtime with five tools."""
    return GivenRuntime(tmp_path)


@pytest.fixture(autouse=True)
def _apps_are_let_go_of() -> Iterator[None]:
    """Lets the collector see again what an app had set aside: that app is gone, and many more will come."""
    yield
    gc.unfreeze()
