"""Parser for a model's name, `provider:model`: where the model is, and which secret is its key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from pegboard.config.loopback import is_loopback
from pegboard.errors import ModelError
from pegboard.results.clean import clean_line

Dialect: TypeAlias = Literal["openai", "anthropic", "google"]
"""Protocol of a provider."""

_SHAPE: Final = "Write it as provider:model, such as openai:gpt-5-mini or ollama:qwen3."
_PROVIDER: Final = re.compile(r"[a-z][a-z0-9_-]*")
_UPSTREAM: Final = re.compile(r"[^/]+/.*[^/].*")
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_-]")
_NEAR: Final = 0.7
"""Least similarity of a name that is suggested for an unknown provider, 0 to 1."""
_LONGEST_NAME: Final = 64
_LONGEST_MODEL: Final = 200
"""Characters of a model's name; longer ones are mistakes and would fill every message about them."""
_LONGEST_HOST: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
"""One label of a host name, between the dots."""
_UNSAFE_IN_URL: Final = frozenset(' \\<>"^`')
"""Characters that libraries parse differently, so that a URL could lead elsewhere than it seems."""


class ModelTimeouts(NamedTuple):
    """Timeouts for a provider, in seconds."""

    connect: float = 10.0
    """For a connection."""
    first: float = 300.0
    """For the first event, retries included: local servers load the model and read the whole prompt first."""
    silence: float = 120.0
    """For each following event."""


@dataclass(frozen=True)
class Provider:
    """A known provider of models.

    Attributes:
        title: Its name for users.
        base_url: Its URL, unless the user sets another one.
        secrets: Names of secrets that may hold its key; the first one that is set counts.
        dialect: Its protocol.
        start: Command that starts it, if it is a server of this machine.
    """

    title: str
    base_url: str
    secrets: tuple[str, ...]
    dialect: Dialect = "openai"
    start: str = ""


