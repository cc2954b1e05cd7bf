"""Dask clusters: their addresses and the connection to one. This is the only module that imports Dask at its start."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from pegboard.batch.errors import EngineError
from pegboard.sdk.distributions import extra_command

CONNECT_SECONDS: Final = 10.0
_MOST_LOCAL: Final = 64


def _install() -> str:
    return f"Install it with: {extra_command('dask')}"


class DaskAddress:
    """Address of a cluster: `dask://HOST:PORT`, `dask+tls://HOST:PORT` or `dask://local?workers=2`.

    Raises:
        EngineError: The text is no such address.
    """

    def __init__(self, text: str) -> None:
        self.local_workers = 0
        self.address = ""
        try:
            parts = urlsplit(text)
            is_local = parts.scheme == "dask" and parts.hostname == "local" and parts.port is None
            port = parts.port
        except ValueError as error:
            raise _bad_address(text) from error
        if is_local:
            options = parse_qs(parts.query, keep_blank_values=True)
            number = options.pop("workers", [str(os.cpu_count() or 1)])[-1]
            if options or not (number.isdecimal() and len(number) < 5 and 0 < int(number) <= _MOST_LOCAL):
                raise EngineError(f"{text!r} can't be used: write it as dask://local?workers=N, at most {_MOST_LOCAL}.")
            self.local_workers = int(number)
        elif parts.scheme in ("dask", "dask+tls") and parts.hostname and port and not parts.query:
            protocol = "tls" if parts.scheme == "dask+tls" else "tcp"
            self.address = f"{protocol}://{parts.netloc}"
        else:
            raise _bad_address(text)

    @property
    def is_encrypted(self) -> bool:
        """Whether connections to the cluster use TLS; a local cluster does, with keys of its own."""
        return bool(self.local_workers) or self.address.startswith("tls://")


def _silence() -> None:
    """Keep Dask's messages, which would break the screen, from standard error."""
    # Some of its loggers have levels and handlers of their own, so the level of their parent isn't enough.
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _bad_address(text: str) -> EngineError:
    return EngineError(
        f"{text!r} can't be used as an engine. Examples: dask://scheduler:8786, dask+tls://scheduler:8786,"
        " dask://local?workers=2."
    )


class DaskCluster:
    """Connection to a cluster; a local cluster starts and ends with it.

    Args:
        address: As in `DaskAddress`.

    Attributes:
        name: The address, for messages.
        where: The address.
        client: Dask's client, after `open`.

    Raises:
        EngineError: The address can't be used.
    """

    def __init__(self, address: str) -> None:
        self.name = address
        self.where = DaskAddress(address)
        self.client: Any = None
        self._cluster: Any = None

    async def open(self) -> None:
        """Connect, unless that is done.

        Raises:
            EngineError: The scheduler doesn't answer, or a library is missing.
        """
        if self.client is not None:
            return
        try:
            distributed = await asyncio.to_thread(__import__, "distributed")
        except ImportError as error:
            raise EngineError(f"The engine {self.name} needs the library `distributed`. {_install()}") from error
        _silence()
        try:
            if self.where.local_workers:
                # Its processes, which may start again at any time, would import files of the working directory.
                os.environ["PYTHONSAFEPATH"] = "1"
                self._cluster = await distributed.LocalCluster(
                    n_workers=self.where.local_workers,
                    threads_per_worker=1,
                    processes=True,
                    asynchronous=True,
                    security=True,
                    dashboard_address=":0",
                    worker_dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            where = self._cluster if self._cluster is not None else self.where.address
            self.client = await distributed.Client(
                where, asynchronous=True, set_as_default=False, timeout=CONNECT_SECONDS
            )
        except ImportError as error:
            raise EngineError(f"The engine {self.name} needs another library: {error}. {_install()}") from error
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            reason = str(error).split("\n", 1)[0] or type(error).__name__
            raise EngineError(f"No Dask scheduler answers at {self.name}: {reason}.") from error

    async def close(self) -> None:
        """Disconnect, and end a local cluster."""
        for one in (self.client, self._cluster):
            if one is not None:
                with suppress(OSError, TimeoutError):
                    async with asyncio.timeout(CONNECT_SECONDS):
                        await one.close()
