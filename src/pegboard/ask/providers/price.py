"""The price of a model's turn, for providers with known prices."""

from __future__ import annotations

from pegboard.ask.providers.endpoint import PROVIDERS, origin
from pegboard.models.conversation import Usage


def price(model: str, base_url: str | None, usage: Usage) -> float | None:
    """Return the price in US dollars by the list prices of `genai-prices`, or None if it is unknown.

    Loads that library, which takes a moment.

    Args:
        model: `provider:model`.
        base_url: URL of the server that was asked, which has no list prices unless it is the provider's; None for that.
        usage: The tokens.
    """
    provider, _, name = model.partition(":")
    known = PROVIDERS.get(provider)
    if known is None or not name:
        return None
    if base_url is not None and origin(base_url) != origin(known.base_url):
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    try:
        tokens = Tokens(
            input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens
        )
        return float(calc_price(tokens, name, provider_id=provider).total_price)
    except (LookupError, ValueError):  # an unknown model; impossible numbers of tokens
        return None
