"""`pegboard paths`."""

from __future__ import annotations

import typer

from pegboard.cli.root import JsonOption, PacksOption, app, open_runtime


@app.command()
def paths(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """Show where Pegboard keeps its files and looks for packs."""
    from pegboard.cli.output import narrate_problems, print_json, print_table

    runtime = open_runtime(context)
    narrate_problems(runtime.problems())
    where = runtime.paths
    named = {
        "config": where.config_file,
        "approvals": where.approvals,
        "data": where.data,
        "state": where.state,
        "cache": where.cache,
        "database": where.database,
        "results": where.results,
        "themes": where.themes,
        "scripts": where.scripts,
    }
    if json:
        print_json({**{name: str(path) for name, path in named.items()}, "packs": [str(f) for f in runtime.folders]})
        return
    print_table([*((name, str(path)) for name, path in named.items()), *(("packs", str(f)) for f in runtime.folders)])
