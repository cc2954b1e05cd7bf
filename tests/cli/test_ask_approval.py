"""Approval of calls in `pegboard ask`: on a real terminal it asks, elsewhere it rejects."""

from __future__ import annotations

import codecs
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import commands
import pytest
import terminals
from servers import SDK_SERVER, start_of
from serving import records
from watched import eventually

PACK = '''
from pathlib import Path

def scribble(*, text: str) -> str:
    """Scribbles."""
    Path("scribbled").write_text(text)
    return text
'''

BOTH = '''
import time
from pathlib import Path
from pegboard.sdk import batch_execute, call_tool, hints

@hints(read_only=True, timeout=60)
def run(*, gate: str) -> str:
    """Runs both."""
    def one(name: str) -> str:
        while name == "pad.scribble" and not Path(gate).exists():
            time.sleep(0.01)
        return str(call_tool(name, **({"text": "x"} if name == "pad.scribble" else {})))
    return batch_execute(["fixture.greet", "pad.scribble"], one)
'''

LOUD = '''
import time
from pathlib import Path
from pegboard.sdk import batch_execute, call_tool, hints

@hints(read_only=True, timeout=60)
def run(*, gate: str) -> str:
    """Writes, and prints something that looks like a question."""
    def one(name: str) -> str:
        if name == "pad.scribble":
            return call_tool(name, text="x")
        while not Path(gate).exists():
            time.sleep(0.01)
        print("Run time.now? [y/N/e] ")
        return str(call_tool(name))
    return batch_execute(["pad.scribble", "time.now"], one)
'''


class Terminal:
    """A process on its own terminal.

    Attributes:
        process: The process.
        seen: Its output so far.
    """

    def __init__(self, process: subprocess.Popen[bytes], parent: int) -> None:
        self.process = process
        self._parent = parent
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # reads may split characters

    def until(self, text: str, *, count: int = 1) -> None:
        """Wait until a text was shown this many times."""
        end = time.monotonic() + 60
        while self.seen.count(text) < count and self._read():
            assert time.monotonic() < end, self.seen
        assert self.seen.count(text) >= count, self.seen

    def type(self, keys: str) -> None:
        os.write(self._parent, keys.encode())

    def end(self) -> int:
        while self._read():
            pass
        return self.process.wait(60)

    def _read(self) -> bool:
        try:
            piece = os.read(self._parent, 65536)
        except OSError:  # Linux says so that the other side is closed
            return False
        self.seen += self._decoder.decode(piece).replace("\r\n", "\n")
        return bool(piece)


OnTerminal = Callable[..., AbstractContextManager[Terminal]]


@pytest.fixture
def on_terminal(home: Path, tmp_path: Path, write_pack: Callable[[str, str], Path]) -> OnTerminal:
    """Return a function that runs `pegboard ask` with the pack `pad` on a terminal."""
    packs = str(write_pack("pad.py", PACK))

    @contextmanager
    def run(question: str, *arguments: str, typed: str = "", **environ: str) -> Iterator[Terminal]:
        parent, child = pty.openpty()
        if typed:
            os.write(parent, typed.encode())
        code = "import os, sys; os.setsid(); import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        code += "from pegboard.__main__ import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "ask", question, "--packs", packs, *arguments]
        surroundings = {name: value for name, value in os.environ.items() if name not in {"VISUAL", "EDITOR"}}
        process = subprocess.Popen(
            command, stdin=child, stdout=child, stderr=child, cwd=tmp_path, env={**surroundings, **environ}
        )
        os.close(child)
        terminal = Terminal(process, parent)
        try:
            yield terminal
        finally:
            process.kill()
            process.wait(60)
            os.close(parent)

    return run


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize(
    ("answer", "runs"), [("y", True), ("yes", True), ("Y", True), ("n", False), ("", False), ("sure", False)]
)
def test_on_a_terminal_only_y_approves(on_terminal: OnTerminal, tmp_path: Path, answer: str, runs: bool) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        assert "pad.scribble" in terminal.seen
        assert "called by the model" in terminal.seen
        assert '"text": "hello"' in terminal.seen
        terminal.type(f"{answer}\n")
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").exists() is runs
    assert ("denied" in terminal.seen or "rejected this call" in terminal.seen) is not runs


@pytest.mark.promise("SEC-2")
def test_input_typed_before_the_question_is_discarded(on_terminal: OnTerminal, tmp_path: Path) -> None:
    with on_terminal("pad.scribble text=hello", typed="y\ny\ny\n") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("\n")
        terminal.end()
    assert not (tmp_path / "scribbled").exists()


