"""Tokens of source code. Runs only in a process of its own, because a lexer may take endless time on untrusted text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pygments.token import _TokenType

_KINDS = (
    ("Comment", "muted"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Literal.Date", "number"),
    ("Keyword.Constant", "constant"),
    ("Keyword", "key"),
    ("Name.Tag", "key"),
    ("Name.Attribute", "constant"),
    ("Name.Builtin", "constant"),
    ("Name.Decorator", "constant"),
    ("Name.Function", "constant"),
    ("Name.Class", "constant"),
    ("Generic.Heading", "key"),
    ("Generic.Subheading", "key"),
    ("Generic.Inserted", "string"),
    ("Generic.Deleted", "warning"),
    ("Error", "warning"),
)


def token_spans(text: str, name: str) -> list[list[tuple[int, int, str]]]:
    """Return the start, end and kind of the colored tokens in each line.

    Args:
        text: The code.
        name: Name of its file.

    Raises:
        ValueError: No lexer is known for the name.
    """
    from pygments.lexers import find_lexer_class_for_filename

    lexer = find_lexer_class_for_filename(name)
    if lexer is None:
        raise ValueError("The language is unknown.")
    lines: list[list[tuple[int, int, str]]] = [[]]
    at = 0
    known: dict[_TokenType, str] = {}
    for token, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        if token not in known:
            known[token] = _kind(str(token).removeprefix("Token."))
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append([])
                at = 0
            if piece and known[token]:
                lines[-1].append((at, at + len(piece), known[token]))
            at += len(piece)
    return lines


def _kind(token: str) -> str:
    return next((kind for prefix, kind in _KINDS if token.startswith(prefix)), "")
