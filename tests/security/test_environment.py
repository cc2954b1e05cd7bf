"""No secret of the environment reaches a tool that wasn't granted it, or any output or record."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any  # arguments of tools
from urllib.parse import quote

import pytest

from pegboard.config import Redactor
from pegboard.config.redaction import credentials
from pegboard.executor.environment import worker_environment
from pegboard.models import Finished, ToolCall, ToolResult
from pegboard.runtime import Runtime

pytestmark = [pytest.mark.promise("SDK-10"), pytest.mark.promise("STO-2")]

SECRETS = {
    "OPENAI_API_KEY": "sk-1234567890", "AWS_SECRET_ACCESS_KEY": "aws-1234567890", "DATABASE_URL": "postgres://u:p-12345@h",
    "PGPASSWORD": "pg-1234567890", "LC_MY_SECRET": "lc-1234567890", "XDG_MY_SECRET": "xdg-1234567890",
    "MY_PROXY": "proxy-1234567890", "my_proxy": "proxy-0987654321", "RIPGREP_CONFIG_PATH": "/tmp/ripgrep-1234567890",
    "GIT_CONFIG_COUNT": "1", "GIT_SSH_COMMAND": "run-1234567890", "GIT_EXTERNAL_DIFF": "run-1234567890",
    "GIT_ASKPASS": "ask-1234567890", "SSH_AUTH_SOCK": "/tmp/agent-1234567890",
    "LD_PRELOAD": "/tmp/nothing-1234567890.so",
    "PYTHONSTARTUP": "/tmp/start-1234567890", "BASH_ENV": "/tmp/bash-1234567890", "PEGBOARD_MODEL__BASE_URL": "http://h",
    "JQ_COLORS": "jq-1234567890", "SQLITE_HISTORY": "/tmp/sqlite-1234567890", "NETRC": "/tmp/netrc-1234567890",
}  # fmt: skip
LOOK = """
import os
def look():
    "Returns the environment as Python and as the system has it."
    return {"python": dict(os.environ), "system": open("/proc/self/environ").read().split("\\0")}
