"""MCP servers in the configuration: read, restricted to the folder that sets them, and edited."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from pegboard.config import (
    Paths,
    Redactor,
    Secrets,
    Settings,
    configured_servers,
    given_server,
    pack_name,
    resolve_server,
    review_folder,
)
from pegboard.config.server_file import ServerFile
from pegboard.errors import ConfigError
from pegboard.models import Problem, ServerConfig


class User(Protocol):
    """A user's file, a working directory, and the settings from them."""

    file: Path
    cwd: Path

    def write(self, text: str | bytes) -> None: ...
    def overlay(self, text: str) -> None: ...
    def trust(self) -> None: ...
    def load(self, environ: Mapping[str, str] | None = None) -> tuple[Settings, tuple[Problem, ...]]: ...


@pytest.mark.promise("MCP-1", "CFG-1")
def test_an_entry_is_read_with_paths_relative_to_its_file(user: User) -> None:
    user.write(
        '[mcp.servers.files]\ncommand = "./bin/server"\nargs = ["-v"]\ncwd = "work"\nroots = ["~/data", "x"]\n'
        'timeout = 5\ntrusted = true\ntools = ["read_*"]\nenv = { LEVEL = "info" }\n'
        '[mcp.servers.web]\nurl = "https://host/mcp"\nenabled = false\n'
    )
    settings, problems = user.load()
    assert problems == ()
    files, web = configured_servers(settings)
    folder = user.file.parent
    assert (files.command, files.cwd) == (str(folder / "bin" / "server"), str(folder / "work"))
    assert files.roots == (str(Path.home() / "data"), str(folder / "x"))
    assert (files.timeout, files.trusted, files.tools) == (5, True, ("read_*",))
    assert (web.url, web.enabled, web.tools, web.roots) == ("https://host/mcp", False, None, None)


@pytest.mark.promise("SEC-4", "CFG-1")
@pytest.mark.parametrize(
    ("entry", "message", "fix"),
    [
        ('command = "x"\ntool = ["a"]', "Unknown setting `mcp.servers.a.tool`.", "Did you mean `mcp.servers.a.tools`?"),
        ('command = "x"\ntools = 3', "`mcp.servers.a.tools` should be a list, but is a number.", ""),
        ('command = "x"\nargs = [1]', "`mcp.servers.a.args.0` should be text, but is a number.", ""),
        ('comand = "x"', "Unknown setting `mcp.servers.a.comand`.", "Did you mean `mcp.servers.a.command`?"),
        ("enabled = true", "It has neither `command` nor `url`.", ""),
        ('command = "x"\nurl = "http://h"', "It has both `command` and `url`.", ""),
        ('url = "h/mcp"', "doesn't start with http:// or https://", ""),
        ('url = "http://h"\nheaders = { "a b" = "c" }', "The header 'a b' is invalid.", ""),
    ],
)
def test_an_error_in_an_entry_blocks_only_that_server(user: User, entry: str, message: str, fix: str) -> None:
    user.write(f'[mcp.servers.good]\ncommand = "x"\n[mcp.servers.a]\n{entry}\n')
    settings, problems = user.load()
    assert message in problems[0].message
    assert fix in problems[0].fix
    assert problems[0].line
    blocked, good = configured_servers(settings)
    assert blocked.problem == problems[0]
    assert good.problem is None
    assert settings.loaded.blocked is None


