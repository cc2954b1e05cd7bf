"""The pane that shows a form: one view per field, each with the editor that its kind asks for."""

from pegboard.tui.form.pane import FormPane

__all__ = ["FormPane"]
