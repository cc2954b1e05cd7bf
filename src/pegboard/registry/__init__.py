"""All tools of all sources, by name; and which of them may be used."""

from pegboard.registry.allow import AllowList
from pegboard.registry.registry import Registry

__all__ = ["AllowList", "Registry"]
