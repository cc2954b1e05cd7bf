"""Environment of stdio servers."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.config.servers import STARTED

_BASE = frozenset({
    "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    *(f"XDG_{name}" for name in ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "RUNTIME_DIR", "STATE_HOME")),
})  # fmt: skip
"""Variables without which programs don't find themselves, the user or the language. None holds a secret."""


def server_environment(environ: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: a minimal base, `STARTED`, and the variables of its entry.

    Args:
        environ: Pegboard's environment.
        own: Variables of the server's entry, with secrets.
    """
    # A value that starts with `()` is a function of an old shell, which a child shell would define.
    base = {name: value for name, value in environ.items() if name in _BASE and not value.startswith("()")}
    return {**base, STARTED: "1", **own}
