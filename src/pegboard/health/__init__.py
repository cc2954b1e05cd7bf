"""What the tools need, and whether it is there.

`Health` keeps the report over all tools and brings it up to date; `looking` looks for things in threads. How a program,
a library or a secret is looked for is the SDK's business.
"""

from pegboard.health.health import Health

__all__ = ["Health"]
