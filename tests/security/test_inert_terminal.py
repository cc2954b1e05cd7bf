"""No untrusted text controls a terminal; files and pipes receive it unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import commands
import evil
import pytest
from terminals import pegboard

from pegboard.models import ToolCall
from pegboard.models.conversation import ModelMessage, UserMessage
from pegboard.runtime import Runtime

ODD = evil.ALL.replace("\x00", "")
"""The evil text as a command-line argument: without NUL; half of a surrogate pair is tested as bytes."""
ARGUMENT = ODD.replace("\ud800", "")


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    """Return a folder of evil packs."""
    return evil.write(tmp_path / "evil packs")


def _shown(packs: Path, *arguments: str) -> str:
    """Run a command in a terminal, and return the output of both streams."""
    with pegboard("--packs", str(packs), *arguments, is_forked=True) as terminal:
        terminal.read_all()
        return terminal.output.replace("\r\n", "\n")


def _piped(packs: Path, *arguments: str) -> str:
    return commands.pegboard("--packs", str(packs), *arguments).stdout


COMMANDS: Sequence[Sequence[str]] = [
    ["tools", "list"],
    ["tools", "list", "--json"],
    ["tools", "info", "evil.choose"],
    ["tools", "info", "evil.say", "--json"],
    ["tools", "invoke", "evil.say"],
    ["tools", "invoke", "evil.say", "--data"],
    ["tools", "invoke", "evil.rows", "--data"],
    ["tools", "invoke", "evil.fail"],
    ["tools", "invoke", "evil.blow"],
    ["tools", "invoke", "evil.say", "--arg", f"text={ARGUMENT}", "--print", "cli"],
    ["tools", "invoke", "evil.say", "--arg", f"text={ARGUMENT}", "--print", "json"],
    ["tools", "invoke", "evil.say", "--args", ARGUMENT],
    ["tools", "invoke", "evil.say", "--arg", f"{ARGUMENT}=1"],
    ["tools", "invoke", ARGUMENT],
    ["tools", "invoke", "evil.say", f"--{ARGUMENT}"],
    ["tools", ARGUMENT],
    [ARGUMENT],
    ["deps"],
    ["deps", "evil", "--json"],
    ["deps", ARGUMENT],
    ["history"],
    ["history", "--json"],
    ["config", "show"],
    ["config", "show", "--json"],
    ["paths"],
    ["sessions", "list"],
    ["sessions", "list", "--json"],
    ["sessions", "show", "evil"],
    ["sessions", "show", "evil", "--json"],
    ["sessions", "show", ARGUMENT],
    ["presets", "list"],
    ["presets", "list", "--json"],
    ["presets", "show", "evil.say", "[-o FILE] [bold"],
    ["script", "list"],
    ["script", "check", ARGUMENT],
    ["script", "run", "[-o FILE] [bold"],
    ["script", "run", "--json", "[-o FILE] [bold"],
    ["ask", "evil.say"],
    ["ask", "--approve", "evil.destroy", f"evil.destroy path={ARGUMENT!r}"],
    ["ask", "--json", "evil.say"],
    ["ask", "--model", ARGUMENT, "x"],
    ["auth", "list"],
    ["auth", "remove", ARGUMENT],
    ["new", ARGUMENT],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=map(str, range(len(COMMANDS))))
@pytest.mark.promise("SEC-5", "TUI-4")
async def test_no_output_of_a_command_controls_the_terminal(arguments: Sequence[str], packs: Path, home: Path) -> None:
    await _prepare(packs, home)
    shown = _shown(packs, *arguments)
    if arguments == ["deps"]:
        for code in ("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"):
            shown = shown.replace(code, "")  # our own colors
    assert shown or arguments[0] == "auth"
    assert evil.unsafe_in(shown) == set(), ascii(shown)
    assert "unexpected error" not in shown


async def _prepare(packs: Path, home: Path) -> None:
    """Save evil texts in the history, the sessions, the presets, the scripts and the configuration."""
    (home / "config.toml").write_text(f"[packs.evil]\nx = {json.dumps(ARGUMENT)}\n{json.dumps(ARGUMENT)} = 1\n")
    (home / "data" / "scripts").mkdir(parents=True, exist_ok=True)
    (home / "data" / "scripts" / "[-o FILE] [bold.sh").write_text(
        "evil.say\nprintf '\\033]0;x\\007 \\302\\2331m \\342\\200\\256' ; printf '\\033[31m' >&2\n"
    )
    async with Runtime.from_environment(packs=[packs]) as runtime:
        runtime.tools.scan()
        runtime.presets.save("evil.say", "[-o FILE] [bold", {"text": ODD})
        await runtime.result(ToolCall(name="evil.say", args={"text": ODD}, source="cli"))
        await runtime.result(ToolCall(name=ODD, args={ODD: ODD}, source="cli"))
        runtime.sessions.start("evil", model=ODD, system=ODD)
        runtime.sessions.append("evil", UserMessage(text=ODD))
        runtime.sessions.append("evil", ModelMessage(text=ODD))


def test_files_and_pipes_get_texts_and_json_exactly(packs: Path) -> None:
    expected = (evil.ALL + "x").replace("\ud800", "\ufffd")
    assert _piped(packs, "tools", "invoke", "evil.say", "--data") == expected + "\n"
    called = json.loads(_piped(packs, "tools", "invoke", "evil.say"))
    assert called["result"]["data"] == expected


def test_json_on_a_terminal_is_the_same_value_as_in_a_pipe(packs: Path) -> None:
    shown = _shown(packs, "tools", "invoke", "evil.rows", "--data")
    json_ = shown[shown.index("[\n") :]
    assert json.loads(json_) == json.loads(_piped(packs, "tools", "invoke", "evil.rows", "--data"))
    assert "\\u202e" in json_


def test_half_a_surrogate_pair_never_makes_invalid_json(packs: Path) -> None:
    from pydantic_core import from_json

    text = '{"text": "\\ud83d and \\ud83d\\ude00"}'
    # stricter than Python's own, which takes half of a pair
    called = from_json(_piped(packs, "tools", "invoke", "evil.say", "--args", text))
    assert called["call"]["args"]["text"] == "\ufffd and 😀"


def test_an_argument_that_is_not_valid_text_is_reported_without_a_traceback(packs: Path) -> None:
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"pegboard", b"tools", b"invoke", b"\xff\xfe"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert json.loads(done.stdout)["result"]["error"]["code"] == "tool_not_found"
