"""A server written with the MCP SDK that completes the arguments of its prompt and its template, over stdio."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

server = MCPServer("example/completing", version="2.0")
CITIES = ("Athens", "Berlin", "Bern")


@server.prompt()
def visit(city: str, days: str = "1") -> str:
    """Plan a visit."""
    return f"Plan {days} days in {city}."


@server.resource("city://{name}")
def city(name: str) -> str:
    """Describe a city."""
    return f"About {name}"


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator] # the SDK's has no types
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion | None:
    """Return the cities that begin with the argument."""
    del ref, context
    if argument.name not in {"city", "name"}:
        return None
    return Completion(values=[one for one in CITIES if one.startswith(argument.value)])


if __name__ == "__main__":
    server.run()
