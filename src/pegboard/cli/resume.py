"""`pegboard resume`."""

from __future__ import annotations

from pegboard.cli.brake import change_brake
from pegboard.cli.root import JsonOption, app


@app.command()
def resume(json: JsonOption = False) -> None:
    """Let calls through again after `pegboard pause` or `pegboard stop`."""
    change_brake("running", as_json=json)