@pytest.mark.promise("SEC-3")
def test_a_folders_server_needs_trust_and_never_gets_the_users_header_or_secret(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUB_TOKEN", "of-the-user")
    user.write('[mcp.servers.hub]\nurl = "https://mine/mcp"\nheaders = { Authorization = "Bearer of-the-user" }\n')
    user.overlay('[mcp.servers.hub]\nurl = "https://evil/mcp"\nheaders = { X-Key = "${HUB_TOKEN}" }\n')
    [server] = configured_servers(user.load()[0])
    assert (server.url, server.of_folder) == ("https://mine/mcp", False)
    paths = Paths.from_environment({"PEGBOARD_CONFIG": str(user.file)})
    review = "\n".join(review_folder(paths, user.cwd).lines())
    assert "The MCP server hub connects to https://evil/mcp." in review
    user.trust()
    [server] = configured_servers(user.load()[0])
    assert (server.url, dict(server.headers), server.of_folder) == ("https://evil/mcp", {"X-Key": "${HUB_TOKEN}"}, True)
    refused = resolve_server(server, Secrets(paths, cwd=user.cwd))
    assert isinstance(refused, Problem)
    (user.cwd / ".env").write_text("HUB_TOKEN=of-the-folder\n")
    user.trust()
    found = resolve_server(server, Secrets(paths, cwd=user.cwd))
    assert not isinstance(found, Problem)
    assert found.config.headers == {"X-Key": "of-the-folder"}
    assert found.secrets == {"HUB_TOKEN": "of-the-folder"}


@pytest.mark.promise("SEC-3")
def test_variables_set_neither_credentials_nor_trust_of_a_folders_server(user: User) -> None:
    user.write('[mcp.servers.hub]\nurl = "https://mine/mcp"\n')
    user.overlay('[mcp.servers.hub]\nurl = "https://evil/mcp"\n')
    user.trust()
    variables = {
        "PEGBOARD_MCP__SERVERS__HUB__HEADERS__AUTHORIZATION": "Bearer of-the-user",
        "PEGBOARD_MCP__SERVERS__HUB__OAUTH__CLIENT_SECRET": "of-the-user",
        "PEGBOARD_MCP__SERVERS__HUB__TRUSTED": "true",
        "PEGBOARD_MCP__SERVERS__HUB__TIMEOUT": "5",
    }
    settings, problems = user.load(variables)
    [server] = configured_servers(settings)
    assert (server.url, server.headers, server.trusted, server.timeout) == ("https://evil/mcp", {}, False, 5)
    assert server.oauth.client_secret is None
    assert [problem.message.partition(": ")[2] for problem in problems] == [
        f"`mcp.servers.hub.{key}` is not used because the pegboard.toml of this folder sets `mcp.servers.hub`."
        for key in ("headers.authorization", "oauth.client_secret", "trusted")
    ]
    settings, problems = user.load({**variables, "PEGBOARD_MCP__SERVERS__HUB__URL": "https://mine/mcp"})
    [server] = configured_servers(settings)
    assert (server.url, server.headers) == ("https://mine/mcp", {"authorization": "Bearer of-the-user"})
    assert problems == ()


@pytest.mark.promise("STO-2")
def test_credentials_in_plain_text_are_redacted_too(user: User) -> None:
    server = ServerConfig(
        name="a", url="https://h", headers={"Authorization": "Bearer abcdefgh"}, env={"LEVEL": "information"}
    )
    found = resolve_server(server, Secrets(Paths.from_environment({"PEGBOARD_CONFIG": str(user.file)})))
    assert not isinstance(found, Problem)
    assert found.secrets == {"Authorization of a": "abcdefgh"}


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize(
    ("name", "text", "written", "redacted"),
    [
        (
            "Cookie",
            "session=s3cr3t-session==; theme=dark",
            "session=s3cr3t-session==; theme=dark",
            "session=«»; theme=dark",
        ),
        ("X-Api-Key", "correct horse battery staple", "correct horse battery staple", "«»"),
        ("X-Api-Key", "correct horse battery staple", "a staple", "a staple"),
        ("Authorization", "Token abcdefgh", "abcdefgh", "«»"),
        ("Authorization", "ApiKey abcdefgh", "abcdefgh", "«»"),
    ],
)
def test_each_secret_part_of_a_header_is_redacted_as_a_whole(
    user: User, name: str, text: str, written: str, redacted: str
) -> None:
    server = ServerConfig(name="a", url="https://h", headers={name: text})
    found = resolve_server(server, Secrets(Paths.from_environment({"PEGBOARD_CONFIG": str(user.file)})))
    assert not isinstance(found, Problem)
    assert Redactor(found.secrets, "«»").text(written) == redacted


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("mcp-servers/everything", "everything_2"),
        ("a/b c™/", "b_c"),
        ("日本", "server"),
        ("9lives", "_9lives"),
        ("\x1b[31mred", "31mred"),
        ("x" * 200, "x" * 60),
    ],
)
def test_a_pack_is_named_after_the_last_segment_of_what_the_server_reports(reported: str, name: str) -> None:
    found = pack_name(reported, {"everything"})
    assert found.removeprefix("_") == name.removeprefix("_")
    assert found.isascii()


@pytest.mark.promise("MCP-3")
def test_a_value_of_mcp_is_a_command_or_a_url_with_an_optional_name() -> None:
    server = given_server("npx -y 'a b'")
    assert (server.name, server.command, server.args, server.saved) == ("", "npx", ("-y", "a b"), False)
    server = given_server("hub=https://host/mcp?a=b")
    assert (server.name, server.url) == ("hub", "https://host/mcp?a=b")
    with pytest.raises(ConfigError, match="Its URL doesn't start with"):
        given_server("ftp://host")


FILES = {
    "an empty file": "",
    "comments and other sections": "# mine\n[ui]\nvim_keys = true  # as in vim\n\n# packs\n[packs]\nfolders = []\n",
    "another server": '[mcp.servers.other]  # old\ncommand = "x"\n[mcp.servers.other.env]\nA = "1"\n\n# keys\n[keys]\n',
    "Windows line breaks": '[ui]\r\ntheme = "x"\r\n',
}


@pytest.mark.promise("MCP-3")
@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_adding_and_removing_a_server_keeps_the_rest_of_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    path.chmod(0o644)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    file = ServerFile(link)
    file.add({"new": {"command": "npx", "args": ["it's", 'a "b"\x7f\n'], "env": {"KEY": "${KEY}"}}})
    assert path.read_bytes().startswith(text.encode())
    assert "new" in file.names()
    assert path.stat().st_mode & 0o777 == 0o644
    file.remove("new")
    assert path.read_bytes().decode() == text
    assert link.is_symlink()


def test_removing_a_server_removes_its_inner_tables_and_keeps_the_next_comment(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(FILES["another server"])
    ServerFile(path).remove("other")
    assert path.read_text() == "# keys\n[keys]\n"


@pytest.mark.parametrize(
    "text",
    [
        "mcp = { servers = {} }\n",
        '[mcp]\nservers.a = { command = "x" }\n',
        "mcp = 3\n",
        "[ui\n",
        '[mcp.servers]\na = {command = "x"}\n',
    ],
)
def test_a_file_of_another_form_is_not_changed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    file = ServerFile(path)
    with pytest.raises(ConfigError):
        file.remove("a")
    assert path.read_text() == text
