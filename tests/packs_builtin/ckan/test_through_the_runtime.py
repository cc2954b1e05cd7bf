"""The pack in the whole pipeline: discovered, validated, run in a worker, recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import pegboard
from pydantic import JsonValue
from web import Web

from pegboard.models import JsonObject, ToolCall, ToolResult
from pegboard.runtime import Runtime
from pegboard.schema.validation import Validator

KEY = "portal-key-4711"
TOOLS = {
    "ckan.search_datasets": "searchDatasets",
    "ckan.get_dataset_details": "getDatasetDetails",
    "ckan.list_groups": "listGroups",
    "ckan.list_tags": "listTags",
}


@pytest.fixture
def configured(portal: Web, home: Path, monkeypatch: pytest.MonkeyPatch) -> Web:
    """Provide a portal with a fictional catalogue, set in the configuration file, with a key in the environment."""
    (home / "config.toml").write_text(f'[packs.ckan]\nbase_url = "{portal.url}/api/3"\nuser_agent = "tests/1"\n')
    monkeypatch.setenv("CKAN_API_KEY", KEY)
    return portal


@pytest.fixture
def runtime(configured: Web, open_runtime: Callable[..., Runtime]) -> Runtime:
    """Provide a runtime with the portal."""
    return open_runtime()


async def call(runtime: Runtime, name: str, **args: JsonValue) -> ToolResult:
    """Call a tool."""
    _, result = await runtime.result(ToolCall(name=name, args=args, source="form"))
    return result


def data_of(result: ToolResult) -> JsonObject:
    """Return the data of a result, which must be an object."""
    assert isinstance(result.data, dict)
    return result.data


@pytest.mark.promise("PCK-5", "CKN-7")
async def test_the_configured_portal_is_called_over_one_connection_with_the_key(
    runtime: Runtime, configured: Web
) -> None:
    for start in (0, 5):
        result = await call(runtime, "ckan.search_datasets", query="water", rows=5, start=start)
        assert result.ok, result.error
    assert configured.connections == 1
    headers = configured.asked[-1].headers
    assert (headers["user-agent"], headers["authorization"]) == ("tests/1", KEY)


@pytest.mark.promise("PCK-5")
async def test_the_tools_are_available_without_a_key(open_runtime: Callable[..., Runtime]) -> None:
    runtime = open_runtime()
    tools = runtime.tools.named("ckan")
    assert [row async for row in runtime.health.check("ckan")] == []
    assert {runtime.health.state(tool) for tool in tools} == {"ready"}


@pytest.mark.promise("CKN-5")
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("ckan.search_datasets", {"query": "a:b"}),
        ("ckan.get_dataset_details", {"id": "water-000"}),
        ("ckan.list_groups", {}),
        ("ckan.list_groups", {"all_fields": True, "organizations": True}),
        ("ckan.list_tags", {}),
        ("ckan.list_tags", {"all_fields": True}),
        ("ckan.status", {}),
    ],
)
async def test_results_match_the_output_schema_of_the_models(runtime: Runtime, name: str, args: JsonObject) -> None:
    spec = runtime.tools.get(name)
    assert spec is not None
    assert spec.problems == ()
    assert spec.output_schema is not None
    result = await call(runtime, name, **args)
    assert result.ok, result.error
    assert data_of(result)["success"] is True
    assert Validator(spec.output_schema).faults(data_of(result)) == ()


@pytest.mark.promise("SDK-14")
async def test_aliases_and_camel_case_work(runtime: Runtime, configured: Web) -> None:
    for name, alias in TOOLS.items():
        assert runtime.tools.get(alias) == runtime.tools.get(name)
    await call(runtime, "listGroups", orderBy="name", allFields=True, limit=1)
    await call(runtime, "searchDatasets", query="title:Water", rawQuery=True)
    groups, search = configured.asked
    assert (groups.params["sort"], groups.params["all_fields"]) == ("name", "true")
    assert search.params["q"] == "title:Water"


@pytest.mark.promise("CKN-6", "SDK-13")
async def test_a_failure_is_a_failed_call_with_a_structured_result(runtime: Runtime) -> None:
    result = await call(runtime, "ckan.get_dataset_details", id="nowhere")
    assert not result.ok
    assert result.error is not None
    assert (result.error.code, result.error.detail, result.error.message) == (
        "execution_error",
        "not_found",
        "Not found",
    )
    assert result.data == {
        "success": False,
        "error": {"message": "Not found", "code": "not_found", "status": 404, "type": "Not Found Error"},
    }


@pytest.mark.promise("CKN-5")
@pytest.mark.parametrize("args", [{"rows": "ten"}, {"rows": 10000}, {"start": -1}, {"rows": 5, "bogus": 1}])
async def test_invalid_arguments_never_reach_the_portal(runtime: Runtime, configured: Web, args: JsonObject) -> None:
    result = await call(runtime, "ckan.search_datasets", **args)
    assert result.error is not None
    assert result.error.code == "invalid_args"
    assert configured.asked == []


async def test_a_whole_number_may_be_written_as_a_fraction(runtime: Runtime, configured: Web) -> None:
    assert (await call(runtime, "ckan.search_datasets", rows=5.0)).ok
    assert configured.asked[0].params["rows"] == "5"


@pytest.mark.promise("STO-2")
async def test_calls_are_recorded_without_the_key(runtime: Runtime, home: Path) -> None:
    await call(runtime, "ckan.search_datasets", query=f"who knows {KEY}?")
    await call(runtime, "ckan.get_dataset_details", id="secret-plans")
    records = runtime.history.records()
    assert [(record.tool, record.ok) for record in records] == [
        ("ckan.get_dataset_details", True),
        ("ckan.search_datasets", True),
    ]
    await runtime.close()
    kept = [file for folder in ("state", "data", "cache") for file in (home / folder).rglob("*") if file.is_file()]
    assert kept
    assert not any(KEY.encode() in file.read_bytes() for file in kept)


@pytest.mark.promise("PCK-5", "CLI-1")
def test_a_search_from_the_command_line(portal: Web) -> None:
    line = ("tools", "invoke", "ckan.search_datasets", "--arg", "query=a:b", "--data")
    done = pegboard(*line, env={**os.environ, "PEGBOARD_PACKS__CKAN__BASE_URL": f"{portal.url}/api/3"})
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["count"] > 0
    assert told["results"][0].keys() == {"id", "title", "organization", "tags", "summary"}


@pytest.mark.promise("PCK-5")
def test_the_tools_can_be_imported_and_called_in_a_plain_script(portal: Web) -> None:
    code = (
        "import asyncio\n"
        "from pegboard.packs.ckan import get_dataset_details, list_groups, list_tags, search_datasets\n"
        "print(asyncio.run(search_datasets(rows=1)).count)\n"
        "from pegboard.sdk import call_tool\n"
        "print([call_tool('ckan.search_datasets', query='a:b')['count'] for _ in range(2)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PEGBOARD_PACKS__CKAN__BASE_URL": f"{portal.url}/api/3"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "143\n[25, 25]\n"
    assert done.stderr == ""
