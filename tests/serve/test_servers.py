"""Connected servers behind `pegboard serve`: results, questions, resources and prompts pass through."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ImageContent,
    ListRootsResult,
    PromptReference,
    ResourceLink,
    ResourceListChangedNotification,
    Root,
    SamplingCapability,
    SamplingToolsCapability,
    TextContent,
    TextResourceContents,
    ToolUseContent,
)
from pydantic import FileUrl
from servers import CHANGING_SERVER, HOSTILE_SERVER, SDK_SERVER, start_of
from serving import MODES, Connect, allow

MODEL_WITH_TOOLS = '''
from typing import Annotated

from mcp.server.mcpserver import MCPServer, Resolve, Sample
from mcp_types import CreateMessageResultWithTools, SamplingMessage, TextContent, Tool

server = MCPServer("agent")


async def sample() -> Sample:
    prompt = SamplingMessage(role="user", content=TextContent(type="text", text="What is two plus three?"))
    return Sample([prompt], max_tokens=10, tools=[Tool(name="add", input_schema={"type": "object"})])


@server.tool(structured_output=False)
async def plan(answer: Annotated[CreateMessageResultWithTools, Resolve(sample)]) -> str:
    """Return the call that the client's model makes."""
    return f"{answer.content[0].name} {answer.content[0].input}"


server.run()
'''

SERVER_WITH_A_PAGE = '''
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestURLParams, InputRequiredResult, TextContent

server = MCPServer("bank")


@server.tool(structured_output=False)
async def pay(ctx: Context) -> CallToolResult | InputRequiredResult:
    """Pay after the user has visited a page."""
    answers = ctx.input_responses
    if answers is None:
        page = ElicitRequestURLParams(message="Confirm.", url="https://example.org/pay")
        return InputRequiredResult(input_requests={"page": ElicitRequest(params=page)})
    return CallToolResult(content=[TextContent(type="text", text=answers["page"].action)])


