"""`pegboard guide`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pegboard.cli.root import USAGE, JsonOption, app


def complete_pages(incomplete: str) -> list[str]:
    """Return the names of pages that start with the typed text."""
    from pegboard.guide import pages

    return [page.name for page in pages() if page.name.startswith(incomplete)]


@app.command()
def guide(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE", help="Name of the page.", autocompletion=complete_pages)
    ] = None,
    search: Annotated[
        str, typer.Option("--search", metavar="TEXT", help="Print only lines with this text, from all pages.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Read the guide: without PAGE, list its pages.

    On a terminal, the page is formatted, and a long one opens in `$PAGER`. Elsewhere, it is the Markdown source.
    """
    from pegboard.cli.output import narrate, print_json, print_table, print_text
    from pegboard.guide import pages

    known = {one.name: one for one in pages()}
    if page is not None and page not in known:
        narrate(f"The guide has no page {page!r}. It has: {', '.join(known)}.")
        raise typer.Exit(USAGE)
    chosen = list(known.values()) if page is None else [known[page]]
    if search:
        hits = [(one.name, line, text) for one in chosen for line, text in one.lines_with(search)]
        if json:
            print_json([{"page": name, "line": line, "text": text} for name, line, text in hits])
        else:
            print_table(
                [(f"{name}:{line}", text) for name, line, text in hits],
                empty=f"No line of the guide contains {search!r}.",
            )
    elif json:
        fields = [{"name": one.name, "title": one.title, "summary": one.summary} for one in chosen]
        print_json(fields if page is None else {**fields[0], "text": chosen[0].text})
    elif page is None:
        print_table([(one.name, one.title, one.summary) for one in chosen], ("PAGE", "TITLE", "ABOUT"))
    elif sys.stdout.isatty():
        _show(chosen[0].text)
    else:
        print_text(chosen[0].text)


def _show(markdown: str) -> None:
    """Print formatted Markdown on the terminal, in a pager if it is longer than the screen."""
    import os
    import shutil
    import subprocess
    from io import StringIO

    from rich.console import Console
    from rich.markdown import Markdown

    from pegboard.results.export import pager_command

    size = shutil.get_terminal_size()
    text = StringIO()
    console = Console(
        file=text, force_terminal=True, width=min(size.columns, 100), no_color=bool(os.environ.get("NO_COLOR"))
    )
    console.print(Markdown(markdown))
    formatted = text.getvalue().encode()
    pager = pager_command()
    if formatted.count(b"\n") >= size.lines and sys.stdin.isatty() and shutil.which(pager[0]):
        # Without -R, `less` would show the colors as characters.
        environment = {**os.environ, "LESS": os.environ.get("LESS", "-RFX")}
        subprocess.run(pager, input=formatted, check=False, env=environment)  # noqa: S603 - the user's own command
        return
    # The stream of a terminal removes escape sequences; these are our own.
    sys.stdout.flush()
    sys.stdout.buffer.write(formatted)
    sys.stdout.buffer.flush()
