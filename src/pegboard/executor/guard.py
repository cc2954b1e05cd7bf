"""What ends the workers when we can't do it ourselves any more."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from weakref import WeakSet

_SCRIPT = """
trap '' HUP INT QUIT TERM
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) groups="${groups%% $group *} ${groups#* $group }" ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null
"""


class Guard:
    """A small process of its own session that outlives us by a moment.

    It is told which process groups there are, through a pipe that only we hold, and no child that is forked off us.
    When the pipe ends, however that came about, it kills those that are left.
    """

    def __init__(self) -> None:
        _GUARDS.add(self)
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """Takes a process group into its care."""
        self._groups.add(group)
        if self._process is None or self._process.poll() is not None:
            with suppress(OSError):  # a machine without a shell: then only a SIGKILL to us finds nobody prepared
                self._start()
            for known in self._groups - {group}:
                self._say("+", known)
        self._say("+", group)

    def forget(self, group: int) -> None:
        """Lets go of a process group that has ended."""
        self._groups.discard(group)
        self._say("-", group)

    def close(self) -> None:
        """Ends the guard, and with it every group it still watches."""
        process, self._process = self._process, None
        self._groups.clear()
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
            process.wait()

    def let_go(self) -> None:
        """Drops the pipe without a word, in a forked child: it would live on there."""
        process, self._process = self._process, None
        self._groups.clear()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.returncode = 0  # it is not ours to wait for

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            ["/bin/sh", "-c", _SCRIPT, "pegboard-guard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            cwd="/",
            env={},
        )

    def _say(self, sign: str, group: int) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError):  # it was killed; the next worker brings another
            self._process.stdin.write(f"{sign} {group}\n".encode())


_GUARDS: WeakSet[Guard] = WeakSet()


def _let_all_go() -> None:
    for guard in [*_GUARDS]:
        guard.let_go()


os.register_at_fork(after_in_child=_let_all_go)
