"""The pause of all calls from agents: a file, so that it survives every process."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pegboard import storage

BrakeState: TypeAlias = Literal["running", "paused", "stopped"]
"""Whether calls pass, wait until they are resumed, or are rejected until then."""


@dataclass(frozen=True)
class Brake:
    """The pause.

    Args:
        file: The file, which is missing while calls pass.
    """

    file: Path

    @property
    def state(self) -> BrakeState:
        """The state. A file that can't be read pauses: someone wanted calls to wait."""
        return self.read()[0]

    def read(self) -> tuple[BrakeState, datetime | None]:
        """Return the state, and when it began."""
        try:
            os.stat(self.file)  # noqa: PTH116 - asked at every call, and opening a missing file costs more
            content = json.loads(self.file.read_bytes())
            since = datetime.fromisoformat(content["since"])
            return ("stopped" if content["state"] == "stopped" else "paused"), since
        except FileNotFoundError:
            return "running", None
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return "paused", None

    def pause(self) -> None:
        """Let every call wait until `resume`.

        Raises:
            OSError: The state can't be written.
        """
        self._write("paused")

    def stop(self) -> None:
        """Reject the calls that wait, and every call until `resume`.

        Raises:
            OSError: The state can't be written.
        """
        self._write("stopped")

    def resume(self) -> None:
        """Let calls pass again.

        Raises:
            OSError: The state can't be removed.
        """
        self.file.unlink(missing_ok=True)

    def _write(self, state: BrakeState) -> None:
        storage.make_folder(self.file.parent)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        storage.write(self.file, json.dumps({"state": state, "since": since}).encode())
