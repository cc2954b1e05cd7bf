"""The script that writes the screenshots: it ends, and what changes from run to run is fixed."""

from __future__ import annotations

import importlib
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def make() -> ModuleType:
    sys.path.insert(0, str(Path(__file__).parents[2] / "screenshots"))
    return importlib.import_module("make")


def _picture(make: ModuleType, name: str) -> object:
    return next(picture for picture in make.PICTURES if picture.name == name)


@pytest.mark.promise("DOC-3")
@pytest.mark.parametrize("name", ["tools", "script"])
async def test_process_ids_and_durations_of_calls_are_fixed(
    make: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    svg = await make.take(_picture(make, name), (120, 40), tmp_path)
    text = " ".join(re.findall(r">([^<]+)<", svg)).replace("&#160;", " ")
    assert {"1.8 ms"} <= set(re.findall(r"\b[\d.]+ m?s\b", text)) <= {"1.8 ms", "60 s", "8 s"}
    assert set(re.findall(r"pid (\d+)", text)) <= {"4711"}


@pytest.mark.promise("DOC-3")
async def test_a_picture_that_cannot_be_taken_fails_with_its_name_and_the_screen(
    make: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(make, "TIMEOUT_SECONDS", 10.0)
    picture = make.Picture("waits", [*"overview"], result=True)
    with pytest.raises(make.StuckError, match=r"(?s)waits-80x24: a result did not happen.*overview"):
        await make.take(picture, (80, 24), tmp_path)
    unknown = make.Picture("unknown", ["@tools.nothing"])
    with pytest.raises(make.StuckError, match=r"unknown-80x24: the command tools.nothing has no key"):
        await make.take(unknown, (80, 24), tmp_path)


@pytest.mark.promise("DOC-3")
def test_the_animated_picture_shows_one_frame_after_the_other(make: ModuleType) -> None:
    frame = (
        '<svg viewBox="0 0 10 5" class="x"><style>@font-face {{ src: url("https://x") }}</style><text>{}</text></svg>'
    )
    svg = make.animated([(frame.format("one"), 1.0), (frame.format("two"), 3.0)])
    root = ET.fromstring(svg)
    assert root.attrib["viewBox"] == "0 0 10 5"
    assert [group.attrib["class"] for group in root[1:]] == ["f0", "f1"]
    assert "4s step-end infinite" in svg
    assert "25.000% { visibility: visible }" in svg
    assert "https" not in svg
