"""Language models of all providers behind `ports.Model`: one stream of events and one kind of error.

`model("provider:model")` returns one, `discover()` finds the servers of this machine. The providers' libraries take a
second to import: they are imported with the first turn, in a thread, or earlier by `preload()`.

`endpoint` parses models' names, `model` is the implementation of the port, `servers` searches this machine.
`connection`, `messages`, `stream` and `errors` depend on the libraries and are imported late.
"""

from __future__ import annotations

from pegboard.ask.providers.endpoint import Patience, allowed_name
from pegboard.ask.providers.model import ProviderModel, model, preload
from pegboard.ask.providers.servers import LocalServer, discover

__all__ = ["LocalServer", "Patience", "ProviderModel", "allowed_name", "discover", "model", "preload"]
