"""A user's configuration, in a temporary folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pegboard.config import Paths, Settings, load, review_folder, trust_folder
from pegboard.models import Problem


@dataclass
class User:
    """A user's file, a working directory, and the settings from them."""

    file: Path
    cwd: Path

    def write(self, text: str | bytes) -> None:
        """Write the user's file."""
        self.file.write_bytes(text.encode() if isinstance(text, str) else text)

    def overlay(self, text: str) -> None:
        """Write the working directory's file."""
        (self.cwd / "pegboard.toml").write_text(text)

    def trust(self) -> None:
        """Trust the working directory as it is now."""
        paths = Paths.from_environment({"PEGBOARD_CONFIG": str(self.file)})
        trust_folder(paths, review_folder(paths, self.cwd))

    def load(self, environ: Mapping[str, str] | None = None) -> tuple[Settings, tuple[Problem, ...]]:
        """Load the settings."""
        return load({"PEGBOARD_CONFIG": str(self.file), **(environ or {})}, self.cwd)


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Provide an empty user."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    return User(tmp_path / "home" / "config.toml", tmp_path / "work")
