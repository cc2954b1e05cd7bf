"""The theme that was chosen in the interface."""

from __future__ import annotations

from pathlib import Path

from pegboard import storage


class ThemeChoice:
    """The theme chosen in the interface; a theme that is configured later takes precedence.

    Args:
        file: File that stores the choice.
        configured: The configured theme.
    """

    def __init__(self, file: Path, configured: str) -> None:
        self._file = file
        self._configured = configured

    def get(self) -> str:
        """Return the theme to start with."""
        return self.chosen() or self._configured

    def chosen(self) -> str | None:
        """Return the chosen theme, or None if there is none, or another theme was configured since."""
        try:
            chosen, _, configured = self._file.read_text("utf-8").partition("\n")
        except (OSError, UnicodeDecodeError):
            return None
        return chosen if chosen and configured.strip() == self._configured else None

    def save(self, theme: str) -> None:
        """Save the chosen theme for the next start.

        Raises:
            OSError: The file can't be written.
        """
        storage.make_folder(self._file.parent)
        storage.write(self._file, f"{theme}\n{self._configured}\n".encode())
