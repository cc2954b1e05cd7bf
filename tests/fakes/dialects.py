"""Responses in the formats of Anthropic and Google, played by the fake provider."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from listening import KEY
from provider import Answer, FakeProvider

from pegboard.ask.providers import ProviderModel, model


def claude(fake: FakeProvider) -> ProviderModel:
    return model("anthropic:claude-test", base_url=fake.url.removesuffix("/v1"), key=lambda _: KEY)


def gemini(fake: FakeProvider) -> ProviderModel:
    return model("google:gemini-test", base_url=fake.url.removesuffix("/v1"), key=lambda _: KEY)


def anthropic(*pieces: tuple[str, Mapping[str, Any]]) -> Answer:
    """Return a response in Anthropic's format."""
    start: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 25, "output_tokens": 1},
    }  # fmt: skip
    events = [("message_start", {"message": start}), *pieces]
    return Answer(
        [
            f"event: {name}\ndata: {json.dumps({'type': name, **content})}\n\n".encode()
            for name, content in events
        ],
        end="close",
    )  # fmt: skip


def block(index: int, block: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return a block of Anthropic's content, started and not yet ended."""
    return [
        ("content_block_start", {"index": index, "content_block": block}),
        *(("content_block_delta", {"index": index, "delta": delta}) for delta in deltas),
    ]


def ends(reason: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return the end of a response of Anthropic."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [("message_delta", {"delta": delta, "usage": {"output_tokens": 15}}), ("message_stop", {})]


TEXT = block(0, {"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in ("Let ", "me.")))
CALL = block(
    1,
    {"type": "tool_use", "id": "toolu_1", "name": "fs_list_dir", "input": {}},
    *({"type": "input_json_delta", "partial_json": text} for text in ("", '{"pa', 'th": "src"}')),
)


def google(*chunks: Mapping[str, Any]) -> Answer:
    """Return a response in Google's format."""
    return Answer([f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in chunks], end="close")


def candidate(*parts: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    """Return a piece of a response in Google's format."""
    found: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {
        "candidates": [found | ({"finishReason": finish} if finish else {})],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
    }
