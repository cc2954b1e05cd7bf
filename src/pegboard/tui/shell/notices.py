"""Toasts that appear when the app starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual.app import App

from pegboard.results.clean import clean_line

if TYPE_CHECKING:
    from pegboard.config import Settings

AppResultT = TypeVar("AppResultT")


def notify_about_configuration(app: App[AppResultT], settings: Settings) -> None:
    """Notify the user if no tool can run or the folder is not trusted; the problem list has the details."""
    loaded = settings.loaded
    if loaded.blocked is not None:
        message = clean_line(f"No tool runs: {loaded.blocked}")
        app.notify(message, title="Configuration error", severity="error", timeout=20, markup=False)
    if loaded.trust in {"untrusted", "changed"}:
        change = "is not trusted" if loaded.trust == "untrusted" else "changed after you trusted it"
        applied = f"This folder {change}. Only its appearance settings apply."
        message = f'{applied} Run "Trust this folder…" to review the others.'
        app.notify(message, title="Folder not trusted", severity="warning", timeout=10, markup=False)


def notify_about_questions(app: App[AppResultT], folder: Path, error: OSError) -> None:
    """Notify the user that the folder of waiting calls can't be written, so that the app shows none for approval."""
    reason = f"{folder} can't be written: {error.strerror}."
    text = f"This app can't show agents' calls for approval because {reason}"
    fix = "Make the folder writable, then restart Pegboard."
    app.notify(clean_line(f"{text} {fix}"), severity="warning", markup=False)
