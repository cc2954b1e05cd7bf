"""Imports that forms, descriptions and results need; each takes a while."""

from __future__ import annotations


def load_parsers() -> None:
    """Import the validator, the views of results and the parsers that they use; blocks."""
    import jsonschema  # noqa: F401

    import pegboard.tui.result.error
    import pegboard.tui.result.export
    import pegboard.tui.result.tree  # noqa: F401
    from pegboard.results.markdown_lines import load_parser

    load_parser()
