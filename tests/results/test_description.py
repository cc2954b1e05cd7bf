"""Descriptions of tools, as the tool page shows them."""

from __future__ import annotations

import textwrap

import pytest

from pegboard.results.description import as_markdown
from pegboard.results.markdown_lines import lines_of, rows_of

CASES = {
    "sections of a docstring": (
        """
        Fetch a page.
        Args:
            url: The address.
            limit (int): Number of results,
                at most 50.

            raw: Whether to return HTML.
        Returns:
            The text, or a message
            if there is none.
        Raises:
            ValueError: The address
            is wrong.

        It is cached.
        """,
        """
        Fetch a page.

        Args:

        • url: The address.
        • limit (int): Number of results, at most 50.
        • raw: Whether to return HTML.

        Returns:

        The text, or a message if there is none.

        Raises:

        • ValueError: The address is wrong.

        It is cached.
        """,
    ),
    "an example": (
        """
        Example:
            x = 1  # *not* emphasis

            if x:
                y = 2
        """,
        """
        Example:

          x = 1  # *not* emphasis

          if x:
              y = 2
        """,
    ),
    "an object": (
        """
        Returns:
            {
                "a": 1
            }
        """,
        """
        Returns:

          {
              "a": 1
          }
        """,
    ),
    "pairs": (
        """
        Errors:
        400: Bad request
        404: Not found
        """,
        """
        Errors:

        • 400: Bad request
        • 404: Not found
        """,
    ),
    "wrapped prose": (
        """
        Note that this is slow:
        it reads each file, and
        keeps none.
        """,
        "Note that this is slow: it reads each file, and keeps none.",
    ),
    "pairs that end in prose": (
        """
        Note:
        a: first
        b: second
        and more.
        """,
        "Note: a: first b: second and more.",
    ),
    "a list below a colon": (
        """
        Modes:
        - *fast*: quick
        - slow: exact

        Also:
          * one
        """,
        """
        Modes:

        • fast: quick
        • slow: exact

        Also:

        • one
        """,
    ),
    "a numbered list": (
        """
        Examples:
        1. A folder:
          path/to

        2. A file:
          path/to/x
        """,
        """
        Examples:

        1. A folder: path/to

        2. A file: path/to/x
        """,
    ),
    "code in an item": (
        """
        Returns:
            str: The text. Format:
                ```
                a:
                    b
                ```
            other: More.
        """,
        """
        Returns:

        • str: The text. Format:

            a:
                b
        • other: More.
        """,
    ),
    "code between fences": (
        """
        Like this:
        ```
        a:
            b: c
        ```
        """,
        """
        Like this:

          a:
              b: c
        """,
    ),
    "a heading at the end": ("Args:", "Args:"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("description", "shown"), CASES.values(), ids=CASES.keys())
def test_the_lines_of_a_section_stay_apart(description: str, shown: str) -> None:
    lines = lines_of(as_markdown(textwrap.dedent(description).strip()))
    rows = [row.text.rstrip() for line in lines for row in rows_of(line, 80)]
    assert "\n".join(rows).strip("\n") == textwrap.dedent(shown).strip("\n")
