"""The model that needs neither key nor network, through the loop and the built-in tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from pegboard.models.ask import AskEvent, ModelSaid, Outcome
from pegboard.models.conversation import CallDelta, TextDelta
from pegboard.runtime import Runtime

Asked = Callable[..., Awaitable[tuple[list[AskEvent], Outcome]]]


@pytest.fixture
def bare(open_runtime: Callable[..., Runtime], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """Provide a runtime with the built-in tools, in a folder with one file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a note.txt").write_text("hammer")
    return open_runtime()


@pytest.mark.promise("ASK-8")
@pytest.mark.parametrize(
    ("text", "tool", "args"),
    [
        ("What time is it now?", "time.now", {}),
        ("time.now", "time.now", {}),
        ("call time_now, please", "time.now", {}),
        ("echo value=3", "tools.echo", {"value": 3}),
        ('tools.echo {"value": [1, {"a": null}]}', "tools.echo", {"value": [1, {"a": None}]}),
        ("Count the words in 'one two three'", "text.count", {"text": "one two three"}),
        ('fs.read_file path="a note.txt"', "fs.read_file", {"path": "a note.txt"}),
        (
            "fs.list_dir path=. max_depth=2 recursive=true",
            "fs.list_dir",
            {"path": ".", "max_depth": 2, "recursive": True},
        ),
    ],
)
async def test_words_select_a_tool_and_its_arguments(
    bare: Runtime, asked: Asked, text: str, tool: str, args: dict[str, JsonValue]
) -> None:
    _, outcome = await asked(bare, text)
    assert [(call.name, call.args) for call in outcome.tool_calls] == [(tool, args)]
    assert outcome.tool_results[0].ok
    assert "offline model" in outcome.answer
    assert "doesn't reason" in outcome.answer


@pytest.mark.promise("ASK-8")
async def test_it_introduces_itself_and_explains_how_to_use_a_language_model(bare: Runtime, asked: Asked) -> None:
    _, outcome = await asked(bare, "Tell me a joke!")
    assert outcome.tool_calls == ()
    assert "I don't reason" in outcome.answer
    assert "--model" in outcome.answer
    _, outcome = await asked(bare, "time.now", with_tools=False)
    assert "no tools" in outcome.answer


@pytest.mark.promise("ASK-8")
async def test_it_asks_back_if_the_match_is_unclear_or_arguments_are_missing(bare: Runtime, asked: Asked) -> None:
    _, outcome = await asked(bare, "read_file path=x")
    assert outcome.tool_calls == ()
    assert "`fs_read_file`, `git_read_file`" in outcome.answer
    _, outcome = await asked(bare, "fs.read_file")
    assert outcome.tool_calls == ()
    assert "`path=…`" in outcome.answer


@pytest.mark.promise("ASK-8", "ASK-4")
async def test_it_streams_words_and_arguments_like_any_model(bare: Runtime, asked: Asked) -> None:
    events, _ = await asked(bare, "tools.echo value='a b c'")
    pieces = [event.event for event in events if isinstance(event, ModelSaid)]
    assert sum(isinstance(piece, TextDelta) for piece in pieces) > 5
    assert "".join(piece.arguments for piece in pieces if isinstance(piece, CallDelta)) == '{"value": "a b c"}'


@pytest.mark.promise("ASK-8")
async def test_a_failure_is_reported_as_a_failure(bare: Runtime, asked: Asked) -> None:
    _, outcome = await asked(bare, "fs.read_file path=nowhere.txt")
    assert "`fs_read_file` failed" in outcome.answer
    assert outcome.tool_error is not None


async def test_a_text_full_of_quotes_and_braces_causes_no_error(bare: Runtime, asked: Asked) -> None:
    _, outcome = await asked(bare, "\"'`{}}{ a= =b ``` \u202e" * 50)
    assert outcome.stopped_by == "answer"


@pytest.mark.promise("ASK-8", "TUI-2")
@pytest.mark.parametrize("piece", ['"a\\', "“ab ", "a={ ", 'a="b\\" '], ids=["quote", "curly quote", "brace", "value"])
async def test_a_long_text_with_unclosed_quotes_and_braces_is_answered_without_delay(
    bare: Runtime, asked: Asked, piece: str
) -> None:
    # With a search of the whole rest for each of them, this would take hours.
    _, outcome = await asked(bare, f"{piece * 100_000} `x` fs.list_dir path=. then max_depth=1")
    assert [(call.name, call.args["max_depth"]) for call in outcome.tool_calls] == [("fs.list_dir", 1)]
