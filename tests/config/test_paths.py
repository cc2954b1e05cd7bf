"""Pegboard's files, and the folders that it searches for packs."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from pegboard.config import Paths, Settings, packs_folders


@pytest.mark.promise("CFG-2")
def test_the_environment_moves_every_folder(tmp_path: Path) -> None:
    paths = Paths.from_environment(
        {
            "PEGBOARD_CONFIG": str(tmp_path / "c.toml"),
            "PEGBOARD_DATA_DIR": str(tmp_path / "data"),
            "PEGBOARD_STATE_DIR": str(tmp_path / "state"),
            "PEGBOARD_CACHE_DIR": str(tmp_path / "cache"),
        }
    )
    assert paths.config_file == tmp_path / "c.toml"
    assert (paths.packs, paths.themes) == (tmp_path / "data" / "packs", tmp_path / "data" / "themes")
    assert (paths.presets, paths.scripts) == (tmp_path / "data" / "presets", tmp_path / "data" / "scripts")
    assert (paths.database, paths.results) == (tmp_path / "state" / "history.db", tmp_path / "state" / "results")
    assert paths.log == tmp_path / "state" / "pegboard.log"
    assert paths.index == tmp_path / "cache" / "index"


@pytest.mark.promise("CFG-2")
def test_a_relative_folder_starts_at_the_working_directory_and_a_tilde_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    paths = Paths.from_environment({"PEGBOARD_DATA_DIR": "a/../b", "PEGBOARD_STATE_DIR": "~/state"})
    assert (paths.data, paths.state) == (tmp_path / "b", tmp_path / "home" / "state")


def test_the_platforms_folders_are_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    paths = Paths.from_environment({"PEGBOARD_DATA_DIR": ""})
    assert all(place.is_relative_to(tmp_path) for place in (paths.config_file, paths.data, paths.state, paths.cache))
    assert not any(tmp_path.iterdir()), "nothing is made"


def test_without_a_home_folder_the_error_names_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_user(number: int) -> NoReturn:
        raise KeyError(number)

    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_user)
    with pytest.raises(OSError, match=r"home folder is unknown\. Set HOME"):
        Paths.from_environment({"PEGBOARD_CONFIG": str(tmp_path / "c.toml")})
    given = {f"PEGBOARD_{name}_DIR": str(tmp_path / name) for name in ("DATA", "STATE", "CACHE")}
    paths = Paths.from_environment({**given, "PEGBOARD_CONFIG": str(tmp_path / "c.toml")})
    assert paths.state == tmp_path / "STATE"


@pytest.mark.promise("CFG-2", "DSC-1")
def test_packs_folders_come_in_order_and_once(tmp_path: Path) -> None:
    given, run = tmp_path / "given", tmp_path / "run"
    settings = Settings.model_validate({"packs": {"folders": [tmp_path / "configured", given]}})
    given.mkdir()
    (tmp_path / "link").symlink_to(given)
    paths = Paths.from_environment(
        {"PEGBOARD_DATA_DIR": str(tmp_path), "PEGBOARD_PACKS": f"{run}{os.pathsep}{os.pathsep}{tmp_path / 'link'}"}
    )
    folders = packs_folders(settings, paths, [tmp_path / "first"])
    assert (folders[0] / "time.py").is_file()
    assert folders[1:] == [tmp_path / "packs", tmp_path / "configured", given, tmp_path / "first", run]


def test_reading_the_configuration_imports_little(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[ui]\nvim_keys = true")
    code = (
        "import sys; from pegboard.config import load; assert load()[0].ui.vim_keys;"
        "print({'textual', 'httpx', 'mcp', 'jsonschema', 'sqlite3', 'asyncio', 'difflib'} & set(sys.modules))"
    )
    environ = {**os.environ, "PEGBOARD_CONFIG": str(tmp_path / "c.toml")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")
