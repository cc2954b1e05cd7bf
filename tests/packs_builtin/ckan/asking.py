"""What the tests of the pack ask with."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import Protocol

import pytest
from web import Answering, Web

from pegboard.packs._ckan_models import Failure, Fault
from pegboard.sdk import ToolFailed, testing


class Serve(Protocol):
    """Starts a server that runs until the test is over."""

    def __call__(self, answering: Answering, *, tls: bool = False) -> Web: ...


class Configure(Protocol):
    """Configures the pack for a while: a base URL or a server, secrets, and whatever else `[packs.ckan]` takes."""

    def __call__(
        self, base_url: str | Web, *, secrets: dict[str, str] | None = None, **config: object
    ) -> AbstractContextManager[testing.ChosenHost]: ...


async def fault_of(asking: Awaitable[object]) -> Fault:
    """Awaits a call that must fail, and gives the fault in its data, which must agree with the failure itself."""
    with pytest.raises(ToolFailed) as raised:
        await asking
    assert isinstance(raised.value.data, dict)
    assert raised.value.data["success"] is False
    fault = Failure.model_validate(raised.value.data).error
    assert (fault.message, fault.code) == (raised.value.message, raised.value.code)
    return fault
