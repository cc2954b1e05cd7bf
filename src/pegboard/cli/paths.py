"""`pegboard paths`."""

from __future__ import annotations

import typer

from pegboard.cli.root import JsonOption, PacksOption, app, open_runtime


@app.command()
def paths(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """Show where Pegboard keeps its files and looks for packs."""
    from pegboard.brake import Brake
    from pegboard.cli.output import narrate, narrate_problems, print_json, print_table

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
        "brake": where.brake,
        "themes": where.themes,
        "scripts": where.scripts,
    }
    brake = Brake(where.brake).state
    if json:
        print_json(
            {
                **{name: str(path) for name, path in named.items()},
                "packs": [str(f) for f in runtime.folders],
                "calls": brake,
            }
        )
        return
    if brake != "running":
        narrate(f"Calls from agents are {brake}. `pegboard resume` lets them pass.")
    print_table([*((name, str(path)) for name, path in named.items()), *(("packs", str(f)) for f in runtime.folders)])
