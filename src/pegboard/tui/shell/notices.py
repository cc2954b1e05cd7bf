"""Toasts about the configuration that appear when the app starts."""

from __future__ import annotations

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
