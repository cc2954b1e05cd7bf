"""A server with the tools, resources and prompts that the server scenarios of the suite expect.

`python suite_server.py` serves over stdio; `python suite_server.py http` serves on a free port and prints its address.

It answers with plain JSON in the protocol 2026-07-28, so that what arrives at a client of `pegboard serve` is what this
file says.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import socket
import sys
from collections.abc import Callable
from typing import Any, get_args

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
KEY = secrets.token_bytes(16)
Json = dict[str, Any]
server: Server[Any] = Server("suite", version="1", cache_hints=dict.fromkeys(get_args(CacheableMethod), CacheHint()))


def text(value: str) -> Json:
    """Return a block of text."""
    return {"type": "text", "text": value}


def result(*content: Json, **more: Any) -> Json:
    """Return the result of a tool."""
    return {"resultType": "complete", "content": [*content], **more}


def form(message: str, properties: Json, required: list[str] | None = None) -> Json:
    """Return a question to the user."""
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sample(prompt: str, tokens: int = 100) -> Json:
    """Return a question to the client's model."""
    params = {"messages": [{"role": "user", "content": text(prompt)}], "maxTokens": tokens}
    return {"method": "sampling/createMessage", "params": params}


ROOTS: Json = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", {"name": {"type": "string"}}, ["name"])


def ask(state: str | None = None, **requests: Json) -> Json:
    """Return requests to the client instead of a result."""
    asked: Json = {"resultType": "input_required", "inputRequests": requests}
    return asked if state is None else {**asked, "requestState": sign(state)}


def sign(state: str) -> str:
    """Return a state with its signature."""
    return f"{state}.{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def state_of(params: types.CallToolRequestParams) -> str:
    """Return the state in a request; empty if it has none."""
    if params.request_state is None:
        return ""
    state = params.request_state.rpartition(".")[0]
    if not hmac.compare_digest(sign(state), params.request_state):
        raise MCPError(types.INVALID_PARAMS, "The state is not this server's.")
    return state


CONTENT: dict[str, Json] = {
    "test_simple_text": result(text("This is a simple text response for testing.")),
    "test_image_content": result({"type": "image", "data": PNG, "mimeType": "image/png"}),
    "test_audio_content": result({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": result(
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }
    ),
    "test_multiple_content_types": result(
        text("Multiple content types test:"),
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": '{"test":"data","value":123}',
            },
        },
    ),
    "test_error_handling": result(text("This tool intentionally returns an error for testing"), isError=True),
    "json_schema_2020_12_tool": result(text("ok")),
    "test_custom_header": result(text("ok")),
}
"""Tool → its result, for tools that always return the same."""

ASKING: dict[str, Callable[[Json], Json]] = {
    "test_input_required_result_elicitation": lambda _: ask(user_name=NAME),
    "test_input_required_result_sampling": lambda _: ask(capital_question=sample("What is the capital of France?")),
    "test_input_required_result_list_roots": lambda _: ask(client_roots=ROOTS),
    "test_input_required_result_request_state": lambda _: ask(
        "asked", confirm=form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])
    ),
    "test_input_required_result_tampered_state": lambda _: ask(
        "asked", confirm=form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])
    ),
    "test_input_required_result_multiple_inputs": lambda _: ask(
        "asked", user_name=NAME, greeting=sample("Generate a greeting", 50), client_roots=ROOTS
    ),
    "test_input_required_result_capabilities": lambda _: ask(user_name=NAME, greeting=sample("Generate a greeting")),
    "test_missing_capability": lambda _: ask(needed=sample("Anything")),
    "test_streaming_elicitation": lambda _: ask(user_name=NAME),
    "test_sampling": lambda args: ask(answer=sample(args["prompt"])),
    "test_elicitation": lambda args: ask(
        answer=form(
            args["message"],
            {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            ["username", "email"],
        )
    ),
    "test_elicitation_sep1034_defaults": lambda _: ask(
        answer=form(
            "Check the values.",
            {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": True},
            },
        )
    ),
    "test_elicitation_sep1330_enums": lambda _: ask(
        answer=form(
            "Choose.",
            {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string", "oneOf": titled("value", "First", "Second", "Third")},
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
                },
                "titledMulti": {"type": "array", "items": {"anyOf": titled("value", "First", "Second", "Third")}},
            },
        )
    ),
}
"""Tool → what it asks first."""


def titled(prefix: str, *titles: str) -> list[Json]:
    """Return the choices of a titled enumeration."""
    return [{"const": f"{prefix}{number}", "title": f"{title} Option"} for number, title in enumerate(titles, 1)]


SCHEMAS: dict[str, Json] = {
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    "test_custom_header": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}
NAMES = [
    *CONTENT,
    *ASKING,
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_input_required_result_multi_round",
]


