"""Secrets from the environment, `.env` files and the keyring, in this order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NoReturn, Self, TypeAlias

from pegboard.config.dotenv import Dotenv, parse_dotenv, read_dotenv
from pegboard.config.files import decoded, shown
from pegboard.config.paths import Paths
from pegboard.config.redaction import credentials, is_secret_name
from pegboard.config.trust import DOTENV, FolderFiles, TrustFile
from pegboard.config.vault import Vault
from pegboard.models import Problem
from pegboard.sdk.secret_checks import secret_problem
from pegboard.storage import is_open_to_others

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")

_NO_SECRETS: Final = frozenset({"OLDPWD", "PWD", "SSH_AUTH_SOCK"})
"""Variables of every shell whose names look like secrets."""

Source: TypeAlias = Literal["environment", ".env", "keyring"]


class Secret:
    """A secret that was found. Only `reveal` returns its value.

    Args:
        name: Its name.
        value: Its value.
        source: Its source.
        file: The `.env` file, if it is the source.
    """

    __slots__ = ("__value", "file", "name", "source")

    def __init__(self, name: str, value: str, source: Source, file: Path | None = None) -> None:
        self.name = name
        self.source = source
        self.file = file
        self.__value = value

    @property
    def place(self) -> str:
        """Its source: `environment`, `keyring`, or the path of the `.env` file."""
        return self.source if self.file is None else str(self.file)

    def reveal(self) -> str:
        """Return the value."""
        return self.__value

    def __repr__(self) -> str:
        return f"<Secret {self.name} from {self.source}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("A secret can't be pickled.")


class Secrets:
    """The user's secrets, by name. The `.env` file of the working directory counts only if the folder is trusted.

    Nothing is cached: every method reads the sources again. All methods block, for the disk and up to 30 seconds for a
    locked keyring; all are thread-safe. None raises: errors are returned as problems that never contain a value.

    Args:
        paths: The paths, for the folder of the user's settings and the names in the keyring.
        environ: The environment; the process's own by default.
        cwd: The working directory; the process's own by default.
    """

    def __init__(self, paths: Paths, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._paths = paths
        self._cwd = cwd
        self._trust = TrustFile(paths.trust)
        self._vault = Vault(paths.keyring)

    def find(self, name: str, *, of_folder: bool = False) -> Secret | None:
        """Return a secret, None if it is missing; see `look_up`."""
        found = self.look_up(name, of_folder=of_folder)
        return found if isinstance(found, Secret) else None

    def look_up(self, name: str, *, of_folder: bool = False) -> Secret | Problem:
        """Return a secret, or why it is missing and what to do about it.

        A value that is empty or contains an unexpanded `${VARIABLE}` counts as missing: the next source is used.

        Args:
            name: Its name.
            of_folder: Whether only the `.env` file of the working directory is a source. A key is sent only to the host
                that it was configured for: a host that the folder configures gets the folder's own keys.
        """
        if bad := _bad_name(name):
            return bad
        wrong = ""
        for value, source, file in self._sources_of_folder(name) if of_folder else self._sources(name):
            if isinstance(value, Problem):
                return value.model_copy(update={"message": f"{wrong or f'{name} is not set.'} {value.message}"})
            reason = secret_problem(value)
            if reason is None and value is not None:
                return Secret(name, value, source, file)
            if value is not None:
                place = shown(file) if file else "the environment" if source == "environment" else "the keyring"
                wrong = wrong or f"{name} in {place} {reason}."
        fix = f"Set it in the environment or in a `.env` file, or run `pegboard auth set {name}`."
        if of_folder:
            fix = (
                f"Set it in the `.env` file of this folder and run `pegboard trust`. Other keys are not used because"
                f" the folder's pegboard.toml configures where {name} is sent."
            )
        return Problem(message=wrong or f"{name} is not set.", fix=fix)

    def where(self, name: str, *, of_folder: bool = False) -> tuple[str | None, str]:
        """Return where a secret comes from, or None and why it is missing; see `look_up`."""
        found = self.look_up(name, of_folder=of_folder)
        return (found.place, "") if isinstance(found, Secret) else (None, found.message)

    def dotenv_names(self) -> tuple[str, ...]:
        """Return the names in the `.env` files, in order."""
        return tuple(sorted({name for file in self._dotenvs() for name in file.values}))

    def keyring_names(self) -> tuple[str, ...]:
        """Return the names in the keyring, in order."""
        return tuple(name for name in self._vault.names() if _NAME.fullmatch(name))

    def keyring(self) -> str | Problem:
        """Return the name of the keyring in use, or why none can be used."""
        return self._vault.backend()

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the `.env` files."""
        return (*(problem for file in self._dotenvs() for problem in file.problems), *self._open_to_others())

    def known(self) -> tuple[tuple[str, str], ...]:
        """Return the names and values of the secrets of the `.env` files and the environment to redact.

        If several have the same name, all are listed, as any of them may be in use. A URL with a password counts,
        whatever its name is. The keyring is not read.
        """
        dotenv = [pair for file in self._dotenvs() for pair in file.values.items()]
        return tuple(pair for pair in (*dotenv, *self._environ.items()) if _is_secret(*pair))

    def check(self, name: str, value: str | None = None) -> Problem | None:
        """Return the problem of a name, or of a value, for a new secret; None if both are valid."""
        return _bad_name(name) or (None if value is None else _bad_value(value))

    def set(self, name: str, value: str) -> Problem | None:
        """Store a secret in the keyring, replacing one of the same name; return a problem if that fails."""
        return self.check(name, value) or self._vault.set(name, value)

    def remove(self, name: str) -> bool | Problem:
        """Delete a secret from the keyring; return whether it existed."""
        return _bad_name(name) or self._vault.remove(name)

    def _sources(self, name: str) -> Iterator[tuple[str | Problem | None, Source, Path | None]]:
        yield self._environ.get(name), "environment", None
        for file in self._dotenvs():
            yield file.values.get(name), ".env", file.file
        yield self._vault.get(name), "keyring", None

    def _open_to_others(self) -> Iterator[Problem]:
        file = self._paths.config_file.parent / DOTENV  # a project folder is often shared on purpose
        if is_open_to_others(file):
            message = "Other users of this machine can read or change the secrets in this file."
            yield Problem(message=message, fix=f"Run `chmod 600 {shown(file)}`.", severity="warning", file=shown(file))

    def _sources_of_folder(self, name: str) -> Iterator[tuple[str | None, Source, Path]]:
        file = self._dotenv_of_folder()
        if file is not None:
            yield file.values.get(name), ".env", file.file

    def _dotenvs(self) -> Iterator[Dotenv]:
        file = self._dotenv_of_folder()
        if file is not None:
            yield file
        yield read_dotenv(self._paths.config_file.parent / DOTENV)

    def _dotenv_of_folder(self) -> Dotenv | None:
        files = FolderFiles.read(self._cwd, self._paths)
        raw = files.dotenv
        if not isinstance(raw, bytes) or self._trust.of(files).state != "trusted":
            return None
        # Parse the bytes that were hashed, not the file, which may have changed.
        return parse_dotenv(files.dotenv_file, decoded(files.dotenv_file, raw))


def _is_secret(name: str, value: str) -> bool:
    if credentials(value, is_proxy=name.lower().endswith("_proxy")):
        return True
    return is_secret_name(name) and name not in _NO_SECRETS and not name.startswith("PEGBOARD_")


def _bad_name(name: str) -> Problem | None:
    if _NAME.fullmatch(name):
        return None
    # The message doesn't quote the name: the user may have typed the secret there.
    fix = "Use letters, digits and underscores, such as SEARCH_KEY."
    return Problem(message="The name of the secret is invalid.", fix=fix)


def _bad_value(value: str) -> Problem | None:
    reason = secret_problem(value)
    return Problem(message=f"The value {reason}.") if reason else None
