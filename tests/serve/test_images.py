"""Images in results of tools as MCP clients receive them."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ImageContent, TextContent
from PIL import Image
from serving import Connect, records

from pegboard.runtime import Runtime

pytestmark = pytest.mark.promise("MCP-2")

PACK = '''
from PIL import Image
from pegboard.sdk import ToolFailed, hints

def image(width):
    return Image.new("RGB", (width, 2), "red")

@hints(read_only=True)
def one() -> Image.Image:
    """Return an image."""
    return image(1)

@hints(read_only=True)
def mixed() -> list[Image.Image | str]:
    """Return images between texts."""
    return ["before", image(1), image(2), "after"]

@hints(read_only=True)
def report() -> dict[str, object]:
    """Return an object with an image."""
    return {"title": "Sales", "chart": image(3)}

@hints(read_only=True)
def encoded() -> dict[str, str]:
    """Return an image as an object of texts."""
    from pegboard.sdk.values import encode
    import json
    return json.loads(encode(image(4)))

@hints(read_only=True)
def fail() -> None:
    """Fail with an image."""
    raise ToolFailed("Not the expected page.", data={"page": image(5)})

@hints(read_only=True)
def many() -> list[object]:
    """Return a large result with an image."""
    return [image(6), *("x" * 1000 for _ in range(1500))]

@hints(read_only=True)
def quote(*, line: str) -> str:
    """Return a text."""
    return line
'''


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> Path:
    """Write a pack whose tools return images, and return its folder."""
    return write_pack("pictures.py", PACK)


def blocks(result: Any) -> list[str | int]:
    """Return the texts of a result, and the widths of its images."""
    found: list[str | int] = []
    for block in result.content:
        if isinstance(block, ImageContent):
            assert block.mime_type == "image/png"
            found.append(Image.open(io.BytesIO(base64.b64decode(block.data))).width)
        else:
            assert isinstance(block, TextContent)
            found.append(block.text)
    return found


async def test_an_image_is_a_block_and_the_record_has_its_file(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("pictures_one", {})
    assert (blocks(result), result.structured_content, result.is_error) == ([1], None, False)
    history = Runtime.from_environment().history
    try:
        recorded = history.result(records("pictures.one")[0].id)
    finally:
        history.close()
    assert recorded is not None
    line = str(recorded.data)
    assert line.startswith("image/png, ")
    assert line.partition(": ")[2] in map(str, await asyncio.to_thread(lambda: [*history.results.iterdir()]))


async def test_images_in_a_list_are_blocks_in_its_order(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("pictures_mixed", {})
    assert blocks(result) == ["before", 1, 2, "after"]


async def test_an_image_in_an_object_follows_its_text(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("pictures_report", {})
        failed = await client.call_tool("pictures_fail", {})
    text, image = blocks(result)
    assert str(text).startswith('{"title":"Sales","chart":"image/png, ')
    assert image == 3
    assert failed.is_error
    assert (blocks(failed)[0], blocks(failed)[2]) == ("Not the expected page.", 5)


async def test_structured_content_with_an_image_matches_the_output_schema(connect: Connect) -> None:
    async with connect() as client:  # which validates it
        result = await client.call_tool("pictures_encoded", {})
    assert (blocks(result), result.is_error) == ([4], False)
    assert result.structured_content is not None
    assert result.structured_content["type"] == "image"
    assert len(str(result.structured_content)) < 500


async def test_a_large_result_has_its_image_too(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("pictures_many", {})
    assert len(blocks(result)) == 1501
    assert blocks(result)[0] == 6


async def test_a_text_that_names_another_file_is_not_read(connect: Connect, tmp_path: Path) -> None:
    private = tmp_path / f"{'0' * 32}-1.png"
    private.write_bytes(b"private")
    line = f"image/png, 7 B: {private}"
    async with connect() as client:
        assert blocks(await client.call_tool("pictures_quote", {"line": line})) == [line]
