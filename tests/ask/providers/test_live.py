"""A real model, if one is configured: `PEGBOARD_LIVE_BASE_URL` is its server, `PEGBOARD_LIVE_MODEL` its name."""

from __future__ import annotations

import json
import os

import pytest
from listening import hear

from pegboard.ask.providers import ProviderModel, model
from pegboard.models.conversation import SystemMessage, ToolMessage, UserMessage

BASE_URL = os.environ.get("PEGBOARD_LIVE_BASE_URL")

pytestmark = [
    pytest.mark.live_model,
    pytest.mark.skipif(not BASE_URL, reason="no real model: PEGBOARD_LIVE_BASE_URL is not set"),
]

SYSTEM = SystemMessage(text="You are a helpful assistant.")
QUESTION = UserMessage(text="List the files in the folder src.")


def live() -> ProviderModel:
    name = os.environ.get("PEGBOARD_LIVE_MODEL", "llamacpp:any")
    return model(name, base_url=BASE_URL, key=os.environ.get)


async def test_a_real_model_calls_a_tool_and_answers_with_its_result() -> None:
    speaker = live()
    first = (await hear(speaker, SYSTEM, QUESTION)).ended
    assert first.reason == "calls"
    (made,) = first.message.calls
    assert (made.name, json.loads(made.arguments)["path"].strip("/")) == ("fs_list_dir", "src")
    result = ToolMessage(provider_id=made.provider_id, name=made.name, text='["zebra.py"]')
    second = await hear(speaker, SYSTEM, QUESTION, first.message, result)
    assert "zebra" in second.ended.message.text
    assert second.text == second.ended.message.text
    assert second.ended.usage.input_tokens > first.usage.input_tokens > 0


async def test_a_real_model_that_runs_out_of_tokens_reports_it() -> None:
    heard = await hear(live(), UserMessage(text="Count from one to one hundred."), tools=(), max_tokens=5)
    assert heard.ended.reason == "length"
    assert heard.text


async def test_a_real_model_reports_a_conversation_that_is_too_long() -> None:
    assert (await hear(live(), UserMessage(text="word " * 300_000), tools=())).failed.code == "context_too_long"