async def list_tools(context: Any, params: types.PaginatedRequestParams) -> Json:
    """Return all tools."""
    return {
        "resultType": "complete",
        "tools": [
            {
                "name": name,
                "description": f"Tool of the scenario {name}.",
                "inputSchema": SCHEMAS.get(name, {"type": "object", "properties": {}}),
            }
            for name in NAMES
        ],
    }


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Json:
    """Call a tool."""
    name, state = params.name, state_of(params)
    answers = {
        key: answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        for key, answer in (params.input_responses or {}).items()
    }
    if name in CONTENT:
        return CONTENT[name]
    if name in ("test_tool_with_logging", "test_logging_tool"):
        for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            log = types.LoggingMessageNotificationParams(level="info", data=message)
            await context.session.send_notification(
                types.LoggingMessageNotification(params=log), related_request_id=context.request_id
            )
            await asyncio.sleep(0.05)
        return result(text("Logged."))
    if name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await context.session.report_progress(done, 100, f"{done} of 100")
            await asyncio.sleep(0.05)
        return result(text("Reported."))
    if name == "test_input_required_result_multi_round":
        if state == "2":
            return result(text(f"Color: {answers['step2']}"))
        if state == "1":
            return ask(
                "2", step2=form("Step 2: What is your favorite color?", {"color": {"type": "string"}}, ["color"])
            )
        return ask("1", step1=form("Step 1: What is your name?", {"name": {"type": "string"}}, ["name"]))
    if not answers:
        return ASKING[name](params.arguments or {})
    return result(text(answered(name, answers)))


def answered(name: str, answers: Json) -> str:
    """Return the text of a tool that asked."""
    first: Json = next(iter(answers.values()))
    if name == "test_sampling":
        return f"LLM response: {first['content']['text']}"
    if name == "test_elicitation":
        return f"User response: action={first['action']}, content={first.get('content')}"
    if "sep" in name:
        return f"Elicitation completed: action={first['action']}, content={first.get('content')}"
    if name == "test_input_required_result_elicitation":
        return f"Hello, {(first.get('content') or {}).get('name')}!"
    return f"state-ok {answers}"


RESOURCES: dict[str, Json] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}


async def list_resources(context: Any, params: types.PaginatedRequestParams) -> Json:
    """Return all resources."""
    return {
        "resultType": "complete",
        "resources": [
            {"uri": uri, "name": uri[7:], "description": "A resource.", "mimeType": one["mimeType"]}
            for uri, one in RESOURCES.items()
        ],
    }


async def list_templates(context: Any, params: types.PaginatedRequestParams) -> Json:
    """Return all templates."""
    template = {"uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json"}
    return {"resultType": "complete", "resourceTemplates": [template]}


async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> Json:
    """Read a resource."""
    uri = params.uri
    if uri.startswith("test://template/"):
        number = uri.split("/")[3]
        found: Json | None = {
            "mimeType": "application/json",
            "text": f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}',
        }
    else:
        found = RESOURCES.get(uri)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return {"resultType": "complete", "contents": [{"uri": uri, **found}]}


PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_prompts(context: Any, params: types.PaginatedRequestParams) -> Json:
    """Return all prompts."""
    prompts = [
        {
            "name": name,
            "description": "A prompt.",
            "arguments": [{"name": one, "description": "An argument.", "required": True} for one in arguments],
        }
        for name, arguments in PROMPTS.items()
    ]
    return {"resultType": "complete", "prompts": prompts}


async def get_prompt(context: Any, params: types.GetPromptRequestParams) -> Json:
    """Return a prompt."""
    given = params.arguments or {}

    def said(*blocks: Json) -> Json:
        return {"resultType": "complete", "messages": [{"role": "user", "content": block} for block in blocks]}

    match params.name:
        case "test_simple_prompt":
            return said(text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return said(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))
        case "test_prompt_with_embedded_resource":
            embedded = {
                "uri": given["resourceUri"],
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }
            return said({"type": "resource", "resource": embedded}, text("Please process the embedded resource above."))
        case "test_prompt_with_image":
            return said(
                {"type": "image", "data": PNG, "mimeType": "image/png"}, text("Please analyze the image above.")
            )
        case _:
            if params.input_responses:
                return said(text(f"Context: {params.input_responses}"))
            properties = {"context": {"type": "string"}}
            return ask(user_context=form("What context should the prompt use?", properties, ["context"]))


async def complete(context: Any, params: types.CompleteRequestParams) -> Json:
    """Complete an argument."""
    values = [value for value in ("paris", "park", "party") if value.startswith(params.argument.value)]
    return {"resultType": "complete", "completion": {"values": values, "total": len(values), "hasMore": False}}


server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
server.add_request_handler("resources/list", types.PaginatedRequestParams, list_resources)
server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, list_templates)
server.add_request_handler("resources/read", types.ReadResourceRequestParams, read_resource)
server.add_request_handler("prompts/list", types.PaginatedRequestParams, list_prompts)
server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)


async def main() -> None:
    """Serve on stdin and stdout."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http() -> None:
    """Serve over HTTP on a free port."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        serve_http()
    else:
        asyncio.run(main())
