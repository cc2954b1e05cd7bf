"""Where Pegboard's files are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.config.settings import Settings

BUILT_IN_PACKS = Path(__file__).parent.parent / "packs"
"""The folder of the packs that Pegboard brings along."""


@dataclass(frozen=True)
class Paths:
    """Every file and folder of Pegboard's, absolute; none of them needs to exist."""

    config_file: Path
    """The user's settings, TOML."""
    data: Path
    """What the user made: packs, themes, presets, scripts."""
    state: Path
    """What is remembered from run to run: history, results, log."""
    cache: Path
    """What can be made again at any time."""
    run_packs: tuple[Path, ...] = ()
    """Packs folders that the environment adds for this run (`PEGBOARD_PACKS`)."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Paths:
        """Finds the folders of this user.

        `PEGBOARD_CONFIG`, `PEGBOARD_DATA_DIR`, `PEGBOARD_STATE_DIR` and `PEGBOARD_CACHE_DIR` win over the places that
        the platform (XDG on Linux) has for such files; `PEGBOARD_PACKS` is a path list. An empty variable counts as
        unset, a relative path starts at the working directory.

        Args:
            environ: Where the `PEGBOARD_*` variables come from; the process's own environment by default.
        """
        environ = os.environ if environ is None else environ

        def place(variable: str) -> Path | None:
            return absolute(environ[variable]) if environ.get(variable) else None

        config, data = place("PEGBOARD_CONFIG"), place("PEGBOARD_DATA_DIR")
        state, cache = place("PEGBOARD_STATE_DIR"), place("PEGBOARD_CACHE_DIR")
        if not (config and data and state and cache):
            from platformdirs import PlatformDirs

            usual = PlatformDirs("pegboard", appauthor=False)
            config = config or usual.user_config_path / "config.toml"
            data = data or usual.user_data_path
            state = state or usual.user_state_path
            cache = cache or usual.user_cache_path
        packs = environ.get("PEGBOARD_PACKS", "").split(os.pathsep)
        return cls(config, data, state, cache, tuple(absolute(folder) for folder in packs if folder))

    @property
    def packs(self) -> Path:
        """The folder of the user's own packs."""
        return self.data / "packs"

    @property
    def themes(self) -> Path:
        """The folder of the user's own themes."""
        return self.data / "themes"

    @property
    def presets(self) -> Path:
        """The folder of saved arguments."""
        return self.data / "presets"

    @property
    def scripts(self) -> Path:
        """The folder of the user's scripts."""
        return self.data / "scripts"

    @property
    def keyring(self) -> Path:
        """The folder of the names of the secrets in the keyring, which it can't list itself."""
        return self.data / "keyring"

    @property
    def database(self) -> Path:
        """The history's SQLite file."""
        return self.state / "history.db"

    @property
    def results(self) -> Path:
        """The folder of results too large for the history."""
        return self.state / "results"

    @property
    def approvals(self) -> Path:
        """The rules that say which calls of models and MCP clients run."""
        return self.config_file.with_name("approvals.toml")

    @property
    def sessions(self) -> Path:
        """The folder of the files that say which sessions are in use."""
        return self.state / "sessions"

    @property
    def trust(self) -> Path:
        """The record of the folders that the user trusts."""
        return self.state / "trusted-folders.json"

    @property
    def log(self) -> Path:
        """Pegboard's own log file."""
        return self.state / "pegboard.log"

    @property
    def index(self) -> Path:
        """The folder of what discovery has read before."""
        return self.cache / "index"


def absolute(path: str | Path, folder: Path | None = None) -> Path:
    """Gives `path` with `~` expanded and made absolute, without following links.

    Args:
        path: As the user wrote it.
        folder: Where a relative path starts; the working directory by default.
    """
    return Path(os.path.abspath((folder or _working_directory()) / os.path.expanduser(path)))  # noqa: PTH100, PTH111 - pathlib's raise where there is no home, and leave `..` in


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was deleted; this is where it was
        return Path(os.environ.get("PWD", "/"))


def packs_folders(settings: Settings, paths: Paths, extra: Sequence[Path] = ()) -> list[Path]:
    """Gives the folders in which packs are looked for; of two packs with one name the earlier folder's wins.

    The order is: built-in, the data folder's `packs/`, configured, given for this run. A folder named twice keeps its
    first place. Folders that don't exist are in the list too: they may appear later.

    Args:
        settings: For the configured folders.
        paths: For the data folder's, and those of `PEGBOARD_PACKS`.
        extra: What the command line gives with `--packs`; they come before those of `PEGBOARD_PACKS`.
    """
    given = (absolute(folder) for folder in extra)
    return _unique([BUILT_IN_PACKS, paths.packs, *settings.packs.folders, *given, *paths.run_packs])


def _unique(folders: Iterable[Path]) -> list[Path]:
    by_place: dict[str, Path] = {}
    for folder in folders:
        by_place.setdefault(os.path.realpath(folder), folder)
    return list(by_place.values())
