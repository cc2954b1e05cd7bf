"""Language models of all providers behind `ports.Model`: one stream of events and one kind of error.

`model("provider:model")` returns one, `discover()` finds the servers of this machine. The providers' libraries take a
second to import: they are imported with the first turn, in a thread, or earlier by `preload()`.

`endpoint` parses models' names, `provider_model` is the implementation of the port, `servers` searches this machine.
`connection`, `messages`, `stream` and `errors` depend on the libraries and are imported late.
"""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.ask.providers.endpoint import ModelTimeouts, allowed_name
    from pegboard.ask.providers.provider_model import ProviderModel, model, preload
    from pegboard.ask.providers.servers import LocalServer, discover

__all__ = ["LocalServer", "ModelTimeouts", "ProviderModel", "allowed_name", "discover", "model", "preload"]

_ON_DEMAND = {
    "LocalServer": "servers",
    "ModelTimeouts": "endpoint",
    "ProviderModel": "provider_model",
    "allowed_name": "endpoint",
    "discover": "servers",
    "model": "provider_model",
    "preload": "provider_model",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
