"""The replacement for a secret."""

from typing import Final

MASK: Final = "••••••••"
