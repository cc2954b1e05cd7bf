"""Changes of values in the configuration file, and of the settings while Pegboard runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import JsonValue

from pegboard.config import Settings, load, set_values
from pegboard.config.server_file import ServerFile
from pegboard.models import Problem
from pegboard.runtime.reload import changed_settings

TEXT = '# mine\n[model]\nname = "openai:a"  # the model\n\n[keys]\n"tools.run" = "f6"\n'


@pytest.mark.promise("CFG-1")
def test_values_are_changed_without_losing_comments(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    assert set_values(file, {"model.name": "ollama:b", "ui.theme": "nord", "keys.tools.run": None}) is None
    text = file.read_text()
    assert text.startswith('# mine\n[model]\nname = "ollama:b"  # the model')
    assert "tools.run" not in text
    settings, problems = load({"PEGBOARD_CONFIG": str(file)}, tmp_path)
    assert (settings.model.name, settings.ui.theme) == ("ollama:b", "nord")
    assert not problems


@pytest.mark.promise("CFG-1")
def test_removing_a_value_that_is_not_set_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    assert set_values(file, {"ui.theme": None, "model.base_url": None, "keys.tools.stop": None}) is None
    assert file.read_text() == TEXT


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize(
    ("key", "value"), [("ui.unfold", "sometimes"), ("ui.colour", "red"), ("tools.timeout", -1), ("model.name.x", "y")]
)
def test_an_invalid_value_is_refused_and_nothing_is_written(tmp_path: Path, key: str, value: JsonValue) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    refused = set_values(file, {key: value})
    assert refused is not None
    assert "was not changed" in refused.message
    assert file.read_text() == TEXT


@pytest.mark.promise("CFG-1")
def test_changes_of_values_and_of_servers_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    names = [f"server{number}" for number in range(30)]

    def set_themes() -> list[Problem | None]:
        return [set_values(file, {"ui.theme": name}) for name in names]

    with ThreadPoolExecutor() as threads:
        setting = threads.submit(set_themes)
        for name in names:
            ServerFile(file).add({name: {"command": "echo"}})
        assert setting.result(60) == [None] * len(names)
    settings, _ = load({"PEGBOARD_CONFIG": str(file)}, tmp_path)
    assert settings.ui.theme == names[-1]
    assert sorted(settings.mcp.servers) == sorted(names)


@pytest.mark.promise("CFG-1")
def test_a_linked_file_stays_a_link_with_its_permissions(tmp_path: Path) -> None:
    file, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    file.write_text(TEXT)
    file.chmod(0o644)
    link.symlink_to(file)
    assert set_values(link, {"ui.theme": "nord"}) is None
    assert (link.is_symlink(), file.stat().st_mode & 0o777) == (True, 0o644)
    assert 'theme = "nord"' in file.read_text()


def test_a_missing_file_is_created_in_private_folders_and_a_broken_one_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "new" / "inner" / "config.toml"
    assert set_values(file, {"model.name": "offline"}) is None
    created = (file.parent.parent, file.parent, file)
    assert [path.stat().st_mode & 0o777 for path in created] == [0o700, 0o700, 0o600]
    assert file.read_text() == '[model]\nname = "offline"\n'
    file.write_text("[model\n")
    assert set_values(file, {"model.name": "offline"}) is not None
    assert file.read_text() == "[model\n"


@pytest.mark.promise("CFG-1")
def test_line_ends_and_byte_order_mark_of_windows_stay(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b'\xef\xbb\xbf# mine\r\n[ui]\r\ntheme = "nord"\r\n')
    assert set_values(file, {"ui.theme": "gruvbox", "model.name": "offline"}) is None
    ServerFile(file).add({"one": {"command": "echo"}})
    changed = file.read_bytes()
    assert changed.startswith(b'\xef\xbb\xbf# mine\r\n[ui]\r\ntheme = "gruvbox"\r\n')
    assert changed.count(b"\n") == changed.count(b"\r\n") == 9
    settings, problems = load({"PEGBOARD_CONFIG": str(file)}, tmp_path)
    assert (settings.model.name, list(settings.mcp.servers), problems) == ("offline", ["one"], ())


@pytest.mark.promise("CFG-1")
def test_limits_of_tools_stay_until_a_restart_and_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"

    def settings_of(text: str) -> Settings:
        file.write_text(text)
        return load({"PEGBOARD_CONFIG": str(file)}, tmp_path)[0]

    first = settings_of('[tools]\nallow = ["fs.*"]\n')
    second, change = changed_settings(first, settings_of('[ui]\ntheme = "nord"\n'))
    assert second.tools.allow == ("fs.*",)
    assert (change.applied, change.restart) == (("ui.theme",), ("tools.allow",))
    third, change = changed_settings(second, settings_of("[tools\n"))
    assert third is second
    assert change.blocked is not None
    assert change.blocked.fix.endswith("The settings from before are used until this is fixed.")
    assert "No tool runs" not in str(change.blocked)


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[ask]\ncache = false\n", "ask.cache"),
        ("[history]\nsize_limit = 2_000_000\n", "history.size_limit"),
        ("[ui]\nvim_keys = true\n", "ui.vim_keys"),
    ],
)
def test_a_setting_that_is_read_only_once_applies_after_a_restart(tmp_path: Path, text: str, key: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    _, change = changed_settings(Settings(), load({"PEGBOARD_CONFIG": str(file)}, tmp_path)[0])
    assert (change.applied, change.restart) == ((), (key,))


@pytest.mark.promise("CFG-1")
def test_a_folder_that_loses_its_trust_keeps_its_packs_from_the_users_secrets(
    tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    (tmp_path / "pegboard.toml").write_text('[packs.ckan]\nurl = "https://example.org"\n')
    trust(tmp_path)
    first, _ = load(os.environ, tmp_path)
    assert first.packs_of_folder() == {"ckan"}
    (tmp_path / "pegboard.toml").write_text('[packs.ckan]\nurl = "https://example.com"\n[model]\nname = "x:y"\n')
    second, _ = changed_settings(first, load(os.environ, tmp_path)[0])
    assert second.packs.of("ckan") == {"url": "https://example.org"}
    assert second.packs_of_folder() == {"ckan"}
    assert second.model.name is None
