"""The system's keyring, which may be locked, broken, slow or missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, TypeVar

from pegboard.models import Problem
from pegboard.storage import PRIVATE_FILE, make_folder, tighten

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

_SERVICE: Final = "pegboard"
_TIMEOUT: Final = 30.0
"""Timeout in seconds: users type a password to unlock the keyring."""
_INSTEAD: Final = "Set the secret in the environment or in a `.env` file instead."

AnswerT = TypeVar("AnswerT")


class Vault:
    """The secrets in the keyring. Every method waits for it, up to 30 seconds, and returns its errors as problems.

    Args:
        names: Folder of the secrets' names, an empty file for each; it needn't exist.
        timeout: Timeout in seconds.
    """

    def __init__(self, names: Path, timeout: float = _TIMEOUT) -> None:
        self._names = names
        self._timeout = timeout
        self._asking = Lock()
        self._last: Thread | None = None

    def backend(self) -> str | Problem:
        """Return the name of the keyring in use."""
        return self._ask(lambda keyring: str(keyring.name))

    def names(self) -> tuple[str, ...]:
        """Return the names of stored secrets, in order; read the disk only."""
        try:
            return tuple(sorted(file.name for file in self._names.iterdir()))
        except OSError:
            return ()

    def get(self, name: str) -> str | Problem | None:
        """Return a secret's value; None if it is missing."""
        return self._ask(lambda keyring: keyring.get_password(_SERVICE, name))

    def set(self, name: str, value: str) -> Problem | None:
        """Store a value under a name, replacing an earlier one; return a problem if that fails."""
        is_new = name not in self.names()
        try:
            make_folder(self._names)
            tighten(self._names)
            (self._names / name).touch(PRIVATE_FILE)
        except OSError as error:
            return Problem(
                message=f"{name} was not stored because its name can't be written: {error.strerror or error}.",
                file=str(self._names),
            )

        def keep(keyring: KeyringBackend) -> bool:
            keyring.set_password(_SERVICE, name, value)
            # Some keyrings accept a value without storing it.
            return keyring.get_password(_SERVICE, name) == value

        kept = self._ask(keep)
        if kept is True:
            return None
        if is_new:
            self._forget(name)
        return kept or Problem(message="The keyring didn't store the secret.", fix=_INSTEAD)

    def remove(self, name: str) -> bool | Problem:
        """Delete a secret; return whether it existed."""

        def delete(keyring: KeyringBackend) -> bool:
            if keyring.get_password(_SERVICE, name) is None:
                return False
            keyring.delete_password(_SERVICE, name)
            return True

        deleted = self._ask(delete)
        return deleted if isinstance(deleted, Problem) else self._forget(name) or deleted

    def _forget(self, name: str) -> bool:
        try:
            (self._names / name).unlink()
        except OSError:
            return False
        return True

    def _ask(self, question: Callable[[KeyringBackend], AnswerT]) -> AnswerT | Problem:
        """Query the keyring in a separate thread, which a keyring that never answers blocks."""
        answers: list[AnswerT | Problem] = []
        with self._asking:
            if self._last is None or not self._last.is_alive():
                self._last = Thread(target=lambda: answers.append(_answer(question)), daemon=True, name="keyring")
                self._last.start()
                self._last.join(self._timeout)
            if answers:
                return answers[0]
            message = f"The keyring didn't answer within {self._timeout:g} seconds."
            return Problem(message=message, fix=f"Unlock it if it asks for a password. {_INSTEAD}")


def _answer(question: Callable[[KeyringBackend], AnswerT]) -> AnswerT | Problem:
    try:
        import keyring
        from keyring.backends import fail
        from keyring.errors import KeyringLocked

        backend = keyring.get_keyring()
    except Exception as error:  # noqa: BLE001 - users can configure any backend, which may raise anything
        return Problem(message=f"The keyring can't be opened: {type(error).__name__}: {error}.", fix=_INSTEAD)
    if isinstance(backend, fail.Keyring):
        return Problem(message="This machine has no keyring.", fix=_INSTEAD)
    try:
        return question(backend)
    except KeyringLocked:
        return Problem(message="The keyring is locked.", fix=f"Unlock it and try again. {_INSTEAD}")
    except Exception as error:  # noqa: BLE001 - see above
        # The message doesn't quote the error, which may contain the secret.
        return Problem(message=f"The keyring failed ({type(error).__name__}).", fix=_INSTEAD)
