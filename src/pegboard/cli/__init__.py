"""The command line: every action of the screen without a screen.

stdout is data, stderr is narration. Exit codes: 0 done, 1 the tool failed, 2 wrong usage or invalid arguments,
3 no such tool, 4 the model's provider failed, 130 interrupted.
"""

from pegboard.cli import ask, auth, config, deps, history, new, paths, presets, sessions, tools
from pegboard.cli.root import app

__all__ = ["app", "ask", "auth", "config", "deps", "history", "new", "paths", "presets", "sessions", "tools"]
