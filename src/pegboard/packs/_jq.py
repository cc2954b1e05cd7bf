"""Compilation of jq filters that can't reach the process or the disk."""

from __future__ import annotations

import re
from typing import Any  # the library has no types

# Redefines the functions of jq that expose the process and the disk. A filter can't undo definitions that precede it.
_SHIELD = """
{} as $ENV | def env: {}; def get_search_list: []; def get_jq_origin: null; def get_prog_origin: null;
def input_filename: null; def modulemeta: error("Modules can't be imported.");
"""
_MODULE_WORDS = re.compile(r"\b(?:import|include|module)\b")


def compile_filter(program: str) -> Any:  # noqa: ANN401 - the library has no types
    """Return a compiled jq filter, whose results are JSON texts.

    Args:
        program: The filter; it is untrusted.

    Raises:
        ValueError: The filter is invalid.
    """
    import jq  # type: ignore[import-not-found] # it comes without types

    # In parentheses, a program can't start with `import`, which would read any file. As JSON text, results keep
    # numbers that a float can't represent.
    try:
        return jq.compile(f"{_SHIELD}({program}\n)|tojson")
    except ValueError as error:
        if re.search("unexpected (?:import|include|module)", str(error)):
            raise ValueError("Modules can't be imported.") from None
        if not _MODULE_WORDS.search(program):  # otherwise it would read files here
            jq.compile(program)  # its message quotes the original program
        raise
