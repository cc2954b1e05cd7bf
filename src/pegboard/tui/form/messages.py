"""Messages that editors send to the form."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message

from pegboard.forms import Field
from pegboard.models import Fault


class Edited(Message):
    """The user changed a field."""

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field


class ConvertToBox(Message):
    """Request to replace a line by a box, since its text has several lines."""

    def __init__(self, field: Field, text: str) -> None:
        super().__init__()
        self.field = field
        self.text = text


class LineSubmitted(Message):
    """The user pressed Enter in a line."""

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field


class Rejected(Message):
    """The form was to be run, but arguments are invalid."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__()
        self.faults = faults
