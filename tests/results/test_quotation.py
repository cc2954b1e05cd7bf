"""Calls and results quoted in a message to a model."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from pegboard.models import ToolCall, ToolResult
from pegboard.models.result import ResultMeta, Truncation
from pegboard.results.quotation import LONGEST, quoted

CALL = ToolCall(name="notes.read", args={"path": "a"}, source="form")


def test_a_long_result_is_cut_and_the_rest_counted() -> None:
    text = quoted(CALL, ToolResult(ok=True, data="x" * (LONGEST + 5)))
    assert text == f'`notes.read` with `{{"path":"a"}}` returned:\n\n```\n{"x" * LONGEST}\n… 5 more characters\n```\n\n'


@pytest.mark.promise("EXE-6")
@pytest.mark.parametrize("data", ["x" * 20_000, ["a", "b…"]], ids=["long", "short"])
def test_of_a_truncated_result_the_size_of_the_whole_is_quoted(data: JsonValue) -> None:
    truncated = Truncation(shown_bytes=20_000, total_bytes=3_000_000, file="/nowhere/result.json")
    text = quoted(CALL, ToolResult(ok=True, data=data, meta=ResultMeta(truncated=truncated)))
    assert "… the whole result has 3.0 MB as JSON\n```" in text
    assert "more character" not in text
