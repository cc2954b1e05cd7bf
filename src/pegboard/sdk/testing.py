"""For the tests of a pack: a host with chosen config, secrets and packs.

A test imports its pack as any module, and calls its functions::

    from pegboard.sdk import testing
    import shelf

    def test_counting_in_dozens() -> None:
        with testing.host(config={"shelf": {"unit": "dozen"}}, secrets={"SHELF_KEY": "s3cret"}) as host:
            assert shelf.count(thing="hammer") == 0.25
        assert host.logged == ["counted"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple  # Any: functions of packs take and return anything

from pegboard.sdk.host import Host, install, installed
from pegboard.sdk.shelf import Shelf

if TYPE_CHECKING:
    from pegboard.sdk.host import CallerKind

Functions = Mapping[str, Callable[..., Any]]


class Progress(NamedTuple):
    """What a tool said of how far it is."""

    done: float
    total: float | None
    message: str


class ChosenHost(Host):
    """A host that gives what a test has chosen, and keeps what was said.

    Args:
        config: The config of each pack.
        secrets: The secrets there are; a pack gets only those that it is granted.
        packs: Packs to call, or to call in the place of others: the functions of each by name.
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
        """The lines that tools logged."""
        self.progressed: list[Progress] = []
        """What tools said of how far they are."""
        self._own_shelf = Shelf([], secrets, packs, config)
        self._called_by = caller

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Keeps how far the tool is."""
        self.progressed.append(Progress(done, total, message))

    def caller(self) -> CallerKind:
        """Return the caller that the test has chosen."""
        return self._called_by

    def log(self, message: str) -> None:
        """Keeps a line."""
        self.logged.append(message)


@contextmanager
def host(
    *,
    config: Mapping[str, Mapping[str, object]] | None = None,
    secrets: Mapping[str, str] | None = None,
    packs: Mapping[str, Functions] | None = None,
    caller: CallerKind = "user",
) -> Iterator[ChosenHost]:
    """Puts a host of one's choice behind the functions of the SDK, for a while.

    Nothing comes from the environment or the packs path of the machine. Packs that the test has imported can be
    called beside the chosen ones.

    Args:
        config: The config of each pack, as `[packs.NAME]` would have it.
        secrets: The secrets there are, by name. A pack gets only those that it is granted, as ever.
        packs: Packs to call, or to call in the place of others: the functions of each by name.
        caller: Who starts the calls: the user, or an agent.

    Yields:
        The host, whose `logged` and `progressed` tell what tools have said.
    """
    before = installed()
    chosen = ChosenHost(config or {}, secrets or {}, packs or {}, caller)
    install(chosen)
    try:
        yield chosen
    finally:
        install(before)
