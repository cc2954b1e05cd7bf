"""Sanitizing of untrusted text: no control sequences, invisible characters or changes of direction."""

from __future__ import annotations

import re
from functools import cache

_TAB = " " * 4
_CONTROLS = ((0x00, 0x09), (0x0B, 0x1F), (0x7F, 0x9F))
_INVISIBLE = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # direction mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180E, 0x180E),  # Mongolian vowel separator
    (0x200B, 0x200B),  # zero-width space
    (0x200E, 0x200F),  # direction marks
    (0x2028, 0x202E),  # line and paragraph separators, embeddings, overrides
    (0x2060, 0x206F),  # word joiners, invisible operators, isolates
    (0x3164, 0x3164),  # Hangul filler
    (0xD800, 0xDFFF),  # lone surrogates, which can't be encoded
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF0, 0xFFFB),  # unassigned ones, annotations
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE0FFF),  # tags and further variation selectors
)
_JOINERS = ((0x200C, 0x200D),)
_SELECTORS = ((0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F))


def _signs(*ranges: tuple[int, int]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


INVISIBLE = _signs((0x80, 0x9F), *_INVISIBLE)
"""Characters for a set of a regular expression: those without a glyph that have no control picture either."""
_JOINING = _signs(*_JOINERS, *_SELECTORS)
_UNSAFE = re.compile(f"[{_signs(*_CONTROLS, *_INVISIBLE)}{_JOINING}]")
_UNSAFE_IN_LINE = re.compile(f"[\n{_signs(*_CONTROLS, *_INVISIBLE)}{_JOINING}]")
# Joiners and variation selectors are part of the spelling in Persian and in emoji. Elsewhere, and in a row, they are
# only invisible, and could hide any text.
_VISIBLE = f"[^\0-\x9f{_signs(*_INVISIBLE)}{_JOINING}]"
_JOINER_ALONE = re.compile(
    f"(?<!{_VISIBLE})(?<!{_VISIBLE}[{_signs(*_SELECTORS)}])[{_signs(*_JOINERS)}]"
    f"|(?<!{_VISIBLE})(?<![0-9#*](?=\ufe0f))[{_signs(*_SELECTORS)}]"
)


def clean(text: str, *, keep_newlines: bool = True) -> str:
    r"""Return `text` with a visible replacement for every control and invisible character.

    Control characters become control pictures (`␛`), invisible and direction-changing ones and lone surrogates become
    escapes (`\u202e`), and a tab becomes four spaces. Clean text is returned unchanged.

    Args:
        text: Any text.
        keep_newlines: Whether to keep line breaks (`\r\n` becomes `\n`); otherwise each becomes `⏎`.
    """
    if (text.isascii() and text.isprintable()) or not (_UNSAFE if keep_newlines else _UNSAFE_IN_LINE).search(text):
        return text
    text = _JOINER_ALONE.sub(lambda match: _escape(ord(match[0])), text.replace("\r\n", "\n"))
    text = text.translate(_stand_ins())
    return text if keep_newlines else text.replace("\n", "⏎")


def escaped_json(json: str) -> str:
    r"""Return JSON in which every character that is not printable, or invisible, is escaped, such as `\u202e`.

    Line breaks stay. They can only occur between values, because they are already escaped in strings.
    """
    if json.isascii() and json.isprintable():
        return json
    unsafe = {sign for sign in set(json) - {"\n", "\ufe0f"} if not sign.isprintable() or _UNSAFE.match(sign)}
    return json.translate({ord(sign): _json_escape(ord(sign)) for sign in unsafe})


def without_halves(text: str) -> str:
    """Return `text` as valid Unicode: surrogate pairs are joined, and lone surrogates become `\ufffd`."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_line(text: str) -> str:
    """Return `text` sanitized and on one line, for titles, labels and cells; line breaks become `⏎`."""
    return clean(text, keep_newlines=False)


@cache
def _stand_ins() -> dict[int, str]:
    """Return the replacement of each unsafe character except joiners and the line break."""
    return {point: _stand_in(point) for first, last in (*_CONTROLS, *_INVISIBLE) for point in range(first, last + 1)}


def _stand_in(point: int) -> str:
    if point == ord("\t"):
        return _TAB
    if point < 0x20:
        return chr(0x2400 + point)
    return "␡" if point == 0x7F else _escape(point)


def _json_escape(point: int) -> str:
    if point < 0x10000:
        return f"\\u{point:04x}"
    high, low = divmod(point - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _escape(point: int) -> str:
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