server.run()
'''


@pytest.fixture(autouse=True)
def servers(home: Path) -> None:
    """Configure two servers that offer the same, and allow their tools."""
    command, *args = start_of(SDK_SERVER)
    entry = f"command = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    (home / "config.toml").write_text(f"[mcp.servers.one]\n{entry}[mcp.servers.two]\n{entry}")
    allow(home, "*")


def configure_only(home: Path, name: str, file: Path, protocol: str | None = None) -> None:
    """Configure one server in place of the two."""
    command, *args = start_of(file)
    entry = f"command = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    entry += "" if protocol is None else f'protocol = "{protocol}"\n'
    (home / "config.toml").write_text(f"[mcp.servers.{name}]\n{entry}")


async def answer_person(context: Any, params: ElicitRequestParams) -> ElicitResult:
    """Answer who the user is."""
    return ElicitResult(action="accept", content={"name": params.message.removesuffix("?"), "age": 7})


async def answer_model(context: Any, params: CreateMessageRequestParams) -> CreateMessageResult:
    """Answer for the client's model."""
    text = f"42 ({params.system_prompt}, {params.max_tokens})"
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text=text), model="oracle")


async def answer_roots(context: Any) -> ListRootsResult:
    """Answer where the client works."""
    return ListRootsResult(roots=[Root(uri=FileUrl("file:///srv/project"))])


@pytest.mark.promise("MCP-1")
async def test_a_server_that_pegboard_started_starts_no_configured_servers(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_STARTED", "1")
    async with connect() as client:
        assert (await client.call_tool("kit_add", {"a": 2, "b": 3})).structured_content == {"result": 5}
        with pytest.raises(MCPError, match=r"Unknown tool: one_add"):
            await client.call_tool("one_add", {"a": 2, "b": 3})


@pytest.mark.promise("MCP-2")
async def test_the_greeting_of_a_client_has_the_instructions_of_trusted_servers_only(
    connect: Connect, home: Path
) -> None:
    command, *args = start_of(HOSTILE_SERVER, "normal")
    entry = f"command = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    (home / "config.toml").write_text(f"[mcp.servers.one]\n{entry}trusted = true\n[mcp.servers.two]\n{entry}")
    async with connect() as client:
        assert client.instructions is not None
        assert "Instructions of the MCP server one for its tools:\n\nRule 0 of the server." in client.instructions
        assert "MCP server two" not in client.instructions


@pytest.mark.promise("MCP-2")
async def test_titles_and_safe_icons_of_a_servers_tools_arrive(connect: Connect, home: Path) -> None:
    command, *args = start_of(HOSTILE_SERVER, "icons")
    entry = f"command = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    (home / "config.toml").write_text(f"[mcp.servers.one]\n{entry}")
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["one_ok"].title == "All fine"
    assert [icon.model_dump(exclude_none=True) for icon in tools["one_ok"].icons or ()] == [
        {"src": "https://example.org/a.png", "mime_type": "image/png", "sizes": ["48x48"], "theme": "dark"},
        {"src": "data:image/png;base64,AA=="},
    ]
    assert (tools["one_bad"].title, tools["one_bad"].icons) == ("All bad", None)


@pytest.mark.promise("MCP-2")
async def test_content_of_a_server_arrives_unchanged(connect: Connect) -> None:
    async with connect() as client:
        mixed = await client.call_tool("one_mixed", {})
        total = await client.call_tool("one_add", {"a": 2, "b": 3})
        refused = await client.call_tool("one_refuse", {})
    text, image, link = mixed.content
    assert isinstance(text, TextContent)
    assert isinstance(image, ImageContent)
    assert image.data.startswith("iVBORw0KGgo")
    assert isinstance(link, ResourceLink)
    assert str(link.uri) == "memo://one"
    assert total.structured_content == {"total": 5}
    assert refused.is_error
    assert isinstance(refused.content[0], TextContent)
    assert "The disk is full." in refused.content[0].text


@pytest.mark.promise("MCP-2", "STO-2")
async def test_content_of_a_server_contains_no_secret(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "sk-1234567890abcdef")
    async with connect() as client:
        echoed = await client.call_tool("one_echo", {"message": "It is sk-1234567890abcdef."})
    assert echoed.content == [TextContent(type="text", text="It is «secret SEARCH_API_KEY».")]
    assert "sk-1234567890abcdef" not in str(echoed)


@pytest.mark.promise("MCP-2")
async def test_questions_of_a_server_are_passed_to_the_client_that_called(connect: Connect) -> None:
    async with connect(
        elicitation_callback=answer_person, sampling_callback=answer_model, list_roots_callback=answer_roots
    ) as client:
        person = await client.call_tool("one_greet", {})
        answer = await client.call_tool("two_ask_model", {})
        where = await client.call_tool("one_where", {})
    assert person.content == [TextContent(type="text", text="Who are you is 7")]
    assert answer.content == [TextContent(type="text", text="oracle said 42 (Be brief., 100)")]
    assert where.content == [TextContent(type="text", text='["file:///srv/project"]')]


@pytest.mark.promise("MCP-2")
async def test_a_prompt_with_tools_is_passed_to_the_client_that_called(
    connect: Connect, version: str, home: Path, tmp_path: Path
) -> None:
    async def answer_call(context: Any, params: CreateMessageRequestParams) -> CreateMessageResultWithTools:
        [tool] = params.tools or []
        call = ToolUseContent(type="tool_use", id="1", name=tool.name, input={"a": 2, "b": 3})
        return CreateMessageResultWithTools(role="assistant", content=[call], model="oracle")

    file = tmp_path / "agent.py"
    file.write_text(MODEL_WITH_TOOLS)
    configure_only(home, "agent", file, None if version == "2026-07-28" else version)
    capabilities = SamplingCapability(tools=SamplingToolsCapability())
    async with connect(sampling_callback=answer_call, sampling_capabilities=capabilities) as client:
        answer = await client.call_tool("agent_plan", {})
    assert answer.content == [TextContent(type="text", text="add {'a': 2, 'b': 3}")]


@pytest.mark.promise("MCP-2")
async def test_a_page_to_visit_is_passed_to_the_client_that_called(
    connect: Connect, home: Path, tmp_path: Path
) -> None:
    pages = []

    async def visit(context: Any, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        pages.append(params.url)
        return ElicitResult(action="accept")

    file = tmp_path / "bank.py"
    file.write_text(SERVER_WITH_A_PAGE)
    configure_only(home, "bank", file)
    async with connect(elicitation_callback=visit) as client:
        answer = await client.call_tool("bank_pay", {})
    assert answer.content == [TextContent(type="text", text="accept")]
    assert pages == ["https://example.org/pay"]


async def test_questions_are_declined_for_a_client_that_does_not_support_them(connect: Connect, version: str) -> None:
    async with connect() as client:
        person = await client.call_tool("one_greet", {})
        assert person.content == [TextContent(type="text", text="decline")]
        if version == "2025-11-25":
            refused = await client.call_tool("one_ask_model", {})
            assert refused.is_error
            reason = "The call of one.ask_model failed. The client doesn't answer sampling requests."
            assert refused.content == [TextContent(type="text", text=reason)]
        else:
            with pytest.raises(MCPError, match="sampling"):
                await client.call_tool("one_ask_model", {})


@pytest.mark.promise("MCP-2")
async def test_resources_and_prompts_pass_through_with_unambiguous_names(connect: Connect) -> None:
    async with connect() as client:
        uris = {str(resource.uri) for resource in (await client.list_resources()).resources}
        templates = {one.uri_template for one in (await client.list_resource_templates()).resource_templates}
        contents = [
            (await client.read_resource(uri)).contents[0]
            for uri in ("memo://one", "pegboard://two/memo://one", "memo://of/Ada")
        ]
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        prompt = await client.get_prompt("two.review", {"topic": "walls"})
        completion = await client.complete(PromptReference(name="review"), {"name": "topic", "value": "w"})
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("memo://nothing/at/all")
    assert uris == {"memo://one", "memo://dot", "pegboard://two/memo://one", "pegboard://two/memo://dot"}
    assert templates >= {"memo://of/{name}", "pegboard://two/memo://of/{name}"}
    texts = [content.text for content in contents if isinstance(content, TextResourceContents)]
    assert texts == ["the memo", "the memo", "memo Ada"]
    assert prompts == {"review", "two.review"}
    assert prompt.messages[0].content == TextContent(type="text", text="Review walls.")
    assert completion.completion.values == []


async def test_a_client_learns_that_a_server_has_changed_its_resources(
    connect: Connect, version: str, home: Path
) -> None:
    changed = asyncio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, ResourceListChangedNotification):
            changed.set()

    configure_only(home, "memos", CHANGING_SERVER)
    async with asyncio.timeout(60), connect(message_handler=on_message) as client:
        before = await client.list_resources()
        if MODES[version] == "legacy":
            changed.clear()
            await client.call_tool("memos_append", {})
            await changed.wait()
        else:
            async with client.listen(resources_list_changed=True) as events:
                await client.call_tool("memos_append", {})
                await anext(aiter(events))
        after = await client.list_resources(cache_mode="refresh")
    assert {str(one.uri) for one in after.resources} - {str(one.uri) for one in before.resources} == {"memo://1"}


async def test_a_client_is_not_promised_updates_of_resources(connect: Connect, version: str) -> None:
    async with connect() as client:
        resources = client.server_capabilities.resources
        assert resources is not None
        assert (resources.subscribe, resources.list_changed) == (False, True)
        if MODES[version] != "legacy":
            async with client.listen(resources_list_changed=True, resource_subscriptions=["memo://one"]) as events:
                assert (events.honored.resources_list_changed, events.honored.resource_subscriptions) == (True, None)


async def test_resources_of_a_server_whose_tools_are_excluded_are_hidden(connect: Connect) -> None:
    async with connect("--tool-allow", "one.*") as client:
        uris = {str(resource.uri) for resource in (await client.list_resources()).resources}
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("pegboard://two/memo://one")
    assert uris == {"memo://one", "memo://dot"}
