"""A script that repeats calls of the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from pegboard.data.mask import unrecorded_secret
from pegboard.forms import copied_as
from pegboard.models import CallRecord, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import duration, local_time
from pegboard.scripts.runner import NAME

_LONGEST_REASON = 200


def script_of(records: Iterable[CallRecord], find: Callable[[str], ToolSpec | None]) -> str:
    """Return a script that repeats calls: each as a command with its exact arguments, below a comment on its result.

    The oldest call comes first, whatever the order of the records. A recorded script is included as its text; calls
    that another record made are left out, since that record repeats them, unless it is a batch. Batches and calls of
    missing tools become comments. The comment on a call says whether its arguments lack a secret.

    Args:
        records: The calls.
        find: Function that returns a callable tool by its name, or None.

    Returns:
        The script, with a newline at its end; empty without records.
    """
    chosen = sorted(records, key=lambda record: record.at)
    ids = {record.id for record in chosen if not record.is_batch}
    made = [record for record in chosen if record.parent not in ids]
    return "\n".join(f"{_comment(record)}\n{_commands(record, find, is_alone=len(made) == 1)}\n" for record in made)


def _comment(record: CallRecord) -> str:
    how = f"ok, {duration(record.duration_ms)}" if record.ok else "failed"
    if record.error is not None:
        how = f"failed: {clean_line(record.error.message[:_LONGEST_REASON])}"
    hidden = unrecorded_secret(record.args)
    todo = f"\n# {clean_line(hidden)} Enter it before you run this." if hidden else ""
    return f"# {local_time(record.at)}, {record.source}: {how}{todo}"


def _commands(record: CallRecord, find: Callable[[str], ToolSpec | None], *, is_alone: bool) -> str:
    text = record.args.get("commands")
    if record.tool == NAME and isinstance(text, str):
        text = text.rstrip("\n")
        # A subshell, so that its variables and `exit` don't affect other calls.
        return text if is_alone else f"(\n{text}\n)"
    if record.is_batch:
        return f"# a batch, which `pegboard batch` runs: {clean_line(json.dumps(record.args))}"
    spec = find(record.tool)
    if spec is None:
        return f"# this tool no longer exists: {clean_line(record.tool)} {json.dumps(record.args)}"
    return copied_as("script", spec, record.args)