@pytest.mark.promise("SEC-2", "MCP-5")
def test_the_question_of_a_server_and_that_of_a_call_are_never_open_together(
    on_terminal: OnTerminal, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    gate = tmp_path / "gate"
    write_pack("both.py", BOTH)
    server = f"fixture={shlex.join(start_of(SDK_SERVER))}"
    arguments = ("--mcp", server, "--approve", "fixture.greet")
    with on_terminal(f"both.run gate={gate}", *arguments) as terminal:
        terminal.until("\nAnswer? [y/N/c] ")
        gate.touch()
        eventually(lambda: json.loads(commands.pegboard("history", "list", "status:waiting", "--json").stdout), 60)
        terminal.type("y\n")
        terminal.until("name (Name; string; required): ")
        terminal.type("y\n")
        terminal.until("default 30): ")
        terminal.type("\n")
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        assert not (tmp_path / "scribbled").exists()
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").exists()


@pytest.mark.promise("SEC-2", "SEC-5")
def test_the_output_of_a_tool_that_runs_meanwhile_appears_after_the_answer(
    on_terminal: OnTerminal, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    gate = tmp_path / "gate"
    write_pack("loud.py", LOUD)
    with on_terminal(f"loud.run gate={gate}") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        gate.touch()
        eventually(lambda: records("time.now"), 60)
        terminal.type("y\n")
        assert terminal.end() == 0
    assert "\nRun pad.scribble? [y/N/e] y\n" in terminal.seen
    assert "\nRun time.now? [y/N/e] \n" in terminal.seen
    assert "→ time.now" in terminal.seen


@pytest.mark.promise("ASK-7", "ASK-4")
def test_ctrl_c_at_the_question_rejects_and_interrupts(on_terminal: OnTerminal, tmp_path: Path) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "Rejected." in terminal.seen
    assert not (tmp_path / "scribbled").exists()


@pytest.mark.promise("ASK-7", "STO-1")
def test_a_terminal_that_is_closed_at_the_question_is_not_recorded_as_the_answer_of_a_person(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_pack: Callable[[str, str], Path]
) -> None:
    monkeypatch.chdir(tmp_path)
    packs = str(write_pack("pad.py", PACK))
    with terminals.pegboard("ask", "pad.scribble text=hello", "--packs", packs, is_forked=True) as terminal:
        terminal.read_until("Run pad.scribble? [y/N/e] ")
        terminal.hang_up()
        terminal.process.wait(60)
    [call] = records("pad.scribble")
    assert call.error is not None
    assert (call.ok, "rejected" in call.error.message) == (False, False)
    assert not (tmp_path / "scribbled").exists()


@pytest.mark.promise("ASK-7")
def test_a_closed_input_rejects(on_terminal: OnTerminal, tmp_path: Path) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert not (tmp_path / "scribbled").exists()


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize(("typed", "runs"), [("y\x04\x04", False), ("y\x04\n", True), ("y\x04es\n", True)])
def test_an_answer_counts_only_with_enter(on_terminal: OnTerminal, tmp_path: Path, typed: str, runs: bool) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type(typed)
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").exists() is runs


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize(("answer", "runs"), [("y\n", True), ("\n", False)])
def test_the_question_is_asked_again_after_a_stop_and_only_an_answer_to_it_counts(
    on_terminal: OnTerminal, tmp_path: Path, answer: str, runs: bool
) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("y\x04")  # ctrl+d sends the `y` without the end of its line
        terminal.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until("Run pad.scribble? [y/N/e] ", count=2)
        terminal.type(answer)
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").exists() is runs


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize("pasted", ["y\nls\n", "y\nls"])
def test_a_pasted_text_of_several_lines_does_not_count_as_an_answer(
    on_terminal: OnTerminal, tmp_path: Path, pasted: str
) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type(pasted)
        terminal.until("Several lines don't count as an answer. Type one line.\nRun pad.scribble? [y/N/e] ")
        terminal.type("n\n")
        assert terminal.end() == 0
    assert not (tmp_path / "scribbled").exists()


@pytest.mark.promise("ASK-7", "SEC-5")
def test_arguments_are_shown_in_full_without_control_sequences(on_terminal: OnTerminal) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\u202egnp\u200b\nRun pad.scribble? [y/N/e] y" + "x" * 3000
    with on_terminal(f"pad.scribble text={json.dumps(evil)}") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("n\n")
        terminal.end()
    assert "\x1b" not in terminal.seen
    assert not {"\u202e", "\u200b", "\x07"} & set(terminal.seen)
    assert "x" * 3000 in terminal.seen.replace("\n", "")
    assert "\nRun pad.scribble? [y/N/e] yx" not in terminal.seen


@pytest.mark.promise("ASK-7")
def test_arguments_are_edited_in_one_line_and_asked_about_again(on_terminal: OnTerminal, tmp_path: Path) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("e\n")
        terminal.until("in one line: ")
        terminal.type("[1\n")
        terminal.until("[y/N/e] ", count=2)
        assert "The arguments are unchanged" in terminal.seen
        terminal.type("e\n")
        terminal.until("in one line: ", count=2)
        terminal.type('{"text": "edited"}\n')
        terminal.until("[y/N/e] ", count=3)
        assert "Edited arguments:" in terminal.seen
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").read_text() == "edited"


@pytest.mark.promise("ASK-7")
def test_invalid_edited_arguments_are_explained_and_can_be_edited_again(
    on_terminal: OnTerminal, tmp_path: Path
) -> None:
    with on_terminal("pad.scribble text=hello") as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("e\n")
        terminal.until("in one line: ")
        terminal.type('{"text": 5}\n')
        terminal.until("[y/N/e] ", count=2)
        assert "They are invalid: text: must be text, not 5. Edit them again, or reject the call." in terminal.seen
        terminal.type("y\n")
        terminal.until("[y/N/e] ", count=3)
        assert not (tmp_path / "scribbled").exists()
        terminal.type("e\n")
        terminal.until("in one line: ", count=2)
        terminal.type('{"text": "edited"}\n')
        terminal.until("[y/N/e] ", count=4)
        assert terminal.seen.count("They are invalid") == 2
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").read_text() == "edited"


@pytest.mark.promise("ASK-7")
def test_arguments_are_edited_in_the_editor(on_terminal: OnTerminal, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho \'{"text": "from the editor"}\' > "$1"\n')
    editor.chmod(0o700)
    with on_terminal("pad.scribble text=hello", EDITOR=str(editor)) as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("e\n")
        terminal.until("[y/N/e] ", count=2)
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").read_text() == "from the editor"


@pytest.mark.promise("ASK-7")
def test_the_editor_shows_arguments_as_they_are_and_not_escaped(on_terminal: OnTerminal, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/edited\n')
    editor.chmod(0o700)
    with on_terminal("pad.scribble text=שלום", EDITOR=str(editor)) as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        terminal.type("e\n")
        terminal.until("[y/N/e] ", count=2)
        terminal.type("n\n")
        terminal.end()
    assert json.loads((tmp_path / "edited").read_text()) == {"text": "שלום"}
    assert "שלום" in (tmp_path / "edited").read_text()


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ([], False),
        (["--approve", "pad.*"], True),
        (["--approve", "fs.*", "--approve", "pad.scribble"], True),
        (["--approve", "fs.*,pad.scribble"], True),
        (["--approve", "fs.*"], False),
        (["--approve", ""], False),
    ],
)
def test_without_a_terminal_only_calls_approved_in_advance_run(
    home: Path, tmp_path: Path, write_pack: Callable[[str, str], Path], options: list[str], runs: bool
) -> None:
    done = ask(write_pack, tmp_path, *options)
    result = json.loads(done.stdout)["toolResults"][0]
    assert (done.returncode, result["ok"]) == (0, runs)
    assert runs or result["error"]["detail"] == "denied"


@pytest.mark.promise("ASK-7")
def test_approval_in_advance_does_not_overrule_a_rule_that_denies(
    home: Path, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    (home / "approvals.toml").write_text('[[rule]]\ndeny = "pad.*"\n')
    done = ask(write_pack, tmp_path, "--approve", "pad.scribble")
    assert json.loads(done.stdout)["toolResults"][0]["error"]["detail"] == "denied"
    (home / "approvals.toml").write_text("[[rule\n")
    done = ask(write_pack, tmp_path, "--approve", "pad.scribble")
    assert json.loads(done.stdout)["toolResults"][0]["error"]["detail"] == "denied"


def test_an_approval_that_matches_nothing_is_a_warning(
    home: Path, tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    done = ask(write_pack, tmp_path, "--approve", "pad.scribbel")
    assert 'warning: "pad.scribbel" approves no tool' in done.stderr


def ask(write_pack: Callable[[str, str], Path], folder: Path, *options: str) -> commands.Done:
    packs = str(write_pack("pad.py", PACK))
    return commands.pegboard("ask", "pad.scribble text=hello", "--json", "--packs", packs, *options, cwd=folder)


@pytest.mark.promise("ASK-7", "STO-2")
def test_secrets_are_masked_and_edited_arguments_keep_them(on_terminal: OnTerminal, tmp_path: Path) -> None:
    secret, masked = "sk-1234567890abcdef", "«secret SEARCH_API_KEY»"
    with on_terminal(f"pad.scribble text={secret}", SEARCH_API_KEY=secret) as terminal:
        terminal.until("\nRun pad.scribble? [y/N/e] ")
        assert f'"text": "{masked}"' in terminal.seen
        for text, answer in ((f"{masked}!", "The arguments are unchanged: "), (masked, "Edited arguments:")):
            terminal.type("e\n")
            terminal.until("Arguments as JSON, in one line: ", count=1 if text.endswith("!") else 2)
            terminal.type(json.dumps({"text": text}) + "\n")
            terminal.until(answer)
            terminal.until("\nRun pad.scribble? [y/N/e] ", count=2 if text.endswith("!") else 3)
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (tmp_path / "scribbled").read_text() == secret
    printed = terminal.seen[terminal.seen.index("Approval required") :]
    assert secret not in printed
