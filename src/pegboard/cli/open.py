"""`pegboard` without a command: the app."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.models import ServerConfig

_WITH_ALL_COLORS = frozenset(
    {"alacritty", "contour", "direct", "foot", "ghostty", "kitty", "konsole", "rio", "wezterm"}
)
"""Parts of the names of terminals that have all colors."""
_WEB_DRIVER = "web_driver"
"""In the name of the driver that shows the app in a browser, through pipes."""


def open_app(packs: Sequence[Path] = (), tool_allow: str | None = None, servers: Sequence[str] = ()) -> int:
    """Open the app and return its exit code when the user quits; start it again if the configuration changed.

    Args:
        packs: More packs folders for this run.
        tool_allow: An allow list for this run: patterns separated by commas.
        servers: MCP servers for this run, as in `--mcp`.
    """
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    if not in_terminal and _WEB_DRIVER not in os.environ.get("TEXTUAL_DRIVER", ""):
        print(
            "pegboard needs a terminal for its input, output and messages. Run `pegboard --help` for the commands that"
            " work without one.",
            file=sys.stderr,
        )
        return 2
    if isinstance(sys.__stderr__, TextIOWrapper):
        # The app also reads UTF-8, whatever the locale says; escapes in place of its lines would be unreadable.
        sys.__stderr__.reconfigure(encoding="utf-8")
    if not os.environ.get("COLORTERM") and _has_all_colors(os.environ):
        os.environ["COLORTERM"] = "truecolor"
    # Nothing that is imported or built until the first frame is garbage; the app enables the collector.
    gc.disable()
    from pegboard.cli import crash
    from pegboard.config import simple_appearance
    from pegboard.runtime import Runtime

    crash.follow_tasks()
    given = _parsed(servers)
    if given is None:
        return 2
    from pegboard.tui.app import PegboardApp

    while True:
        runtime = Runtime.from_environment(packs=packs, tool_allow=tool_allow)
        crash.follow(runtime)
        for server in given:
            runtime.servers.add(server)
        app = PegboardApp(runtime, simple_appearance())
        with crash.Held():
            app.run()
        if app.crash is not None:
            print(crash.report(app.crash, "the app"), file=sys.stderr)
        lost = runtime.unrecorded()
        if app.session and lost is None:
            hint = f'pegboard ask --session {app.session} "…"'
            print(f"Resume the chat: press {app.keys_of_sessions} in the app, or run `{hint}`.", file=sys.stderr)
        if lost is not None:
            from pegboard.cli.output import narrate_problems

            narrate_problems([lost])
        if not app.wants_reload:
            return app.return_code or 0


def _has_all_colors(environ: Mapping[str, str]) -> bool:
    """Return whether a terminal has all colors although it doesn't say so.

    ssh passes on only its name, and Windows Terminal says nothing to the Linux that runs in it.
    """
    parts = environ.get("TERM", "").split("-")
    return not _WITH_ALL_COLORS.isdisjoint(parts) or (parts[0] == "xterm" and "WT_SESSION" in environ)


def _parsed(servers: Sequence[str]) -> Sequence[ServerConfig] | None:
    """Return the servers of `--mcp`; print why one can't be used and return None."""
    if not servers:
        return ()
    from pegboard.cli.output import narrate
    from pegboard.config import given_server
    from pegboard.errors import ConfigError

    try:
        return [given_server(text) for text in servers]
    except ConfigError as error:
        narrate(str(error))
        return None
