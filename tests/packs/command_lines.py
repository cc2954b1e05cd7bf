"""Functions of programs with a command line."""

from __future__ import annotations

from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import click
import typer

app = typer.Typer()


class Level(Enum):
    """Level of detail."""

    LOW = "low"
    HIGH = "high"


@app.command()
def described(
    day: date = typer.Argument(..., help="The day."),
    count: int = typer.Option(3, "--count", help="How many.", min=1),
    level: Level = typer.Option("low"),
    target: Path = typer.Option(Path("out.txt")),
    names: list[str] = typer.Option(default_factory=list),
    note: str | None = typer.Option(None),
    limit: Annotated[int, typer.Option("--limit", help="The most.")] = 5,
) -> str:
    """Show the arguments."""
    return f"{day!r} {count} {level} {target!r} {names} {note} {limit}"


@click.command()
@click.option("--count", type=int)
def command(*, count: int) -> int:
    """Return a number."""
    return count


class Commands:
    """A class with a method of the same name."""

    def command(self, **_: Any) -> str:
        """Return nothing useful."""
        return "the method was called"
