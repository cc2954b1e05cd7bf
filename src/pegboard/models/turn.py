"""Model turns of other agents."""

from __future__ import annotations

from datetime import datetime

from pegboard.models.conversation import Usage
from pegboard.models.model import DataModel


class ModelTurn(DataModel):
    """One response of a model to another agent, as the agent's telemetry describes it. All texts are untrusted."""

    id: str
    session: str
    at: datetime
    """When the agent sent the request, UTC."""
    duration_ms: float
    ok: bool
    model: str
    text: str
    """The start of the response with the calls that it proposed, or the reason why there is none."""
    usage: Usage
