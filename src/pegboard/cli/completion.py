"""Names that a shell completes, written so that it inserts each one as a single word and runs nothing in it.

Files of a folder that the user doesn't trust can have any name, and the scripts of typer quote names for no shell: bash
inserts them as they are, and zsh evaluates them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

_PLAIN: Final = re.compile(r"[\w@%+=:,./-]")
"""Characters that bash inserts without a backslash."""
_NOT_FOR_ZSH: Final = frozenset("\\'\"")
"""Characters that typer's script for zsh can't contain: it would evaluate what follows a backslash, and drop quotes."""


class _Word(str):
    """A completion that typer keeps although, with its backslashes, it doesn't start with the typed text."""

    __slots__ = ()

    def startswith(self, *_: object) -> bool:
        """Return True."""
        return True


def completions(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the printable names that start with the typed text, as the shell that asks for them has to insert them.

    Args:
        names: The names to choose from.
        incomplete: The typed text without quotes and backslashes.
    """
    found = [name for name in names if name.startswith(incomplete) and name.isprintable()]
    shell = os.environ.get("_PEGBOARD_COMPLETE")
    if shell == "complete_zsh":
        return [name for name in found if _NOT_FOR_ZSH.isdisjoint(name)]
    if shell == "complete_bash":
        quote = _typed_word()[:1]
        return [_Word(_for_bash(name, quote)) for name in found]
    return found


def _typed_word() -> str:
    """Return the word at the cursor of bash as it was typed, with its quotes."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    at = os.environ.get("COMP_CWORD", "")
    return words[int(at)] if at.isdecimal() and int(at) < len(words) else words[-1]


def _for_bash(name: str, quote: str) -> str:
    """Return a name as the continuation of a word that begins with this quotation mark, or without one."""
    if quote == "'":
        return name.replace("'", r"'\''")
    if quote == '"':
        return re.sub(r'[\\"$`]', r"\\\g<0>", name)
    return "".join(char if _PLAIN.match(char) else f"\\{char}" for char in name)
