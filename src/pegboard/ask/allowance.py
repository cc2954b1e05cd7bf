"""Limits of a question, and of one model turn, counted while it arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pegboard.models.conversation import CallDelta, ModelEvent, TextDelta, ThinkingDelta

BYTES_OF_TOKEN: Final = 4
"""Estimate for text whose tokens the provider reports only at the end, if at all."""

Exceeded = Literal["size", "tokens"]


@dataclass(frozen=True)
class AskLimits:
    """Limits for one question."""

    steps: int = 20
    """Model turns; the last one has no tools."""
    tokens: int = 1_000_000
    """Tokens read and written."""
    seconds: float = 600.0
    result_bytes: int = 50_000
    """Size of a result's text that is sent to the model in one message."""
    turn_bytes: int = 4_000_000
    """Size of the text, thinking and arguments of one turn."""
    turn_calls: int = 100
    """Calls that one turn may propose."""


class Allowance:
    """Bytes, calls and tokens that are left of one turn.

    Args:
        size: Bytes of text, thinking and arguments together.
        calls: Calls that the turn may propose.
        tokens: Tokens that the turn may contain, as estimated from the bytes.
    """

    def __init__(self, *, size: int, calls: int, tokens: int) -> None:
        self._size = size
        self._calls = calls
        self._tokens = tokens
        self._written = 0
        self._indexes: set[int] = set()

    @property
    def estimate(self) -> int:
        """Tokens written so far, for a turn whose provider doesn't report them."""
        return -(-self._written // BYTES_OF_TOKEN)

    def count(self, event: ModelEvent) -> tuple[ModelEvent, Exceeded | None]:
        """Count a piece of a turn.

        Returns:
            The piece, shortened to the limits, and the limit that it exceeded, if any.
        """
        left = min(self._size, self._tokens * BYTES_OF_TOKEN) - self._written
        match event:
            case TextDelta(text=text) | ThinkingDelta(text=text):
                self._written += _size(text)
                if self._written > self._size or self.estimate > self._tokens:
                    event = event.model_copy(update={"text": _beginning(text, left)})
            case CallDelta(index=index, name=name, arguments=arguments):
                self._written += _size(name) + _size(arguments)
                self._indexes.add(index)
            case _:
                pass
        return event, self._exceeded()

    def _exceeded(self) -> Exceeded | None:
        if self._written > self._size or len(self._indexes) > self._calls:
            return "size"
        return "tokens" if self.estimate > self._tokens else None


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _beginning(text: str, size: int) -> str:
    return text.encode("utf-8", "replace")[: max(size, 0)].decode("utf-8", "ignore")
