"""A key goes only to the server that it was configured for, whatever redirects, libraries and variables say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from listening import KEY, hear
from provider import Answer, FakeProvider, says

from pegboard.ask.providers import model
from pegboard.runtime import Runtime

OTHERS = "sk-another-providers-credential-42"


@pytest.fixture
def trap() -> Iterator[FakeProvider]:
    """Provide a server that no key may reach."""
    with FakeProvider(says("Thank you.")).running() as fake:
        yield fake


def redirect(to: str, status: int = 307) -> Answer:
    return Answer(status=status, body=b"", type="text/plain", headers={"location": to})


def sent(fake: FakeProvider) -> str:
    """Return all that a server received."""
    return json.dumps([[asked.path, asked.headers, asked.body] for asked in fake.asked])


@pytest.mark.promise("SEC-3")
@pytest.mark.parametrize("name", ["openai:x", "openrouter:a/x", "ollama:x", "my-own:x", "anthropic:x", "google:x"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_takes_the_key_or_the_conversation_to_another_server(
    trap: FakeProvider, name: str, status: int
) -> None:
    with FakeProvider(redirect(f"{trap.url}/chat/completions?x=1", status)).running() as fake:
        failure = (await hear(model(name, base_url=fake.url, key=lambda _: KEY))).failed
    assert not trap.asked
    assert f"redirects to http://127.0.0.1:{trap.port}, where Pegboard sends neither the key nor" in str(failure)
    assert "set base_url" in failure.fix


@pytest.mark.promise("SEC-3")
@pytest.mark.parametrize(
    "to", ["//elsewhere.invalid/v1", "https://127.0.0.1/", "http://localhost:9/", "http://[", "ftp://x/"]
)
async def test_no_redirect_that_looks_alike_or_is_invalid_is_followed(to: str) -> None:
    with FakeProvider(redirect(to)).running() as fake:
        failure = (await hear(model("openai:x", base_url=fake.url, key=lambda _: KEY))).failed
        assert len(fake.asked) == 1
    assert "redirects to" in str(failure)


async def test_a_redirect_on_the_same_server_is_followed() -> None:
    with FakeProvider(redirect("/v2/chat/completions"), says("Moved.")).running() as fake:
        assert (await hear(model("openai:x", base_url=fake.url, key=lambda _: KEY))).text == "Moved."
        assert [asked.path for asked in fake.asked] == ["/v1/chat/completions", "/v2/chat/completions"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("openai:x", "/v1/chat/completions?api-version=preview"),
        ("openrouter:a/x", "/v1/chat/completions?api-version=preview"),
        ("anthropic:x", "/v1/v1/messages?api-version=preview"),
        ("google:x", "/v1/v1beta/models/x:streamGenerateContent?alt=sse&api-version=preview"),
    ],
)
async def test_the_query_of_the_base_url_follows_the_path_of_each_request(name: str, path: str) -> None:
    with FakeProvider(Answer(status=400, body=b"{}")).running() as fake:
        await hear(model(name, base_url=f"{fake.url}?api-version=preview", key=lambda _: KEY))
        assert [asked.path for asked in fake.asked] == [path]


@pytest.mark.promise("SEC-3")
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("openai:x", "authorization"),
        ("ollama:x", "authorization"),
        ("anthropic:x", "x-api-key"),
        ("google:x", "x-goog-api-key"),
    ],
)
async def test_environment_variables_of_a_library_are_not_sent_to_the_users_own_server(
    monkeypatch: pytest.MonkeyPatch, trap: FakeProvider, name: str, header: str
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, OTHERS)
    for variable in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OLLAMA_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(variable, OTHERS)
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.setenv(variable, trap.url)
    lines = f"Authorization: Bearer {OTHERS}\nX-Team: {OTHERS}"
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", lines)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", lines)
    with FakeProvider(Answer(status=400, body=b"{}", type="application/json")).running() as fake:
        base_url = fake.url.removesuffix("/v1") if name.startswith(("anthropic", "google")) else fake.url
        await hear(model(name, base_url=base_url, key=lambda _: KEY))
        await hear(model(name, base_url=base_url, key=lambda _: None))
        with_key, without = fake.asked
        assert KEY in with_key.headers[header]
        assert KEY not in json.dumps(without.headers)
        assert OTHERS not in sent(fake)
    assert not trap.asked


@pytest.mark.promise("SEC-3")
async def test_a_server_that_is_not_the_configured_one_gets_no_key_unless_the_user_names_both(
    monkeypatch: pytest.MonkeyPatch, open_runtime: Callable[..., Runtime], trap: FakeProvider
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    with FakeProvider(says("Hello.")).running() as configured:
        monkeypatch.setenv("PEGBOARD_MODEL__NAME", "ollama:x")
        monkeypatch.setenv("PEGBOARD_MODEL__BASE_URL", configured.url)
        runtime = open_runtime()
        for base_url in (None, configured.url, f"{configured.url}/"):
            [event async for event in runtime.ask(model="ollama:x", base_url=base_url).run("Hello?")]
        assert [asked.headers["authorization"] for asked in configured.asked] == [f"Bearer {KEY}"] * 3
        assert runtime.models.requirements("ollama:x", trap.url).secret_place is None
        assert runtime.models.requirements("ollama:x").secret_place
        [event async for event in runtime.ask(model="ollama:x", base_url=trap.url).run("Hello?")]
        assert KEY not in sent(trap)
        assert len(trap.asked) == 1
        [event async for event in runtime.ask(model="ollama:x", base_url=trap.url, send_key=True).run("Hello?")]
        assert KEY in sent(trap)


@pytest.mark.promise("SEC-3")
@pytest.mark.parametrize("name", ["anthropic:x", "google:x", "openrouter:a/x"])
async def test_a_server_without_a_named_model_does_not_replace_providers_with_their_own(
    monkeypatch: pytest.MonkeyPatch, open_runtime: Callable[..., Runtime], trap: FakeProvider, name: str
) -> None:
    monkeypatch.setenv("PEGBOARD_MODEL__BASE_URL", trap.url)
    needs = open_runtime().models.requirements(name)
    assert "127.0.0.1" not in needs.where
    assert "127.0.0.1" in open_runtime().models.requirements("openai:x").where


@pytest.mark.promise("SEC-3", "ASK-5")
async def test_a_server_that_requires_an_unsent_key_is_reported_with_how_to_send_it() -> None:
    with FakeProvider(Answer(status=401, body=b"{}", type="application/json")).running() as fake:
        failure = (await hear(model("ollama:x", base_url=fake.url, key=lambda _: None))).failed
    assert "A key that is set is sent only to the configured base_url, or to `--base-url`" in failure.fix
