"""A pack with its tests, as an author would write them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from pegboard.sdk import ToolFailed, call_tool, check_deps, get_pack, log, testing
from pegboard.sdk.testing import ReportedProgress

pytestmark = pytest.mark.promise("SDK-15")

PACKS = Path(__file__).parents[1] / "packs"


@pytest.fixture
def weather(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the pack like any module."""
    monkeypatch.syspath_prepend(str(PACKS))
    monkeypatch.delitem(importlib.import_module("sys").modules, "sdk_weather", raising=False)
    return importlib.import_module("sdk_weather")


def test_a_forecast_comes_from_the_service(weather: Any, url: str) -> None:
    with testing.host(config={"weather": {"url": url}}, secrets={"WEATHER_KEY": "sunny"}) as host:
        assert weather.forecast(city="bern") == {"city": "bern", "text": "Rain in bern."}
        assert call_tool("weather.forecast", city="rome")["city"] == "rome"
    assert host.logged == ["client built"]


def test_an_error_of_the_service_is_reported(weather: Any, url: str) -> None:
    refused = pytest.raises(ToolFailed, match=r"^HTTP error \(401\): no such key$")
    with testing.host(config={"weather": {"url": url}}, secrets={"WEATHER_KEY": "rainy"}), refused:
        weather.forecast(city="bern")


def test_without_a_key_the_tool_fails_with_its_own_message(weather: Any) -> None:
    with testing.host(secrets={"OTHER_KEY": "sunny"}) as host, pytest.raises(ToolFailed) as failed:
        weather.forecast(city="bern")
    assert failed.value.code == "no_key"
    assert host.logged == []


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"config": {"url": "http://localhost"}}, 'config={"NAME": {"region": "eu"}}'),
        ({"packs": {"nearest": lambda: "bern"}}, 'packs={"NAME": {"count": lambda: 3}}'),
        ({"packs": ["."]}, "`packs` must map the name of each pack to a mapping"),
    ],
)
def test_values_that_name_no_pack_are_refused_with_the_form_to_write(chosen: Any, message: str) -> None:
    with pytest.raises(TypeError) as refused, testing.host(**chosen):
        pass
    assert message in str(refused.value)


def test_several_cities_become_one_text_with_progress(weather: Any, url: str) -> None:
    with testing.host(config={"weather": {"url": url}}, secrets={"WEATHER_KEY": "sunny"}) as host:
        text = weather.forecasts(cities=["bern", "atlantis"])
    assert text == "=== bern ===\nRain in bern.\n\n=== atlantis ===\nError: HTTP error (404): no such city"
    assert [said[:2] for said in host.progressed] == [(1, 2), (2, 2)]
    assert isinstance(host.progressed[0], ReportedProgress)


@pytest.mark.promise("SDK-2")
async def test_functions_of_the_test_can_replace_another_pack(weather: Any, url: str) -> None:
    places = {"nearest": lambda: "bern"}
    chosen = {"weather": {"url": url}}
    with testing.host(config=chosen, secrets={"WEATHER_KEY": "sunny"}, packs={"places": places}):
        assert (await weather.here())["city"] == "bern"
        assert dir(get_pack("places")) == ["nearest"]
    with testing.host(), pytest.raises(ValueError, match=r"^Pack not found: places$"):
        await weather.here()


@pytest.mark.promise("SDK-10")
def test_a_pack_receives_only_the_secrets_that_it_names(weather: Any) -> None:
    weather.get_secret = importlib.import_module("pegboard.sdk").get_secret
    ask = eval("lambda name: get_secret(name)", vars(weather))
    with testing.host(secrets={"BANK_PIN": "1234", "WEATHER_KEY": "sunny"}) as host:
        assert (ask("BANK_PIN"), ask("WEATHER_KEY")) == (None, "sunny")
    assert len(host.logged) == 1
    with testing.host(secrets={"BANK_PIN": "1234"}, config={"weather": {"secrets": ["BANK_PIN"]}}):
        assert ask("BANK_PIN") == "1234"


@pytest.mark.promise("SDK-2")
def test_a_chosen_pack_may_consist_of_mocks() -> None:
    count = Mock(return_value={"saw": (1, 2)})
    with testing.host(packs={"shelf": {"count": count, "later": AsyncMock(return_value="done")}}):
        assert call_tool("shelf.count", names=("saw",)) == {"saw": [1, 2]}
        assert call_tool("shelf.later") == "done"
    count.assert_called_once_with(names=["saw"])


@pytest.mark.promise("SDK-2")
def test_a_chosen_function_without_a_readable_signature_is_called() -> None:
    class Unreadable:
        __signature__ = 5

        def __call__(self, count: int) -> int:
            return count + 1

    with testing.host(packs={"shelf": {"next": Unreadable()}}):
        assert call_tool("shelf.next", count=1) == 2
        with pytest.raises(RuntimeError, match=r"shelf\.next failed: TypeError: .*amount"):
            call_tool("shelf.next", amount=1)


@pytest.mark.promise("SDK-9")
def test_requirements_are_checked_against_the_chosen_secrets(weather: Any) -> None:
    with testing.host(secrets={"WEATHER_KEY": "sunny"}):
        assert {row["status"] for row in check_deps("weather")} == {"ok"}
    with testing.host():
        rows = check_deps("weather")
    assert {(row["status"], row["install"]) for row in rows} == {("missing", "Ask the weather service for one.")}
    assert [row["tool"] for row in rows] == ["weather.forecast", "weather.forecasts", "weather.here"]


def test_the_previous_host_is_restored(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), testing.host():
        log(f"kept {1 // 0}")
    log("heard")
    assert capsys.readouterr().err == "heard\n"
