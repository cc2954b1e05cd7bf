"""Summary of the selected tool or pack."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.reactive import var
from textual.widgets import Static

from pegboard.forms.documented import description_beside_form
from pegboard.models import Hints, Problem, ToolSpec
from pegboard.models.statistics import ToolStatistics
from pegboard.results.clean import clean_line
from pegboard.results.definition import token_weight
from pegboard.results.description import as_markdown
from pegboard.results.sizes import count
from pegboard.tui.result.markdown_lines import MarkedView
from pegboard.tui.state.catalogue import CatalogueRow, PackEntry, ToolEntry
from pegboard.tui.tools.tool_list import STATE_SYMBOLS
from pegboard.tui.tools.usage import UsageLine
from pegboard.tui.widgets.cut_text import CutText
from pegboard.tui.widgets.problem_text import problem_line
from pegboard.tui.widgets.signature import colored_signature

_LONGEST_DESCRIPTION = 20_000
_PROBLEMS_SHOWN = 3


class DetailPane(Vertical):
    """Signature, facts and, after `describe` is called, the description."""

    ALLOW_MAXIMIZE = True

    DEFAULT_CSS = """
    DetailPane {
        height: auto;
        #signature, #facts, #trouble { padding: 0 1; height: auto; }
        #signature { max-height: 4; }
        #facts { color: $text-muted; }
        #about { max-height: 6; padding: 0 1; }
    }
    """

    subject: var[CatalogueRow | None] = var(None, init=False)
    """The selected tool or pack."""
    unmet: var[tuple[Problem, ...]] = var((), init=False)
    """Problems of the tool's requirements."""
    statistics: var[ToolStatistics | None] = var(None, init=False)
    """Use of the tool; None while unknown."""

    _signature = query_one("#signature", CutText)
    _facts = query_one("#facts", Static)
    _usage = query_one("#usage", UsageLine)
    _trouble = query_one("#trouble", Static)
    _about = query_one("#about", MarkedView)

    def compose(self) -> ComposeResult:
        """Yield the signature, facts, use, problems and description."""
        yield CutText(id="signature")
        yield Static(id="facts")
        yield UsageLine(id="usage").data_bind(DetailPane.statistics)
        yield Static(id="trouble")
        yield MarkedView(id="about")

    def on_mount(self) -> None:
        """Show that nothing is selected yet."""
        self.watch_subject()

    def watch_subject(self) -> None:
        """Show the selected row."""
        match self.subject:
            case ToolEntry(spec=spec):
                self._signature.text = colored_signature(clean_line(spec.signature or spec.name))
                self._show_problems((*self.unmet, *spec.problems))
            case PackEntry() as pack:
                where = clean_line(Path(pack.file).name) if pack.file else ""
                self._signature.text = Content(f"{count(len(pack.entries), 'tool')} in {where}" if where else "")
                self._show_problems(pack.problems)
            case None:
                self._signature.text = Content()
                self._show_problems(())
        self.border_title = self.title
        self._show_facts()

    @property
    def title(self) -> Content:
        """Name of the tool or pack."""
        return Content(clean_line(self.subject.name) if self.subject is not None else "")

    def watch_unmet(self) -> None:
        """Show the missing requirements above the problems."""
        self.watch_subject()

    def describe(self) -> None:
        """Render the description, which is too expensive to do for every row the cursor passes."""
        spec = self.subject.spec if isinstance(self.subject, ToolEntry) else None
        about = "" if spec is None else description_beside_form(spec.input_schema, spec.description)
        text = cleandoc(about).strip()
        self._about.display = bool(text)
        self._about.show(as_markdown(_shortened(text)))

    def _show_facts(self) -> None:
        subject = self.subject
        self._facts.display = isinstance(subject, ToolEntry)
        if not isinstance(subject, ToolEntry):
            self._usage.display = False
        if isinstance(subject, ToolEntry):
            facts = _facts(subject)
            width = self._facts.content_size.width
            same = width > 0 and len(facts.wrap(width)) == self._facts.content_size.height
            self._facts.update(facts, layout=not same)

    def _show_problems(self, problems: tuple[Problem, ...]) -> None:
        self._trouble.display = bool(problems)
        lines = [problem_line(problem) for problem in problems[:_PROBLEMS_SHOWN]]
        if len(problems) > _PROBLEMS_SHOWN:
            lines.append(Content.styled(f"and {count(len(problems) - _PROBLEMS_SHOWN, 'more problem')}", "$text-muted"))
        self._trouble.update(Content("\n").join(lines))


def _shortened(text: str) -> str:
    more = len(text) - _LONGEST_DESCRIPTION
    return text if more <= 0 else f"{text[:_LONGEST_DESCRIPTION]}…\n\n*{count(more, 'more character')} in the file.*"


def _facts(entry: ToolEntry) -> Content:
    spec = entry.spec
    good = entry.state == "ready"
    facts = [
        Content.styled(f"{STATE_SYMBOLS[entry.state]} {entry.state}", "$text-success" if good else "$text-warning"),
        *_hint_labels(spec.hints),
        Content(f"≈ {token_weight(spec):,} tokens"),
    ]
    facts.append(Content(_origin(spec)))
    return Content.styled(" · ", "$text-disabled").join(facts)


def _hint_labels(hints: Hints) -> list[Content]:
    labels = [
        (hints.read_only, "read-only", "$text-success"),
        (hints.destructive, "destructive", "$text-error bold"),
        (hints.idempotent, "idempotent", "$text-muted"),
        (hints.open_world, "open world", "$text-muted"),
    ]
    return [Content.styled(word, style) for is_so, word, style in labels if is_so]


def _origin(spec: ToolSpec) -> str:
    location = spec.location
    if location.file is None:
        return clean_line(location.server or "")
    name = clean_line(Path(location.file).name)
    return f"{name}:{location.line}" if location.line else name
