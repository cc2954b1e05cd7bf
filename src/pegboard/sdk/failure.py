"""The exception with which a tool reports a failure, and its group."""

from __future__ import annotations


class ToolFailed(Exception):  # noqa: N818 - public name
    """Exception that fails a call with a message for the user or the model.

    Raise it for expected failures. The result shows the message without a traceback::

        if not matches:
            raise ToolFailed(f"{path} contains no tables. Choose another file.", code="no_tables")

    Args:
        message: What failed, why, and what to do.
        code: Short identifier of the kind of failure; appears as `error.detail` of the result.
        data: JSON value with details; appears as the data of the result.
    """

    def __init__(self, message: str, code: str | None = None, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data

    def __reduce__(self) -> tuple[type[ToolFailed], tuple[str, str | None, object]]:
        return type(self), (self.message, self.code, self.data)


def only_exception(error: BaseException) -> BaseException:
    """Return the exception that is alone in a group, or in groups within it; return any other exception unchanged."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
