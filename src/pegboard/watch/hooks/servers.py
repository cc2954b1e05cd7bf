"""MCP servers of an agent whose calls are recorded without hooks: `pegboard serve`, or behind `pegboard watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pegboard.config.client_files import CLIENTS, client_files, folder_file
from pegboard.config.client_formats import ClientFormatError, parsed, server_places, value_at
from pegboard.config.paths import Paths
from pegboard.watch.adoption import Adoption, is_own_server, is_served, is_watched
from pegboard.watch.gate import FileMark, mark_of
from pegboard.watch.hooks.events import name_in_tools

_AGENTS: Final = frozenset({*CLIENTS, "qwen"})
"""Agents whose files of servers are known. The file of Qwen Code can be adopted only by its path."""
_MORE_FILES: Final = {"opencode": ("opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc")}
"""Files of a project in which its servers may be, too."""


class WatchedServers:
    """Servers of one agent whose calls are recorded without its hooks.

    Args:
        agent: Its name.
        state: The state folder, with the record of adopted files.
    """

    def __init__(self, agent: str, state: Path) -> None:
        self._agent = agent
        self._adoption = Adoption(state)
        self._read: dict[Path, tuple[FileMark, frozenset[tuple[str, str, bool]]]] = {}
        """For each file, its state and, for each server, the project, the name and whether it is watched."""

    def has(self, server: str, folder: Path) -> bool:
        """Return whether a server is `pegboard serve` or runs behind `pegboard watch`.

        If several have its name, such as one of the user and one of the project, each must. In a file of a project,
        whose author may be anyone, only an entry that `pegboard adopt` wrote counts, and one of `pegboard serve` that
        has the rules and the record of this process.

        Args:
            server: Its name, as in the names of its tools.
            folder: The agent's working directory.
        """
        if self._agent not in _AGENTS:
            return False
        folders = [folder, *folder.parents]
        in_folder = [folder_file(self._agent), *_MORE_FILES.get(self._agent, ())]
        of_user = client_files(self._agent)
        of_projects = [place / file for place in folders for file in in_folder if file]
        found = [
            watched
            for file in (*of_user, *of_projects)
            for project, name, watched in self._of(file, is_of_user=file in of_user)
            if name == name_in_tools(server) and (not project or Path(project) in folders)
        ]
        return bool(found) and all(found)

    def _of(self, file: Path, *, is_of_user: bool) -> frozenset[tuple[str, str, bool]]:
        mark = mark_of(str(file))
        if mark is None:
            return frozenset()
        if file not in self._read or self._read[file][0] != mark:
            try:
                content = parsed(file.name, file.read_text("utf-8"))
            except (OSError, UnicodeDecodeError, ClientFormatError):
                content = None
            adopted = frozenset() if is_of_user else self._adoption.adopted(file)
            own = Paths.from_environment().variables()
            found = set()
            for place in server_places(content):
                entry = value_at(content, place)
                of_user = is_watched(entry) or is_served(entry)
                is_one = of_user if is_of_user else place in adopted or is_own_server(entry, own)
                found.add((place[1] if place[0] == "projects" else "", name_in_tools(place[-1]), is_one))
            self._read[file] = (mark, frozenset(found))
        return self._read[file][1]
