"""Pane in which users enter the arguments of a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static, TextArea

from pegboard.errors import FormFaults
from pegboard.forms import Form
from pegboard.models import Fault, JsonObject, ToolSpec
from pegboard.results.clean import clean
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.form.body import FormBody
from pegboard.tui.form.caret import Caret
from pegboard.tui.form.editors import JsonBox, can_be_json
from pegboard.tui.form.form_commands import FORM_COMMANDS
from pegboard.tui.form.messages import Rejected
from pegboard.tui.form.note import Note
from pegboard.tui.form.rows import KeyLine
from pegboard.tui.form.scroll import FormScroll
from pegboard.tui.form.store import FormStore, KeptForm
from pegboard.tui.widgets.paint_hold import PaintHold

_PAUSE_SECONDS = 0.3
"""Pause after the last key before validation errors are shown."""


class FormPane(Widget):
    """Form of a tool. It returns the arguments, and doesn't know other panes.

    Half-filled forms are kept per tool, including folds and scroll position.

    Args:
        empty: What a form without fields says.
    """

    PAGE = "Arguments"
    ACTIONS: ClassVar[tuple[Command, ...]] = FORM_COMMANDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    FormPane {
        layout: vertical;
        overflow-y: auto;
        scrollbar-gutter: stable;
        padding: 0 0 0 1;
        .body { height: auto; }
        .body.-text { height: 1fr; min-height: 6; }
        .errors { height: auto; color: $text-error; display: none; }
    }
    """

    class Changed(Message):
        """The arguments changed and were validated."""

        def __init__(self, faults: tuple[Fault, ...]) -> None:
            super().__init__()
            self.faults = faults

    recent: var[Sequence[JsonObject]] = var((), init=False, bindings=True)
    """Arguments of the user's last calls of the tool, the newest first."""

    most: var[int] = var(0, init=False)
    """Maximum height in lines, within which the pane is as high as its fields; 0 to be as high as its container."""
    fixed: var[bool] = var(False, init=False)
    """Whether the pane is `most` lines high even if its fields need fewer."""

    def __init__(self, empty: str = "This tool has no arguments.") -> None:
        super().__init__()
        self._empty = empty
        self._forms = FormStore()
        self._errors = Static("", classes="errors", markup=False)
        """Errors that belong to no visible field."""
        self._body: Widget | None = None
        self._fields: FormBody | None = None
        self._hidden_fields: FormBody | None = None
        """Hidden fields, reused for the next form that has fields."""
        self._box: JsonBox | None = None
        self._pause: Timer | None = None
        self._paint_hold = PaintHold(self)
        self._is_bare = False
        """Whether the tool has no arguments."""
        self._is_text = False
        """Whether the JSON text is shown."""
        self._rejected = ""
        """The invalid JSON text with which the user last tried to return to the fields."""
        self._had_focus = False
        """Whether the focus was here when the form was cleared."""
        self._scroll = FormScroll(self, self._errors, lambda: self._fields)

    @property
    def form(self) -> Form | None:
        """The form on the screen, or None before a tool is shown."""
        kept = self._forms.current
        return kept.form if kept is not None else None

    @property
    def body(self) -> FormBody | None:
        """The fields on the screen, or None if the tool has none or the JSON text is shown."""
        return self._fields

    def show(self, spec: ToolSpec, arguments: JsonObject | None = None) -> None:
        """Show the form of a tool in its last state.

        Args:
            spec: The tool. If its schema has changed, values that still fit are kept.
            arguments: Arguments to fill the form with instead.
        """
        self.settle()
        self._save_position()
        if self._forms.is_current(spec) and arguments is None:
            return
        is_same_tool = self._forms.name == spec.name
        kept = self._forms.open(spec)
        if (lost := kept.forget_lost_field()) and is_same_tool and self._fields is not None and self.has_focus_within:
            self.screen.set_focus(None)  # otherwise another field receives what the user types
            self.notify(lost, severity="warning", timeout=15, markup=False)
        if arguments is not None:
            kept.fill(arguments)
        self._build(as_text=is_same_tool and self._box is not None, reuse=not is_same_tool)
        if arguments is not None or kept.was_run or kept.form.has_text_fault:
            self._check()

    def clear(self) -> None:
        """Show no form."""
        self.settle()
        self._save_position()
        self._had_focus |= self.has_focus_within
        self._forms.close()
        self._replace_body(Vertical(classes="body"))

    def load(self, arguments: JsonObject) -> None:
        """Fill the form; arguments that don't fit are kept and shown as errors. `bring_back` undoes it."""
        kept = self._forms.current
        if kept is None:
            return
        self.settle()
        self._save_position()
        kept.fill(arguments)
        self._build(as_text=self._box is not None)
        self._check()

    def submit(self) -> JsonObject | None:
        """Return the arguments; if they are invalid, show all errors, focus the first and return None."""
        kept = self._forms.current
        if kept is None:
            return None
        self.settle()
        try:
            arguments = kept.form.arguments()
        except FormFaults as error:
            kept.was_run = True
            self._show_faults(error.faults)
            self.focus_field(kept.form.path_to_fix(error.faults[0]))
            self.post_message(Rejected(error.faults))
            return None
        kept.was_run = False
        self._show_faults(())
        return arguments

    def focus_field(self, path: str | None = None) -> None:
        """Expand, scroll to and focus a field; the last request wins.

        Args:
            path: JSON Pointer to the field or into it, or None for the first field. The JSON text ignores it.
        """
        if self._fields is not None:
            self._fields.focus_field(path)
            if self._fields.is_attached and self._fields.is_moving_focus and not self.has_focus_within:
                self._hold_focus()
            if self.screen.focused is self and not self._fields.is_moving_focus:
                self.screen.set_focus(None)
        elif self._box is not None:
            self._focus_box(self._box)

    # Events

    def on_mount(self) -> None:
        """Mount the errors and the body."""
        self.mount(self._errors)
        if self._body is not None:
            self.mount(self._body)

    def on_unmount(self) -> None:
        """Resume painting."""
        self._paint_hold.release()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Ignore the change, for which Textual would update every descendant."""

    def watch_most(self) -> None:
        """Set the height directly, since a class would make Textual update the styles of every descendant."""
        if self._is_bare:
            self.styles.height = "auto"
        elif not self.most:
            self.styles.height = "1fr"
        else:
            self.styles.height = self.most if self.fixed or self._is_text else "auto"
        self.styles.max_height = self.most or None
        self._scroll.most = max(self.most - self.gutter.height, 0)
        self._scroll.update_viewport()

    watch_fixed = watch_most

    def on_form_body_filled(self, event: FormBody.Filled) -> None:
        """Restore the scroll position, for which the form may have been too short before."""
        event.stop()
        self._paint_hold.release()
        self.call_after_refresh(self._scroll.restore)

    def on_resize(self) -> None:
        """Update the visible part of the form."""
        self._scroll.resized(is_bare=self._is_bare)
        self._scroll.update_viewport()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Update the visible part of the form."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._scroll.update_viewport()

    def watch_virtual_size(self) -> None:
        """Restore the scroll position once the form is long enough."""
        self._scroll.restore()

    def on_form_body_focused(self, event: FormBody.Focused) -> None:
        """Scroll the whole item into view once its focused state is laid out."""
        event.stop()
        self._forms.restore_caret(event.view.main)
        self.call_after_refresh(self._scroll.reveal_focus)

    @on(FormBody.Changed)
    @on(KeyLine.Typed)
    @on(TextArea.Changed)
    def _check_later(self, event: Message) -> None:
        """Validate after a pause in typing."""
        event.stop()
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(_PAUSE_SECONDS, self._check_after_pause)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands that apply to the current form."""
        match action:
            case "drop_text":
                return self.form is not None and self.form.has_text_fault
            case "text" | "reset":
                return self.form is not None
            case "bring_back":
                return self.can_bring_back
            case "fold_all" | "unfold_all":
                return self._fields is not None
        return True

    async def action_next(self, by: int) -> None:
        """Focus the next or previous field; at the end of the form, leave it."""
        if self._fields is not None and await self._fields.focus_next(by):
            return
        (self.screen.focus_next if by > 0 else self.screen.focus_previous)()

    def action_text(self) -> None:
        """Switch between fields and JSON text, unless an entry would be lost; reject invalid JSON the first time."""
        self.settle()
        form = self.form
        if self._box is not None and form is not None and form.has_text_fault:
            if self._rejected != self._box.text:
                self._rejected = self._box.text
                self._check()
                self.app.bell()
                return
            self._discard_text()
        if self._box is not None or form is None or can_be_json(self.app, form.walk()):
            self._leave_text()

    def _leave_text(self) -> None:
        """Switch between fields and JSON text."""
        self._save_position()
        self._build(as_text=self._box is None, focus=True)
        self._check()

    def action_drop_text(self) -> None:
        """Replace invalid JSON by the last valid text; undo restores it."""
        form, box = self.form, self._box
        if form is not None and box is not None:
            self._discard_text()
            box.replace(form.text(masked=True), (0, 0), box.document.end)
            box.shown = box.text
            self._check()

    def _discard_text(self) -> None:
        kept, box = self._forms.current, self._box
        if kept is not None and box is not None:
            kept.discarded = box.text
            kept.form.drop_text()

    def action_reset(self) -> None:
        """Reset the form; `bring_back` undoes it."""
        kept = self._forms.current
        if kept is not None:
            self.settle()
            self._save_position()
            kept.reset()
            self._build(as_text=self._box is not None, focus=True)
            self._show_faults(())

    @property
    def can_bring_back(self) -> bool:
        """Whether a fill or reset can be undone."""
        kept = self._forms.current
        return kept is not None and kept.can_restore

    def action_bring_back(self) -> None:
        """Show the discarded JSON again; else undo the last fill or reset, or redo it."""
        kept = self._forms.current
        if kept is not None and self.can_bring_back:
            self.settle()
            self._save_position()
            kept.restore()
            self._build(as_text=self._box is not None, focus=True)
            self._check()

    def action_fold_all(self) -> None:
        """Collapse every container."""
        if self._fields is not None:
            self._fields.fold_all(False)

    def action_unfold_all(self) -> None:
        """Expand every container."""
        if self._fields is not None:
            self._fields.fold_all(True)

    def action_page(self, by: int) -> None:
        """Scroll by a page."""
        (self.scroll_page_down if by > 0 else self.scroll_page_up)(animate=False)

    def action_end(self, by: int) -> None:
        """Scroll to the top or to the end."""
        (self.scroll_end if by > 0 else self.scroll_home)(animate=False)

    # Display

    def _save_position(self) -> None:
        """Store scroll position and focus of the current form."""
        kept = self._forms.current
        if kept is not None and self.has_focus_within:
            kept.caret = Caret.of(self.screen.focused)
        if kept is not None and self._fields is not None:
            kept.top = self._scroll.top
            kept.focused = self._fields.focused_path or kept.focused

    def _build(self, *, as_text: bool, focus: bool = False, reuse: bool = False) -> None:
        """Show the fields or the JSON text of the current form.

        Invalid JSON is shown until it is fixed or discarded.

        Args:
            as_text: Whether to show the JSON text.
            focus: Whether to focus the body even if the focus was elsewhere.
            reuse: Whether to reuse the mounted editors.
        """
        kept = self._forms.current
        assert kept is not None, "a form is current"
        form = kept.form
        as_text = as_text or form.has_text_fault
        had_focus = focus or self.has_focus_within or (self._fields is not None and self._fields.is_moving_focus)
        had_focus |= self._had_focus and self.screen.focused is None
        self._had_focus = False
        self._rejected = ""
        self._is_text = as_text
        self._is_bare = not form.fields and not as_text
        self.watch_most()
        if as_text:
            box = JsonBox(form.text(masked=True))
            self._replace_body(Vertical(box, classes="body -text"), box=box)
        elif form.fields:
            existing = self._fields or self._hidden_fields
            if existing is not None and existing.is_mounted and reuse:
                self._reuse_fields(existing, kept)
            else:
                body = FormBody(form, kept.folds, self._scroll.space, self._scroll.viewport_at(kept.top))
                self._replace_body(body, fields=body)
            self._scroll.restore_later(kept.top)
        else:
            self._replace_body(Vertical(Note(self._empty, markup=False), classes="body"))
        if had_focus:
            self.focus_field(kept.focused)

    def _reuse_fields(self, fields: FormBody, kept: KeptForm) -> None:
        """Show another form in existing fields."""
        old, self._body, self._fields, self._box = self._body, fields, fields, None
        self._show_errors(())
        if self.is_on_screen:
            self._paint_hold.hold()
        with self.app.batch_update():
            typed_in = fields.with_focus()
            if old is not None and old.has_focus_within:
                self._hold_focus()
            if old is not None and old is not fields:
                old.remove()
            fields.display, self._hidden_fields = True, None
            fields.show_form(kept.form, kept.folds, self._scroll.space, self._scroll.viewport_at(kept.top), typed_in)
        self.scroll_home(animate=False, immediate=True)

    def _replace_body(self, body: Widget, *, fields: FormBody | None = None, box: JsonBox | None = None) -> None:
        old, self._body, self._fields, self._box = self._body, body, fields, box
        self._show_errors(())
        if self._errors.parent is None or not self.is_attached:  # It is not composed yet, or the app closes.
            return
        if fields is not None and self.is_on_screen:
            self._paint_hold.hold()
        with self.app.batch_update():
            if old is not None:
                if old.has_focus_within:
                    # Otherwise Textual focuses a neighbor, and announces it after the next field was requested.
                    self._hold_focus()
                if isinstance(old, FormBody) and fields is None:
                    old.hide()
                    self._hidden_fields = old
                else:
                    old.remove()
            if fields is not None and self._hidden_fields is not None:
                self._hidden_fields.remove()
                self._hidden_fields = None
            self.mount(body)
        self.scroll_home(animate=False, immediate=True)

    def _hold_focus(self) -> None:
        """Focus the pane until the target field is mounted, so that typed keys don't reach the tool list."""
        self.can_focus = True
        self.screen.set_focus(self, scroll_visible=False)
        self.can_focus = False

    def _focus_box(self, box: JsonBox) -> None:
        if box is not self._box:
            return
        if box.is_mounted:
            self.screen.set_focus(box)
            self._forms.restore_caret(box)
        else:
            self.call_after_refresh(self._focus_box, box)

    def _check_after_pause(self) -> None:
        self.settle()
        self._check()

    def settle(self) -> None:
        """Load the typed JSON or map key into the form."""
        if self._pause is not None:
            self._pause.stop()
            self._pause = None
        form = self.form
        if self._box is not None and form is not None and self._box.text != self._box.shown:
            self._box.shown = self._box.text
            form.load_text(self._box.text)
        if self._fields is not None:
            self._fields.commit()

    def _check(self) -> None:
        """Validate the form, show the errors of touched fields, and announce the change."""
        kept = self._forms.current
        if kept is None:
            return
        faults = kept.form.faults()
        shows_all = self._box is not None or kept.was_run
        kept.was_run = kept.was_run and bool(faults)
        self._show_faults([fault for fault in faults if shows_all or self._is_touched(fault)])
        # An error below the last visible field would be hidden.
        self.call_after_refresh(self._scroll.reveal_focus)
        self.post_message(self.Changed(faults))

    def _is_touched(self, fault: Fault) -> bool:
        """Return whether the user edited the field of an error."""
        one = self._fields.field_at(fault.path) if self._fields is not None and fault.path else None
        return one is None or any(inner.touched for inner in one.walk())

    def _show_faults(self, faults: Sequence[Fault]) -> None:
        self._show_errors(self._fields.show_faults(faults) if self._fields is not None else faults)

    def _show_errors(self, faults: Sequence[Fault]) -> None:
        """Show errors above the fields: those of the whole form, and those without a visible field."""
        form = self.form
        lines = [f"✗ {clean(str(fault))}" for fault in faults]
        if form is not None and form.has_text_fault:
            key = key_of(self, "form.text")
            times = "again" if self._box is not None and self._rejected == self._box.text else "twice"
            lines.append(f"  Fix it to return to the form, or press {key} {times} to discard it.")
        self._errors.update(Content("\n".join(lines)))
        self._errors.display = bool(lines)
        if self._box is not None:
            self.refresh_bindings()
