"""Calls of the record as a script that makes them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from pegboard.forms import copied_as
from pegboard.models import CallRecord, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import duration
from pegboard.scripts.runner import NAME

_LONGEST_REASON = 200


def script_of(records: Iterable[CallRecord], find: Callable[[str], ToolSpec | None]) -> str:
    """Writes calls as a script: each as a command with its exact arguments, below a comment on how it went.

    The oldest comes first, whatever the order of the records. A script among them stands as its text; what was called
    within another of the records is left out, as that will call it again. Tools that aren't there are left as comments.

    Args:
        records: The calls.
        find: Gives a tool by its name, if it may be used.

    Returns:
        The script, with a newline at its end; empty without records.
    """
    chosen = sorted(records, key=lambda record: record.at)
    ids = {record.id for record in chosen}
    made = [record for record in chosen if record.parent not in ids]
    return "\n".join(f"{_comment(record)}\n{_commands(record, find, is_alone=len(made) == 1)}\n" for record in made)


def _comment(record: CallRecord) -> str:
    how = f"ok, {duration(record.duration_ms)}" if record.ok else "failed"
    if record.error is not None:
        how = f"failed: {clean_line(record.error.message[:_LONGEST_REASON])}"
    return f"# {record.at.astimezone():%Y-%m-%d %H:%M:%S}, {record.source}: {how}"


def _commands(record: CallRecord, find: Callable[[str], ToolSpec | None], *, is_alone: bool) -> str:
    text = record.args.get("commands")
    if record.tool == NAME and isinstance(text, str):
        text = text.rstrip("\n")
        # what it sets, and its `exit`, are its own
        return text if is_alone else f"(\n{text}\n)"
    spec = find(record.tool)
    if spec is None:
        return f"# it is not there any more: {clean_line(record.tool)} {json.dumps(record.args)}"
    return copied_as("script", spec, record.args)
