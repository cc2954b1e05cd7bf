"""State of the programs, libraries and secrets that tools require.

`Health` holds the report on all tools; `prober` checks requirements in threads. The checks themselves are in the SDK.
"""

from pegboard.health.health import Health

__all__ = ["Health"]
