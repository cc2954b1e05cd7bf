"""The name of a watched server that was given none: its program, or the package that its program runs."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pegboard.config.servers import pack_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUNNERS: Final = {
    "npx": "-p --package -c --call -w --workspace",
    "bunx": "-p --package",
    "pnpx": "--package",
    "pnpm": "--package -C --dir",
    "uvx": "--from --with --with-editable --with-requirements -p --python --env-file",
    "uv": "--from --with --with-editable --with-requirements -p --python --directory --project --extra --group"
    " --env-file",
    "pipx": "--spec --python --pip-args",
    "docker": "-e --env --env-file -v --volume --mount -p --publish --name --network --net -u --user -w --workdir"
    " --entrypoint --platform --add-host -l --label -m --memory --cpus --gpus --pull -h --hostname --tmpfs --cap-add"
    " --cap-drop --security-opt --context -c",
    "python": "-W -X -c",
    "node": "-e --eval -r --require --import --loader --env-file",
    "deno": "-c --config --import-map",
    "bun": "-r --preload --cwd --env-file",
}
"""Program that runs another one → its options with a value of their own. An address after any option is one, too."""
_ENV_VALUED: Final = frozenset({"-u", "--unset", "-C", "--chdir"})
_SAME: Final = {"podman": "docker"}
_SUBCOMMANDS: Final = frozenset({"run", "dlx", "exec", "tool", "container"})


def command_name(command: Sequence[str]) -> str:
    """Return the name of the server that a command starts.

    Args:
        command: A program and its arguments: `server-files` for `npx -y @acme/server-files@1.2 .`, and `git_server` for
            `python -m git_server`; the program's own name if it isn't known to run others.
    """
    program, *args = command or [""]
    name = re.split(r"[/\\]", program)[-1].lower()
    runner = re.sub(r"[\d.]*$|\.(?:exe|cmd)$", "", name)
    if runner == "env":
        for index, (before, word) in enumerate(pairwise(["", *args])):
            if not (word.startswith("-") or "=" in word or before in _ENV_VALUED):
                return command_name(args[index:])
    valued = _RUNNERS.get(_SAME.get(runner, runner))
    if valued is None:
        return pack_name(program)
    if runner == "python":
        args = [part for word in args for part in (("-m", word[2:]) if word.startswith("-m") else (word,)) if part]
    for before, word in pairwise(["", *args]):
        is_value = before in valued.split() or (before.startswith("-") and "://" in word)
        if not (is_value or word.startswith("-") or word in _SUBCOMMANDS):
            return pack_name(re.sub(r"(?<=[^/@])(?:[@:\[]|[=<>~]=)[^/]*$|\.(?:py|js|mjs|cjs|ts)$", "", word))
    return pack_name(program)