"""


async def _call(runtime: Runtime, tool: str, **args: Any) -> ToolResult:
    call = ToolCall.model_validate({"name": tool, "args": args, "source": "form", "timeout": 60})
    events = [event async for event in runtime.call(call)]
    assert isinstance(events[-1], Finished)
    return events[-1].result


@pytest.fixture
def hostile_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        if not name.startswith(("LD_", "PEGBOARD_")):  # these would change this process itself
            monkeypatch.setenv(name, value)


# --- What workers see ---


@pytest.mark.parametrize("name", SECRETS)
def test_a_worker_has_no_variable_beyond_the_allow_list(name: str) -> None:
    assert worker_environment(SECRETS) == {}
    assert name not in worker_environment({**SECRETS, "PATH": "/bin"})


@pytest.mark.usefixtures("hostile_environment")
async def test_a_tool_sees_no_variable_beyond_the_allow_list(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    result = await _call(open_runtime(write_pack("looker.py", LOOK)), "looker.look")
    assert isinstance(result.data, dict)
    seen = json.dumps(result.data)
    assert "PATH=" in seen
    assert not [
        name
        for name, value in SECRETS.items()
        if f'"{name}"' in seen or f"{name}=" in seen or (len(value) > 5 and value in seen)
    ]


async def test_variables_that_the_settings_pass_on_reach_the_users_packs_and_no_built_in_one(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED_ON", "yes")
    monkeypatch.setenv("PEGBOARD_TOOLS__ENVIRONMENT", '["PASSED_ON"]')

    built_in = str(write_pack("inner.py", LOOK) / "inner.py")
    monkeypatch.setattr("pegboard.executor.executor.is_built_in", lambda file: file == built_in)
    runtime = open_runtime(write_pack("looker.py", LOOK))
    for _ in range(2):
        seen = await _call(runtime, "looker.look")
        assert '"PASSED_ON":"yes"' in seen.model_dump_json()
        inner = await _call(runtime, "inner.look")
        assert isinstance(inner.data, dict)
        assert "PASSED_ON" not in json.dumps(inner.data)


# --- What a jq filter sees ---

FILTERS = [
    "env", "$ENV", "env.HOME", "$ENV.HOME", "$ENV | keys", "env | to_entries", "{$ENV}", '"\\($ENV)"', "@json",
    "..|env",
    "1) | ($ENV", "1) | (env", ".) as $x | ($ENV", "def f: env; f", "def f($x): $ENV; f(1)", "try error($ENV) catch .",
    "error(env)", "error($ENV.HOME)", "reduce env as $e (null; $e)", "foreach $ENV as $e (null; $e)", "[limit(1; env)]",
    "$ENV as $x | $x", "env as {HOME: $h} | $h", "label $out | env, break $out", "path(env)?", "getpath([env.HOME])",
    "$__loc__", "input_filename", "get_search_list", "get_prog_origin", "get_jq_origin", "$__prog_args", "input",
    "debug",
    "stderr", "halt_error", "$ENV | halt_error", "env | halt_error(0)", "@sh \"\\(env.HOME)\"",
    "@base64 \"\\($ENV.HOME)\"",
    "import \"/etc/passwd\" as $x; $x", "include \"/etc/passwd\"; .", "module {}; import \"/etc/passwd\" as $x; $x",
    "module {}; include \"a\" {search: \"/etc\"}; .", "\"/etc/passwd\" | modulemeta", "\"passwd\" | modulemeta",
    "# comment\n$ENV", "$ENV # comment", "(env", "env)", "env) | (env", "\") | ($ENV",
]  # fmt: skip


@pytest.mark.parametrize("filter_", FILTERS)
async def test_a_filter_sees_neither_the_environment_nor_the_disk(
    open_runtime: Callable[..., Runtime], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filter_: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = await _call(open_runtime(), "json.query", filter=filter_, value={"a": [1]})
    seen = result.model_dump_json()
    encoded = base64.b64encode(str(home).encode()).decode()
    assert not [part for part in (str(home), encoded, "/bin:", "LANG", "root:", str(tmp_path)) if part in seen]


@pytest.mark.promise("SEC-8")
@pytest.mark.parametrize(
    "filter_",
    ["[range(1e12)]", "last(repeat(1))", "def f: 1 + f; f", "def f: f; f", '"x" * 1e9 | . + .', "[repeat(.)]"],
)
async def test_an_endless_filter_is_stopped(
    open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch, filter_: str
) -> None:
    monkeypatch.setenv("PEGBOARD_TOOLS__MEMORY_LIMIT", "300000000")
    runtime = open_runtime()
    call = ToolCall(name="json.query", args={"filter": filter_, "value": 1}, source="form", timeout=1)
    *_, last = [event async for event in runtime.call(call)]
    assert isinstance(last, Finished)
    assert last.result.error is not None
    assert last.result.error.detail in {"timeout", "crashed", "out_of_memory", "jq_failed"}
    assert (await _call(runtime, "json.query", filter=".", value=2)).data == {"results": [2], "truncated": False}


# --- Passwords in URLs ---

PASSWORD = "p@ss/w0rd #1"
URLS = {
    "quoted": f"http://user:{quote(PASSWORD, safe='')}@proxy.example:8080",
    "quoted in lower case": "http://user:p%40ss%2fw0rd%20%231@proxy.example:8080/",
    "raw": "http://user:p@ss_w0rd1@proxy.example:8080",
    "short": "http://user:pw@proxy.example:8080",
    "very short": "http://u:p@proxy.example:8080",
    "without a scheme": "user:passw0rd@proxy.example:8080",
    "a token": "https://ghp_123456789012@proxy.example",
    "a token before a colon": "https://ghp_123456789012:@proxy.example",
    "SOCKS": "socks5h://user:passw0rd@proxy.example:1080",
}


@pytest.mark.parametrize("kind", URLS)
@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
async def test_the_password_of_a_proxy_is_never_shown_or_recorded(
    write_pack: Callable[[str, str], Path],
    open_runtime: Callable[..., Runtime],
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    kind: str,
    name: str,
) -> None:
    url = URLS[kind]
    monkeypatch.setenv(name, url)
    runtime = open_runtime(write_pack("looker.py", LOOK + PRINT))
    result = await _call(runtime, "looker.look")
    assert isinstance(result.data, dict)
    told = result.model_dump_json()
    failed = (await _call(runtime, "looker.fail", name=name)).model_dump_json()
    runtime.history.records()
    await runtime.close()
    kept = b"".join(file.read_bytes() for file in (home / "state").rglob("*") if file.is_file()).decode(
        errors="replace"
    )
    for text in (told, failed, kept):
        assert f"«secret {name}»" in text
        assert not [secret for secret in _parts(url) if secret in text]


PRINT = """
import base64, sys
from urllib.parse import unquote
def fail(*, name):
    "Fails with the URL in its message, and prints what a header would have."
    user = os.environ[name].partition("://")[2].rpartition("@")[0] or os.environ[name].rpartition("@")[0]
    print(os.environ[name], "and", unquote(os.environ[name]), file=sys.stderr)
    print("Proxy-Authorization: Basic", base64.b64encode(unquote(user).encode()).decode())
    raise ConnectionError(f"{os.environ[name]} refused the connection; tried {user}@proxy.example")
"""


def _parts(url: str) -> list[str]:
    """Return the parts of a URL that must stay secret, without passwords that are common texts."""
    user = url.rpartition("://")[2].rpartition("@")[0]
    return [f"{user}@", *(part for part in (user, user.partition(":")[2]) if len(part) >= 6)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("http://host/path", ()),
        ("http://host/@scope/package", ()),
        ("http://host?mail=a:b@c", ()),
        ("ssh://git@host/repository", ()),
        ("me@example.org", ()),
        ("mailto:me@example.org", ()),
        ("ftp://anonymous@host", ()),
        ("postgres://user:passw0rd@host/db", ("user:passw0rd", "user:passw0rd@host", "passw0rd")),
    ],
)
def test_only_the_secret_part_of_a_url_counts_as_a_secret(text: str, found: tuple[str, ...]) -> None:
    assert credentials(text) == found


def test_the_password_of_a_secret_that_is_a_url_is_found_alone_and_in_any_form() -> None:
    redactor = Redactor({"DATABASE_DSN": f"postgres://user:{quote(PASSWORD, safe='')}@host/db"})
    for written in (
        PASSWORD,
        quote(PASSWORD),
        json.dumps(PASSWORD)[1:-1],
        base64.b64encode(f"user:{PASSWORD}".encode()),
    ):
        text = written if isinstance(written, str) else written.decode()
        assert redactor.text(f"<{text}>") == "<«secret DATABASE_DSN»>"


async def test_the_password_in_a_url_of_the_settings_is_redacted(
    open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_MODEL__BASE_URL", "https://user:passw0rd@model.example/v1")
    result = await _call(open_runtime(), "tools.echo", value="it said: passw0rd at user:passw0rd@model.example")
    assert result.data == "it said: «secret model.base_url» at «secret model.base_url»"