PROVIDERS: Final[dict[str, Provider]] = {
    "openai": Provider("OpenAI", "https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "anthropic": Provider("Anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "anthropic"),
    "google": Provider(
        "Google", "https://generativelanguage.googleapis.com", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "google"
    ),
    "openrouter": Provider("OpenRouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "ollama": Provider("Ollama", "http://127.0.0.1:11434/v1", ("OLLAMA_API_KEY",), start="`ollama serve`"),
    "lmstudio": Provider("LM Studio", "http://127.0.0.1:1234/v1", ("LMSTUDIO_API_KEY",), start="`lms server start`"),
    "llamacpp": Provider(
        "llama.cpp", "http://127.0.0.1:8080/v1", ("LLAMA_API_KEY",), start="`llama-server -m MODEL.gguf`"
    ),
    "vllm": Provider("vLLM", "http://127.0.0.1:8000/v1", ("VLLM_API_KEY",), start="`vllm serve MODEL`"),
}
"""Known providers by name; any other is an OpenAI-compatible server and needs a base URL."""


@dataclass(frozen=True)
class Endpoint:
    """One model of one provider.

    Attributes:
        name: As configured: `provider:model`.
        provider: Its provider's name.
        title: Its provider's name for users.
        model: The provider's name of it.
        base_url: The provider's URL.
        secrets: Names of secrets that may hold the key.
        needs_key: Whether the provider requires a key.
        dialect: The provider's protocol.
        start: Command that starts its server, if it is known.
        own_url: Whether the user set the URL.
    """

    name: str
    provider: str
    title: str
    model: str
    base_url: str
    secrets: tuple[str, ...]
    needs_key: bool
    dialect: Dialect
    start: str
    own_url: bool

    @property
    def where(self) -> str:
        """Host and port, without the parts of a URL that may be secret."""
        split = urlsplit(self.base_url)
        port = f":{split.port}" if split.port else ""
        return clean_line(f"{split.hostname}{port}")

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        return is_loopback(urlsplit(self.base_url).hostname or "")


def endpoint(name: str, base_url: str | None) -> Endpoint:
    """Return the endpoint of a model.

    Args:
        name: `provider:model`; the model's part may contain colons.
        base_url: The provider's URL, if not the usual one.

    Raises:
        ModelError: `not_configured` if the name or the URL is invalid.
    """
    base_url = base_url or None
    provider_name, colon, wanted = (part.strip() for part in name.partition(":"))
    if not (colon and wanted and _PROVIDER.fullmatch(provider_name) and _is_model(wanted)):
        shown = name if len(name) <= _LONGEST_MODEL else f"{name[:_LONGEST_MODEL]}…"
        raise ModelError(f"“{clean_line(shown)}” is not a model's name.", code="not_configured", fix=_SHAPE)
    known = PROVIDERS.get(provider_name)
    url = base_url or (known.base_url if known else None)
    if url is None:
        near = get_close_matches(provider_name, PROVIDERS, n=1, cutoff=_NEAR)
        hint = f"Did you mean {near[0]}:{clean_line(wanted)}? " if near else ""
        raise ModelError(
            f"The provider {provider_name} is unknown.",
            code="not_configured",
            fix=f"{hint}Known providers: {', '.join(PROVIDERS)}. For any other, set base_url to its server.",
        )
    if provider_name == "openrouter" and not _UPSTREAM.fullmatch(wanted):
        raise ModelError(
            f"“{clean_line(wanted)}” is not a model's name for OpenRouter because the upstream provider is missing.",
            code="not_configured",
            fix="Write it as openrouter:UPSTREAM/MODEL, such as openrouter:openai/gpt-5-mini.",
        )
    _check_url(url)
    provider = known or Provider(provider_name, url, (f"{re.sub('-', '_', provider_name).upper()}_API_KEY",))
    needs_key = base_url is None and not is_loopback(urlsplit(url).hostname or "")
    return Endpoint(
        name=f"{provider_name}:{wanted}",
        provider=provider_name,
        title=provider.title,
        model=wanted,
        base_url=url.rstrip("/"),
        secrets=provider.secrets,
        needs_key=needs_key,
        dialect=provider.dialect,
        start=provider.start,
        own_url=base_url is not None,
    )


def is_own_provider(provider: str) -> bool:
    """Return whether a provider has a server on the internet with a protocol of its own.

    OpenAI doesn't count: many servers have the same protocol.
    """
    known = PROVIDERS.get(provider)
    return known is not None and provider != "openai" and not known.start


def allowed_name(name: str) -> str:
    """Return a tool's name as every provider accepts it: letters, digits, `_` and `-`, at most 64, never empty."""
    return _NOT_ALLOWED.sub("_", name)[:_LONGEST_NAME] or "_"


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a valid URL; URLs with the same ones lead to the same server."""
    split = urlsplit(url)
    scheme = split.scheme.lower()
    return scheme, (split.hostname or "").rstrip("."), split.port or {"http": 80, "https": 443}.get(scheme)


def _is_model(name: str) -> bool:
    return len(name) <= _LONGEST_MODEL and name.isprintable()


def _check_url(url: str) -> None:
    try:
        split = urlsplit(url)
        good = (
            split.scheme in {"http", "https"}
            and split.port != 0
            and url.isprintable()
            and _UNSAFE_IN_URL.isdisjoint(url)
            and _is_host(split.hostname or "", in_brackets="[" in split.netloc)
        )
    except ValueError:  # an invalid port, half an IPv6 address
        good = False
    if not good:
        # The message doesn't quote the URL: it may hold a password.
        fix = "Write it with http:// or https://, such as http://127.0.0.1:8080/v1."
        raise ModelError("The model's base_url is not a valid URL.", code="not_configured", fix=fix)


def _is_host(host: str, *, in_brackets: bool) -> bool:
    """Return whether it is an IP address or a possible host name.

    Raises:
        ValueError: It is an invalid IP address.
    """
    try:
        return (ip_address(host).version == 6) is in_brackets
    except ValueError:
        if in_brackets:
            raise
        ascii_host = host.removesuffix(".").encode("idna").decode("ascii")
    return len(ascii_host) <= _LONGEST_HOST and all(_LABEL.fullmatch(label) for label in ascii_host.split("."))
