"""Failures as models read them, and as they are read again from a stored session."""

from __future__ import annotations

import pytest

from pegboard.models import ToolError
from pegboard.results.failure_text import failure_in, failure_text

pytestmark = pytest.mark.promise("ASK-6")


@pytest.mark.parametrize("detail", [None, "unfinished_turn"])
def test_an_error_is_read_from_its_own_text(detail: str | None) -> None:
    error = ToolError(code="execution_error", message="Two\nlines (of text). More", detail=detail)
    assert failure_in(failure_text(error)) == error


@pytest.mark.parametrize("text", ["The call failed: odd. No.", "The call failed: execution_error", "It failed.", ""])
def test_another_text_is_not_an_error(text: str) -> None:
    assert failure_in(text) is None
