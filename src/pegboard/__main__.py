"""Entry point of the `pegboard` program."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

INTERRUPTED, READER_ENDED = 130, 141


class _WholeWriter(BufferedWriter):
    """A stream that passes each write on immediately and as a whole."""

    def write(self, buffer: ReadableBuffer, /) -> int:
        """Write bytes; raise `OSError` if not all of them can be written."""
        written = super().write(buffer)
        self.flush()
        return written


def main() -> NoReturn:
    """Run the command on the command line, or open the app if there is none."""
    _open_streams()
    if sys.argv[1:2] == ["watch"]:
        _watch()
    _repair_streams()
    from pegboard.cli import crash

    crash.install()
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        _discard(1)
        if isinstance(error, BrokenPipeError):  # a reader such as `head` has read enough
            sys.exit(READER_ENDED)
        with suppress(OSError):
            sys.stderr.write(f"pegboard: {_reason(error)}\n")
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - Python would print it with a traceback
        with suppress(OSError):
            sys.stderr.write(f"{crash.report(error)}\n")
        sys.exit(1)
    finally:
        try:
            sys.stderr.flush()
        except OSError:
            _discard(2)
    sys.exit()


def _discard(descriptor: int) -> None:
    """Discard the rest of a stream's buffer, which can't be written; Python would fail again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _reason(error: OSError) -> str:
    """Return what an error of the system means, and what to do if a sentence of Pegboard's explains it."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        try:
            os.getcwd()  # noqa: PTH109 - pathlib delays `watch`
        except FileNotFoundError:
            return "The working directory no longer exists. Change to a folder that exists, and try again."
    if isinstance(error, PermissionError):
        try:
            os.stat(".")  # noqa: PTH116 - as above
        except PermissionError:
            return "You may not enter the working directory. Change to another folder, and try again."
    return error.strerror or str(error)


def _watch() -> None:
    """Start the proxy of a stdio server, or a hook: an agent waits for it, so nothing else is loaded."""
    from pegboard.watch.start import hook_name, watched_command

    agent = hook_name(sys.argv[1:])
    if agent is not None:
        from pegboard.watch.hooks.hook import run as run_hook

        run_hook(agent)
    watched = watched_command(sys.argv[1:])
    if watched is not None:
        from pegboard.watch.proxy import run

        run(watched[1], watched[0])


def _run() -> None:
    if len(sys.argv) == 1 and "_PEGBOARD_COMPLETE" not in os.environ:
        # Opening the app needs no command-line parser, which takes as long to load as the rest of Pegboard.
        from pegboard.cli.open import open_app

        sys.exit(open_app())
    from pegboard.cli import run

    run(sys.argv[1:])


def _open_streams() -> None:
    """Replace closed standard streams; otherwise, the next pipe or file would get the descriptor of one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open till the end; pathlib delays `watch`


def _repair_streams() -> None:
    """Replace unbuffered standard streams, and escape characters that a stream can't encode."""
    if isinstance(sys.stdout, TextIOWrapper) and isinstance(sys.stdout.buffer, RawIOBase):
        # PYTHONUNBUFFERED: Python would lose the rest of a text of which the system writes only a part.
        encoding, raw = sys.stdout.encoding, sys.stdout.detach()
        sys.stdout = sys.__stdout__ = TextIOWrapper(_WholeWriter(raw), encoding, write_through=True)  # type: ignore[misc]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    from pegboard.cli.output import guard_terminals

    guard_terminals()


if __name__ == "__main__":
    main()
