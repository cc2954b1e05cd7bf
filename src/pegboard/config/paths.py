"""Paths of Pegboard's files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard.built_in import BUILT_IN_PACKS

if TYPE_CHECKING:
    from pegboard.config.settings import Settings

OVERLAY: Final = "pegboard.toml"
"""The file of the working directory whose values override the user's."""

PATH_VARIABLES: Final = ("PEGBOARD_CONFIG", "PEGBOARD_DATA_DIR", "PEGBOARD_STATE_DIR", "PEGBOARD_CACHE_DIR")
"""Environment variables that choose the user's files and folders."""


@dataclass(frozen=True)
class Paths:
    """Every file and folder of Pegboard, as absolute paths; none of them needs to exist."""

    config_file: Path
    """The user's settings, in TOML."""
    data: Path
    """Files that the user made: packs, themes, presets, scripts."""
    state: Path
    """Files that persist between runs: history, results, log."""
    cache: Path
    """Files that Pegboard can recreate."""
    run_packs: tuple[Path, ...] = ()
    """Packs folders that the environment adds for this run (`PEGBOARD_PACKS`)."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Paths:
        """Return the paths for this user.

        `PEGBOARD_CONFIG`, `PEGBOARD_DATA_DIR`, `PEGBOARD_STATE_DIR` and `PEGBOARD_CACHE_DIR` override the platform's
        folders (XDG on Linux); `PEGBOARD_PACKS` is a path list. An empty variable counts as unset; a relative path
        starts at the working directory.

        Args:
            environ: The environment; the process's own by default.

        Raises:
            OSError: The user has no home folder, and variables don't name all folders.
        """
        environ = os.environ if environ is None else environ

        def place(variable: str) -> Path | None:
            return absolute(environ[variable]) if environ.get(variable) else None

        config, data = place("PEGBOARD_CONFIG"), place("PEGBOARD_DATA_DIR")
        state, cache = place("PEGBOARD_STATE_DIR"), place("PEGBOARD_CACHE_DIR")
        if not (config and data and state and cache):
            from platformdirs import PlatformDirs

            usual = PlatformDirs("pegboard", appauthor=False)
            try:
                config = config or usual.user_config_path / "config.toml"
                data = data or usual.user_data_path
                state = state or usual.user_state_path
                cache = cache or usual.user_cache_path
            except RuntimeError as error:
                raise OSError(
                    "The home folder is unknown. Set HOME to an absolute path, or set PEGBOARD_CONFIG,"
                    " PEGBOARD_DATA_DIR, PEGBOARD_STATE_DIR and PEGBOARD_CACHE_DIR."
                ) from error
        packs = environ.get("PEGBOARD_PACKS", "").split(os.pathsep)
        return cls(config, data, state, cache, tuple(absolute(folder) for folder in packs if folder))

    def variables(self) -> dict[str, str]:
        """Return the environment variables that choose these paths, with absolute paths."""
        named = {
            "PEGBOARD_CONFIG": str(self.config_file),
            "PEGBOARD_DATA_DIR": str(self.data),
            "PEGBOARD_STATE_DIR": str(self.state),
            "PEGBOARD_CACHE_DIR": str(self.cache),
            "PEGBOARD_PACKS": os.pathsep.join(map(str, self.run_packs)),
        }
        return {name: value for name, value in named.items() if os.environ.get(name)}

    @property
    def packs(self) -> Path:
        """Folder of the user's packs."""
        return self.data / "packs"

    @property
    def themes(self) -> Path:
        """Folder of the user's themes."""
        return self.data / "themes"

    @property
    def presets(self) -> Path:
        """Folder of saved arguments."""
        return self.data / "presets"

    @property
    def scripts(self) -> Path:
        """Folder of the user's scripts."""
        return self.data / "scripts"

    @property
    def checks(self) -> Path:
        """Folder of the user's own checks."""
        return self.data / "checks"

    @property
    def schemas(self) -> Path:
        """Folder of the schemas that tools had so far."""
        return self.state / "schemas"

    @property
    def keyring(self) -> Path:
        """Folder of the names of secrets in the keyring, which can't list them itself."""
        return self.data / "keyring"

    @property
    def interface(self) -> Path:
        """File of the state of the interface: the last page, tool and filter."""
        return self.state / "interface.json"

    @property
    def logins(self) -> Path:
        """Folder of logins to MCP servers that no keyring stores."""
        return self.data / "logins"

    @property
    def database(self) -> Path:
        """SQLite file of the history."""
        return self.state / "history.db"

    @property
    def results(self) -> Path:
        """Folder of results too large for the history."""
        return self.state / "results"

    @property
    def approvals(self) -> Path:
        """File of the rules for calls of models and MCP clients."""
        return self.config_file.with_name("approvals.toml")

    @property
    def sessions(self) -> Path:
        """Folder of the lock files of sessions."""
        return self.state / "sessions"

    @property
    def brake(self) -> Path:
        """File that exists while calls from agents are paused or stopped."""
        return self.state / "brake.json"

    @property
    def hooks(self) -> Path:
        """Folder of the sockets of agents' sessions that are observed through hooks."""
        return self.state / "hooks"

    @property
    def questions(self) -> Path:
        """Folder of the calls of other processes that await approval."""
        return self.state / "questions"

    @property
    def trust(self) -> Path:
        """Record of the folders that the user trusts."""
        return self.state / "trusted-folders.json"

    @property
    def serve_token(self) -> Path:
        """Token with which MCP clients reach `pegboard serve --http`."""
        return self.state / "serve-token"

    @property
    def log(self) -> Path:
        """Pegboard's log file."""
        return self.state / "pegboard.log"

    @property
    def index(self) -> Path:
        """Folder of discovery's cache."""
        return self.cache / "index"


def absolute(path: str | Path, folder: Path | None = None) -> Path:
    """Expand `~` and make a path absolute without following links.

    Args:
        path: As the user wrote it.
        folder: Start of a relative path; the working directory by default.
    """
    return Path(os.path.abspath((folder or working_directory()) / expanded(path)))  # noqa: PTH100 - pathlib keeps `..`


def expanded(path: str | Path) -> Path:
    """Expand `~` in a path; that of an unknown user, or without a home folder, stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises


def working_directory() -> Path:
    """Return the working directory; if it was deleted, the path that the shell names."""
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was deleted
        return Path(os.environ.get("PWD", "/"))


def packs_folders(settings: Settings, paths: Paths, extra: Sequence[Path] = ()) -> list[Path]:
    """Return the folders that are searched for packs; of two packs with one name the earlier folder's is used.

    The order is: built-in, the data folder's `packs/`, configured, given for this run. A folder named twice keeps its
    first position. Missing folders are included: they may appear later.

    Args:
        settings: The settings, for the configured folders.
        paths: The paths, for the data folder and `PEGBOARD_PACKS`.
        extra: Folders from the command line's `--packs`; they precede those of `PEGBOARD_PACKS`.
    """
    given = (absolute(folder) for folder in extra)
    return _unique([BUILT_IN_PACKS, paths.packs, *settings.packs.folders, *given, *paths.run_packs])


def _unique(folders: Iterable[Path]) -> list[Path]:
    by_place: dict[str, Path] = {}
    for folder in folders:
        by_place.setdefault(os.path.realpath(folder), folder)
    return list(by_place.values())
