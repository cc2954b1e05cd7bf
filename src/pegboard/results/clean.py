"""Sanitizing of untrusted text: no control sequences, invisible characters or changes of direction."""

from __future__ import annotations

import re
from functools import cache

_TAB = " " * 4
_CONTROLS = ((0x00, 0x09), (0x0B, 0x1F), (0x7F, 0x9F))
_INVISIBLE = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x061C, 0x061C),  # direction marks, also the next two
    (0x180E, 0x180E),
    (0x200E, 0x200F),
    (0x200B, 0x200B),  # zero-width space
    (0x2028, 0x202E),  # line and paragraph separators, embeddings, overrides
    (0x2060, 0x206F),  # word joiners, invisible operators, isolates
    (0xD800, 0xDFFF),  # lone surrogates, which can't be encoded
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFF9, 0xFFFB),  # annotations
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE01EF),  # tags and variation selectors
)
_JOINERS = ((0x200C, 0x200D),)


def _signs(*ranges: tuple[int, int]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_UNSAFE = re.compile(f"[{_signs(*_CONTROLS, *_INVISIBLE, *_JOINERS)}]")
_UNSAFE_IN_LINE = re.compile(f"[\n{_signs(*_CONTROLS, *_INVISIBLE, *_JOINERS)}]")
# Joiners are part of the spelling in Persian and in emoji. After other characters they are only invisible.
_JOINER_ALONE = re.compile(f"(?<![^{_signs((0, 0x9F), *_INVISIBLE, *_JOINERS)}])[{_signs(*_JOINERS)}]")


def clean(text: str, *, keep_newlines: bool = True) -> str:
    r"""Return `text` with a visible replacement for every control and invisible character.

    Control characters become control pictures (`␛`), invisible and direction-changing ones and lone surrogates become
    escapes (`\u202e`), and a tab becomes four spaces. Clean text is returned unchanged.

    Args:
        text: Any text.
        keep_newlines: Whether to keep line breaks (`\r\n` becomes `\n`); otherwise each becomes `⏎`.
    """
    if text.isprintable() or not (_UNSAFE if keep_newlines else _UNSAFE_IN_LINE).search(text):
        return text
    text = _JOINER_ALONE.sub(lambda match: _escape(ord(match[0])), text.replace("\r\n", "\n"))
    text = text.translate(_stand_ins())
    return text if keep_newlines else text.replace("\n", "⏎")


def escaped_json(json: str) -> str:
    r"""Return JSON in which every character that is not printable is escaped, such as `\u202e`.

    Line breaks stay. They can only occur between values, because they are already escaped in strings.
    """
    if json.isascii() and json.isprintable():
        return json
    unsafe = {sign for sign in set(json) if not sign.isprintable() and sign != "\n"}
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
