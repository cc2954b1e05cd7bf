"""The pane in which the arguments of a tool are put in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import jsonschema  # noqa: F401 - loaded with the pane, which is loaded beside the loop, not at the first key
from pydantic import JsonValue
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
from pegboard.tui.form.body import FormBody, Sight
from pegboard.tui.form.editors import JsonBox
from pegboard.tui.form.frame import Room
from pegboard.tui.form.items import Folds
from pegboard.tui.form.rows import KeyLine
from pegboard.tui.widgets.paint_hold import PaintHold

_PAUSE = 0.3
"""Seconds without a key after which faults are shown."""
_FRAME_SECONDS = 1 / 60
_TRIES = 60
_MORE_LINES = 4
"""Of a form that is opened so many more lines are mounted than were in sight: what is above it may be less high."""
_KEPT = 200
"""Half-filled forms that are kept."""
_ROOMY, _LOW = 20, 14
"""From the one height on there are empty lines between fields; below the other, one line of what is said of each."""


@dataclass
class _Kept:
    """A form as it was left."""

    schema: JsonValue
    form: Form
    earlier: Form | None = None
    """The form that was filled or reset last, as it was before."""
    folds: Folds = field(default_factory=Folds)
    top: int = 0
    """The first line in sight."""
    focused: str | None = None
    """The path of what had the focus last."""
    was_run: bool = False
    """Whether every fault is shown, touched or not, since somebody tried to run it."""

    @property
    def was_worked_with(self) -> bool:
        """Whether somebody did anything with it that should be there again."""
        if self.top or self.was_run or self.earlier is not None or self.folds.were_asked or self.form.has_text_fault:
            return True
        return any(one.touched for one in self.form.walk())


class _Note(Static, can_focus=True):
    """Stands where there are no fields; with the focus on it, arguments can be written as JSON all the same."""

    DEFAULT_CSS = """
    _Note {
        color: $text-muted;
        height: auto;
        &:focus { background: $block-cursor-blurred-background; text-style: bold; }
        &:focus:nocolor { text-style: reverse; }
    }
    """


class FormPane(Widget):
    """Shows the form of a tool and gives its arguments; knows no other pane.

    Half-filled forms are kept, each for its own tool, with what is folded in them and how far they are scrolled.
    """

    PAGE = "Arguments"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("form.text", "ctrl+t", "text", "Will send", "Show and edit the arguments as JSON.", True),
        Command("form.drop_text", "", "drop_text", "Drop JSON", "Throw away the JSON text that has a fault."),
        Command("form.reset", "", "reset", "Reset form", "Make the form as it was before anything was put in."),
        Command(
            "form.bring_back", "ctrl+z", "bring_back", "Bring back", "Put back what was there before a fill or a reset."
        ),
        Command("form.tab", "tab", "next(1)", "Next", "Go to the next field.", priority=True),
        Command("form.back_tab", "shift+tab", "next(-1)", "Previous", "Go to the field before.", priority=True),
        Command("form.next", "down", "next(1)", "Next field", "Go to the next field."),
        Command("form.previous", "up", "next(-1)", "Previous field", "Go to the field before."),
        Command("form.page_down", "pagedown", "page(1)", "Page down", "Scroll the form down."),
        Command("form.page_up", "pageup", "page(-1)", "Page up", "Scroll the form up."),
        Command("form.top", "ctrl+home,home", "end(-1)", "Top", "Scroll to the top of the form."),
        Command("form.bottom", "ctrl+end,end", "end(1)", "Bottom", "Scroll to the end of the form."),
        Command("form.fold_all", "", "fold_all", "Fold all", "Fold every section, list and map away."),
        Command("form.unfold_all", "", "unfold_all", "Unfold all", "Show what is in every section, list and map."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    FormPane {
        layout: vertical;
        overflow-y: auto;
        scrollbar-gutter: stable;
        padding: 0 0 0 1;
        .body { height: auto; }
        .body.-text { height: 1fr; min-height: 6; }
        .whole { height: auto; color: $text-error; display: none; }
    }
    """

    class Changed(Message):
        """The arguments were changed and have been checked."""

        def __init__(self, faults: tuple[Fault, ...]) -> None:
            super().__init__()
            self.faults = faults

    share: var[str] = var("2fr", init=False)
    """How high it is among its neighbours; where there is nothing to fill in, it takes its one line."""

    def __init__(self) -> None:
        super().__init__()
        self._forms: OrderedDict[str, _Kept] = OrderedDict()
        self._name: str | None = None
        self._whole = Static("", classes="whole", markup=False)
        self._body: Widget | None = None
        self._fields: FormBody | None = None
        self._resting: FormBody | None = None
        """Fields that are out of sight, for the next form that has some."""
        self._box: JsonBox | None = None
        self._pause: Timer | None = None
        self._paint_hold = PaintHold(self)
        self._is_bare = False
        """Whether there is nothing to fill in."""
        self._was_bare = False
        """Whether there was nothing to fill in when it was laid out."""
        self._last_height = 0
        self._refused = ""
        """The JSON text with which the way back to the fields was asked for in vain."""
        self._wanted_top = 0
        """How far the form is to be scrolled as soon as it is as long as that."""

    @property
    def form(self) -> Form | None:
        """The form on the screen; None before a tool is shown."""
        return self._kept.form if self._kept is not None else None

    @property
    def body(self) -> FormBody | None:
        """The fields on the screen; None where there are none, or the JSON text is shown."""
        return self._fields

    def show(self, spec: ToolSpec, arguments: JsonObject | None = None) -> None:
        """Shows the form of a tool, as it was left.

        Args:
            spec: The tool. If its schema has changed, what was put in is kept as far as it fits.
            arguments: What to fill the form with instead.
        """
        self.settle()
        self._leave()
        before = self._forms.get(spec.name)
        same = before is not None and before.schema == spec.input_schema
        if same and self._name == spec.name and arguments is None:
            return
        if not same:
            self._forms[spec.name] = _taken_over(_Kept(spec.input_schema, Form(spec.input_schema)), before)
        self._forms.move_to_end(spec.name)
        if len(self._forms) > _KEPT:
            self._forms.popitem(last=False)
        again = self._name == spec.name
        if not again:
            self._drop_untouched()
        self._name = spec.name
        kept = self._forms[spec.name]
        if arguments is not None:
            _exchange(kept, _filled(kept.schema, arguments))
        self._build(as_text=again and self._box is not None, turn=not again)
        if arguments is not None or kept.was_run or kept.form.has_text_fault:
            self._check()

    def clear(self) -> None:
        """Shows no form."""
        self.settle()
        self._leave()
        self._name = None
        self._replace(Vertical(classes="body"))

    def load(self, arguments: JsonObject) -> None:
        """Fills the form; what doesn't fit is kept and shown as a fault. `bring_back` undoes it."""
        kept = self._kept
        if kept is None:
            return
        self.settle()
        self._leave()
        _exchange(kept, _filled(kept.schema, arguments))
        self._build(as_text=self._box is not None)
        self._check()

    def submit(self) -> JsonObject | None:
        """Gives the arguments to send; or None, with every fault shown and the focus on the first."""
        kept = self._kept
        if kept is None:
            return None
        self.settle()
        try:
            arguments = kept.form.arguments()
        except FormFaults as error:
            kept.was_run = True
            self._show_faults(error.faults)
            self.focus_field(error.faults[0].path)
            return None
        kept.was_run = False
        self._show_faults(())
        return arguments

    def focus_field(self, path: str | None = None) -> None:
        """Focuses a field, unfolded and in sight; of two requests the later one counts.

        Args:
            path: A JSON Pointer to it, or into it; None for the first field. In the JSON text it doesn't matter.
        """
        if self._fields is not None:
            self._fields.focus_field(path)
            if self._fields.is_attached and self._fields.is_going and not self.has_focus_within:
                self._keep_focus()
            if self.screen.focused is self and not self._fields.is_going:
                self.screen.set_focus(None)
        elif self._box is not None:
            self._focus_box(self._box)

    # What the user does

    def on_mount(self) -> None:
        """Puts the line for what is wrong with the whole on top."""
        self.mount(self._whole)
        if self._body is not None:
            self.mount(self._body)

    def on_unmount(self) -> None:
        """Holds nothing back any more."""
        self._paint_hold.release()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Looks the same with the focus on the pane itself; Textual would go through all that is in it."""

    def watch_share(self) -> None:
        """Takes its part of the height; a class would have Textual look at the styles of all that is in it."""
        self.styles.height = "auto" if self._is_bare else self.share

    def on_form_body_filled(self, event: FormBody.Filled) -> None:
        """Goes to where the form was left, if it was too short for that until now."""
        event.stop()
        self._paint_hold.release()
        self.call_after_refresh(self._go_back)

    def on_resize(self) -> None:
        """Shows more or less of the form."""
        self._was_bare = self._is_bare
        if not self._is_bare:
            self._last_height = self.scrollable_content_region.height
        self._look()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Shows another part of the form."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._look()

    def watch_virtual_size(self) -> None:
        """Goes to where the form was left, once it is as long as that."""
        self._go_back()

    def _go_back(self) -> None:
        if not self._wanted_top or self._fields is None:
            return
        top = min(self._wanted_top, max(self._fields.measure() - self.scrollable_content_region.height, 0))
        if self.max_scroll_y >= top:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)
            self._wanted_top = 0

    def on_form_body_reached(self, event: FormBody.Reached) -> None:
        """Brings the whole item into sight, its label as well, once it is as high as it is with the focus."""
        event.stop()
        self.call_after_refresh(self._reveal)

    def on_form_body_changed(self, event: FormBody.Changed) -> None:
        """Waits until typing stops."""
        event.stop()
        self._wait()

    def on_key_line_typed(self, event: KeyLine.Typed) -> None:
        """Waits until typing stops."""
        event.stop()
        self._wait()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Waits until typing stops."""
        event.stop()
        self._wait()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what makes sense now."""
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
        """Goes to the next field, or the one before; at the end to what is beside the form."""
        if self._fields is not None and await self._fields.focus_next(by):
            return
        if by > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_text(self) -> None:
        """Goes from the fields to the JSON text, or back once that can be read; asked again, drops what can't be."""
        self.settle()
        form = self.form
        if self._box is not None and form is not None and form.has_text_fault:
            if self._refused == self._box.text:
                self.action_drop_text()
                return
            self._refused = self._box.text
            self._check()
            self.app.bell()
            return
        self._leave()
        self._build(as_text=self._box is None, focus=True)
        self._check()

    def action_drop_text(self) -> None:
        """Puts the last JSON text that could be read in the place of one that can't; undoing brings that back."""
        form, box = self.form, self._box
        if form is not None and box is not None:
            form.drop_text()
            box.replace(form.text(masked=True), (0, 0), box.document.end)
            box.shown = box.text
            self._check()

    def action_reset(self) -> None:
        """Makes the form untouched."""
        kept = self._kept
        if kept is not None:
            self.settle()
            self._leave()
            _exchange(kept, Form(kept.schema))
            kept.was_run = False
            self._build(as_text=self._box is not None, focus=True)
            self._show_faults(())

    @property
    def can_bring_back(self) -> bool:
        """Whether the form was filled or reset, so that what was there before can be put back."""
        return self._kept is not None and self._kept.earlier is not None

    def action_bring_back(self) -> None:
        """Puts back what was in the form before it was filled or reset; once more, what it was filled with."""
        kept = self._kept
        if kept is not None and kept.earlier is not None:
            self.settle()
            self._leave()
            _exchange(kept, kept.earlier)
            self._build(as_text=self._box is not None, focus=True)
            self._check()

    def action_fold_all(self) -> None:
        """Folds every container."""
        self._fold_all(is_open=False)

    def action_unfold_all(self) -> None:
        """Unfolds every container."""
        self._fold_all(is_open=True)

    def action_page(self, by: int) -> None:
        """Scrolls by a page."""
        if by > 0:
            self.scroll_page_down(animate=False)
        else:
            self.scroll_page_up(animate=False)

    def action_end(self, by: int) -> None:
        """Scrolls to the top or to the end."""
        if by > 0:
            self.scroll_end(animate=False)
        else:
            self.scroll_home(animate=False)

    def _fold_all(self, *, is_open: bool) -> None:
        if self._fields is not None:
            self._fields.fold_all(is_open)

    # How it is shown

    @property
    def _kept(self) -> _Kept | None:
        return self._forms[self._name] if self._name is not None else None

    def _leave(self) -> None:
        """Remembers how far the form is scrolled that is about to be left, and where the focus is."""
        kept = self._kept
        if kept is not None and self._fields is not None:
            kept.top = self._wanted_top or round(self.scroll_y)
            kept.focused = self._fields.focused_path or kept.focused

    def _drop_untouched(self) -> None:
        """Forgets the form that is left if nothing in it would be missed."""
        kept = self._kept
        if kept is not None and self._name is not None and not kept.was_worked_with:
            del self._forms[self._name]

    def _build(self, *, as_text: bool, focus: bool = False, turn: bool = False) -> None:
        """Makes the body: the fields, or the JSON text.

        A JSON text that can't be read counts until it is mended or dropped, so it is what is shown till then.

        Args:
            as_text: Whether the JSON text is asked for.
            focus: Whether the focus goes there, wherever it is.
            turn: Whether the fields may stand in the editors of those that were there before.
        """
        kept = self._kept
        assert kept is not None, "a body is made for a tool"
        form = kept.form
        as_text = as_text or form.has_text_fault
        had_focus = focus or self.has_focus_within or (self._fields is not None and self._fields.is_going)
        self._refused = ""
        self._is_bare = not form.fields and not as_text
        self.watch_share()
        if as_text:
            box = JsonBox(form.text(masked=True))
            self._replace(Vertical(box, classes="body -text"), box=box)
        elif form.fields:
            sight = Sight(kept.top, self._height + _MORE_LINES)
            standing = self._fields or self._resting
            if standing is not None and standing.is_mounted and turn:
                self._turn(standing, form, kept.folds, sight)
            else:
                body = FormBody(form, kept.folds, self._room, sight)
                self._replace(body, fields=body)
            self._wanted_top = kept.top
        else:
            self._replace(Vertical(_Note("Takes no arguments.", markup=False), classes="body"))
        if had_focus:
            self.focus_field(kept.focused)

    def _turn(self, fields: FormBody, form: Form, folds: Folds, sight: Sight) -> None:
        """Shows another form in the fields of the last one that had any."""
        old, self._body, self._fields, self._box = self._body, fields, fields, None
        self._show_whole(())
        if self.is_on_screen:
            self._paint_hold.hold()
        with self.app.batch_update():
            typed_in = fields.with_focus()
            if old is not None and old.has_focus_within:
                self._keep_focus()
            if old is not None and old is not fields:
                old.remove()
            fields.display, self._resting = True, None
            fields.turn_to(form, folds, self._room, sight, typed_in)
        self.scroll_home(animate=False, immediate=True)

    def _replace(self, body: Widget, *, fields: FormBody | None = None, box: JsonBox | None = None) -> None:
        old, self._body, self._fields, self._box = self._body, body, fields, box
        self._show_whole(())
        if self._whole.parent is None:
            return
        if fields is not None and self.is_on_screen:
            self._paint_hold.hold()
        with self.app.batch_update():
            if old is not None:
                if old.has_focus_within:
                    # Textual would give the focus to some neighbour, and tell of it after the next is asked for.
                    self._keep_focus()
                if isinstance(old, FormBody) and fields is None:
                    old.rest()
                    self._resting = old
                else:
                    old.remove()
            if fields is not None and self._resting is not None:
                self._resting.remove()
                self._resting = None
            self.mount(body)
        self.scroll_home(animate=False, immediate=True)

    @property
    def _room(self) -> Room:
        width, height = self.scrollable_content_region.width, self._height
        # The column before the scroll bar stays free.
        return Room(max(width - 1, 1), 1 if height < _LOW else 3, height >= _ROOMY)

    @property
    def _height(self) -> int:
        """How many lines of the fields there are in sight; before they are laid out, how many there were last."""
        return self._last_height if self._was_bare else self.scrollable_content_region.height

    def _look(self) -> None:
        """Tells the fields what of them is in sight."""
        if self._fields is not None:
            top = round(self.scroll_y) - self._lines_above
            self._fields.look(self._room, Sight(max(top, 0), self.scrollable_content_region.height))

    @property
    def _lines_above(self) -> int:
        return self._whole.outer_size.height if self._whole.display else 0

    def _reveal(self, tries: int = _TRIES) -> None:
        """Brings what has the focus into sight, from its first line on where it is higher than the form.

        Args:
            tries: How often to try again while the form isn't yet laid out as long as it is.
        """
        view = self._fields.focused if self._fields is not None else None
        if self._fields is None or view is None:
            return
        self._fields.measure()
        region = self._fields.lines_at(view)
        top, height = region.y + self._lines_above, self.scrollable_content_region.height
        if region.height > height:
            region = view.main.region
            top = round(self.scroll_y) + region.y - self.scrollable_content_region.y
        bottom, now = top + region.height, round(self.scroll_y)
        if top < now or region.height > height:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)
        elif bottom > now + height:
            self.scroll_to(y=bottom - height, animate=False, force=True, immediate=True)
            if round(self.scroll_y) + height < bottom and tries:
                self.set_timer(_FRAME_SECONDS, lambda: self._reveal(tries - 1))

    def _keep_focus(self) -> None:
        """Takes the focus until the field stands that it goes to: what is typed till then is no filter."""
        self.can_focus = True
        self.screen.set_focus(self, scroll_visible=False)
        self.can_focus = False

    def _focus_box(self, box: JsonBox) -> None:
        if box is not self._box:
            return
        if box.is_mounted:
            self.screen.set_focus(box)
        else:
            self.call_after_refresh(self._focus_box, box)

    def _wait(self) -> None:
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(_PAUSE, self._pass)

    def _pass(self) -> None:
        self.settle()
        self._check()

    def settle(self) -> None:
        """Takes what was typed as JSON or as a key into the form."""
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
        """Shows the faults of what was touched, and tells that something changed."""
        kept = self._kept
        if kept is None:
            return
        faults = kept.form.faults()
        all_of_them = self._box is not None or kept.was_run
        kept.was_run = kept.was_run and bool(faults)
        self._show_faults([fault for fault in faults if all_of_them or self._is_touched(fault)])
        # What is wrong stands below the field, which may be the last in sight.
        self.call_after_refresh(self._reveal)
        self.post_message(self.Changed(faults))

    def _is_touched(self, fault: Fault) -> bool:
        """Whether somebody put something in where a fault is."""
        one = self._fields.field_at(fault.path) if self._fields is not None and fault.path else None
        return one is None or any(inner.touched for inner in one.walk())

    def _show_faults(self, faults: Sequence[Fault]) -> None:
        self._show_whole(self._fields.show_faults(faults) if self._fields is not None else faults)

    def _show_whole(self, faults: Sequence[Fault]) -> None:
        """Shows what is wrong with the whole, or with arguments that have no field in sight."""
        form = self.form
        said = [f"✗ {clean(str(fault))}" for fault in faults]
        if form is not None and form.has_text_fault:
            said.append(f"  Mend it to go back to the fields; {key_of(self, 'form.text')} twice drops it.")
        self._whole.update(Content("\n".join(said)))
        self._whole.display = bool(said)
        if self._box is not None:
            self.refresh_bindings()


def _filled(schema: JsonValue, arguments: JsonObject) -> Form:
    form = Form(schema)
    form.load(arguments)
    return form


def _exchange(kept: _Kept, form: Form) -> None:
    """Puts another form in the place of one, which can be brought back."""
    kept.form, kept.earlier = form, kept.form
    folds = Folds()
    folds.take_over(kept.folds, form)
    folds.forget_suiting()
    kept.folds = folds


def _taken_over(kept: _Kept, before: _Kept | None) -> _Kept:
    """Gives a form with what was put into that of an earlier schema of the same tool, as far as it fits."""
    if before is not None:
        kept.form.take_over(before.form)
        kept.folds.take_over(before.folds, kept.form)
        kept.top, kept.focused, kept.was_run = before.top, before.focused, before.was_run
    return kept
