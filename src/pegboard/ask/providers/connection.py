"""Connections to providers: a library's client with Pegboard's timeouts and only the key that it is passed.

Imported late: it loads the libraries.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import Final
from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI
from openai._streaming import ServerSentEvent, SSEDecoder
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.providers.openrouter import OpenRouterProvider

from pegboard.ask.providers.compatible_model import CompatibleModel, RoutedModel
from pegboard.ask.providers.endpoint import Dialect, Endpoint, ModelTimeouts
from pegboard.ask.providers.errors import ErrorFactory
from pegboard.ask.providers.limits import bounded, is_foreign
from pegboard.errors import ModelError
from pegboard.sdk.distributions import extra_command

_NO_KEY: Final = "none"
"""Key for servers that need none; the libraries require a value."""

_MISTRAL: Final = re.compile(r"(mi|mini|dev|magi|code)stral|(mi|pi|vo)xtral")
"""Mistral's host, or one of its models, which other servers check like Mistral."""

_IDS_OF_MISTRAL: Final = re.compile(r"[A-Za-z0-9]{9}")
_IDS_OF_ANTHROPIC: Final = re.compile(r"[A-Za-z0-9_-]+")
_IDS_OF_OPENAI: Final = re.compile(r".{1,40}", re.DOTALL)

_LONGEST_WAIT: Final = 5.0
"""Seconds that a provider may ask the library to wait before it retries; if longer, the user gets the error instead."""


class ModelConnection:
    """A model and the HTTP connections to its provider.

    Args:
        endpoint: The model.
        key: The key to send; None sends none.
        timeouts: Timeouts for the provider.

    Attributes:
        declares_calls: Whether the provider may reject a conversation with calls unless tools are declared.
        accepts_blank: Whether the provider accepts texts of nothing but whitespace.
        ids: The ids of calls that the provider accepts; None if it accepts those of any other provider.

    Raises:
        ModelError: `not_configured` if the provider's library isn't installed or rejects the model.
    """

    def __init__(self, endpoint: Endpoint, key: str | None, timeouts: ModelTimeouts) -> None:
        self.declares_calls = endpoint.dialect == "anthropic" or (
            endpoint.provider == "openrouter" and endpoint.model.startswith("anthropic/")
        )
        self.accepts_blank = not self.declares_calls
        self.ids = self._accepted_ids(endpoint)
        self._redirects = _Redirects()
        failure: ModelError | None = None
        try:
            self._http = self._client(endpoint, key, timeouts)
            self.model = self._model(endpoint, key)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - three libraries, each with exceptions of its own
            failure = ErrorFactory(endpoint, key).unusable(error)
        # Raised outside the handler: the exception in its context holds the key.
        if failure is not None:
            raise failure

    @property
    def refused_redirect(self) -> str:
        """Location of the last response if it led to another server, otherwise empty; untrusted text."""
        return self._redirects.refused

    def _accepted_ids(self, endpoint: Endpoint) -> re.Pattern[str] | None:
        if _MISTRAL.search(f"{endpoint.name} {endpoint.where}".lower()):
            return _IDS_OF_MISTRAL
        if self.declares_calls:
            return _IDS_OF_ANTHROPIC
        return _IDS_OF_OPENAI if endpoint.provider == "openai" and not endpoint.own_url else None

    def _client(self, endpoint: Endpoint, key: str | None, timeouts: ModelTimeouts) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=timeouts.connect),
            follow_redirects=True,
            # A proxy from the environment can't reach servers of this machine.
            trust_env=not endpoint.is_local,
            # The size of compressed data can't be limited while it arrives.
            headers={"accept-encoding": "identity"},
            event_hooks={
                "request": [_HeadersOfEnvironment(endpoint, key), _Query(endpoint)],
                "response": [self._redirects, _no_long_wait, bounded],
            },
        )

    def _model(self, endpoint: Endpoint, key: str | None) -> Model:
        match endpoint.dialect:
            case "openai":
                return _openai(endpoint, key, self._http)
            case "anthropic":
                return _anthropic(endpoint, key, self._http)
            case "google":
                return _google(endpoint, key, self._http)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _openai(endpoint: Endpoint, key: str | None, http: httpx2.AsyncClient) -> Model:
    # These timeouts override those of `http`, so they are the same.
    client = _Client(base_url=_path_only(endpoint), api_key=key or _NO_KEY, http_client=http, timeout=http.timeout)
    if endpoint.provider != "openai" or endpoint.own_url:
        # They come from the environment and are meant for OpenAI only.
        client.organization = client.project = None
    match endpoint.provider:
        case "openai" if not endpoint.own_url:
            return OpenAIChatModel(endpoint.model, provider=OpenAIProvider(openai_client=client))
        case "openrouter":
            return RoutedModel(endpoint.model, provider=OpenRouterProvider(openai_client=client))
        case "ollama":
            provider: OllamaProvider | OpenAICompatibleProvider = OllamaProvider(openai_client=client)
        case _:
            provider = OpenAICompatibleProvider(endpoint.provider, openai_client=client)
    # Every compatible server knows `max_tokens`, not all know `max_completion_tokens`. Schemas are sent unchanged:
    # the library's transformation is for OpenAI's own rules, and loses parts.
    plain = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False, json_schema_transformer=None)
    return CompatibleModel(endpoint.model, provider=provider, profile=plain)


