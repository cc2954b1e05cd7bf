"""Half-filled forms, kept for when their tools are shown again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue
from textual.widget import Widget

from pegboard.data.json_text import identical
from pegboard.forms import Form
from pegboard.forms.documented import documented
from pegboard.models import JsonObject, ToolSpec
from pegboard.models.readable_path import readable
from pegboard.results.clean import clean_line
from pegboard.tui.form.caret import Caret
from pegboard.tui.form.items import Folds

_MOST_FORMS = 200
"""Most forms that are kept."""


@dataclass
class KeptForm:
    """Form of a tool with its folds, scroll position and focus."""

    schema: JsonValue
    aliases: Mapping[str, str]
    """Other names of parameters: alias → parameter."""
    description: str
    """Description of the tool, which may describe parameters."""
    form: Form = field(init=False)
    earlier: Form | None = None
    """The form before it was last filled or reset."""
    discarded: str = ""
    """Invalid JSON that the user discarded."""
    folds: Folds = field(default_factory=Folds)
    top: int = 0
    """The first visible line."""
    focused: str | None = None
    """JSON Pointer to the field that was focused last."""
    caret: Caret | None = None
    """The cursor in the field that was focused last, until the field is focused again."""
    was_run: bool = False
    """Whether all errors are shown, even those of untouched fields, since the user tried to run the tool."""

    def __post_init__(self) -> None:
        """Begin with an untouched form."""
        self.form = self._untouched()

    @property
    def can_restore(self) -> bool:
        """Whether there is something to restore."""
        return self.earlier is not None or bool(self.discarded)

    @property
    def was_used(self) -> bool:
        """Whether the user changed anything that is worth keeping."""
        if self.top or self.was_run or self.can_restore or self.folds.were_changed or self.form.has_text_fault:
            return True
        return any(one.touched for one in self.form.walk())

    def fill(self, arguments: JsonObject) -> None:
        """Replace the form by one with these arguments; `restore` undoes it."""
        form = self._untouched()
        form.load(arguments)
        self._fill(form)

    def reset(self) -> None:
        """Replace the form by an untouched one; `restore` undoes it."""
        self._fill(self._untouched())
        self.was_run = False

    def restore(self) -> None:
        """Load the discarded JSON; else swap the form with the one before it was last filled or reset."""
        if self.discarded:
            self.form.load_text(self.discarded)
            self.discarded = ""
        elif self.earlier is not None:
            self._replace(self.earlier, earlier=self.form)

    def take_over(self, before: KeptForm) -> None:
        """Copy the values that fit from the form of an earlier schema, and those that `restore` would show."""
        self.form.take_over(before.form)
        if before.earlier is not None:
            self.earlier = self._untouched()
            self.earlier.take_over(before.earlier)
        self.discarded = before.discarded
        self.folds.take_over(before.folds, self.form)
        self.top, self.focused, self.was_run = before.top, before.focused, before.was_run
        self.caret = before.caret

    def forget_lost_field(self) -> str:
        """Forget the field that was focused last if the form no longer has it, and return a message; else return ""."""
        lost = self.focused
        found = self.form.build_to(lost) if lost else None
        if not lost or (found is not None and found.path == lost):
            return ""
        self.focused = self.caret = None
        return f"The field {clean_line(readable(lost))} no longer exists. Keys go nowhere until you select a field."

    def _untouched(self) -> Form:
        schema = documented(self.schema, self.description) if isinstance(self.schema, dict) else self.schema
        return Form(schema, self.aliases)

    def _fill(self, form: Form) -> None:
        """Replace the form; if both have the same content, keep the earlier one that `restore` would show."""
        is_changed = self.earlier is None or self.form.text() != form.text()
        self._replace(form, earlier=self.form if is_changed else self.earlier)

    def _replace(self, form: Form, *, earlier: Form | None) -> None:
        self.form, self.earlier, self.discarded = form, earlier, ""
        folds = Folds()
        folds.take_over(self.folds, form)
        folds.forget_defaults()
        self.folds = folds


class FormStore:
    """Forms by the name of their tool, one of them current. Untouched and least recently shown ones are dropped."""

    def __init__(self) -> None:
        self._forms: OrderedDict[str, KeptForm] = OrderedDict()
        self.name: str | None = None
        """Name of the current tool."""

    @property
    def current(self) -> KeptForm | None:
        """Form of the current tool, or None."""
        return self._forms[self.name] if self.name is not None else None

    def is_current(self, spec: ToolSpec) -> bool:
        """Return whether the form of a tool is current and has the tool's schema and description."""
        return self.name == spec.name and self._has(spec)

    def open(self, spec: ToolSpec) -> KeptForm:
        """Make the form of a tool current; if the schema has changed, keep the values that fit."""
        if not self._has(spec):
            before = self._forms.get(spec.name)
            kept = KeptForm(spec.input_schema, spec.parameter_aliases, spec.description)
            if before is not None:
                kept.take_over(before)
            self._forms[spec.name] = kept
        self._forms.move_to_end(spec.name)
        if len(self._forms) > _MOST_FORMS:
            self._forms.popitem(last=False)
        if self.name != spec.name:
            self._drop_unused()
        self.name = spec.name
        return self._forms[spec.name]

    def restore_caret(self, editor: Widget) -> None:
        """Move the cursor of an editor that was just focused to where it was before the form was rebuilt."""
        kept = self.current
        if kept is not None and kept.caret is not None:
            kept.caret.restore(editor)
            kept.caret = None

    def close(self) -> None:
        """Leave no form current; the forms are kept."""
        self.name = None

    def _has(self, spec: ToolSpec) -> bool:
        kept = self._forms.get(spec.name)
        if kept is None or (kept.aliases, kept.description) != (spec.parameter_aliases, spec.description):
            return False
        return kept.schema is spec.input_schema or identical(kept.schema, spec.input_schema)

    def _drop_unused(self) -> None:
        kept = self.current
        if kept is not None and self.name is not None and not kept.was_used:
            del self._forms[self.name]
