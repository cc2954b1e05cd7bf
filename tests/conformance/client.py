"""The client of a conformance scenario: uses a server with `pegboard` commands, as a person would.

The suite passes the server's URL as the last argument, and the scenario in variables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: Mapping[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client metadata document of the suite."""


class User:
    """A user with a configuration of their own.

    Args:
        home: Their folder.
    """

    def __init__(self, home: Path) -> None:
        browser = home / "browser"
        browser.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).with_name("browser.py")}" "$1"\n')
        browser.chmod(0o700)
        own = {key: value for key, value in os.environ.items() if not key.startswith(("PEGBOARD_", "MCP_"))}
        self._environment = {
            **own,
            "HOME": str(home),
            "BROWSER": str(browser),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "PEGBOARD_CONFIG": str(home / "config.toml"),
            **{f"PEGBOARD_{name}_DIR": str(home / name.lower()) for name in ("DATA", "STATE", "CACHE")},
        }
        if "client_secret" in CONTEXT:
            self._environment["SUITE_CLIENT_SECRET"] = CONTEXT["client_secret"]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command, and show it and its messages."""
        print("$ pegboard", *arguments, file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "pegboard", *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout[-1500:], done.stderr, f"exit code {done.returncode}", file=sys.stderr, flush=True)
        return done

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools of the server."""
        listed: list[dict[str, Any]] = json.loads(self.run("tools", "list", "--json", "--tool-allow", "suite.*").stdout)
        return listed

    def invoke(self, tool: str, arguments: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        """Call a tool, and accept what the server asks."""
        accept = ["--elicit", "{}"] if SCENARIO.startswith("elicitation") else ["--elicit", '{"confirmed": true}']
        return self.run("tools", "invoke", f"suite.{tool}", "--args", json.dumps(arguments), *accept)


def main(url: str) -> int:
    """Use the server; return 1 if something failed that shouldn't."""
    with tempfile.TemporaryDirectory(prefix="user-") as home:
        user = User(Path(home))
        is_auth = SCENARIO.startswith("auth/")
        user.run("mcp", "add", "suite", "--url", url, "--timeout", "40", *_client())
        if is_auth and user.run("mcp", "login", "suite").returncode:
            return 1
        done = _use_tools(user)
        if is_auth and (not done or any(one.returncode for one in done)):
            # The server wants another login: for more permissions, or at another authorization server.
            if user.run("mcp", "login", "suite").returncode:
                return 1
            done = _use_tools(user)
        if SCENARIO == "http-standard-headers":
            _read_everything(user)
    return 1 if is_auth and any(one.returncode for one in done) else 0


def _use_tools(user: User) -> list[subprocess.CompletedProcess[str]]:
    """List the tools and call each one, or make the calls that the scenario wants."""
    tools = user.tools()
    calls = CONTEXT.get("toolCalls") or [
        {"name": _name(tool), "arguments": _arguments(tool["inputSchema"])} for tool in tools
    ]
    if SCENARIO == "json-schema-2020-12-preservation":
        schema, echo = sorted(tools, key=lambda tool: "schema" in tool["inputSchema"].get("required", ()))
        calls = [{"name": _name(echo), "arguments": {"schema": schema["inputSchema"]}}]
    # A person leaves out what has no value.
    return [
        user.invoke(call["name"], {key: value for key, value in call["arguments"].items() if value is not None})
        for call in calls
    ]


def _client() -> list[str]:
    if "client_id" in CONTEXT and "client_secret" in CONTEXT:
        return ["--client-id", CONTEXT["client_id"], "--client-secret", "SUITE_CLIENT_SECRET"]
    return ["--client-id", DOCUMENT] if SCENARIO.startswith("auth/") else []


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["name"]).removeprefix("suite.")


def _arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for the required parameters of a tool."""
    examples = {"number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    return {name: examples.get(properties[name].get("type"), "text") for name in schema.get("required", ())}


def _read_everything(user: User) -> None:
    listed = json.loads(user.run("mcp", "resources", "suite", "--json").stdout)
    for resource in listed["resources"]:
        user.run("mcp", "read", "suite", resource["uri"])
    for prompt in json.loads(user.run("mcp", "prompts", "suite", "--json").stdout):
        values = [text for one in prompt["arguments"] for text in ("--arg", f"{one['name']}=text")]
        user.run("mcp", "prompt", "suite", prompt["name"], *values)


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
