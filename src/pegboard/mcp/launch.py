"""First code in the process of a stdio server: start the keeper, then replace this process with the server."""

from __future__ import annotations

import os
import signal
import sys

from pegboard.worker.keeper import forget_orphans, fork_child


def main() -> None:
    """Run the server's command in a process that ends with Pegboard.

    Command-line arguments: descriptor of the socket to Pegboard, working directory, path of the program, its arguments.
    """
    control, folder, program, *arguments = sys.argv[1:]
    fork_child(int(control), 0)
    forget_orphans()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and the server would inherit that
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.chdir(folder)
        os.execv(program, [program, *arguments])  # noqa: S606 - the user configured this command
    except OSError as error:
        os.write(2, f"{error.filename or program}: {error.strerror}\n".encode(errors="replace"))
        os._exit(127)
