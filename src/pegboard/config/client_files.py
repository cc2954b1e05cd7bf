"""Files in which other MCP clients configure servers, read for an import."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from pegboard.config.client_formats import VARIABLE, ClientFormatError, listed_keys, parsed, server_places, value_at
from pegboard.config.files import read_text, shown
from pegboard.config.new_servers import entry_complaint
from pegboard.config.paths import PATH_VARIABLES, working_directory
from pegboard.config.redaction import is_secret_name
from pegboard.config.servers import SECRET, ends_in_sse, is_server_name, pack_name
from pegboard.errors import ConfigError
from pegboard.models import JsonObject, Problem

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.config.secrets import Secret
    from pegboard.config.settings import McpServer

CLIENTS: Final = (
    "claude-code", "claude-desktop", "codex", "copilot", "cursor", "gemini", "opencode", "vscode", "windsurf",
)  # fmt: skip
"""Names of the clients whose files are found by themselves."""

_Entry: TypeAlias = dict[str, object]

_EXPECTED: Final = 'Expected JSON such as {"mcpServers": {"NAME": {"command": "…"}}}, or TOML with [mcp_servers.NAME].'

_COMMON_KEYS: Final = {"environment": "env", "http_headers": "headers"}
_CLIENT_FOLDERS: Final = frozenset({".vscode", ".cursor", ".codex", ".gemini", ".github", ".qwen"})
_OPENCODE_VARIABLE: Final = re.compile(r"(?<!\$)\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_OPENCODE_FILE: Final = re.compile(r"(?<!\$)\{file:[^{}]+\}")
_BARE_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_OF_COPILOT: Final = "mcp-config.json"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TRANSPORTS: Final = {
    "stdio": "",
    "local": "",
    "http": "",
    "streamable-http": "",
    "streamablehttp": "",
    "streamable_http": "",
    "remote": "",
    "sse": "it uses the old HTTP+SSE transport; ask its operator for the URL of its streamable HTTP endpoint",
}
"""Transport in lower case → why a server that uses it is skipped; empty if it is not."""
_KNOWN: Final = frozenset(
    {"type", "transport", "command", "args", "env", "environment", "env_vars", "cwd", "url", "serverUrl", "httpUrl"}
    | {"headers", "http_headers", "env_http_headers", "bearer_token_env_var"}
    | {"disabled", "enabled", "required", "oauth", "description", "name"}
)
_APPROVALS: Final = "approvals are not imported; Pegboard asks before a model calls its tools"
_TOOLS: Final = "all its tools are listed; limit them with `tools` in the configuration"
_TIMEOUTS: Final = "timeouts are not imported; set `timeout` in seconds"
_UNIMPORTED: Final = {
    "envFile": "its variables are not read; add them with `--env`, or set secrets",
    "tools": _TOOLS,
    "autoApprove": _APPROVALS,
    "alwaysAllow": _APPROVALS,
    "default_tools_approval_mode": _APPROVALS,
    "trust": "trust is not imported; Pegboard asks before a model calls its tools",
    "disabledTools": _TOOLS,
    "excludeTools": _TOOLS,
    "includeTools": _TOOLS,
    "enabled_tools": _TOOLS,
    "disabled_tools": _TOOLS,
    "timeout": _TIMEOUTS,
    "startup_timeout_sec": _TIMEOUTS,
    "tool_timeout_sec": _TIMEOUTS,
    "headersHelper": "headers that a program makes are not supported",
}


@dataclass(frozen=True)
class FoundServer:
    """A server in another client's file. All its text is untrusted."""

    name: str
    """As in the file."""
    file: Path
    entry: _Entry = field(default_factory=dict, repr=False)
    """The keys for Pegboard's configuration; empty if it is skipped."""
    new_name: str = ""
    """The name in Pegboard's configuration."""
    skipped: str = ""
    """Why it can't be imported; empty if it can."""
    notes: tuple[str, ...] = ()
    """Differences from the file."""


