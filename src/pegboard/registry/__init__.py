"""Registry of the tools of all sources, and allow lists that restrict their use."""

from pegboard.registry.allow import AllowList
from pegboard.registry.registry import Registry

__all__ = ["AllowList", "Registry"]
