"""Argument form of a tool: one view per field, with the editor for its kind."""

from pegboard.tui.form.pane import FormPane

__all__ = ["FormPane"]
