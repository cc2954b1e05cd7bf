"""`pegboard pause`."""

from __future__ import annotations

from pegboard.cli.brake import change_brake
from pegboard.cli.root import JsonOption, app


@app.command()
def pause(json: JsonOption = False) -> None:
    """Hold all calls from watched agents and clients of `pegboard serve` until `pegboard resume`.

    The pause is a file, so it also survives a restart. Approve a single call with `pegboard approve`.
    """
    change_brake("paused", as_json=json)
