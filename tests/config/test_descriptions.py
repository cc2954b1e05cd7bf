"""Descriptions of settings."""

from __future__ import annotations

import pytest

from pegboard.config import Settings, description


def test_every_setting_has_a_description() -> None:
    keys = [".".join(path) for path, _ in Settings().leaves()]
    assert len(keys) > 30
    assert [key for key in keys if not description(key)] == []


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("tools.timeouts.fs.*", "pattern → seconds"),
        ("mcp.servers.files.command", "The program to start."),
        ("mcp.servers.files.enabled", "Whether to connect. Allowed: true or false."),
        ("mcp.servers.files.oauth.redirect_port", "Port of the loopback address"),
        ("ui.focus", "Allowed: form or result."),
    ],
)
def test_settings_in_tables_and_their_allowed_values_are_described(key: str, said: str) -> None:
    assert said in description(key)


@pytest.mark.parametrize("key", ["", "nope", "ui.nope", "packs.ckan.url"])
def test_keys_that_pegboard_does_not_define_have_none(key: str) -> None:
    assert description(key) == ""
