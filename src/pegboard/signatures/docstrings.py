"""Parser of docstrings in Google, NumPy and Sphinx style."""

# Compared with docstring_parser 0.18.0 on the 8,065 docstrings of the standard library (Python 3.11): 0.05 s instead of
# 0.44 s, and 30 µs instead of 118 µs for a docstring with sections. Discovery as a whole takes 0.98 s instead of 1.05 s
# for the top-level modules, plus 26 ms to import the library. Both find the same parameters in 112 of 118 docstrings;
# in 5 of the others, the library finds none. This parser also keeps other sections (Raises, Examples) in the
# description.

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pegboard.data.unicode import encodable

_PARAMETERS = "Args|Arguments|Parameters|Params|Keyword [Aa]rg(?:ument)?s|Other Parameters|Attributes"
_RETURNS = "Returns?|Yields?"

_GOOGLE = re.compile(
    rf"^(?:(?P<parameters>{_PARAMETERS})|(?P<returns>{_RETURNS})):[ \t]*(?P<rest>\S.*)?$", re.MULTILINE
)
_NUMPY = re.compile(
    rf"^(?:(?P<parameters>{_PARAMETERS})|(?P<returns>{_RETURNS})|(?P<other>\S.*))\n-{{3,}}$", re.MULTILINE
)
_SPHINX = re.compile(
    r"^:(?:(?P<parameter>param|parameter|arg|argument|key|keyword)[ \t]{1,8}(?:[^:\n]{0,200}[ \t])?(?P<name>\*{0,2}\w+)"
    r"|(?P<returns>returns?|yields?)|(?P<types>type[ \t][^:\n]+|rtype))[ \t]{0,8}:[ \t]*",
    re.MULTILINE,
)
_CONTINUED = re.compile(r"(?!:\w|>>>|\.\. )[^\sA-Z]")
"""Start of an unindented line that continues the text of a Sphinx field in the line above."""
_NEW_BLOCK = re.compile(r"$|:\w|>>>|\.\. | ")
"""Start of a line that ends an unindented paragraph."""

# All repetitions of blanks are bounded, so that hostile docstrings can't cause quadratic time.
_NAMES = r"\*{0,2}\w+(?:[ \t]{0,8},[ \t]{0,8}\*{0,2}\w+)*"
_GOOGLE_ITEM = re.compile(
    rf"^(?P<names>{_NAMES})[ \t]{{0,8}}(?:\((?:[^()]|\([^()]*\))*\))?[ \t]{{0,8}}:(?:[ \t]+|$)(?P<text>.*)$"
)
_LISTED_ITEM = re.compile(
    rf"^[-*+•][ \t]{{1,8}}[`*]{{0,2}}(?P<names>{_NAMES})[`*]{{0,2}}[ \t]{{0,8}}"
    r"(?:\((?:[^()]|\([^()]*\))*\))?[ \t]{0,8}(?::|-{1,2}|[–—])(?:[ \t]+|$)(?P<text>.*)$"
)
_DASHED_ITEM = re.compile(
    rf"^(?P<names>{_NAMES})[ \t]{{0,8}}(?:\((?:[^()]|\([^()]*\))*\))?[ \t]{{1,8}}(?:--?|[–—])[ \t]+(?P<text>.*)$"
)
_GOOGLE_ITEMS = (_GOOGLE_ITEM, _LISTED_ITEM, _DASHED_ITEM)
"""Forms of the items of a section, of which the first that occurs counts. `x -- text` is that of PEP 257."""
_NOTHING = re.compile(r"(?:none\.?)?", re.IGNORECASE)
"""Text of a section on parameters that may be left out of the description."""
_NUMPY_ITEM = re.compile(rf"^(?P<names>{_NAMES})[ \t]{{0,8}}(?P<text>)(?::.*)?$")
_TYPE_PREFIX = re.compile(r"^[\w.]+(?:\[[^\]\n]*\]+)?(?:[ \t]{0,8}\|[ \t]{0,8}[\w.]+(?:\[[^\]\n]*\]+)?)*:(?:[ \t]+|\n)")
_LIST_MARK = re.compile(r"[-*+•] |\d+[.)] |\s|>>>|```|\|")


class Docstring(NamedTuple):
    """Parsed docstring.

    Attributes:
        description: Text without the sections on parameters and return values.
        parameters: Parameter → description.
        returns: Description of the return value.
    """

    description: str
    parameters: dict[str, str]
    returns: str


def read(docstring: str) -> Docstring:
    """Parse a docstring in the first style (Google, NumPy, Sphinx) that it matches.

    Args:
        docstring: Docstring with the indentation of the source.
    """
    text = cleaned(docstring)
    # quick check: docstrings without sections rarely contain these
    if ":" in text or "---" in text:
        for style, take in _STYLES:
            if style.search(text):
                return take(text)
    return Docstring(text, {}, "")


