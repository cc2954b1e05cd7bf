"""The words of the code and the interface: plain English, one vocabulary.

Docstrings, comments, the names of tests and the texts that users read are checked for words that Pegboard does not
use. What is in backticks is a name, not a word, and is not checked.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

FIRST_WORDS = {
    "Asks", "Begins", "Closes", "Does", "Draws", "Ends", "Finds", "Follows", "Gives", "Goes", "Has", "Hears", "How",
    "Keeps", "Learns", "Leaves", "Lets", "Lists", "Looks", "Makes", "Marks", "Notes", "Offers", "Puts", "Reads", "Says",
    "Shows", "Somebody", "Something", "Takes", "Tells", "Throws", "What", "Where", "Which", "Who", "Whoever", "Writes",
}  # fmt: skip
"""Words that no docstring of a module, a class or a function begins with."""

PHRASES = {
    r"tells?|told": "say, show, report, return",
    r"gives?|gave": "returns, yields, passes",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"faults?": "validation error; the classes keep the names `Fault` and `FormFaults`",
    r"stands?|stood|standing": "is, comes, appears",
    r"(?:is|are)n't there|is there|are there": "exists, is missing, is installed",
    r"(?<!there )(?:is|are|was) no (?!(?:longer|more|such)\b)[a-z]+": "is not a",
    r"what (?:is|are|was|were|may be)": "name it",
    r"whoever|whomever|nobody|somebody|anybody|everybody": "users, callers; no one",
    r"at once": "immediately, together, concurrently",
    r"go(?:es|ing)? on": "continues",
    r"won't do": "does not fit, is not accepted",
    r"things?": "name it",
    r"walls?|bench(?:es)?|houses?|rooms?|roads?": "tool list, tool page, package, space, pipeline",
    r"the user's word|the word of": "approval",
    r"beforehand": "before it runs",
    r"patien(?:ce|t|tly)": "timeout",
    r"maximis(?:e|es|ed|ing)": "maximize, maximized",
    r"colour(?:s|ed|ing|less)?": "color, colored",
    r"e-mails?": "email",
    r"set-ups?": "setup",
    r"any more(?=[.,;:)]|$)|anymore": "no longer",
    r"untick(?:s|ed|ing)?": "deselect",
}
"""Phrase (a regular expression) → plain English for it."""

NOT_WORDS = re.compile(r"``[^`]*``|`[^`]*`|https?://\S+|\b(?:FormFaults|Fault)\b")
"""Names in prose, which are left out."""

EXEMPT: dict[str, dict[str, str]] = {
    "src/pegboard/tui/shell/app_commands.py": {"colours": "a word under which the palette finds the themes"},
}
"""File → phrase that it may use → why."""

_AVOIDED = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b", re.IGNORECASE)


class Text(NamedTuple):
    """A piece of prose in a file."""

    line: int
    text: str


def prose_of(file: Path) -> Iterator[Text]:
    """Yield the docstrings, comments and names of tests of a file, and the texts of the interface in `src`."""
    source = file.read_text(encoding="utf-8")
    # Most files have no such word after a `#`, and tokens take long.
    tokens = tokenize.generate_tokens(io.StringIO(source).readline) if _may_have_wrong_comments(source) else ()
    for token in tokens:
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string)
    documented = {id(node) for node in _documents(_nodes(file))}
    is_interface = "src" in file.relative_to(ROOT).parts
    for node in _nodes(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Text(node.lineno, node.name.replace("_", " "))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_sentence = is_interface and len(re.findall(r"[A-Za-z']+", node.value)) > 2
            if id(node) in documented or is_sentence:
                yield Text(node.lineno, node.value)


@lru_cache(maxsize=1)
def _nodes(file: Path) -> Sequence[ast.AST]:
    return [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]


def _may_have_wrong_comments(source: str) -> bool:
    lines = (line for line in source.split("\n") if "#" in line)
    return any(_AVOIDED.search(text) for line in lines for text in (line, NOT_WORDS.sub("", line)))


def _documents(nodes: Sequence[ast.AST]) -> Iterator[ast.Constant]:
    """Yield the strings that are statements of their own: docstrings, also those of attributes."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def first_words(file: Path) -> Iterator[Text]:
    """Yield the first word of every docstring of a module, a class or a function."""
    for node in _nodes(file):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield Text(getattr(node, "lineno", 1), text.split()[0])


def _files() -> list[Path]:
    every = (file for folder in ("src", "tests", "screenshots") for file in sorted((ROOT / folder).rglob("*.py")))
    return [file for file in every if file != Path(__file__)]


def wrong_words(file: Path) -> Iterator[str]:
    """Yield every use of an avoided word in a file: `file:line: word`."""
    name = file.relative_to(ROOT).as_posix()
    for line, word in first_words(file):
        if word in FIRST_WORDS:
            yield f"{name}:{line}: begins with {word!r}"
    allowed = EXEMPT.get(name, {})
    for line, text in prose_of(file):
        for found in _AVOIDED.finditer(NOT_WORDS.sub("", text)):
            if found[0].lower() not in allowed:
                yield f"{name}:{line}: {found[0]!r}"


@pytest.mark.slow
def test_docstrings_comments_and_texts_use_the_vocabulary_of_the_project() -> None:
    wrong = [line for file in _files() for line in wrong_words(file)]
    assert not wrong, f"{len(wrong)} avoided words:\n" + "\n".join(wrong[:200])


def test_the_documents_use_the_vocabulary_of_the_project() -> None:
    documents = [ROOT / "README.md", *(ROOT / ".github").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
    wrong = [
        f"{file.relative_to(ROOT)}:{number}: {found[0]!r}"
        for file in documents
        for number, line in enumerate(_without_code(file.read_text(encoding="utf-8")).split("\n"), 1)
        for found in _AVOIDED.finditer(NOT_WORDS.sub("", line))
    ]
    assert not wrong, "\n".join(wrong)


def _without_code(markdown: str) -> str:
    return re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), markdown, flags=re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    import sys
    from collections import Counter

    chosen = [Path(argument).resolve() for argument in sys.argv[1:]]
    files = [file for file in _files() if not chosen or any(file.is_relative_to(one) for one in chosen)]
    every = [line for file in files for line in wrong_words(file)]
    counts = Counter("/".join(line.split(":")[0].split("/")[:4]) for line in every)
    print("\n".join(every if chosen else (f"{count:5} {name}" for name, count in counts.most_common())))
    print(len(every))
