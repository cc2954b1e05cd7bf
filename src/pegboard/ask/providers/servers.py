"""Model servers of this machine: listeners on the usual ports, with their models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ValidationError

from pegboard.ask.providers.endpoint import PROVIDERS
from pegboard.models.model import DataModel

if TYPE_CHECKING:
    import httpx

USUAL_PORTS: Final[Mapping[str, int]] = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
"""Provider's name → default port of its server."""

_LARGEST_LIST: Final = 1_000_000
"""Size limit in bytes: any program may listen on such a port."""


class LocalServer(DataModel):
    """A server of this machine that has models."""

    provider: str
    """As in a model's name."""
    title: str
    base_url: str
    models: tuple[str, ...]
    """The server's names of its models: untrusted text. Embedding models are left out, as far as names reveal them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its models as the configuration names them: `provider:model`."""
        return tuple(f"{self.provider}:{model}" for model in self.models)


class _Listed(BaseModel):
    id: str


class _Listing(BaseModel):
    data: list[_Listed] | None


async def discover(ports: Mapping[str, int] = USUAL_PORTS, *, seconds: float = 1.0) -> list[LocalServer]:
    """Find model servers on this machine; query all ports concurrently.

    Args:
        ports: Provider's name → port of its server.
        seconds: Timeout for each server, in seconds.

    Returns:
        The servers that answered with a list of models, in the order of `ports`.
    """
    client = await asyncio.to_thread(_client)
    async with client:
        found = await asyncio.gather(*(_look(client, provider, port, seconds) for provider, port in ports.items()))
    return [server for server in found if server]


def _client() -> httpx.AsyncClient:
    import httpx

    # Without the environment's proxies, which can't reach servers of this machine, and without TLS.
    return httpx.AsyncClient(trust_env=False, verify=False, timeout=None, headers={"accept-encoding": "identity"})  # noqa: S113, S501 - see `seconds`; no TLS here


async def _look(client: httpx.AsyncClient, provider: str, port: int, seconds: float) -> LocalServer | None:
    from httpx import HTTPError

    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(seconds):
            listing = _Listing.model_validate_json(await _read(client, f"{base_url}/models"))
    except (HTTPError, ValidationError, TimeoutError):
        return None
    models = tuple(dict.fromkeys(listed.id for listed in listing.data or () if "embed" not in listed.id.lower()))
    return LocalServer(provider=provider, title=PROVIDERS[provider].title, base_url=base_url, models=models)


async def _read(client: httpx.AsyncClient, url: str) -> bytes:
    """Return the body of a response, shortened if it is too large to be a list of models."""
    body = b""
    async with client.stream("GET", url) as response:
        response.raise_for_status()
        async for chunk in response.aiter_raw():  # decompressed, it could be of any size
            body += chunk
            if len(body) > _LARGEST_LIST:
                break
    return body
