"""A dialog that copies a call or a script in one of several formats."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.binding import BindingType
from textual.content import Content

from pegboard.data.mask import unrecorded_secret
from pegboard.forms import CopyKind, Form, copied_as, script_texts
from pegboard.models import CallRecord, ToolSpec
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, size
from pegboard.tui.commands import Command, bindings
from pegboard.tui.messages import Copy
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.highlighted import highlighted
from pegboard.tui.widgets.pick_list import PickLine, PickList

_LONGEST = 20_000
_CALL: tuple[tuple[CopyKind, str, str, str], ...] = (
    ("cli", "Command line", "for a shell", "bash"),
    ("script", "Script line", "for a script over tools", "bash"),
    ("json", "JSON", "the arguments alone", "json"),
    ("python", "Python", "for a pack or a script", "python"),
    ("mcp", "MCP request", "tools/call", "json"),
)
_SCRIPT: tuple[tuple[script_texts.CopyKind, str, str, str], ...] = (
    ("script", "Script", "as it is", "bash"),
    ("cli", "Command line", "for a shell", "bash"),
    ("json", "JSON", "the call of script.run, as models make it", "json"),
    ("python", "Python", "a program", "python"),
)
_RECORDED_SCRIPT: tuple[tuple[CopyKind, str, str, str], ...] = (
    ("cli", "Command line", "for a shell", "bash"),
    ("script", "Script", "as it is", "bash"),
    ("json", "JSON", "the arguments alone", "json"),
    ("python", "Python", "a program", "python"),
    ("mcp", "MCP request", "tools/call", "json"),
)


class CopyFormat(NamedTuple):
    """A format to copy."""

    title: str
    about: str
    language: str
    copied: Callable[[], str]
    """Function that returns the text to copy."""
    shown: Callable[[], str]
    """Function that returns the text to show, with secrets masked."""


class CopyScreen(ListDialog[None]):
    """A list of formats with a preview; enter copies the selected one.

    Args:
        title: Title of the dialog; plain text.
        formats: The formats.
        note: A note on all formats.
        warning: A problem with the content.
    """

    PAGE = "Copy as"
    FILTER_HINT = ""

    DEFAULT_CSS = """
    CopyScreen {
        & > #box { border-subtitle-color: $text-warning; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "copy_as.page_down", "pagedown", "page(1)", "Page down", "Scroll the text down.", footer=True, priority=True
        ),
        Command("copy_as.page_up", "pageup", "page(-1)", "Page up", "Scroll the text up.", priority=True),
        Command("copy_as.close", "escape", "close", "Close", "Close without copying.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, title: str, formats: Sequence[CopyFormat], *, note: str = "", warning: str = "") -> None:
        super().__init__(title, note)
        self._formats = formats
        self._warning = f"  ✗ {warning}" if warning else ""

    def on_mount(self) -> None:
        """List the formats."""
        self.list.styles.height = len(self._formats)
        self.list.show([PickLine(one.title, one.about) for one in self._formats])

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        self._show(None if event.index is None else self._formats[event.index])

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self._copy(self._formats[event.index])

    @work(exclusive=True, group="copy")
    async def _copy(self, one: CopyFormat) -> None:
        """Copy the text and close."""
        self.app.post_message(Copy(await asyncio.to_thread(one.copied)))
        self.dismiss(None)

    def action_page(self, by: int) -> None:
        """Scroll the text by a page."""
        if by > 0:
            self._preview.scroll_page_down(animate=False)
        else:
            self._preview.scroll_page_up(animate=False)

    @work(exclusive=True, group="show")
    async def _show(self, one: CopyFormat | None) -> None:
        if one is None:
            self.show_preview(Content(), Content())
            return
        text: Content
        text, length = await asyncio.to_thread(_preview_of, one)
        about = Content.assemble(
            (one.title, "bold"), (f"  {size(length)}", "$text-muted"), (self._warning, "$text-warning")
        )
        self.show_preview(about, text)


def copy_call(spec: ToolSpec, form: Form, options: Sequence[str] = ()) -> CopyScreen:
    """Return the dialog that copies the call in a form.

    Args:
        spec: The tool.
        form: Its form. The preview masks secrets; the copy contains them.
        options: The options that a command line needs to find the tool, such as `--packs`.
    """
    arguments, masked, faults = form.draft(), form.draft(masked=True), len(form.faults())
    shown = _shown_options(options)
    formats = [
        CopyFormat(
            title,
            about,
            language,
            partial(copied_as, kind, spec, arguments, options=options),
            partial(copied_as, kind, spec, masked, options=shown),
        )
        for kind, title, about, language in _CALL
    ]
    return CopyScreen(
        f"Copy the call of {clean_line(spec.name)} as",
        formats,
        note="secrets are masked here, but copied in plain text" if (masked, shown) != (arguments, [*options]) else "",
        warning=f"{count(faults, 'validation error')}: copied unchanged" if faults else "",
    )


def copy_recorded(call: CallRecord, copied: Callable[[CopyKind], str]) -> CopyScreen:
    """Return the dialog that copies a recorded call.

    Args:
        call: The call.
        copied: Returns it in a format.
    """
    hidden = unrecorded_secret(call.args)
    kinds = _RECORDED_SCRIPT if call.tool == "script.run" else _CALL
    formats = [
        CopyFormat(title, about, language, *(2 * (partial(copied, kind),))) for kind, title, about, language in kinds
    ]
    warning = f"{clean_line(hidden)} Enter it where you use the text." if hidden else ""
    return CopyScreen(f"Copy the call of {clean_line(call.tool)} as", formats, warning=warning)


def copy_script(script: str, packs: Sequence[str]) -> CopyScreen:
    """Return the dialog that copies a script.

    Args:
        script: The script.
        packs: The `--packs` folders that are needed to find its tools.
    """
    texts = [(one, partial(script_texts.copied_as, one[0], script, packs)) for one in _SCRIPT]
    return CopyScreen("Copy the script as", [CopyFormat(*one[1:], copied, copied) for one, copied in texts])


def _preview_of(one: CopyFormat) -> tuple[Content, int]:
    """Return the text to show and the size in bytes of the text to copy."""
    return highlighted(one.shown(), one.language, _LONGEST), len(one.copied().encode(errors="surrogatepass"))


def _shown_options(options: Sequence[str]) -> list[str]:
    """Return options for the preview; the command or address of a server may contain credentials."""
    from pegboard.config import Redactor
    from pegboard.config.display import shown_words
    from pegboard.data.mask import MASK

    if [*options[:1]] != ["--mcp"]:
        return [*options]
    name, _, command = options[1].partition("=")
    try:
        words = shlex.split(command)
    except ValueError:  # an address with a quotation mark
        return ["--mcp", f"{name}={MASK}"]
    shown = shown_words(words, Redactor({}))
    return [*options] if shown == words else ["--mcp", f"{name}={shlex.join(shown)}"]