def _anthropic(endpoint: Endpoint, key: str | None, http: httpx2.AsyncClient) -> Model:
    try:
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider
    except ImportError:
        raise _not_installed(endpoint) from None
    client = AsyncAnthropic(
        base_url=_path_only(endpoint), api_key=key or _NO_KEY, http_client=http, timeout=http.timeout
    )
    return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=client))


def _google(endpoint: Endpoint, key: str | None, http: httpx2.AsyncClient) -> Model:
    try:
        from google.genai.types import HttpRetryOptions
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider
    except ImportError:
        raise _not_installed(endpoint) from None
    # Google's library doesn't retry by default; the other libraries retry twice.
    retries = HttpRetryOptions(attempts=3, initial_delay=0.5, http_status_codes=[500, 502, 503, 504])
    provider = GoogleProvider(
        api_key=key or _NO_KEY, base_url=_path_only(endpoint), http_client=http, retry_options=retries
    )
    return GoogleModel(endpoint.model, provider=provider)


def _path_only(endpoint: Endpoint) -> str:
    """Return the base URL without the query, which each request gets from `_Query`."""
    return urlsplit(endpoint.base_url)._replace(query="", fragment="").geturl()


def _not_installed(endpoint: Endpoint) -> ModelError:
    return ModelError(
        f"{endpoint.name} can't be used because the library for {endpoint.title} isn't installed.",
        code="not_configured",
        fix=f"Run `{extra_command(endpoint.dialect)}`, then restart Pegboard.",
    )


class _Client(AsyncOpenAI):
    """Client that ignores events without data; gateways send them to keep a connection open, and the library fails."""

    def _make_sse_decoder(self) -> SSEDecoder:
        return _Decoder()


class _Decoder(SSEDecoder):
    def decode(self, line: str) -> ServerSentEvent | None:
        event = super().decode(line)
        return event if event is None or event.data.strip() else None


def _credentials(dialect: Dialect) -> tuple[str, str, str]:
    """Return the environment variable from which the library reads headers, the header of the key, and its scheme."""
    # Not a mapping: mypy reports a dialect that is missing here.
    match dialect:
        case "openai":
            return "OPENAI_CUSTOM_HEADERS", "authorization", "Bearer "
        case "anthropic":
            return "ANTHROPIC_CUSTOM_HEADERS", "x-api-key", ""
        case "google":
            return "", "x-goog-api-key", ""


class _HeadersOfEnvironment:
    """Request hook that removes the headers which a library reads from the environment for its own provider.

    They may hold credentials of OpenAI or Anthropic, which other servers must not get.
    """

    def __init__(self, endpoint: Endpoint, key: str | None) -> None:
        variable, name, scheme = _credentials(endpoint.dialect)
        is_meant = endpoint.provider == endpoint.dialect and not endpoint.own_url
        lines = "" if is_meant else os.environ.get(variable, "")
        self._names = tuple(line.partition(":")[0].strip() for line in lines.split("\n") if ":" in line)
        self._key = name, f"{scheme}{key or _NO_KEY}"

    async def __call__(self, request: httpx2.Request) -> None:
        for name in self._names:
            request.headers.pop(name, None)
        if self._names:
            name, value = self._key
            request.headers[name] = value


class _Query:
    """Request hook that adds the query of the base URL, such as `api-version=preview`.

    The libraries would add their path to the query.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._parameters = httpx2.QueryParams(urlsplit(endpoint.base_url).query)

    async def __call__(self, request: httpx2.Request) -> None:
        if self._parameters:
            request.url = request.url.copy_merge_params(self._parameters)


class _Redirects:
    """Response hook that blocks redirects to another server, which would get the key and the conversation.

    Attributes:
        refused: Location of the last response if it was blocked, otherwise empty.
    """

    def __init__(self) -> None:
        self.refused = ""

    async def __call__(self, response: httpx2.Response) -> None:
        is_refused = response.has_redirect_location and is_foreign(response)
        self.refused = response.headers.pop("location") if is_refused else ""


async def _no_long_wait(response: httpx2.Response) -> None:
    """Keep the library from retrying after a long wait, with a header of servers that it obeys."""
    if response.is_error and _wait(response.headers) > _LONGEST_WAIT:
        response.headers["x-should-retry"] = "false"


def _wait(headers: httpx2.Headers) -> float:
    """Return how many seconds a provider asks to wait; infinity if it isn't clear."""
    for name, parts in (("retry-after-ms", 1000), ("retry-after", 1)):
        if name in headers:
            try:
                return float(headers[name]) / parts
            except ValueError:
                return _until(headers[name])
    return 0


def _until(date: str) -> float:
    """Return the seconds until a date of HTTP; infinity if it isn't one."""
    try:
        at = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return inf
    return (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
