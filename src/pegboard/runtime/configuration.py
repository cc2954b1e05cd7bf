"""The settings of a runtime, read when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pegboard.config import Settings
    from pegboard.models import Problem

ReadSettings: TypeAlias = "Callable[[], tuple[Settings, Sequence[Problem]]]"


class Configuration:
    """Settings and their problems; the first use, on any thread, reads them.

    Args:
        read: Function that reads the settings and their problems.
    """

    def __init__(self, read: ReadSettings) -> None:
        self._read = read
        self._found: tuple[Settings, Sequence[Problem]] | None = None
        self._reading = Lock()

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._get()[0]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the settings."""
        return tuple(self._get()[1])

    def read(self) -> tuple[Settings, Sequence[Problem]]:
        """Return what the files and the environment contain now, with its problems; use nothing of it."""
        return self._read()

    def read_settings(self) -> Settings:
        """Return what the files and the environment contain now, of which a part applies only after a restart.

        If a mistake in them keeps the settings in use, return those.
        """
        from pegboard.runtime.reload import changed_settings

        read, _ = self._read()
        return read if changed_settings(self.settings, read)[1].blocked is None else self.settings

    def replace(self, settings: Settings, problems: Sequence[Problem]) -> None:
        """Use other settings from now on."""
        self._found = settings, problems

    def _get(self) -> tuple[Settings, Sequence[Problem]]:
        with self._reading:
            if self._found is None:
                self._found = self._read()
            return self._found
