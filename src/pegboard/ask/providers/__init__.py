"""Language models behind one port, `ports.Model`: whoever provides them, one stream of events and one kind of error.

`model("provider:model")` gives one, `discover()` finds the servers of this machine. The libraries that do the talking
take a second to import: they come in with the first turn, in a thread, or earlier by `preload()`.

`naming` reads models' names, `speaking` is the model itself, `servers` looks around this machine. `connecting`,
`mapping`, `hearing` and `failing` know the libraries and are imported late: how to reach a provider, what it is sent,
what its stream means, and what its failures mean.
"""

from __future__ import annotations

from pegboard.ask.providers.endpoint import Patience, allowed_name
from pegboard.ask.providers.model import ProviderModel, model, preload
from pegboard.ask.providers.servers import LocalServer, discover

__all__ = ["LocalServer", "Patience", "ProviderModel", "allowed_name", "discover", "model", "preload"]
