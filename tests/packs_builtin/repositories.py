"""Git repositories for tests, made with the real git program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Git:
    """The git program in one folder, without any configuration of this machine.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str | bytes, at: str = "2025-01-02T03:04:05+01:00", check: bool = True) -> str:
        """Run a command and return what it prints."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"}
        environ |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        options = ["user.name=Ann", "user.email=ann@example.org", "protocol.file.allow=always", "core.quotePath=false"]
        command = ["git", *(part for option in options for part in ("-c", option)), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environ, capture_output=True, check=check, timeout=60)
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def made(folder: Path, **files: str) -> Git:
    """Make a repository with one commit of some files, named without their `.txt`."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Git(folder)
    run("init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    run("add", ".")
    run("commit", "--quiet", "--message", "Begin")
    return run
