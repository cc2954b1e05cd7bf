"""`pegboard auth set | list | remove`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.root import TOOL_FAILED, USAGE, JsonOption, PacksOption, group, open_runtime

if TYPE_CHECKING:
    from pegboard.config import Secrets
    from pegboard.models import Problem

auth = group("auth", "Store secrets in the keyring and show where each one comes from.")

_LONGEST = 100_000
"""Limit of a secret in bytes."""
_PLACES = {"environment": "the environment", ".env": "a .env file", "keyring": "the keyring"}

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret, such as SEARCH_KEY.")]


@auth.command("set", context_settings={"allow_extra_args": True})
def set_(context: typer.Context, name: NameArgument, packs: PacksOption = None) -> None:
    """Store a secret in the keyring.

    Pegboard asks for the value without showing it, or reads it from stdin if that is a pipe. A value is never an
    argument, because other users can see it in the list of processes.
    """
    from pegboard.cli.output import narrate

    if context.args:
        narrate(
            "The value of a secret can't be an argument because other users could see it."
            " Leave it out; pegboard asks for it."
        )
        raise typer.Exit(USAGE)
    secrets = _secrets(context)
    keyring = secrets.keyring()
    if not isinstance(keyring, str):
        _refuse(keyring, TOOL_FAILED)
    if bad := secrets.check(name, value := ask_value(f"Value of {name}: ")):
        _refuse(bad, USAGE)
    if failed := secrets.set(name, value):
        _refuse(failed, TOOL_FAILED)
    narrate(f"{name} is stored in the keyring ({keyring}).")
    _warn_about_other_source(secrets, name, "comes first")


@auth.command("list")
def list_(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """List secrets by name and where each one comes from; never print a value.

    Includes secrets in the keyring and in .env files, those that tools need, those that the configuration lists as
    `secrets` of a pack, and those that MCP servers refer to.
    """
    from pegboard.cli.output import narrate_problems, print_json, print_table
    from pegboard.config import Secret, Secrets
    from pegboard.config.servers import secrets_of_servers

    runtime = open_runtime(context)
    secrets = Secrets(runtime.paths)
    runtime.tools.scan()
    needed = {need.name for spec in runtime.tools.all() for need in spec.requirements if need.kind == "secret"}
    configs = runtime.settings.packs
    granted = {name for pack in configs.model_extra or {} for name in configs.secrets(pack)}
    granted.update(secrets_of_servers(runtime.settings))
    names = {*secrets.keyring_names(), *secrets.dotenv_names(), *needed, *granted}
    found = {name: secrets.look_up(name) for name in sorted(names)}
    narrate_problems((*runtime.problems(packs=False), *secrets.problems()))
    if json:
        print_json(
            [
                {"name": name, "set": True, "source": secret.source, "error": None}
                if isinstance(secret, Secret)
                else {"name": name, "set": False, "source": None, "error": secret.message}
                for name, secret in found.items()
            ]
        )
        return
    print_table(
        [
            (name, "set", _PLACES[secret.source]) if isinstance(secret, Secret) else (name, "missing", secret.message)
            for name, secret in found.items()
        ],
        ("SECRET", "STATE", "SOURCE"),
        empty="No secrets: none is stored, and no tool needs one.",
    )


@auth.command()
def remove(context: typer.Context, name: NameArgument, packs: PacksOption = None) -> None:
    """Delete a secret from the keyring."""
    from pegboard.cli.output import narrate

    secrets = _secrets(context)
    if bad := secrets.check(name):
        _refuse(bad, USAGE)
    removed = secrets.remove(name)
    if not isinstance(removed, bool):
        _refuse(removed, TOOL_FAILED)
    narrate(f"{name} is no longer in the keyring." if removed else f"The keyring has no secret {name}.")
    _warn_about_other_source(secrets, name, "stays")
    if not removed:
        raise typer.Exit(USAGE)


def _secrets(context: typer.Context) -> Secrets:
    from pegboard.config import Secrets

    return Secrets(open_runtime(context).paths)


def _warn_about_other_source(secrets: Secrets, name: str, what: str) -> None:
    from pegboard.cli.output import narrate

    left = secrets.find(name)
    if left is not None and left.source != "keyring":
        narrate(f"note: {name} is also set in {left.file or _PLACES[left.source]}, which {what}.")


def ask_value(question: str) -> str:
    """Ask for a value on the terminal without showing it, or read it from a pipe; exit if there is none."""
    return _prompt_value(question) if sys.stdin.isatty() else _read_value()


def _prompt_value(question: str) -> str:
    from getpass import GetPassWarning, getpass
    from warnings import catch_warnings, simplefilter

    from pegboard.cli.output import narrate

    try:
        with catch_warnings():
            simplefilter("error", GetPassWarning)  # Without this, getpass would show the value.
            with _hidden_again(question):
                return getpass(question)
    except EOFError as error:
        if sys.stderr.isatty():
            narrate("")  # The prompt has left the cursor on its line.
        narrate("Nothing was changed because no value was typed.")
        raise typer.Exit(USAGE) from error
    except GetPassWarning as error:
        narrate("The value can't be read without a terminal. Pass it on stdin.")
        raise typer.Exit(USAGE) from error


@contextmanager
def _hidden_again(question: str) -> Iterator[None]:
    """Repeat the question after ctrl+z and `fg`, after which a shell lets the terminal show typed characters."""
    import signal
    import termios

    def hide(_signal: int, _frame: object) -> None:
        local = 3
        with suppress(OSError, termios.error), Path("/dev/tty").open("r+b", buffering=0) as terminal:
            modes = termios.tcgetattr(terminal)
            modes[local] &= ~termios.ECHO
            termios.tcsetattr(terminal, termios.TCSAFLUSH, modes)
            terminal.write(question.encode())

    before = signal.signal(signal.SIGCONT, hide)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before)


def _read_value() -> str:
    """Read a value from stdin, without the final newline; exit if it is not text or too long."""
    from pegboard.cli.output import narrate

    raw = sys.stdin.buffer.read(_LONGEST + 1)
    try:
        if len(raw) <= _LONGEST:
            return raw.decode().removesuffix("\n").removesuffix("\r")
        narrate(f"The value is longer than {_LONGEST:,} bytes.")
    except UnicodeDecodeError:
        narrate("The value is not UTF-8 text.")
    raise typer.Exit(USAGE)


def _refuse(problem: Problem, code: int) -> None:
    from pegboard.cli.output import narrate

    narrate(str(problem))
    raise typer.Exit(code)
