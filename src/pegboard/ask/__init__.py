"""The loop between a user, a model and the tools: headless, as a stream of typed events."""

from pegboard.ask.loop import Ask, Limits

__all__ = ["Ask", "Limits"]
