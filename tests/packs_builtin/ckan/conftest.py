"""Portals for the tests; `web` and `portal` are imported by their names."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "fakes"))

from portal import FakePortal
from web import Answering, Web

from pegboard.packs._ckan import close
from pegboard.sdk import testing

from .asking import Configure, Serve


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect to servers of this machine without a proxy."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers for the duration of the test."""
    with ExitStack() as running:

        def start(answering: Answering, *, tls: bool = False) -> Web:
            return running.enter_context(Web(answering, tls=tls).running())

        yield start


@pytest.fixture
async def asking() -> AsyncIterator[Configure]:
    """Configure the pack for a while: a base URL (or a server), and options of `[packs.ckan]`."""

    def configure(
        base_url: str | Web, *, secrets: dict[str, str] | None = None, **config: object
    ) -> AbstractContextManager[testing.ChosenHost]:
        url = base_url if isinstance(base_url, str) else f"{base_url.url}/api/3"
        return testing.host(config={"ckan": {"base_url": url, **config}}, secrets=secrets)

    yield configure
    await close()


@pytest.fixture
def portal(serve: Serve) -> Web:
    """Provide a portal with a fictional catalogue."""
    return serve(FakePortal())


@pytest.fixture
async def asked(portal: Web, asking: Configure) -> AsyncIterator[Web]:
    """Provide the same portal, configured for the pack."""
    with asking(portal):
        yield portal
