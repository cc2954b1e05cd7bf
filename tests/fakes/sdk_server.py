"""A server written with the MCP SDK: `python sdk_server.py`, or `python sdk_server.py http PORT`."""

from __future__ import annotations

import base64
import json
import os
import sys
from datetime import datetime, time
from pathlib import Path
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Image, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    CallToolResult,
    ContentBlock,
    CreateMessageResult,
    ImageContent,
    ListRootsResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

server = MCPServer("example/fixture", version="1.2")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Meeting(BaseModel):
    """A meeting."""

    begin: datetime


class Sum(BaseModel):
    """A sum."""

    total: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool(annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False))
def peek() -> str:
    """Look at something."""
    return "peeked"


@server.tool(structured_output=False)
def echo(message: str) -> str:
    """Return the message."""
    return message


@server.tool(structured_output=False)
def record() -> str:
    """Return a text that is JSON."""
    return json.dumps({"id": 7, "tags": ["a", "b"]})


@server.tool(structured_output=False)
def mixed() -> list[str | Image | ResourceLink]:
    """Return a text, an image and a link."""
    link = ResourceLink(type="resource_link", uri="memo://one", name="one", mime_type="text/plain")
    return ["See:", Image(data=PNG, format="png"), link]


@server.tool(structured_output=False)
def picture(structured: bool, fails: bool) -> CallToolResult:
    """Return a text and an image, with structured content or as an error."""
    image = ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png")
    text = TextContent(type="text", text='{"dots": 1}')
    structure = {"dots": 1} if structured else None
    return CallToolResult(content=[text, image], structured_content=structure, is_error=fails)


@server.tool(structured_output=False)
def say(texts: list[str], structure: dict[str, Any]) -> CallToolResult:
    """Return texts with structured content."""
    content: list[ContentBlock] = [TextContent(type="text", text=text) for text in texts]
    return CallToolResult(content=content, structured_content=structure)


@server.tool()
def meet(day: datetime, start: time) -> Meeting:
    """Return a meeting at a local time."""
    return Meeting(begin=datetime.combine(day.date(), start))


@server.tool(
    description="""
            Find notes.

            - One per line
        """
)
def find() -> str:
    """Have a description that is indented as in its source."""
    return ""


@server.tool()
def refuse() -> str:
    """Fail with a message."""
    raise ToolError("The disk is full.")


@server.tool(structured_output=False)
async def work(steps: int, ctx: Context) -> str:
    """Report progress and log."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    print("working", file=sys.stderr, flush=True)
    return "done"


@server.tool(structured_output=False)
async def sleep(file: str, ctx: Context, seconds: float = 60.0) -> str:
    """Report progress, sleep, and write a file when that is cancelled."""
    await ctx.report_progress(0, 1, "asleep")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        Path(file).write_text("cancelled")  # noqa: ASYNC240 - it is short
        raise
    return "slept"


@server.tool(structured_output=False)
def environment() -> str:
    """Return the names of the environment variables, and the values of those of the entry."""
    return json.dumps({name: value if name.startswith("MINE") else "" for name, value in os.environ.items()})


@server.tool(structured_output=False)
def big(size: int) -> str:
    """Return a large list."""
    return json.dumps(["x" * 100] * (size // 103))


class Person(BaseModel):
    """A person."""

    name: str
    age: int = 30


async def ask_person() -> Person | Elicit[Person]:
    """Ask who the user is."""
    return Elicit("Who are you?", Person)


@server.tool(structured_output=False)
async def greet(person: Annotated[ElicitationResult[Person], Resolve(ask_person)]) -> str:
    """Ask the user for a name."""
    if person.action != "accept":
        return person.action
    return f"{person.data.name} is {person.data.age}"


class Order(Person):
    """An order."""

    size: str = Field(json_schema_extra={"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]})


async def ask_order() -> Order | Elicit[Order]:
    """Ask what the user orders."""
    return Elicit("Who are you?", Order)


@server.tool(structured_output=False)
async def order(order: Annotated[ElicitationResult[Order], Resolve(ask_order)]) -> str:
    """Ask the user for an order."""
    return f"{order.data.name} is {order.data.age} and orders {order.data.size}" if order.action == "accept" else "none"


@server.tool(structured_output=False)
async def both(
    person: Annotated[ElicitationResult[Person], Resolve(ask_person)],
    order: Annotated[ElicitationResult[Order], Resolve(ask_order)],
) -> str:
    """Ask the user two questions together."""
    return f"{person.data.name} and {order.data.name}" if person.action == order.action == "accept" else "none"


@server.tool(structured_output=False)
async def confirm(ctx: Context) -> str:
    """Ask with a request of the server, which protocol 2026-07-28 doesn't have."""
    answer = await ctx.elicit("Who are you?", Person)
    return answer.action


async def sample() -> Sample:
    """Ask the client's model."""
    prompt = SamplingMessage(role="user", content=TextContent(type="text", text="What is six times seven?"))
    return Sample([prompt], max_tokens=100, system_prompt="Be brief.")


@server.tool(structured_output=False)
async def ask_model(answer: Annotated[CreateMessageResult, Resolve(sample)]) -> str:
    """Ask the client's model."""
    return f"{answer.model} said {answer.content.text if isinstance(answer.content, TextContent) else '?'}"


async def list_roots() -> ListRoots:
    """Ask for the roots."""
    return ListRoots()


@server.tool(structured_output=False)
async def where(roots: Annotated[ListRootsResult, Resolve(list_roots)]) -> str:
    """Return the roots."""
    return json.dumps([str(root.uri) for root in roots.roots])


@server.resource("memo://one", mime_type="text/plain")
def one() -> str:
    """One memo."""
    return "the memo"


@server.resource("memo://dot", mime_type="image/png")
def dot() -> bytes:
    """One dot."""
    return PNG


@server.resource("memo://of/{name}")
def memo(name: str) -> str:
    """Return a memo by name."""
    return f"memo {name}"


@server.resource("notes://all{/path*}{?limit}")
def notes(path: list[str], limit: int = 5) -> str:
    """Return some notes."""
    return f"{limit} notes in {path}"


@server.prompt()
def review(topic: str) -> str:
    """Ask for a review."""
    return f"Review {topic}."


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        import uvicorn

        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
    else:
        server.run()
