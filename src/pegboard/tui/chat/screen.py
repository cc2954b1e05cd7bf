"""The Chat page: a conversation with a model that uses the tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.reactive import reactive, var
from textual.timer import Timer
from textual.widget import Widget

from pegboard.models import ToolCall
from pegboard.models.model_requirements import OFFLINE
from pegboard.results.sizes import count
from pegboard.tui.chat.approval_cards import ApprovalCards
from pegboard.tui.chat.ask_runner import AskRunner
from pegboard.tui.chat.block_lines import EXAMPLE_INDENT
from pegboard.tui.chat.blocks import UserBlock
from pegboard.tui.chat.call_block import CallBlock
from pegboard.tui.chat.chat_commands import CHAT_COMMANDS
from pegboard.tui.chat.open_session import OpenSession, new_id
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.status import ChatStatus, ChatStatusLine
from pegboard.tui.chat.transcript import Transcript
from pegboard.tui.commands import Command, as_word, bindings, key_of, keys_of
from pegboard.tui.messages import Asking, OpenCall
from pegboard.tui.shell.header import HeaderLine
from pegboard.tui.shell.page import PageScreen
from pegboard.tui.shell.too_small import TooSmall
from pegboard.tui.state.approvals import Approvals
from pegboard.tui.state.catalogue import ToolEntry
from pegboard.tui.state.draft import Draft, DraftFile
from pegboard.tui.state.kept_draft import KeptDraft
from pegboard.tui.state.tool_scan import ToolScan
from pegboard.tui.widgets.keys_line import KeysLine

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_TICK_SECONDS = 0.1


class ChatScreen(PageScreen):
    """Conversation, status line and prompt of one session at a time.

    Args:
        runtime: Provides models, sessions and tools.
        approvals: Calls awaiting approval.
    """

    PAGE = "Chat"
    LEGEND = (
        ("❯", "your message"),
        ("… ▶ ? ✓ ✗ ⊘", "call queued, running, awaiting approval, succeeded, failed, stopped"),
        ("▸ ▾", "collapsed, expanded"),
    )
    AUTO_FOCUS = "AskLine"

    DEFAULT_CSS = """
    ChatScreen {
        #body { height: 1fr; }
        Transcript { height: 1fr; }
        #status { height: 1; padding: 0 1; background: $panel; color: $text-muted; text-wrap: nowrap; }
        AskLine { margin: 0; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = CHAT_COMMANDS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    running: reactive[bool] = reactive(False, init=False)
    """Whether an ask is running."""
    hidden_tools: var[frozenset[str]] = var[frozenset[str]](frozenset(), init=False)
    """Names of tools that the model doesn't see."""

    def __init__(self, runtime: Runtime, approvals: Approvals) -> None:
        super().__init__()
        self._runtime = runtime
        # keep references: workers may finish while the screen is removed and queries fail
        self._transcript = Transcript()
        self._status = ChatStatusLine()
        self._prompt = AskLine()
        self.open_session = OpenSession(self, runtime, self._transcript, self._prompt, self)
        """The session on the screen."""
        self._cards = ApprovalCards(
            self, runtime, approvals, self.open_session, self._transcript, self._prompt, self._approvals_changed
        )
        self.runner = AskRunner(
            self,
            runtime,
            self.open_session,
            self._transcript,
            self._prompt,
            changed=self._runner_changed,
            approval_requested=self._cards.renew,
        )
        """The running ask and the queue."""
        self._draft = KeptDraft(
            self,
            DraftFile(runtime.paths.state, "chat-draft"),
            lambda: Draft("\n".join(filter(None, [*self.runner.queue, self._prompt.unsent]))),
        )
        self.weights: dict[str, int] = {}
        """Tokens of each tool's definition, by name."""
        self._entries: Sequence[ToolEntry] = ()
        self._clock: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield conversation, status line and prompt."""
        yield HeaderLine("chat")
        with Vertical(id="body"):
            yield self._transcript
            yield self._status
            yield self._prompt
        yield TooSmall()
        yield KeysLine()

    def on_mount(self) -> None:
        """Start a new session and watch tools and approvals."""
        self._clock = self.set_interval(_TICK_SECONDS, self._tick, pause=True)
        self._greet()
        self.open_session.start()
        self._update_status()
        self.watch(self.app, "tool_scan", self._tools_changed)
        self.watch(self.app, "requests", self._cards.update, init=False)

        def refresh(has_focus: bool) -> None:
            if has_focus and self.is_current:
                self.on_screen_resume()

        self.watch(self.app, "app_focus", refresh, init=False)
        self._preload()
        self._draft.restore(lambda draft: self._prompt.put_before(draft.text))

    async def on_unmount(self) -> None:
        """Save the messages that were not sent."""
        await self._draft.close()

    @property
    def session(self) -> str:
        """ID of the open session."""
        return self.open_session.id

    @work(group="load")
    async def _preload(self) -> None:
        """Import in the background what the first message needs."""
        await asyncio.to_thread(self._import_modules)

    def _import_modules(self) -> None:
        import pegboard.tui.form
        import pegboard.tui.result  # noqa: F401 - used by the dialogs

        self._runtime.ask()
        if self.open_session.model_name != OFFLINE:
            self._runtime.models.preload()

    # Status

    def _tick(self) -> None:
        self.open_session.story.tick()
        self._update_status()

    def _tools_changed(self, scan: ToolScan) -> None:
        self._entries = scan.catalogue.entries
        # the worker has no arguments: Textual would format all tools for its description
        self._weigh()

    @work(exclusive=True, group="weigh")
    async def _weigh(self) -> None:
        """Estimate the tokens of the tools' definitions."""
        from pegboard.results.definition import token_weight

        entries = self._entries
        self.weights = await asyncio.to_thread(lambda: {one.spec.name: token_weight(one.spec) for one in entries})
        self._greet()
        self._update_status()

    def _runner_changed(self) -> None:
        self._draft.schedule()
        self.running = self.runner.is_running
        self._update_status()

    def watch_running(self, running: bool) -> None:
        """Run the timer during an ask, and report the change to the app."""
        self.post_message(Asking(running))
        if self._clock is None:
            return
        if running:
            self._clock.resume()
        else:
            self._clock.pause()
        self._update_status()
        self.refresh_bindings()

    def watch_hidden_tools(self, names: frozenset[str]) -> None:
        """Offer the other tools from the next message on."""
        self.runner.hidden_tools = names
        self._update_status()

    def _update_status(self) -> None:
        session, story = self.open_session, self.open_session.story
        is_selected = self._transcript.selected is not None
        status = ChatStatus(
            model=session.model_name,
            session=session.record.name if session.record is not None else "",
            requests=self._cards.requests,
            select_key="" if is_selected else key_of(self.app, "chat.asking"),
            step=story.step,
            steps=story.of,
            seconds=self.runner.seconds,
            queued=len(self.runner.queue),
            weights=tuple(weight for name, weight in self.weights.items() if name not in self.hidden_tools),
            tools=len(self.weights),
            usage=story.usage,
            cost=session.cost,
        )
        self._status.show(status)

    def _approvals_changed(self) -> None:
        self._update_status()
        self.refresh_bindings()

    def _greet(self) -> None:
        """Update the text of an empty conversation."""
        key = key_of(self, "chat.model")
        lines = [f"The model can use {count(len(self.weights), 'tool')}. You see every call and can stop it."]
        if self.open_session.model_name == OFFLINE:
            lines = [
                f"No model is connected. Press {key} to choose one; until then the offline model answers.",
                "It doesn't reason; it matches your words to a tool, for example:",
                "",
                f"{EXAMPLE_INDENT}fs.list_dir path=.",
                f"{EXAMPLE_INDENT}what time is it",
            ]
        self._transcript.greeting = ["Ask something.", "", *lines]
        keys = " or ".join(map(as_word, keys_of(self._prompt, "ask.newline")[:2]))
        self._prompt.hint = f"Ask something; {keys} inserts a line break" if keys else "Ask something"

    # Sessions

    def may_leave(self) -> bool:
        """Return whether the session may be changed; if an ask is running, say how to interrupt it."""
        if self.running:
            key = key_of(self, "chat.interrupt")
            self.notify(f"The model is still running. Press {key} to interrupt it.", markup=False)
        return not self.running

    def session_opened(self, send: str) -> None:
        """Show the loaded session, and send a message or the next queued one."""
        self._greet()
        self._update_status()
        self.runner.send_next(send)

    def show_turn(self, session: str, message: int) -> None:
        """Open a session at a message of the user; a session in which the model runs is shown already."""
        is_running = self.running and session == self.session
        if not is_running and self.may_leave():
            self.open_session.open(session, at=message)
            self._transcript.focus()

    def session_unchanged(self) -> None:
        """Send the next queued message after a change of the session that failed or wasn't needed."""
        self.runner.send_next()

    def action_new(self) -> None:
        """Start a new session."""
        if self.may_leave():
            self.open_session.open(new_id())
            self._prompt.focus()

    @work(exclusive=True, group="dialog")
    async def action_sessions(self) -> None:
        """Show the stored sessions and open the chosen one."""
        if not self.may_leave():
            return
        from pegboard.tui.chat.sessions import SessionsScreen

        chosen = await self.app.push_screen_wait(SessionsScreen(self._runtime, self.session))
        if chosen is not None:
            if self.may_leave():  # A queued message may have been sent meanwhile.
                self.open_session.open(chosen)
        elif self.open_session.record is not None and not self.running:
            self.open_session.reload()

    @work(exclusive=True, group="dialog")
    async def action_model(self) -> None:
        """Choose the model that answers."""
        from pegboard.tui.chat.models import ModelsScreen

        chosen = await self.app.push_screen_wait(ModelsScreen(self._runtime, self.open_session.model_name))
        if chosen is not None:
            self.open_session.choose_model(chosen.name, chosen.base_url)
            self._greet()
            self._update_status()
            self._preload()

    @work(exclusive=True, group="dialog")
    async def action_tools(self) -> None:
        """Choose the tools that the model sees."""
        from pegboard.tui.chat.offered_tools import OfferedScreen

        specs = await asyncio.to_thread(self._runtime.tools.all)
        chosen = await self.app.push_screen_wait(OfferedScreen(specs, self.hidden_tools, self.weights))
        if chosen is not None:
            self.hidden_tools = chosen

    @work(exclusive=True, group="dialog")
    async def action_system(self) -> None:
        """Edit the system prompt."""
        from pegboard.tui.dialogs.ask_text import AskText

        note = "Leave empty to send only the tools."
        text = await self.app.push_screen_wait(AskText("System prompt", self.open_session.system_prompt, note))
        if text is not None:
            self.open_session.system = text
            self.notify("The system prompt applies from the next message of this session.")

    def action_retry(self) -> None:
        """Send the last message again."""
        self.open_session.resend()

    def action_edit_last(self) -> None:
        """Edit the last message and send it again."""
        last = self.open_session.last_message
        if last is not None and self.may_leave():
            self.open_session.edit(last)

    # Messages

    def put(self, text: str) -> None:
        """Append a text to the prompt in a line of its own, unless it is empty, and focus the prompt."""
        draft = self._prompt.text
        if text:
            self._prompt.put(draft + ("\n" if draft and not draft.endswith("\n") else "") + text)
        self._prompt.focus()

    @on(AskLine.Changed)
    @on(AskLine.Sent)
    def _typed(self, event: AskLine.Changed | AskLine.Sent) -> None:
        if isinstance(event, AskLine.Sent):
            event.stop()
            self.runner.send(event.text)
        self._draft.schedule()

    def action_interrupt(self) -> None:
        """Stop the running turn."""
        self.runner.interrupt()

    def action_drop_queue(self) -> None:
        """Move queued messages back to the prompt."""
        self.runner.take_back_queue()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the actions that are possible now."""
        match action:
            case "interrupt":
                return self.running and self.app.screen is self
            case "drop_queue":
                return bool(self.runner.queue)
            case _:
                return True

    def action_back(self) -> None:
        """Focus the prompt."""
        if self.maximized is not None:
            self.minimize()
        self._prompt.focus()

    def action_maximise(self) -> None:
        """Maximize or restore the conversation."""
        if self.maximized is not None:
            self.minimize()
        else:
            self.maximized = self._transcript

    # Conversation

    @property
    def has_result_focus(self) -> bool:
        """Whether the focus is in the conversation."""
        return self._transcript.has_focus

    def focus_result(self) -> bool:
        """Focus the conversation, and mark its last block; return False while it is empty."""
        if not self.open_session.story.blocks:
            return False
        self._transcript.focus()
        self._transcript.enter()
        return True

    def focus_work(self) -> None:
        """Focus the prompt."""
        self._prompt.focus()

    @work(exclusive=True, group="dialog")
    async def action_save(self) -> None:
        """Save the open session to a file."""
        from pegboard.tui.chat.session_file import export_open_session

        session = self.open_session
        await export_open_session(self.app, self._runtime, session.id, session.record, self._prompt)

    # Blocks

    @on(Transcript.Requested)
    def _requested(self, event: Transcript.Requested) -> None:
        event.stop()
        match event.block:
            case CallBlock(call=ToolCall() as call) if event.action == "form":
                self.post_message(OpenCall(call.name, call.args))
            case CallBlock() as block if event.action == "open":
                self._open_result(block)
            case UserBlock() as block if event.action == "edit" and self.may_leave():
                self.open_session.edit(block)
            case block if event.action == "branch" and self.may_leave():
                self.open_session.branch(block)

    @work(exclusive=True, group="dialog")
    async def _open_result(self, block: CallBlock) -> None:
        from pegboard.tui.dialogs.result import ResultScreen

        call, result = block.call, block.result
        if call is None or result is None:
            return
        if block.is_old:
            result = await asyncio.to_thread(self._runtime.history.result, call.id) or result
        await self.app.push_screen_wait(ResultScreen(call, result, self._runtime.paths.state))

    @on(Transcript.EarlierRequested)
    def _show_earlier(self, event: Transcript.EarlierRequested) -> None:
        event.stop()
        if self.may_leave():
            self.open_session.show_earlier()

    # Approval

    def select_asking(self) -> None:
        """Select a call awaiting approval."""
        self._cards.select_next()

    def leave_last_asking(self) -> bool:
        """Deselect the selected call awaiting approval and return True, unless a later one awaits it.

        A dialog that opens then may close just before a key that was meant for it.
        """
        if self._cards.is_last:
            self._cards.deselect()
            return True
        return False

    @on(Transcript.Selected)
    def _selected(self, event: Transcript.Selected) -> None:
        event.stop()
        self._update_status()

    @on(Transcript.Answered)
    def _answered(self, event: Transcript.Answered) -> None:
        event.stop()
        self._cards.answer(event.block, event.call_id, event.answer)

    def on_screen_suspend(self) -> None:
        """Clear the selection when the user leaves the page."""
        self._cards.leave()

    def on_screen_resume(self) -> None:
        """Restart the delay of visible cards, and show what other processes changed in the session.

        This also happens when the terminal gets the focus back, such as from one with another Pegboard app.
        """
        self._transcript.renew()
        if not self.running:
            self.open_session.refresh()

    def focus_next(self, selector: str | type[Widget] = "*") -> Widget | None:
        """Focus the next widget; mark a block if it is the conversation."""
        return self._mark_on_entry(super().focus_next(selector))

    def focus_previous(self, selector: str | type[Widget] = "*") -> Widget | None:
        """Focus the previous widget; mark a block if it is the conversation."""
        return self._mark_on_entry(super().focus_previous(selector))

    def _mark_on_entry(self, widget: Widget | None) -> Widget | None:
        if widget is self._transcript:
            self._transcript.enter()
        return widget
