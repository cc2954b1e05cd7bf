"""The command that installs an extra of Pegboard, for its clients."""

from pegboard.sdk.distributions import extra_command

__all__ = ["extra_command"]
