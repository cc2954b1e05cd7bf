"""Review of a folder before the user trusts it."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pegboard.config.display import ShownSetting, shown_settings, shown_words
from pegboard.config.dotenv import parse_dotenv
from pegboard.config.files import decoded, shown
from pegboard.config.layer import drop_errors, leaves, make_folders_absolute
from pegboard.config.loader import folder_layer, restricts
from pegboard.config.paths import OVERLAY, Paths
from pegboard.config.redaction import Redactor
from pegboard.config.secrets import Secrets
from pegboard.config.settings import Loaded, McpServer, Settings
from pegboard.config.trust import CHECKS, DOTENV, FolderFiles, Trust, TrustFile
from pegboard.data.json_text import write
from pegboard.data.mask import MASK
from pegboard.models import Problem

_KEY_NOTE: Final = f"Only a key from this folder's {DOTENV} is sent there, never your own."


@dataclass(frozen=True)
class TrustRequest:
    """A folder's files as they were read at one moment, with their settings. Trusting it trusts exactly these bytes."""

    files: FolderFiles
    trust: Trust
    settings: tuple[ShownSetting, ...]
    """Settings in `pegboard.toml`; secrets are masked."""
    secrets: tuple[str, ...]
    """Names in `.env`."""
    effects: tuple[str, ...]
    """Consequences of the settings, as sentences."""
    problems: tuple[Problem, ...]
    """Errors in the files."""
    restricts: bool
    """Whether the folder limits tools."""
    obstacle: str = ""
    """Why the folder can't be trusted now; empty if it can."""

    @property
    def folder(self) -> str:
        """The folder's resolved path."""
        return shown(self.files.folder)

    def lines(self) -> Iterator[str]:
        """Yield the review as plain text. It contains text of the folder: never interpret it as markup."""
        if self.trust.state == "changed":
            yield "A file changed after you trusted this folder."
        if self.settings:
            yield f"{OVERLAY} sets:"
            yield from (f"  {row.key} = {write(row.value)}" for row in self.settings)
        if self.secrets:
            yield f"{DOTENV} sets:"
            yield from (f"  {name} = {MASK}" for name in self.secrets)
        if self.effects:
            yield "Effects:"
            yield from (f"  {effect}" for effect in self.effects)
        if self.problems:
            yield "Problems:"
            yield from (f"  {problem}" for problem in self.problems)


def review_folder(paths: Paths, folder: Path | None = None) -> TrustRequest:
    """Read a folder's files and return what trusting them would change; block for the disk.

    Args:
        paths: The user's own files.
        folder: The working directory if None.
    """
    files = FolderFiles.read(folder, paths)
    layer = folder_layer(files)
    limits = restricts(layer.table)
    if unreadable := bool(layer.problems):
        layer = folder_layer(files, may_block=False)  # it can't be trusted, so it blocks nothing
    drop_errors(layer)
    make_folders_absolute(layer)
    raw = files.dotenv
    text = raw if isinstance(raw, Problem) else decoded(files.dotenv_file, raw or b"")
    unreadable = unreadable or isinstance(text, Problem)
    dotenv = parse_dotenv(files.dotenv_file, text)
    settings = Settings.model_validate(layer.table)
    origins = {key: layer.origin(key) for key in leaves(layer.table)}
    settings = settings.with_loaded(Loaded(origins, unused=tuple(layer.unused), folder_file=shown(files.config_file)))
    redactor = Redactor([*Secrets(paths).known(), *dotenv.values.items()])
    rows = tuple(row for row in shown_settings(settings, redactor) if row.origin != "default")
    obstacle = ""
    if not (files.exist or files.has_checks):
        obstacle = (
            f"This folder contains no {OVERLAY}, {DOTENV} or check that requires trust."
            f" To keep checks here, create an empty {OVERLAY} first."
        )
    elif unreadable:
        obstacle = "The folder can't be reviewed because a file can't be read. Fix the problem first."
    return TrustRequest(
        files,
        TrustFile(paths.trust).of(files),
        rows,
        tuple(dotenv.values),
        tuple(_effects(settings, files)),
        (*layer.problems, *dotenv.problems),
        limits or layer.blocked is not None,
        obstacle,
    )


def trust_folder(paths: Paths, request: TrustRequest) -> None:
    """Trust exactly what a review showed.

    Raises:
        TrustError: It can't be trusted, or the record can't be written.
    """
    TrustFile(paths.trust).add(request.files, restricts=request.restricts)


def _effects(settings: Settings, files: FolderFiles) -> Iterator[str]:
    model, folders = settings.model, settings.packs.folders
    if model.base_url:
        yield f"Questions to models go to the server in model.base_url. {_KEY_NOTE}"
    elif model.name:
        yield "Questions to models go to the provider in model.name, with your own key for it."
    if settings.tools.allow is not None:
        yield "tools.allow replaces your own allow list."
    if settings.tools.environment:
        yield "tools.environment passes variables of your environment to tools."
    if folders:
        yield "Tools in packs.folders can run with your rights. Later changes in these folders don't ask again."
    for name in sorted(settings.packs_of_folder()):
        yield f"The pack {name} is configured here; it gets secrets only from this folder's {DOTENV}."
    for name, server in sorted(settings.mcp.servers.items()):
        if server.enabled:
            yield _server_effect(name, server)
    if settings.keys:
        yield "[keys] changes what keys do, possibly also the keys that approve and reject."
    yield from _folder_effects(files, folders)


def _folder_effects(files: FolderFiles, folders: Iterable[Path]) -> Iterator[str]:
    if files.has_checks:
        yield f"The checks in {CHECKS}/ can call any tool with your rights. Later changes of checks don't ask again."
    for folder in dict.fromkeys([files.folder, *folders]):
        if _others_can_write(folder):
            yield f"Every user of this machine can write to {shown(folder)}."


def _server_effect(name: str, server: McpServer) -> str:
    words = [server.url or ""] if server.command is None else [server.command, *server.args]
    target = shlex.join(shown_words(words, Redactor({})))
    effect = "connects to" if server.command is None else "runs, with your rights, the command"
    return (
        f"The MCP server {name} {effect} {target}. It replaces your own server {name}, if you have one,"
        f" and gets secrets only from this folder's {DOTENV}."
    )


def _others_can_write(folder: Path) -> bool:
    try:
        status = folder.stat()
    except (OSError, ValueError):
        return False
    return bool(status.st_mode & stat.S_IWOTH)
