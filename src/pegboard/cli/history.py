"""`pegboard history`."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard.cli.root import JsonOption, PacksOption, app, open_runtime


@app.command()
def history(
    context: typer.Context,
    json: JsonOption = False,
    tool: Annotated[str | None, typer.Option("--tool", metavar="NAME", help="List only calls of this tool.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="List at most this many calls.")] = 50,
    packs: PacksOption = None,
) -> None:
    """List past calls from every source, the newest first."""
    from pegboard.cli.output import narrate_problems, print_json, print_table

    runtime = open_runtime(context)
    records = runtime.history.records(tool=tool, limit=limit)
    narrate_problems(runtime.problems())
    if json:
        print_json(records)
        return
    print_table(
        [
            (
                record.at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                "ok" if record.ok else record.error.detail or record.error.code if record.error else "failed",
                f"{record.duration_ms:.0f} ms",
                record.source,
                record.tool,
                _compact(record.args),
            )
            for record in records
        ],
        ("TIME", "RESULT", "DURATION", "SOURCE", "TOOL", "ARGUMENTS"),
        empty=f"No recorded calls of {tool}."
        if tool
        else "No recorded calls yet. `pegboard tools invoke` runs a tool.",
    )


def _compact(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
