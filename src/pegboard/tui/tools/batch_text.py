"""Text of the dialog that runs a tool over a file."""

from __future__ import annotations

from textual.content import Content

from pegboard.batch.preview import BatchPreview
from pegboard.batch.results import RowResult
from pegboard.data.json_text import write
from pegboard.models import ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import duration
from pegboard.tui.widgets.pick_list import PickLine

_LONGEST = 200


def row_line(result: RowResult) -> PickLine:
    """Return the line of a row's result."""
    if result.error is not None:
        return PickLine(f"✗ {result.row:>6}  {clean_line(result.error.message[:_LONGEST])}", result.error.detail or "")
    text = write(result.data)[:_LONGEST]
    return PickLine(f"✓ {result.row:>6}  {clean_line(text)}", duration(result.duration_ms))


def described(found: BatchPreview, spec: ToolSpec) -> Content:
    """Return the columns, the mapping and the first calls."""
    parts = [Content(clean_line(f"columns: {', '.join(found.columns)}"))]
    if found.mapping:
        pairs = ", ".join(f"{name} ← {column}" for name, column in found.mapping.items())
        parts.append(Content(clean_line(f"mapping: {pairs}")))
    if found.ignored:
        parts.append(Content(clean_line(f"ignored: {', '.join(found.ignored)}")))
    for call in found.calls:
        text = f"row {call.row}: {spec.name} {write(call.arguments)[:_LONGEST]}"
        line = Content(clean_line(text))
        if call.problem:
            line = Content.assemble(line, Content.styled(f"  ✗ {clean_line(call.problem)}", "$text-error"))
        parts.append(line)
    if not found.calls:
        parts.append(Content("The file has no rows."))
    return Content("\n").join(parts)