def cleaned(docstring: str) -> str:
    """Return a docstring without its indentation and without lone surrogates."""
    text = encodable(docstring.expandtabs())
    first, newline, rest = text.partition("\n")
    if not newline:
        return text.strip()
    return f"{first.strip()}\n{_dedented(rest.split(_NEWLINE))}".strip()


_NEWLINE = "\n"


def _dedented(lines: list[str]) -> str:
    """Join lines without their common indentation; blank lines become empty."""
    margin = min((len(line) - len(line.lstrip()) for line in lines if line and not line.isspace()), default=0)
    return _NEWLINE.join([line[margin:].rstrip() for line in lines])


def _google(text: str) -> Docstring:
    parameters: dict[str, str] = {}
    returns: list[str] = []
    kept: list[str] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        header = _GOOGLE.match(line)
        if header is None or (header["rest"] and header["parameters"]):
            kept.append(line)
            continue
        start = index
        while index < len(lines) and (not lines[index].strip() or lines[index][0] == " "):
            index += 1
        block = _dedented(lines[start:index])
        if header["parameters"]:
            items = next(filter(None, (_items(block, form) for form in _GOOGLE_ITEMS)), {})
            parameters |= items
            kept += [] if items or _NOTHING.fullmatch(block.strip()) else lines[start - 1 : index]
        else:
            body = f"{header['rest'] or ''}\n{block}".strip()
            returns.append(_flowed(_TYPE_PREFIX.sub("", body, count=1)))
    return Docstring(_tidy("\n".join(kept)), parameters, "\n\n".join(returns))


def _items(block: str, pattern: re.Pattern[str]) -> dict[str, str]:
    """Parse `name: text`, or `name` and an indented text below, from a dedented block."""
    found: dict[str, str] = {}
    names = ""
    first = ""
    more: list[str] = []
    for line in [*block.split(_NEWLINE), None]:
        item = pattern.match(line) if line and line[0] != " " else None
        if item is None and line is not None:
            more.append(line)
            continue
        if names:
            text = _flowed(f"{first}\n{_dedented(more)}".strip()) if more else first.strip()
            found.update((name.strip().lstrip("*"), text) for name in names.split(","))
        if item is not None:
            names, first = item.group("names", "text")
            more = []
    return found


def _flowed(text: str) -> str:
    """Join the lines of a single paragraph; keep the lines of text with lists, code or several paragraphs."""
    lines = text.split("\n")
    if len(lines) == 1 or any(not line or _LIST_MARK.match(line) for line in lines):
        return text
    return " ".join(line.strip() for line in lines)


def _numpy(text: str) -> Docstring:
    parameters: dict[str, str] = {}
    returns: list[str] = []
    headers = list(_NUMPY.finditer(text))
    kept = [text[: headers[0].start()]]
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        block = text[header.end() : following.start() if following else len(text)].strip("\n")
        if header["parameters"]:
            items = _items(block, _NUMPY_ITEM)
            parameters |= items
            kept += [] if items or _NOTHING.fullmatch(block.strip()) else [f"{header[0]}\n{block}\n"]
        elif header["returns"]:
            returns.append(_numpy_returns(block))
        else:
            kept.append(f"{header[0]}\n{block}\n")
    return Docstring(_tidy("\n".join(kept)), parameters, "\n\n".join(returns))


def _numpy_returns(block: str) -> str:
    """Return the indented texts of the entries, or the whole block if it contains none."""
    indented = [line for line in block.split("\n") if not line or line[0] == " "]
    if not any(line.strip() for line in indented):
        return _flowed(block.strip())
    return _flowed(_dedented(indented).strip())


def _sphinx(text: str) -> Docstring:
    parameters: dict[str, str] = {}
    returns: list[str] = []
    kept: list[str] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        field = _SPHINX.match(line)
        if field is None:
            kept.append(line)
            continue
        start = index
        if index < len(lines) and _CONTINUED.match(lines[index]):
            index = next((after for after in range(index, len(lines)) if _NEW_BLOCK.match(lines[after])), len(lines))
        while index < len(lines) and (lines[index][:1] == " " or (not lines[index] and _indented_after(lines, index))):
            index += 1
        continued = _dedented(lines[start:index])
        body = _flowed(f"{line[field.end() :]}\n{continued}".strip())
        if field["parameter"]:
            parameters[field["name"].lstrip("*")] = body
        elif field["returns"]:
            returns.append(body)
    return Docstring(_tidy("\n".join(kept)), parameters, "\n\n".join(returns))


def _indented_after(lines: list[str], index: int) -> bool:
    return index + 1 < len(lines) and lines[index + 1][:1] == " "


_BLANKS = re.compile(r"\n{3,}")


def _tidy(text: str) -> str:
    return _BLANKS.sub("\n\n", text).strip()


_STYLES: tuple[tuple[re.Pattern[str], Callable[[str], Docstring]], ...] = (
    (_GOOGLE, _google),
    (_NUMPY, _numpy),
    (_SPHINX, _sphinx),
)
