"""Names of models."""

from __future__ import annotations

import pytest

from pegboard.ask.providers import allowed_name, model
from pegboard.ask.providers.endpoint import endpoint
from pegboard.errors import ModelError


def no_key(_: str) -> None:
    return None


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    ("name", "base_url", "place", "secret", "needs_key"),
    [
        ("openai:gpt-5-mini", None, "https://api.openai.com/v1", "OPENAI_API_KEY", True),
        ("openai:any", "http://127.0.0.1:9000/v1/", "http://127.0.0.1:9000/v1", "OPENAI_API_KEY", False),
        ("anthropic:claude-sonnet-4-5", None, "https://api.anthropic.com", "ANTHROPIC_API_KEY", True),
        ("google:gemini-2.5-flash", None, "https://generativelanguage.googleapis.com", "GOOGLE_API_KEY", True),
        ("openrouter:a/b:free", None, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", True),
        ("ollama:qwen3:8b", None, "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", False),
        ("lmstudio:qwen3", None, "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", False),
        ("llamacpp:qwen3", None, "http://127.0.0.1:8080/v1", "LLAMA_API_KEY", False),
        ("vllm:qwen3", None, "http://127.0.0.1:8000/v1", "VLLM_API_KEY", False),
        ("my-own:qwen3", "https://models.example.org/v1", "https://models.example.org/v1", "MY_OWN_API_KEY", False),
    ],
)
def test_a_name_determines_the_url_and_the_key(
    name: str, base_url: str | None, place: str, secret: str, needs_key: bool
) -> None:
    found = endpoint(name, base_url)
    assert (found.base_url, found.secrets[0], found.needs_key) == (place, secret, needs_key)
    assert model(name, base_url=base_url, key=no_key).name == name
    assert found.model == name.partition(":")[2]


@pytest.mark.parametrize("name", ["", "gpt-5", ":gpt-5", "openai:", "openai: ", "Open AI:gpt", "\x1b[31m:x"])
def test_an_invalid_name_is_reported_with_how_to_write_one(name: str) -> None:
    with pytest.raises(ModelError, match="is not a model's name") as caught:
        model(name, base_url=None, key=no_key)
    assert caught.value.code == "not_configured"
    assert "provider:model" in caught.value.fix
    assert "\x1b" not in str(caught.value)


def test_an_unknown_provider_is_reported_with_the_nearest_known_one() -> None:
    with pytest.raises(ModelError, match="provider olama is unknown") as caught:
        model("olama:qwen3", base_url=None, key=no_key)
    assert "Did you mean ollama:qwen3?" in caught.value.fix
    assert "base_url" in caught.value.fix


def test_nothing_is_suggested_for_an_unknown_provider_with_another_name() -> None:
    with pytest.raises(ModelError, match="provider nope is unknown") as caught:
        model("nope:x", base_url=None, key=no_key)
    assert caught.value.fix.startswith("Known providers: ")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://x/v1", "http://", "http://x:port/v1", "http://[::1/v1", "http://x/\x1b", "secret"]
)
def test_an_invalid_url_is_reported_without_quoting_it(url: str) -> None:
    with pytest.raises(ModelError, match="model's base_url is not a valid URL") as caught:
        model("openai:x", base_url=url, key=no_key)
    assert url not in str(caught.value) + caught.value.fix.replace("http://127.0.0.1:8080/v1", "").replace(
        "http://", ""
    )


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("fs.list_dir", "fs_list_dir"), ("a-b_9", "a-b_9"), ("ä b", "__b"), ("x" * 90, "x" * 64), ("", "_")],
)
def test_a_tools_name_is_converted_to_one_that_every_provider_accepts(name: str, allowed: str) -> None:
    assert allowed_name(name) == allowed
