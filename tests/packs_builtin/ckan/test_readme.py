"""The commands that the guide shows for the pack work on a portal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from commands import shell_function
from web import Web

from pegboard.packs._ckan_models import CkanSettings

GUIDE = (Path(__file__).parents[3] / "src/pegboard/guide/configuration.md").read_text(encoding="utf-8")


@pytest.mark.promise("PCK-5", "CLI-1")
def test_every_command_line_about_open_data_works(portal: Web) -> None:
    (block,) = (found for found in re.findall(r"^```sh\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL) if "ckan" in found)
    for line in block.splitlines():
        done = subprocess.run(
            ["bash", "-c", shell_function() + line],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PEGBOARD_PACKS__CKAN__BASE_URL": portal.url},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["success"] is True, line
    assert len(portal.asked) >= len(block.splitlines())


def test_the_configuration_that_it_shows_is_the_default() -> None:
    (block,) = (
        found for found in re.findall(r"^```toml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL) if "ckan" in found
    )
    assert CkanSettings.model_validate(tomllib.loads(block)["packs"]["ckan"]) == CkanSettings()
