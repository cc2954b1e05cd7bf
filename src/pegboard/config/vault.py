"""The system's keyring, which may be locked, broken, slow, or not there at all."""

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
_PATIENCE: Final = 30.0
"""Seconds: whoever is asked to unlock the keyring has to type a password."""
_INSTEAD: Final = "Set the secret in the environment or in a `.env` file instead."

Answer = TypeVar("Answer")


class Vault:
    """The secrets in the keyring. Every method waits for it, up to 30 seconds; none raises for its sake.

    Args:
        names: The folder that remembers their names, with an empty file for each; it needn't exist.
        patience: Seconds to wait for an answer.
    """

    def __init__(self, names: Path, patience: float = _PATIENCE) -> None:
        self._names = names
        self._patience = patience
        self._asking = Lock()
        self._last: Thread | None = None

    def backend(self) -> str | Problem:
        """Gives the name of the keyring that is used."""
        return self._ask(lambda keyring: str(keyring.name))

    def names(self) -> tuple[str, ...]:
        """Gives the names of what was kept, in order; reads the disk only."""
        try:
            return tuple(sorted(file.name for file in self._names.iterdir()))
        except OSError:
            return ()

    def get(self, name: str) -> str | Problem | None:
        """Gives a secret's value; None if there is none of that name."""
        return self._ask(lambda keyring: keyring.get_password(_SERVICE, name))

    def set(self, name: str, value: str) -> Problem | None:
        """Keeps a value under a name, in the place of the one that was there; gives what went wrong."""
        is_new = name not in self.names()
        try:
            make_folder(self._names)
            tighten(self._names)
            (self._names / name).touch(PRIVATE_FILE)
        except OSError as error:
            return Problem(
                message=f"The name {name} can't be written: {error.strerror or error}.", file=str(self._names)
            )

        def keep(keyring: KeyringBackend) -> bool:
            keyring.set_password(_SERVICE, name, value)
            # Some take everything and keep nothing.
            return keyring.get_password(_SERVICE, name) == value

        kept = self._ask(keep)
        if kept is True:
            return None
        if is_new:
            self._forget(name)
        return kept or Problem(message="The keyring doesn't keep what it is given.", fix=_INSTEAD)

    def remove(self, name: str) -> bool | Problem:
        """Deletes a secret; gives whether there was one."""

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

    def _ask(self, question: Callable[[KeyringBackend], Answer]) -> Answer | Problem:
        """Asks in a thread of its own, which a keyring that never answers keeps."""
        answers: list[Answer | Problem] = []
        with self._asking:
            if self._last is None or not self._last.is_alive():
                self._last = Thread(target=lambda: answers.append(_answer(question)), daemon=True, name="keyring")
                self._last.start()
                self._last.join(self._patience)
            if answers:
                return answers[0]
            message = f"The keyring gave no answer within {self._patience:g} seconds."
            return Problem(message=message, fix=f"It may wait to be unlocked. {_INSTEAD}")


def _answer(question: Callable[[KeyringBackend], Answer]) -> Answer | Problem:
    try:
        import keyring
        from keyring.backends import fail
        from keyring.errors import KeyringLocked

        backend = keyring.get_keyring()
    except Exception as error:  # noqa: BLE001 - a backend is named by the user, made by others, and raises anything
        return Problem(message=f"The keyring can't be opened: {type(error).__name__}: {error}.", fix=_INSTEAD)
    if isinstance(backend, fail.Keyring):
        return Problem(message="There is no keyring on this machine.", fix=_INSTEAD)
    try:
        return question(backend)
    except KeyringLocked:
        return Problem(message="The keyring is locked.", fix=f"Unlock it and try again. {_INSTEAD}")
    except Exception as error:  # noqa: BLE001 - see above
        # Not the error's own words: a secret may be in them.
        return Problem(message=f"The keyring failed ({type(error).__name__}).", fix=_INSTEAD)
