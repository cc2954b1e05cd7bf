"""The place where one talks with a model that uses the tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive, var
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from pegboard.errors import SessionError, StoreError
from pegboard.models import ToolCall, ToolResult
from pegboard.models.ask import AskFinished, CallHappened, Outcome
from pegboard.models.conversation import UserMessage
from pegboard.models.events import ApprovalRequested
from pegboard.models.session import Session, SessionEntry
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count, duration, thousands
from pegboard.tui.chat.blocks import Block, CallBlock, NoteBlock, TextBlock, UserBlock, script_in
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.story import Story
from pegboard.tui.chat.transcript import Transcript
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.messages import Asking, OpenCall
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.approvals import Approvals, Request
from pegboard.tui.state.catalogue import ToolEntry
from pegboard.tui.state.tool_scan import ToolScan

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_SHOWN = 200
"""Messages of a session that are on the screen at first; more on demand."""
_TICK_SECONDS = 0.1
_MODEL_CELLS = 24
"""What of a model's name is always shown."""
_OFFLINE = "offline"


class ChatScreen(PageScreen):
    """A conversation over the line to type in; one session at a time.

    Args:
        runtime: What asks the model.
        approvals: The calls that wait for the user's word.
    """

    PAGE = "Chat"
    LEGEND = (
        ("❯", "what you said"),
        ("… ▶ ? ✓ ✗ ⊘", "a call is written or waits, runs, asks you, is done, failed, was stopped"),
        ("▸ ▾", "folded to a line, shown in full"),
    )
    AUTO_FOCUS = "AskLine"
    ALLOW_IN_MAXIMIZED_VIEW = "HeaderLine, KeysLine"

    DEFAULT_CSS = """
    ChatScreen {
        #body { height: 1fr; }
        Transcript { height: 1fr; }
        #status { height: 1; padding: 0 1; background: $panel; color: $text-muted; text-wrap: nowrap; }
        AskLine { margin: 0; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("chat.interrupt", "escape", "interrupt", "Interrupt", "End what runs, in order.", True, priority=True),
        Command("chat.back", "escape", "back", "Message", "Go to the line to type in."),
        Command("chat.new", "ctrl+n", "new", "New", "Begin a new session; this one is kept.", footer=True),
        Command("chat.sessions", "ctrl+s", "sessions", "Sessions", "Go to another session; rename, export.", True),
        Command("chat.model", "f2", "model", "Model", "Choose which model answers.", footer=True),
        Command("chat.tools", "ctrl+t", "tools", "Tools", "Choose which tools the model sees.", footer=True),
        Command("chat.retry", "ctrl+r", "retry", "Ask again", "Drop the last answer and ask the same again."),
        Command("chat.edit_last", "ctrl+up", "edit_last", "Edit last", "Edit your last message and ask again."),
        Command(
            "chat.system", "", "system", "System prompt", "Edit what the model is told beforehand, in this session."
        ),
        Command("chat.drop_queue", "", "drop_queue", "Drop queue", "Take back the messages that wait to be sent."),
        Command("chat.maximise", "f10", "maximise", "Maximise", "Give it the whole screen; esc restores."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    running: reactive[bool] = reactive(False, init=False)
    """Whether the model is being asked."""
    session: var[str] = var("", init=False)
    """The id of the session."""
    without: var[frozenset[str]] = var[frozenset[str]](frozenset(), init=False)
    """Names of tools that the model isn't shown."""

    def __init__(self, runtime: Runtime, approvals: Approvals) -> None:
        super().__init__()
        self._runtime = runtime
        self._approvals = approvals
        # the answer may come when the screen is being taken down, and nothing can be looked for in it any more
        self._transcript = Transcript()
        self._status = Static(id="status")
        self._line = AskLine()
        self._model: tuple[str | None, str | None] = (None, None)
        self._places: dict[str, str | None] = {}
        """Where the models are that were chosen, by name."""
        self._known: Session | None = None
        self._system: str | None = None
        self._story = self._empty_story()
        self._end: Callable[[], object] | None = None
        self._is_stopped = False
        self._queue: list[str] = []
        self._limit = _SHOWN
        self._entries: Sequence[ToolEntry] = ()
        self._weights: dict[str, int] = {}
        self._cost = 0.0
        self._since = 0.0
        self._clock: Timer | None = None

    def compose(self) -> ComposeResult:
        """The conversation, how it stands, the line to type in."""
        yield HeaderLine("chat")
        with Vertical(id="body"):
            yield self._transcript
            yield self._status
            yield self._line
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Begins a new session and follows what the wall has."""
        self._clock = self.set_interval(_TICK_SECONDS, self._tick, pause=True)
        self.set_reactive(ChatScreen.session, _new_id())
        self.watch(self.app, "tool_scan", self._take_wall)
        self.watch(self.app, "requests", self._take_requests, init=False)
        self._show_story()
        self._load()

    def _empty_story(self) -> Story:
        ui = self._runtime.settings.ui
        return Story(self._changed, ui.unfold, select_key=key_of(self.app, "chat.asking"))

    @work(group="load")
    async def _load(self) -> None:
        """Loads what asks, beside the loop: the first message needn't wait for it."""
        await asyncio.to_thread(self._preload)

    def _preload(self) -> None:
        import pegboard.tui.form
        import pegboard.tui.result  # noqa: F401 - loaded for the dialogs

        self._runtime.ask()
        if self._model_name != _OFFLINE:
            self._runtime.models.preload()

    # How it stands

    @property
    def _model_name(self) -> str:
        return self._model[0] or self._runtime.settings.model.name or _OFFLINE

    def _changed(self, block: Block) -> None:
        del block
        self._transcript.renew()

    def _tick(self) -> None:
        self._story.tick()
        self._paint_status()

    def _take_wall(self, wall: ToolScan) -> None:
        self._entries = wall.catalogue.entries
        # A worker that were given them would be named after them: Textual would write ten thousand tools down.
        self._weigh()

    @work(exclusive=True, group="weigh")
    async def _weigh(self) -> None:
        from pegboard.tui.state.definition import token_weight

        entries = self._entries
        self._weights = await asyncio.to_thread(lambda: {one.spec.name: token_weight(one.spec) for one in entries})
        self._greet()
        self._paint_status()

    def watch_running(self, running: bool) -> None:
        """Runs the clock while a model is asked."""
        self.post_message(Asking(running))
        if self._clock is None:
            return
        if running:
            self._clock.resume()
        else:
            self._clock.pause()
        self._paint_status()
        self.refresh_bindings()

    def watch_without(self) -> None:
        """Counts the tools anew."""
        self._paint_status()

    def _paint_status(self) -> None:
        model = Content(clean_line(self._model_name)).truncate(max(self.size.width // 4, _MODEL_CELLS), ellipsis=True)
        pieces: list[tuple[str, str]] = [(model.plain, "bold $foreground")]
        waits = self.app_requests
        if waits:
            which = f"{clean_line(waits[0].call.name)} awaits" if len(waits) == 1 else f"{len(waits):,} calls await"
            way = "" if self._transcript.selected is not None else f": {key_of(self.app, 'chat.asking')}"
            pieces.insert(0, (f"? {which} approval{way}", "bold $text-warning"))
        elif self.running and self._story.step:
            pieces.insert(0, (f"▶ step {self._story.step} of {self._story.of}", "bold $text-primary"))
        elif self.running:
            pieces.insert(0, ("▶ asking", "bold $text-primary"))
        if self.running and not waits:
            pieces.append((duration((monotonic() - self._since) * 1000), ""))
        if self._queue:
            pieces.append((f"{count(len(self._queue), 'message')} queued", "$text-warning"))
        seen = [weight for name, weight in self._weights.items() if name not in self.without]
        total = len(self._weights)
        pieces.append((f"{len(seen):,} of {total:,} tools, {thousands(sum(seen))} tokens", ""))
        usage = self._story.usage
        if usage.input_tokens or usage.output_tokens:
            pieces.append((f"↑{thousands(usage.input_tokens)} ↓{thousands(usage.output_tokens)}", ""))
        if self._cost:
            pieces.append((f"${self._cost:,.4f}", ""))
        if self._known is not None:
            pieces.append((clean_line(self._known.name), ""))
        line = Content(" · ").join(Content.styled(text, style) for text, style in pieces)
        self._status.update(line.truncate(max(self.size.width - 2, 1), ellipsis=True), layout=False)

    @property
    def app_requests(self) -> tuple[Request, ...]:
        """The calls that wait for the user's word."""
        requests: tuple[Request, ...] = getattr(self.app, "requests", ())
        return requests

    def on_resize(self) -> None:
        """Cuts the line of facts to the new width."""
        self.call_after_refresh(self._paint_status)

    def _greet(self) -> None:
        """Says what one can do here, while nothing was said yet."""
        key = key_of(self, "chat.model")
        how = [
            f"{count(len(self._weights), 'tool')} for the model; every call of one is seen here, and may be stopped."
        ]
        if self._model_name == _OFFLINE:
            how = [
                f"No model is connected: {key} chooses one. Until then the offline model answers.",
                "It doesn't reason; it matches your words to a tool, such as",
                "",
                "    fs.list_dir path=src",
                "    what time is it",
            ]
        self._transcript.greeting = ["Ask something.", "", *how]
        self._line.hint = "Ask something; shift+enter or ctrl+j begins a line"

    def put(self, text: str) -> None:
        """Adds a text to the message that is being typed."""
        self._line.put(self._line.text + text)
        self._line.focus()

    # Sessions

    def _show_story(self) -> None:
        self._greet()
        self._transcript.show(self._story.blocks)
        self._paint_status()

    @work(exclusive=True, group="session")
    async def _open(
        self, session: str, *, limit: int = _SHOWN, then: str = "", put: str = "", stay: bool = False
    ) -> None:
        """Shows a session, from its end unless one is to `stay`; `then` is asked in it, `put` is put into the line."""
        try:
            known, entries = await asyncio.to_thread(self._read, session)
        except StoreError as error:
            self._tell(error)
            return
        story = self._empty_story()
        shown = entries[-limit:]
        names = await asyncio.to_thread(self._runtime.models.tool_names)
        await asyncio.to_thread(story.recall, shown, names, self._recorded)
        if session != self.session:
            self._system = None
            self._cost = 0.0
            if known is not None and known.model not in {"", _OFFLINE}:
                self._model = (known.model, self._places.get(known.model))
        else:
            story.usage = self._story.usage
        seen = _kept(self._story.blocks)
        self._story, self._limit, self._known = story, limit, known
        self.session = session
        self._transcript.hidden = len(entries) - len(shown)
        self._show_story()
        self._line.remember([entry.message.text for entry in entries if isinstance(entry.message, UserMessage)])
        if stay:
            self._transcript.action_move_to(_kept(story.blocks) - seen)
        if put:
            self._line.put(put)
        if then:
            self._submit(then)
        else:
            self._send_next()

    @property
    def _is_moving(self) -> bool:
        """Whether another session is about to be shown."""
        moves = (worker for worker in self.workers if worker.node is self and worker.group == "session")
        return any(not worker.is_finished for worker in moves)

    def _tell(self, error: Exception) -> None:
        """Says why the session is as it was."""
        self.notify(clean_line(str(error)), severity="error", markup=False)
        self._send_next()

    def _read(self, session: str) -> tuple[Session | None, Sequence[SessionEntry]]:
        sessions = self._runtime.sessions
        return sessions.get(session), sessions.entries(session)

    def _recorded(self, call_id: str) -> ToolResult | None:
        try:
            return self._runtime.history.result(call_id)
        except StoreError:
            return None

    def _may_leave(self) -> bool:
        if self.running:
            self.notify(f"The model is still at work: {key_of(self, 'chat.interrupt')} interrupts it.", markup=False)
        return not self.running

    def action_new(self) -> None:
        """Begins a new session."""
        if self._may_leave():
            self._open(_new_id())
            self._line.focus()

    @work(exclusive=True, group="dialog")
    async def action_sessions(self) -> None:
        """Lists the sessions; goes to the one that is chosen."""
        if not self._may_leave():
            return
        from pegboard.tui.chat.sessions import SessionsScreen

        chosen = await self.app.push_screen_wait(SessionsScreen(self._runtime, self.session))
        if chosen is not None:
            self._open(chosen)
        elif self._known is not None:
            self._open(self.session, limit=self._limit)

    @work(exclusive=True, group="dialog")
    async def action_model(self) -> None:
        """Chooses which model answers from now on."""
        from pegboard.tui.chat.models import ModelsScreen

        chosen = await self.app.push_screen_wait(ModelsScreen(self._runtime, self._model_name))
        if chosen is not None:
            self._model = (chosen.name, chosen.base_url)
            self._places[chosen.name] = chosen.base_url
            self._greet()
            self._paint_status()
            self._load()

    @work(exclusive=True, group="dialog")
    async def action_tools(self) -> None:
        """Chooses which tools the model sees."""
        from pegboard.tui.chat.offered_tools import OfferedScreen

        specs = await asyncio.to_thread(self._runtime.tools.all)
        chosen = await self.app.push_screen_wait(OfferedScreen(specs, self.without, self._weights))
        if chosen is not None:
            self.without = chosen

    @work(exclusive=True, group="dialog")
    async def action_system(self) -> None:
        """Edits what the model is told beforehand."""
        from pegboard.tui.dialogs.ask_text import AskText

        now = self._system if self._system is not None else self._known.system if self._known is not None else None
        note = "Empty: the model is told nothing but the tools."
        text = await self.app.push_screen_wait(
            AskText(
                "What the model is told beforehand", self._runtime.models.system_prompt if now is None else now, note
            )
        )
        if text is not None:
            self._system = text
            self.notify("It holds from the next message on, in this session.")

    # Asking

    @on(AskLine.Sent)
    def _sent(self, event: AskLine.Sent) -> None:
        event.stop()
        if self.running or self._is_moving:
            self._queue.append(event.text)
            self._paint_status()
        else:
            self._submit(event.text)

    def _submit(self, text: str) -> None:
        self.running = True
        self._is_stopped = False
        self._since = monotonic()
        self._story.begin(text)
        self._transcript.follow()
        self._asking(text)

    def _send_next(self) -> None:
        """Goes on with what was typed meanwhile."""
        if self._queue and not self.running:
            self._submit(self._queue.pop(0))

    @work(exclusive=True, group="ask")
    async def _asking(self, text: str) -> None:
        """Asks, shows what happens, and goes on with what was typed meanwhile."""
        name, base_url = self._model
        story = self._story
        try:
            ask = await asyncio.to_thread(
                lambda: self._runtime.ask(
                    self.session, model=name, base_url=base_url, without=self.without, system=self._system
                )
            )
            if self._is_stopped:
                self._give_back(text)
                return
            self._end = ask.interrupt
            async for event in ask.run(text):
                if isinstance(event, AskFinished) and story.is_waiting and event.outcome.model_error is None:
                    self._give_back(text)
                    return
                story.feed(event)
                match event:
                    case AskFinished(outcome=outcome):
                        await self._finished(outcome)
                    case CallHappened(event=ApprovalRequested(call=call)):
                        self._show_expected(call)
                    case _:
                        pass
        except (SessionError, StoreError) as error:
            story.note(NoteBlock(str(error), "error", "Nothing was lost of what was said before."))
        finally:
            self._end = None
            self.running = False
        self._send_next()

    def _give_back(self, text: str) -> None:
        """Puts what nobody has heard back into the line, and all that was to be sent after it."""
        self._story.take_back()
        self._line.put("\n".join(filter(None, [text, *self._queue, self._line.text])))
        self._queue.clear()
        self.notify("Nothing was sent.")

    async def _finished(self, outcome: Outcome) -> None:
        self._system = None
        self._known = await asyncio.to_thread(self._runtime.sessions.get, self.session)
        paid = await asyncio.to_thread(self._runtime.models.price, self._model_name, outcome.usage)
        self._cost += paid or 0.0
        if not self.app.app_focus:
            self.app.bell()

    def action_interrupt(self) -> None:
        """Ends what runs, in order."""
        self._is_stopped = True
        if self._end is not None:
            self._end()

    def action_drop_queue(self) -> None:
        """Takes back what waits to be sent, into the line."""
        if self._queue:
            self._line.put("\n".join(self._queue))
            self._queue.clear()
            self._paint_status()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what can be done now."""
        match action:
            case "interrupt":
                return self.running and self.app.screen is self
            case "drop_queue":
                return bool(self._queue)
            case _:
                return True

    def action_back(self) -> None:
        """Goes to the line to type in."""
        if self.maximized is not None:
            self.minimize()
        self._line.focus()

    def action_maximise(self) -> None:
        """Gives the conversation the whole screen, or gives it back."""
        if self.maximized is not None:
            self.minimize()
        else:
            self.maximized = self._transcript

    # Asking otherwise

    def action_retry(self) -> None:
        """Asks the last message again."""
        self._ask_again(None)

    @work(exclusive=True, group="dialog")
    async def action_edit_last(self) -> None:
        """Edits the last message, and asks again."""
        if self._last is not None and self._may_leave():
            await self._edit(self._last)

    def _ask_again(self, text: str | None) -> None:
        if self._may_leave():
            self._cut(text)

    @work(exclusive=True, group="session")
    async def _cut(self, text: str | None) -> None:
        """Drops the last message with all that came of it, and asks it again, or what it was edited to."""
        last = self._last
        if last is None:
            self.notify("Nothing was asked yet.")
            self._send_next()
            return
        try:
            said = await asyncio.to_thread(self._users)
            # what isn't kept needn't be dropped, and what somebody else said since isn't ours to drop
            if said and said[-1].message.text == last.said:
                await asyncio.to_thread(self._runtime.sessions.cut, self.session, said[-1].position)
        except (SessionError, StoreError) as error:
            self._tell(error)
            return
        self._open(self.session, limit=self._limit, then=text if text is not None else last.said)

    @property
    def _last(self) -> UserBlock | None:
        """What the user said last."""
        return next((block for block in reversed(self._story.blocks) if isinstance(block, UserBlock)), None)

    def _users(self) -> list[SessionEntry]:
        entries = self._runtime.sessions.entries(self.session)
        return [entry for entry in entries if isinstance(entry.message, UserMessage)]

    async def _edit(self, block: UserBlock) -> None:
        """Edits a message: the last one in its place, an earlier one in a new session."""
        from pegboard.tui.dialogs.ask_text import AskText

        after = self._messages_from(block)
        note = "" if after == 1 else "It goes on in a new session; this one stays as it is."
        text = await self.app.push_screen_wait(AskText("Edit the message", block.said, note))
        if text is None or not text.strip():
            return
        if after == 1:
            self._ask_again(text)
        else:
            self._branch(after, then=text)

    def _messages_from(self, block: Block) -> int:
        """Gives how many of the user's messages there are from a block on."""
        blocks = self._story.blocks
        return sum(isinstance(one, UserBlock) for one in blocks[blocks.index(block) :])

    @work(exclusive=True, group="session")
    async def _branch(self, after: int, *, then: str = "", put: str = "") -> None:
        """Goes on in a new session that has all but the last messages of the user's, and what came of them."""
        new = _new_id()
        try:
            said = await asyncio.to_thread(self._users)
            before = said[-after].position if 0 < after <= len(said) else 2**62
            await asyncio.to_thread(self._runtime.sessions.branch, self.session, new, before)
        except (SessionError, StoreError) as error:
            self._tell(error)
            return
        self.notify("This is a new session; the one that it came from stays as it was.")
        self._open(new, then=then, put=put)
        self._line.focus()

    # What is done with what is shown

    @on(Transcript.Wanted)
    def _wanted(self, event: Transcript.Wanted) -> None:
        event.stop()
        match event.block:
            case CallBlock(call=ToolCall() as call) if event.what == "form":
                self.post_message(OpenCall(call.name, call.args))
            case CallBlock() as block if event.what == "open":
                self._open_result(block)
            case UserBlock() as block if event.what == "edit" and self._may_leave():
                self.run_worker(self._edit(block), exclusive=True, group="dialog")
            case block if event.what == "branch" and self._may_leave():
                put = block.said if isinstance(block, UserBlock) else ""
                after = self._messages_from(block)
                self._branch(after, put=put)

    @work(exclusive=True, group="dialog")
    async def _open_result(self, block: CallBlock) -> None:
        from pegboard.tui.dialogs.result import ResultScreen

        call, result = block.call, block.result
        if call is None or result is None:
            return
        if block.is_old:
            try:
                result = await asyncio.to_thread(self._runtime.history.result, call.id) or result
            except StoreError as error:
                self.notify(clean_line(str(error)), severity="error", markup=False)
        await self.app.push_screen_wait(ResultScreen(call, result, self._runtime.paths.state))

    @on(Transcript.EarlierWanted)
    def _show_earlier(self, event: Transcript.EarlierWanted) -> None:
        event.stop()
        if self._may_leave():
            self._open(self.session, limit=self._limit + _SHOWN, stay=True)

    # Approval

    def _take_requests(self, old: tuple[Request, ...], requests: tuple[Request, ...]) -> None:
        """Show which calls await approval; never moves focus or selection."""
        waiting = {request.call.id for request in requests}
        shown = set[CallBlock]()
        for request in requests:
            block = self._story.block_of(request.call)
            if block is None or block in shown:
                continue
            shown.add(block)
            if block.asks_about not in waiting:
                block.ask(request.call)
            current = next(one for one in requests if one.call.id == block.asks_about)
            block.is_destructive = bool(current.spec.hints.destructive)
            block.changed()
            self._show_expected(current.call)
        self._transcript.renew()
        self._paint_status()
        self.refresh_bindings()
        if waiting - {request.call.id for request in old}:
            self.app.bell()

    def on_screen_suspend(self) -> None:
        """Deselect when the user leaves the page, so that what they type when they come back goes to the prompt."""
        self._transcript.guard.show({})
        if self.app.current_mode != "chat" and self._transcript.selected is not None:
            self._transcript.deselect()
            self._line.focus()

    def on_screen_resume(self) -> None:
        """Start the delay of visible cards again."""
        self._transcript.renew()

    def focus_next(self, selector: str | type[Widget] = "*") -> Widget | None:
        """Focus the next widget; the conversation marks a block then."""
        return self._entered(super().focus_next(selector))

    def focus_previous(self, selector: str | type[Widget] = "*") -> Widget | None:
        """Focus the previous widget; the conversation marks a block then."""
        return self._entered(super().focus_previous(selector))

    def _entered(self, widget: Widget | None) -> Widget | None:
        if widget is self._transcript:
            self._transcript.enter()
        return widget

    def select_asking(self) -> None:
        """Select a call awaiting approval: the marked one, else the oldest; if one is selected, the next."""
        blocks = [*dict.fromkeys(filter(None, (self._story.block_of(one.call) for one in self.app_requests)))]
        if not blocks:
            return
        marked = self._transcript.marked
        at = next((at for at, block in enumerate(blocks) if block is marked), 0)
        if self._transcript.selected is not None:
            at += 1
        if self.maximized is not None and self.maximized is not self._transcript:
            self.minimize()
        self._transcript.focus()
        self._transcript.select_card(blocks[at % len(blocks)])
        self._paint_status()

    @on(Transcript.Selected)
    def _selected(self, event: Transcript.Selected) -> None:
        event.stop()
        self._paint_status()

    def _show_expected(self, call: ToolCall) -> None:
        """Show what a script that asks will call, once that is known."""
        block, script = self._story.block_of(call), script_in(call)
        if block is not None and script is not None and not block.expects(call):
            self._look_into(block, call, script)

    @work(group="look into")
    async def _look_into(self, block: CallBlock, call: ToolCall, script: str) -> None:
        """Show what a script that awaits approval will call."""
        block.expect(call, await asyncio.to_thread(lambda: self._runtime.scripts.orchestrator().analyze(script)))
        self._transcript.guard.restart(call.id)
        self._transcript.renew()

    @on(Transcript.Answered)
    def _answered(self, event: Transcript.Answered) -> None:
        event.stop()
        self._answer(event.block, event.call_id, event.answer)

    @work(exclusive=True, group="answer")
    async def _answer(self, block: CallBlock, call_id: str, chosen: str) -> None:
        """Answer a call, after the dialogs that the answer needs."""
        from pegboard.tui.chat.answers import approval_of

        request = next((one for one in self.app_requests if one.call.id == call_id), None)
        shown = block.asked_for
        if request is None or shown is None or shown.id != call_id:
            return
        approval = await approval_of(self.app, self._runtime, request, shown, chosen)
        if approval is None:
            return
        if not self._approvals.answer(call_id, approval):
            name = clean_line(shown.name)
            self.notify(
                f"{name} was not answered because the call has already ended.", severity="warning", markup=False
            )
        elif block.asks_about == call_id:
            block.is_edited = block.is_edited or (approval.args is not None and approval.args != shown.args)
            block.answered()
        if all(request.call.id == call_id for request in self.app_requests):
            self._transcript.follow()
        else:
            self._transcript.deselect()
        self._line.focus()


def _new_id() -> str:
    return os.urandom(8).hex()


def _kept(blocks: Sequence[Block]) -> int:
    """Counts what is kept in a session."""
    return sum(isinstance(block, UserBlock | TextBlock | CallBlock) for block in blocks)
