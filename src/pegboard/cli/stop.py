"""`pegboard stop`."""

from __future__ import annotations

from pegboard.cli.brake import change_brake
from pegboard.cli.root import JsonOption, app


@app.command()
def stop(json: JsonOption = False) -> None:
    """Reject the waiting and all further calls of watched agents until `pegboard resume`."""
    change_brake("stopped", as_json=json)
