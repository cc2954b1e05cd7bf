"""Images that a tool returns: saved as files beside large results."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any  # fixtures

import pytest
from PIL import Image

pytestmark = pytest.mark.promise("EXE-6")

PACK = '''
import base64
import io

from PIL import Image


class Figure:
    """Substitute for a figure of Matplotlib."""

    def savefig(self, target, *, format):
        image(9).save(target, format)


def image(width):
    return Image.new("RGB", (width, 2), "red")


def picture(width=3):
    return image(width)


def figure():
    return Figure()


def report():
    return {"title": "Sales", "charts": [image(3), {"name": "second", "chart": image(4)}]}


def encoded(width=3, *, key):
    target = io.BytesIO()
    image(width).save(target, "JPEG")
    return {"name": "photo", "mimeType": "image/jpeg", key: base64.b64encode(target.getvalue()).decode()}


def not_an_image():
    return [{"mimeType": "image/png", "data": "none yet"}, {"mimeType": "image/png", "data": ""}, "image/png"]


def many():
    return [{"mimeType": "image/png", "data": "iVBORw0KGgo="}] * 1_002


def noise():
    return Image.effect_noise((1500, 1500), 90), {"rows": list(range(9))}


def colors():
    return Image.new("F", (2, 2))
'''


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Write a pack whose tools return images."""
    file = tmp_path / "pictures.py"
    file.write_text(PACK)
    return file


def line(folder: Path, name: str, kind: str = "image/png") -> str:
    """Return the line for a saved image."""
    return f"{kind}, {(folder / name).stat().st_size} B: {folder / name}"


async def test_an_image_is_saved_and_its_result_is_a_line_with_the_file(
    harness: Any, pack: Path, tmp_path: Path
) -> None:
    result = harness.result(await harness.events("picture", pack, call_id="one"))
    file = tmp_path / "results" / "one-1.png"
    assert result.data == line(tmp_path / "results", "one-1.png")
    assert Image.open(file).size == (3, 2)
    assert harness.mode(str(file)) & 0o777 == 0o600
    assert result.meta.size == len(result.data) + 2


async def test_a_figure_with_savefig_is_an_image(harness: Any, pack: Path, tmp_path: Path) -> None:
    result = harness.result(await harness.events("figure", pack, call_id="one"))
    assert result.data == line(tmp_path / "results", "one-1.png")
    assert Image.open(tmp_path / "results" / "one-1.png").size == (9, 2)


async def test_images_inside_of_a_result_are_saved_in_their_order(harness: Any, pack: Path, tmp_path: Path) -> None:
    result = harness.result(await harness.events("report", pack, call_id="one"))
    folder = tmp_path / "results"
    second = {"name": "second", "chart": line(folder, "one-2.png")}
    assert result.data == {"title": "Sales", "charts": [line(folder, "one-1.png"), second]}


@pytest.mark.parametrize("key", ["data", "blob"])
async def test_base64_of_an_image_is_replaced_in_its_object(harness: Any, pack: Path, tmp_path: Path, key: str) -> None:
    result = harness.result(await harness.events("encoded", pack, call_id="one", key=key))
    text = line(tmp_path / "results", "one-1.jpg", "image/jpeg")
    assert result.data == {"name": "photo", "mimeType": "image/jpeg", key: text}


async def test_invalid_base64_stays_in_the_result(harness: Any, pack: Path, tmp_path: Path) -> None:
    result = await harness.run("not_an_image", pack)
    assert [item["data"] for item in result.data[:2]] == ["none yet", ""]
    assert not (tmp_path / "results").exists()


async def test_at_most_1000_files_are_saved_for_a_call(harness: Any, pack: Path, tmp_path: Path) -> None:
    result = await harness.run("many", pack)
    assert len([*(tmp_path / "results").iterdir()]) == 1_000
    saved = [Path(item["data"].rpartition(" ")[2]).is_absolute() for item in result.data]
    assert saved == [True] * 1_000 + [False] * 2


async def test_a_large_image_does_not_truncate_the_result(
    open_harness: Callable[..., Any], pack: Path, tmp_path: Path
) -> None:
    harness = open_harness(result_limit=10_000)
    result = harness.result(await harness.events("noise", pack, call_id="one"))
    assert result.meta.truncated is None
    assert result.data[0].endswith(f" MB: {tmp_path / 'results' / 'one-1.png'}")
    assert result.data[1] == {"rows": [*range(9)]}


async def test_an_image_that_cannot_be_saved_stays_in_the_result(harness: Any, pack: Path, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where the folder should be")
    result = await harness.run("picture", pack)
    assert (result.ok, result.data["type"], result.data["mimeType"]) == (True, "image", "image/png")
    assert Image.open(io.BytesIO(base64.b64decode(result.data["data"]))).size == (3, 2)


async def test_images_stay_in_results_where_files_would_be_lost(
    open_harness: Callable[..., Any], pack: Path, tmp_path: Path
) -> None:
    harness = open_harness(save_images=False)
    assert json.dumps((await harness.run("picture", pack)).data).startswith('{"type": "image"')
    assert not (tmp_path / "results").exists()


async def test_an_image_without_a_form_as_png_is_an_error_with_the_reason(harness: Any, pack: Path) -> None:
    result = await harness.run("colors", pack)
    assert result.error.detail == "not_serialisable"
    assert "an object of type PIL.Image.Image that can't be saved as PNG or JPEG" in result.error.message
