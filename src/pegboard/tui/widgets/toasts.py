"""Removal of toasts."""

from __future__ import annotations

from textual.app import App


def dismiss(app: App[object], text: str) -> None:
    """Remove the toasts with a text, which no longer applies."""
    for toast in [*app._notifications]:  # noqa: SLF001 - in public, only all toasts can be removed
        if toast.message == text:
            app._unnotify(toast)  # noqa: SLF001
