"""The weather, from a service that requires a key."""

import httpx

from pegboard.sdk import (
    ToolFailed,
    api_headers,
    batch_execute,
    call_tool,
    get_config,
    hints,
    lazy_client,
    log,
    requires_secret,
    safe_request,
)

pack = "weather"

requires_secret("WEATHER_KEY", hint="Ask the weather service for one.")


def _build() -> httpx.Client:
    log("client built")
    return httpx.Client(
        base_url=get_config("url", "https://weather.invalid"), headers=api_headers("WEATHER_KEY"), trust_env=False
    )


_client = lazy_client(_build, secret_name="WEATHER_KEY")


@hints(read_only=True, open_world=True)
def forecast(*, city: str) -> dict[str, object]:
    """Return tomorrow's weather.

    Args:
        city: The city.
    """
    client = _client()
    if client is None:
        raise ToolFailed("There is no key for the weather service.", code="no_key")
    ok, data = safe_request(client, "GET", f"/forecast/{city}")
    if not ok:
        raise ToolFailed(data, code="no_forecast")
    return data


@hints(read_only=True, open_world=True)
def forecasts(*, cities: list[str]) -> str:
    """Return tomorrow's weather in several cities.

    Args:
        cities: The cities.
    """
    return batch_execute(cities, lambda city: forecast(city=city)["text"])


@hints(read_only=True, open_world=True)
async def here() -> dict[str, object]:
    """Return tomorrow's weather at the location of this machine."""
    return forecast(city=call_tool("places.nearest"))
