"""Providers, models and servers that can't be used: each is a model error of one sentence, never another exception."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from listening import KEY, hear

from pegboard.ask.providers import ModelTimeouts, model
from pegboard.errors import ModelError

NAMES = [
    "openrouter:gpt-4o", "openrouter:gpt-4o:free", "openrouter:/", "openrouter:a/", "openrouter:/b", "bedrock:x",
    "azure:gpt", "google-vertex:x", "google-gla:x", "groq:x", "mistral:x", "cohere:x", "huggingface:x", "test",
    "test:x", "gateway/openai:gpt", "openai:", ":x", "", "  ", ":", "openai:\x00", "openai:a\nb", "openai:\ud800",
    f"openai:{'x' * 100_000}", "openai-chat:gpt-4", "openai-responses:gpt", "vercel:x", "xai:x", "moonshotai:x",
    "fireworks:x", "together:x", "heroku:x", "github:x", "litellm:x", "nebius:x", "ovhcloud:x", "alibaba:x",
    "sambanova:x", "outlines:x", "deepseek:x", "cerebras:x", "OPENAI:x", "openai\u202e:x", "\ud800:x", "openai:\u200b",
]  # fmt: skip
"""Names of which no model can be built, or whose server is unknown."""

ODD_MODELS = [
    "é",
    "[x]",
    "%s",
    "{x}",
    ":",
    "../../x",
    "a?b#c",
    "models/x",
    "tunedModels/x",
    "a b",
    "a/b/c",
    "'\"",
    "$(x)",
]

BAD_URLS = [
    "http://[", "ftp://x", "http://a b/", "http://", "//x", "http://x:99999", "http://x:abc", "http://\x00", "http://é..x",
    "http:///v1", "http://127.0.0.1:0", "http://127.0.0.1:9\\@x", "http://*", "http://..", "http://a..b", "http://-",
    "http://%zz", "http://\ud800", "http://ab\u200bc/", "http:/127.0.0.1:9", "http:127.0.0.1", "http://user@", "http://:80",
    "http://[::1", "http://[1]:3/", "http://[v1.x]/", "http://\u00ad/", f"http://{'a' * 300}", f"http://{'a.' * 150}",
    "http://[127.0.0.1]/", "localhost:8080", "javascript:alert(1)", "file:///etc/passwd", "http://x\ny",
    f"http://u:{KEY}@[", f"http://[/?key={KEY}",
]  # fmt: skip

GOOD_URLS = [
    "http://a_b.invalid/", "http://xn--a.invalid/", "http://127.0.0.1:9/é", "HTTP://127.0.0.1:9", "http://[::1]:9",
    "http://bücher.invalid", "http://127.0.0.1:9/v1?x=#y", f"http://u:{KEY}@127.0.0.1:9/v1",
    f"http://127.0.0.1:9/?key={KEY}",
]  # fmt: skip

BRIEF = ModelTimeouts(connect=5, first=20, silence=5)


def texts(failure: ModelError) -> str:
    return f"{failure} {failure.fix} {failure.detail}"


def assert_clear(failure: ModelError) -> None:
    assert str(failure).endswith((".", "!", "?", "…"))
    assert failure.fix
    assert "\n" not in texts(failure)
    assert texts(failure).isprintable()
    assert len(texts(failure)) < 2_000
    assert not any(KEY[at : at + 6] in texts(failure) for at in range(len(KEY) - 5))
    assert (failure.__cause__, failure.__context__) == (None, None) or failure.code == "not_configured"


async def assert_all_clear(names: Sequence[str], urls: Sequence[str]) -> None:
    """Check the failures of all combinations, concurrently, because the libraries wait before they retry."""
    pairs = [(name, url) for name in names for url in urls]
    models = [model(name, base_url=url, key=lambda _: KEY, timeouts=BRIEF) for name, url in pairs]
    for pair, heard in zip(pairs, await asyncio.gather(*map(hear, models)), strict=True):
        assert heard.failure is not None, pair
        assert_clear(heard.failed)


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("name", NAMES)
async def test_a_name_of_which_no_model_can_be_built_is_a_model_error(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        model(name, base_url=None, key=lambda _: KEY)
    assert caught.value.code == "not_configured"
    assert_clear(caught.value)


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("url", BAD_URLS)
async def test_an_invalid_url_is_a_model_error_that_does_not_quote_it(url: str) -> None:
    with pytest.raises(ModelError) as caught:
        model("openai:x", base_url=url, key=lambda _: KEY)
    assert caught.value.code == "not_configured"
    assert_clear(caught.value)


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "ollama", "my-own"])
async def test_an_odd_model_fails_with_a_model_error_at_the_latest_in_its_first_turn(provider: str) -> None:
    names = [f"{provider}:{wanted}" for wanted in ODD_MODELS]
    await assert_all_clear(names, ["http://127.0.0.1:9/v1"])


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
async def test_an_odd_url_fails_with_a_model_error_in_the_first_turn(provider: str) -> None:
    await assert_all_clear([f"{provider}:x"], GOOD_URLS)


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks9://x"),
        ("ALL_PROXY", "http://["),
        ("HTTPS_PROXY", "nonsense"),
        ("SSL_CERT_FILE", "/nowhere"),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
async def test_an_environment_in_which_no_client_can_be_built_is_a_model_error(
    monkeypatch: pytest.MonkeyPatch, provider: str, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    failure = (
        await hear(model(f"{provider}:x", base_url="https://x.invalid/v1", key=lambda _: KEY, timeouts=BRIEF))
    ).failed
    assert_clear(failure)
