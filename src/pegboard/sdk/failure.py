"""The failure that a tool words itself."""

from __future__ import annotations


class ToolFailed(Exception):  # noqa: N818 - it reads as a sentence where it is raised
    """Ends a call as failed, in the author's own words.

    Args:
        message: What went wrong, for people and models alike; shown as it is.
        code: A short word for the kind of failure, given on as `error.detail`.
        data: Any JSON value that goes with it, given on as the result's data.
    """

    def __init__(self, message: str, code: str | None = None, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data

    def __reduce__(self) -> tuple[type[ToolFailed], tuple[str, str | None, object]]:
        return type(self), (self.message, self.code, self.data)