class _SkippedError(Exception):
    """A server can't be imported; the message says why."""


def _home() -> Path:
    """Return the user's home folder; raise `OSError` if it is unknown."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise OSError("The home folder is unknown. Set HOME to an absolute path.") from error


def client_home(client: str) -> Path:
    """Return the folder in which a client with a command line keeps its settings, as its environment variable says."""
    home = _home()
    variable, default = {
        "claude-code": ("CLAUDE_CONFIG_DIR", home / ".claude"),
        "codex": ("CODEX_HOME", home / ".codex"),
        "copilot": ("COPILOT_HOME", home / ".copilot"),
        "gemini": ("GEMINI_CLI_HOME", home / ".gemini"),
        "qwen": ("QWEN_HOME", home / ".qwen"),
    }[client]
    given = os.environ.get(variable)
    if not given:
        return default
    return Path(given) / ".gemini" if client == "gemini" else Path(given)


def config_home() -> Path:
    """Return the folder in which programs keep their settings, as `XDG_CONFIG_HOME` says; see `client_files`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or _home() / ".config")


def client_files(client: str) -> tuple[Path, ...]:
    """Return the files in which the user configures a client, in order; they needn't exist.

    Files of the working directory aren't among them: its author may not be the user.

    Raises:
        OSError: The user has no home folder.
    """
    home = _home()
    is_mac = sys.platform == "darwin"
    settings = config_home()
    support = home / "Library/Application Support" if is_mac else settings
    return {
        "claude-code": (Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json",),
        "claude-desktop": (support / "Claude/claude_desktop_config.json",),
        "codex": (client_home("codex") / "config.toml",),
        "copilot": (client_home("copilot") / _OF_COPILOT,),
        "cursor": (home / ".cursor/mcp.json",),
        "gemini": (client_home("gemini") / "settings.json",),
        "opencode": tuple(settings / "opencode" / f"opencode.{suffix}" for suffix in ("json", "jsonc")),
        "qwen": (client_home("qwen") / "settings.json",),
        "vscode": (support / "Code/User/mcp.json", support / "Code/User/settings.json"),
        "windsurf": (home / ".codeium/windsurf/mcp_config.json",),
    }[client]


def existing_files(client: str) -> list[Path]:
    """Return those of `client_files` that exist; none in a folder that can't be searched, or without a home folder."""
    try:
        return [file for file in client_files(client) if os.path.exists(file)]  # noqa: PTH110 - `Path.exists` may raise
    except OSError:
        return []


def folder_file(client: str) -> Path | None:
    """Return the path of a client's file in a working directory, relative to it."""
    found = {
        "claude-code": ".mcp.json",
        "codex": ".codex/config.toml",
        "copilot": ".github/mcp.json",
        "cursor": ".cursor/mcp.json",
        "gemini": ".gemini/settings.json",
        "opencode": "opencode.json",
        "qwen": ".qwen/settings.json",
        "vscode": ".vscode/mcp.json",
    }.get(client)
    return Path(found) if found else None


def read_client_file(
    file: Path, taken: Collection[str], is_set: Callable[[str], bool], environ: Mapping[str, str]
) -> tuple[FoundServer, ...]:
    """Return the servers in a file of another client.

    Args:
        file: The file: JSON with or without comments, or TOML.
        taken: Names that packs and servers have.
        is_set: Returns whether a secret is set.
        environ: The environment, for variables in commands.

    Raises:
        ConfigError: The file can't be read, or has no servers.
    """
    text = read_text(file)
    if isinstance(text, Problem):
        raise ConfigError(f"{shown(file)} was not imported. {text.message} {_EXPECTED}")
    if not file.exists():
        raise ConfigError(f"{shown(file)} doesn't exist. Pass a file, or one of {', '.join(CLIENTS)}.")
    try:
        content = parsed(file.name, text)
    except ClientFormatError as error:
        raise ConfigError(f"{shown(file)} was not imported because it {error}. {_EXPECTED}") from None
    project = ("projects", os.fspath(working_directory()))
    places = [place for place in server_places(content) if place[0] != "projects" or place[:2] == project]
    if not places:
        raise ConfigError(
            f"{shown(file)} was not imported because it has no server in {listed_keys(file.name)}. {_EXPECTED}"
        )
    names = set(taken)
    found: list[FoundServer] = []
    for place in places:
        name, entry = place[-1], value_at(content, place)
        reader = _Reader(file, is_set, environ)
        new_name = name if is_server_name(name) and name not in names else pack_name(name, names)
        try:
            converted = reader.convert(entry)
        except _SkippedError as error:
            found.append(FoundServer(name, file, skipped=str(error)))
            continue
        if complaint := entry_complaint(new_name, converted, ()):
            reason = complaint[0].lower() + complaint[1:].removesuffix(".")
            found.append(FoundServer(name, file, skipped=reason))
            continue
        notes = reader.notes if new_name == name else (f"named {new_name} here", *reader.notes)
        names.add(new_name)
        found.append(FoundServer(name, file, converted, new_name, notes=tuple(notes)))
    return tuple(found)


def read_client_files(
    files: Iterable[Path], taken: Collection[str], is_set: Callable[[str], bool], environ: Mapping[str, str]
) -> tuple[tuple[FoundServer, ...], tuple[str, ...]]:
    """Return the servers in files of other clients, and why files can't be used; see `read_client_file`."""
    found: list[FoundServer] = []
    reasons: list[str] = []
    for file in files:
        try:
            found += read_client_file(file, {*taken, *(one.new_name for one in found)}, is_set, environ)
        except ConfigError as error:
            reasons.append(str(error))
    return tuple(found), tuple(reasons)


def is_configured(found: FoundServer, servers: Mapping[str, McpServer], find: Callable[[str], Secret | None]) -> bool:
    """Return whether a server of another client is configured already, perhaps with another name.

    The same program or URL with other variables or headers is another server, such as one for another account.

    Args:
        found: The server.
        servers: The configured servers by name.
        find: Returns a secret.
    """
    if found.name in servers:
        return True
    entry = found.entry
    wanted = (entry.get("command"), entry.get("args", []), entry.get("url"))
    texts = [_filled(entry.get(key), find) for key in ("env", "headers")]
    return any(
        (one.command, [*one.args], one.url) == wanted and [_filled(one.env, find), _filled(one.headers, find)] == texts
        for one in servers.values()
    )


def _filled(texts: object, find: Callable[[str], Secret | None]) -> dict[str, str]:
    """Return variables or headers with the values of the secrets that are set."""

    def value(match: re.Match[str]) -> str:
        secret = find(match[1])
        return match[0] if secret is None else secret.reveal()

    known = texts if isinstance(texts, Mapping) else {}
    return {str(key): SECRET.sub(value, str(text)) for key, text in known.items()}


class _Reader:
    """Converter of one entry.

    Args:
        file: The file that it is in.
        is_set: Returns whether a secret is set.
        environ: The environment.
    """

    def __init__(self, file: Path, is_set: Callable[[str], bool], environ: Mapping[str, str]) -> None:
        folder = file.absolute().parent
        self._folder = folder.parent if folder.name in _CLIENT_FOLDERS else folder
        self._has_bare_variables = folder.name in {".gemini", ".github", ".qwen"} or file.name == _OF_COPILOT
        self._is_set = is_set
        self._environ = environ
        self.notes: list[str] = []

    def convert(self, entry: object) -> _Entry:
        """Return the keys for Pegboard's configuration.

        Raises:
            _SkippedError: It can't be used.
        """
        if not isinstance(entry, dict):
            raise _SkippedError("its entry is not an object")
        entry = self._in_common_form(entry)
        transport = str(entry.get("type") or entry.get("transport") or "").lower()
        if transport and (reason := _TRANSPORTS.get(transport, f"its transport {transport!r} is not supported")):
            raise _SkippedError(reason)
        urls = [key for key in ("url", "serverUrl", "httpUrl") if entry.get(key) is not None]
        if urls and entry.get("command") is None:
            url = self._plain(self._text(entry, urls[0]))
            found: _Entry = {"url": url}
            if not transport and ends_in_sse(url):
                self.notes.append("its URL seems to be of the old HTTP+SSE transport, which is not supported")
            if headers := self._texts(entry, "headers"):
                found["headers"] = {key: self._with_secrets(value) for key, value in headers.items()}
            found.update(self._oauth(entry.get("oauth")))
        elif entry.get("command") is not None and not urls:
            found = self._command(entry)
        else:
            raise _SkippedError("it has both a command and a URL" if urls else "it has neither a command nor a URL")
        if entry.get("disabled") is True or entry.get("enabled") is False:
            found["enabled"] = False
            self.notes.append("disabled, as in the file")
        for key in entry:
            if (key, entry[key]) == ("tools", ["*"]):  # Copilot writes this for all tools.
                continue
            if lost := _UNIMPORTED.get(key):
                self.notes.append(f"`{key}`: {lost}")
            elif key not in _KNOWN:
                self.notes.append(f"`{key}` is not imported")
        return found

    def _in_common_form(self, entry: JsonObject) -> JsonObject:
        """Return an entry with the keys and the variables of most clients instead of those of one.

        Raises:
            _SkippedError: It contains the content of a file.
        """
        is_opencode = entry.get("type") in ("local", "remote")

        def rewritten(value: JsonValue) -> JsonValue:
            if isinstance(value, dict):
                return {key: rewritten(item) for key, item in value.items()}
            if isinstance(value, list):
                return [rewritten(item) for item in value]
            if not isinstance(value, str):
                return value
            if is_opencode and _OPENCODE_FILE.search(value):
                raise _SkippedError("it uses the content of a file, as {file:…}; Pegboard has no equivalent")
            value = _OPENCODE_VARIABLE.sub(r"${\1}", value) if is_opencode else value
            return _BARE_VARIABLE.sub(r"${\1}", value) if self._has_bare_variables else value

        common = {_COMMON_KEYS.get(key, key): rewritten(value) for key, value in entry.items()}
        named = [one.get("name") if isinstance(one, dict) else one for one in _list(common.pop("env_vars", None))]
        if named:
            common["env"] = {**{str(name): f"${{{name}}}" for name in named}, **self._texts(common, "env")}
        headers = {name: f"${{{variable}}}" for name, variable in self._texts(common, "env_http_headers").items()}
        if common.get("bearer_token_env_var") is not None:
            headers["Authorization"] = f"Bearer ${{{self._text(common, 'bearer_token_env_var')}}}"
        if headers:
            common["headers"] = {**self._texts(common, "headers"), **headers}
        return common

    def _command(self, entry: JsonObject) -> _Entry:
        command, args = entry["command"], entry.get("args", [])
        words = [command] if isinstance(command, str) else command if isinstance(command, list) else []
        more = args if isinstance(args, list) else None
        if not words or more is None or not all(isinstance(word, str | int | float) for word in (*words, *more)):
            raise _SkippedError("its command or its arguments are not text")
        written = [self._plain(str(word)) for word in (*words, *more)]
        plain = _unwatched(written)
        found: _Entry = {"command": plain[0]}
        if plain[1:]:
            found["args"] = plain[1:]
        env = self._texts(entry, "env")
        if len(plain) != len(written):  # It ran behind `pegboard watch`, for which these were added.
            env = {key: value for key, value in env.items() if key not in PATH_VARIABLES}
        if env:
            found["env"] = {key: self._with_secrets(value) for key, value in env.items()}
        if entry.get("cwd") is not None:
            found["cwd"] = self._plain(self._text(entry, "cwd"))
        return found

    def _oauth(self, oauth: object) -> _Entry:
        if not isinstance(oauth, dict):
            return {}
        known = {"clientId": "client_id", "client_id": "client_id", "callbackPort": "redirect_port"}
        found = {new: oauth[key] for key, new in known.items() if isinstance(oauth.get(key), str | int)}
        self.notes += [f"`oauth.{key}` is not imported" for key in oauth if key not in known]
        return {"oauth": found} if found else {}

    def _text(self, entry: JsonObject, key: str) -> str:
        value = entry[key]
        if not isinstance(value, str):
            raise _SkippedError(f"its `{key}` is not text")
        return value

    def _texts(self, entry: JsonObject, key: str) -> dict[str, str]:
        value = entry.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(
            isinstance(item, str | int | float | None) for item in value.values()
        ):
            raise _SkippedError(f"its `{key}` is not an object with string values")
        return {name: _as_text(item) for name, item in value.items() if item is not None}

    def _plain(self, text: str) -> str:
        """Replace variables by their current values, since only variables and headers of a server have secrets."""

        def value(match: re.Match[str]) -> str:
            known = self._known(match[1])
            if known is not None:
                return known
            name, default = _variable(match[1])
            if name and not is_secret_name(name) and (found := self._environ.get(name)):
                self.notes.append(f"${{{match[1]}}} replaced by its current value")
                return found
            if default is not None:
                return default
            raise _SkippedError(f"its command or URL uses ${{{match[1]}}}; only `env` and `headers` can have secrets")

        return VARIABLE.sub(value, text)

    def _with_secrets(self, text: str) -> str:
        """Replace variables by references to secrets."""

        def reference(match: re.Match[str]) -> str:
            known = self._known(match[1])
            if known is not None:
                return known
            name, default = _variable(match[1])
            if not name:
                raise _SkippedError(f"Pegboard has no equivalent of ${{{match[1]}}}")
            if not self._is_set(name):
                if default is not None:
                    return default
                self.notes.append(f"set the secret {name} with `pegboard auth set {name}`")
            return f"${{{name}}}"

        return VARIABLE.sub(reference, text)

    def _known(self, variable: str) -> str | None:
        """Return the value of a variable that editors define."""
        match variable:
            case "workspaceFolder" | "CLAUDE_PROJECT_DIR":
                return shown(self._folder)
            case "workspaceFolderBasename":
                return self._folder.name
            case "userHome":
                return shown(_home())
            case "pathSeparator" | "/":
                return "/"
        return None


def pegboard_words(command: list[str]) -> list[str] | None:
    """Return the arguments of a command line that runs Pegboard; None if it runs another program."""
    if command[1:3] in (["-m", "pegboard"], ["-Pm", "pegboard"]):
        return command[3:]
    return command[1:] if PurePath(command[0]).name in {"pegboard", "pegboard.exe"} else None


def _unwatched(command: list[str]) -> list[str]:
    """Return the command of a server, without the `pegboard watch` that runs it.

    Raises:
        _SkippedError: It is Pegboard's own server, or a bridge to a URL.
    """
    words = pegboard_words(command)
    if words is None:
        return command
    end = words.index("--") if "--" in words else len(words)
    own, server = words[:end], words[end + 1 :]
    if "serve" in own:
        raise _SkippedError("it is Pegboard itself")
    if "watch" in own and not server:
        raise _SkippedError("it runs behind `pegboard watch`; `pegboard adopt FILE --undo` restores it")
    return server if "watch" in own else command


def _variable(text: str) -> tuple[str, str | None]:
    """Return the name in `NAME`, `env:NAME`, `input:name` or `NAME:-default`, and the default."""
    if text.startswith("input:"):
        return re.sub(r"[^A-Za-z0-9]+", "_", text[6:]).strip("_").upper(), None
    name, mark, default = text.removeprefix("env:").partition(":-")
    return (name if _NAME.fullmatch(name) else ""), default if mark else None


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _as_text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
