"""Helpers of the tests that call the pack."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import Protocol

import pytest
from web import Answering, Web

from pegboard.packs._ckan_models import Failure, FailureReason
from pegboard.sdk import ToolFailed, testing


class Serve(Protocol):
    """Function that starts a server for the duration of the test."""

    def __call__(self, answering: Answering, *, tls: bool = False) -> Web: ...


class Configure(Protocol):
    """Function that configures the pack for a while: a base URL or a server, secrets, and options of `[packs.ckan]`."""

    def __call__(
        self, base_url: str | Web, *, secrets: dict[str, str] | None = None, **config: object
    ) -> AbstractContextManager[testing.ChosenHost]: ...


async def reason_of(asking: Awaitable[object]) -> FailureReason:
    """Await a call that must fail, and return the reason in its data, which must agree with the failure itself."""
    with pytest.raises(ToolFailed) as raised:
        await asking
    assert isinstance(raised.value.data, dict)
    assert raised.value.data["success"] is False
    fault = Failure.model_validate(raised.value.data).error
    assert (fault.message, fault.code) == (raised.value.message, raised.value.code)
    return fault
