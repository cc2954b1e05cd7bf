"""`pegboard stop`."""

from __future__ import annotations

from pegboard.cli.brake import change_brake
from pegboard.cli.root import JsonOption, app


@app.command()
def stop(json: JsonOption = False) -> None:
    """Reject all waiting and new calls from watched agents and clients of `pegboard serve` until `pegboard resume`."""
    change_brake("stopped", as_json=json)
