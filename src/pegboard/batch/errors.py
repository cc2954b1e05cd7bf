"""Exceptions of batches."""

from __future__ import annotations

from pegboard.errors import PegboardError


class BatchError(PegboardError):
    """A batch can't start or continue; the message is one or more sentences with the reason and the fix."""


class RowsError(BatchError):
    """A file of rows can't be read any further; the message names the row."""


class MappingError(BatchError):
    """The columns don't match the tool's parameters, or a `--map` option can't be used."""


class JournalError(BatchError):
    """A batch can't be resumed: its journal, its results and its rows don't belong together."""


class EngineError(BatchError):
    """An engine can't run calls; rows without a result stay unfinished."""
