"""Test support for packs: a host with chosen configuration, secrets and packs.

Import the pack like any module and call its functions::

    from pegboard.sdk import testing
    import stock

    def test_count_in_dozens() -> None:
        with testing.host(config={"stock": {"unit": "dozen"}}, secrets={"STOCK_KEY": "s3cret"}) as host:
            assert stock.count(item="hammer") == 0.25
        assert host.logged == ["counted"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple  # Any: functions of packs accept and return any value

from pegboard.sdk.host import Host, install, installed
from pegboard.sdk.local_packs import LocalPacks

if TYPE_CHECKING:
    from pegboard.sdk.host import CallerKind

Functions = Mapping[str, Callable[..., Any]]


class ReportedProgress(NamedTuple):
    """Arguments of one call of `progress`."""

    done: float
    total: float | None
    message: str


class ChosenHost(Host):
    """Host with the values chosen by a test. It records progress and messages.

    Args:
        config: Configuration of each pack.
        secrets: Available secrets. A pack receives only those granted to it.
        packs: Packs to add or replace: functions by name, by pack.
        caller: Who starts the calls.
    """

    def __init__(
        self,
        config: Mapping[str, Mapping[str, object]],
        secrets: Mapping[str, str],
        packs: Mapping[str, Functions],
        caller: CallerKind = "user",
    ) -> None:
        self.logged: list[str] = []
        """Messages of all calls of `log`."""
        self.progressed: list[ReportedProgress] = []
        """Arguments of all calls of `progress`."""
        self._own_packs = LocalPacks([], secrets, packs, config)
        self._called_by = caller

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Record the reported progress."""
        self.progressed.append(ReportedProgress(done, total, message))

    def caller(self) -> CallerKind:
        """Return the chosen caller."""
        return self._called_by

    def log(self, message: str) -> None:
        """Record a message."""
        self.logged.append(message)


@contextmanager
def host(
    *,
    config: Mapping[str, Mapping[str, object]] | None = None,
    secrets: Mapping[str, str] | None = None,
    packs: Mapping[str, Functions] | None = None,
    caller: CallerKind = "user",
) -> Iterator[ChosenHost]:
    """Use chosen configuration, secrets and packs inside the `with` block.

    The environment and the packs path of the machine are ignored. `call_tool` finds the chosen packs and the packs
    that the test has imported.

    Args:
        config: Configuration of each pack, like the tables `[packs.NAME]`.
        secrets: Available secrets by name. A pack receives only those granted to it.
        packs: Packs to add or replace: functions by name, by pack.
        caller: Who starts the calls: `user` or `agent`.

    Yields:
        The host, with recorded messages in `logged` and recorded progress in `progressed`.

    Raises:
        TypeError: `config` or `packs` has no mapping for each pack.
    """
    _check("config", config, '{"region": "eu"}')
    _check("packs", packs, '{"count": lambda: 3}')
    before = installed()
    chosen = ChosenHost(config or {}, secrets or {}, packs or {}, caller)
    install(chosen)
    try:
        yield chosen
    finally:
        install(before)


def _check(name: str, value: object, example: str) -> None:
    """Raise a TypeError unless a value is None or maps each pack to a mapping."""
    is_valid = isinstance(value, Mapping) and all(isinstance(inner, Mapping) for inner in value.values())
    if value is not None and not is_valid:
        raise TypeError(f'`{name}` must map the name of each pack to a mapping, as in {name}={{"NAME": {example}}}.')
