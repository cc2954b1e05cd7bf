"""`pegboard ask` and `pegboard sessions` from outside: processes with output and an exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import commands
import pytest
from provider import Answer, FakeProvider, proposes, says

from pegboard.runtime import Runtime

Command = Callable[..., commands.Done]

PACK = '''
from pegboard.sdk import hints

@hints(read_only=True, timeout=60)
def linger() -> None:
    """Lingers: says that it runs, then never ends."""
    print("running", flush=True)
    while True:
        pass

def scribble(*, text: str) -> str:
    """Scribbles."""
    return text
'''


@pytest.mark.promise("CLI-3", "CLI-5", "ASK-2")
def test_the_outcome_is_printed_as_json(pegboard: Command) -> None:
    done = pegboard("ask", "tools.echo value=3", "--session", "s", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert set(told) >= {"answer", "toolCalls", "toolResults", "toolError", "sessionContextUpdated", "sessionId"}
    [call], [result] = told["toolCalls"], told["toolResults"]
    assert (call["name"], call["args"], call["source"]) == ("tools.echo", {"value": 3}, "ask")
    assert (result["callId"], result["tool"], result["ok"], result["data"]) == (call["id"], "tools.echo", True, 3)
    assert (told["toolError"], told["sessionContextUpdated"], told["sessionId"]) == (None, True, "s")
    assert "→ tools.echo" in done.stderr


@pytest.mark.promise("CLI-3", "SCR-6", "SCR-7")
def test_calls_within_a_script_of_the_model_are_reported(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text("[scripts]\noffer = true\n")
    script = "tools_echo one; tools_echo --value 2; big.nope"
    question = f"script.run commands={json.dumps(script)}"
    refused = pegboard("ask", question)
    assert "← script.run execution_error: " in refused.stderr
    assert "  → " not in refused.stderr
    (home / "approvals.toml").write_text('[[rule]]\nallow = "script.run"\n')
    told = re.sub(r"(<0\.1|[\d.]+) m?s\b", "1 ms", pegboard("ask", question).stderr)
    assert told.splitlines()[1:-1] == [
        '  → tools.echo {"value": "one"}',
        "  ← tools.echo 1 ms",
        "one",
        '  → tools.echo {"value": 2}',
        "  ← tools.echo 1 ms",
        "2",
        "bash: line 1: big.nope: command not found",
        "← script.run 1 ms",
    ]


@pytest.mark.promise("ACT-1", "CLI-5")
def test_the_calls_of_a_question_are_linked_to_its_turn(pegboard: Command, home: Path) -> None:
    (home / "config.toml").write_text("[scripts]\noffer = true\n")
    (home / "approvals.toml").write_text('[[rule]]\nallow = "script.run"\n')
    question = f"script.run commands={json.dumps('tools_echo one')}"
    assert pegboard("ask", question, "--session", "s").returncode == 0
    inner, script = json.loads(pegboard("history", "--json").stdout)
    assert (script["tool"], script["parent"], inner["parent"]) == ("script.run", None, script["id"])
    assert script["turn"] == inner["turn"]
    [*calls, turn] = json.loads(pegboard("history", "--turns", "--json").stdout)
    assert calls == [inner, script]
    assert (turn["id"], turn["tool"], turn["session"], turn["calls"]) == (script["turn"], "turn", "s", 1)
    assert (turn["args"]["text"], turn["args"]["model"], turn["args"]["message"]) == (question, "offline", 0)
    assert question.split(maxsplit=1)[0] in pegboard("history", "--turns").stdout.splitlines()[-1]
    assert json.loads(pegboard("history", f"parent:{turn['id']}", "--json").stdout) == [script]
    refused = pegboard("history", "rerun", turn["id"])
    assert (refused.returncode, "It is a turn of a model" in refused.stderr) == (1, True)
    assert pegboard("sessions", "delete", "s").returncode == 0
    assert question not in json.loads(pegboard("history", "show", turn["id"]).stdout)["call"]["args"].values()


@pytest.mark.promise("CLI-3", "CLI-2", "ASK-8")
def test_the_answer_alone_is_on_stdout(pegboard: Command) -> None:
    done = pegboard("ask", "-", stdin="tools.echo value=hammer\n")
    assert done.returncode == 0
    assert done.stdout.startswith("`tools_echo` returned:\n\n```\nhammer\n```\n")
    assert "→" not in done.stdout


@pytest.mark.promise("CLI-2", "CLI-3")
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_question_on_stdin_in_another_encoding_is_a_usage_error(errors: str) -> None:
    # As in a locale such as en_US.UTF-8, and as in the locale C, in which Python accepts any bytes.
    env = {**os.environ, "PYTHONIOENCODING": f"utf-8:{errors}"}
    command = [sys.executable, "-m", "pegboard", "ask", "-"]
    done = subprocess.run(
        command, input="Grüße".encode("latin-1"), capture_output=True, env=env, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Standard input is not UTF-8." in done.stderr


@pytest.mark.promise("CLI-3")
@pytest.mark.parametrize(
    ("arguments", "uses_tools"),
    [
        (["--with-tools", "time.now"], True),
        (["time.now", "--with-tools"], True),
        (["--with-tools", "--json", "time.now"], True),
        (["--with-tools=true", "time.now"], True),
        (["--with-tools=false", "time.now"], False),
        (["--with-tools", "false", "time.now"], False),
        (["time.now", "--with-tools", "False"], False),
        (["--with-tools", "true", "time.now"], True),
        (["--", "time.now --with-tools"], True),
    ],
)
def test_with_tools_may_have_a_value(pegboard: Command, arguments: list[str], uses_tools: bool) -> None:
    done = pegboard("ask", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    assert bool(json.loads(done.stdout)["toolCalls"]) is uses_tools


@pytest.mark.promise("CLI-3", "CLI-2")
@pytest.mark.parametrize(
    "arguments", [[], ["  "], ["--with-tools=perhaps", "x"], ["x", "y"], ["x", "--session", "a\nb"]]
)
def test_wrong_usage_is_reported_on_stderr(pegboard: Command, arguments: list[str]) -> None:
    done = pegboard("ask", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.promise("CLI-3", "CLI-2")
def test_an_address_requires_a_model_that_uses_it(pegboard: Command, home: Path) -> None:
    for model in ([], ["--model", "offline"]):
        done = pegboard("ask", "time.now", "--base-url", "http://127.0.0.1:9/v1", *model)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Add --model PROVIDER:NAME." in " ".join(done.stderr.split())
    (home / "config.toml").write_text('[model]\nname = "openai:m"\n')
    done = pegboard("ask", "time.now", "--base-url", "http://127.0.0.1:9/v1")
    assert (done.returncode, "127.0.0.1:9" in done.stderr) == (4, True)


@pytest.mark.promise("CLI-3", "EXE-2")
def test_tools_outside_the_allow_list_are_not_offered(pegboard: Command) -> None:
    done = pegboard("ask", "time.now", "--tool-allow", "tools.*", "--json")
    assert json.loads(done.stdout)["toolCalls"] == []


@pytest.mark.promise("ASK-2", "CLI-2")
def test_a_failed_tool_does_not_fail_the_ask(pegboard: Command) -> None:
    done = pegboard("ask", "fs.read_file path=nowhere", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["toolError"]["tool"] == "fs.read_file"
    assert told["toolError"]["code"] == "execution_error"
    assert told["toolError"]["message"]


@pytest.mark.promise("ASK-7")
def test_only_calls_that_a_rule_allows_run(
    pegboard: Command, write_pack: Callable[[str, str], Path], home: Path
) -> None:
    packs = str(write_pack("pad.py", PACK))
    question = ["ask", "pad.scribble text=x", "--packs", packs, "--json"]
    done = pegboard(*question)
    told = json.loads(done.stdout)
    assert told["toolResults"][0]["error"]["detail"] == "denied"
    hint = "To allow such a call, add a rule (`pegboard rules add --help`) or pass --approve pad.scribble\n"
    assert hint in done.stderr
    assert hint not in pegboard(*question, "--approve", "pad.scribble").stderr
    (home / "approvals.toml").write_text('[[rule]]\nallow = "pad.*"\nwhere = { text = "x" }\n')
    told = json.loads(pegboard(*question).stdout)
    assert told["toolResults"][0]["data"] == "x"


@pytest.mark.promise("ASK-2", "ASK-5", "CLI-2")
def test_an_unreachable_provider_exits_with_4_and_prints_the_outcome(pegboard: Command) -> None:
    nobody = ["--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1"]
    done = pegboard("ask", "Hello?", *nobody, "--session", "s", "--json")
    assert done.returncode == 4
    told = json.loads(done.stdout)
    assert told["stoppedBy"] == "model_error"
    assert told["modelError"]["message"]
    shown = pegboard("sessions", "show", "s")
    assert "Hello?" in shown.stdout
    done = pegboard("ask", "Hello?", "--model", "nonsense")
    assert done.returncode == 4
    assert done.stderr


@pytest.mark.promise("CLI-3", "CLI-2", "ASK-4")
def test_ctrl_c_interrupts_once_and_the_session_is_consistent(
    pegboard: Command, write_pack: Callable[[str, str], Path], tmp_path: Path
) -> None:
    packs = str(write_pack("pad.py", PACK))
    command = [sys.executable, "-m", "pegboard", "ask", "pad.linger", "--packs", packs, "--json", "--session", "s"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True
    ) as asking:
        assert asking.stderr is not None
        for line in asking.stderr:
            if "running" in line:
                break
        asking.send_signal(signal.SIGINT)
        out, _ = asking.communicate(timeout=60)
    assert asking.returncode == 130
    told = json.loads(out)
    assert told["stoppedBy"] == "interrupted"
    assert told["toolResults"][0]["error"]["detail"] == "cancelled"
    kept = json.loads(pegboard("sessions", "export", "s", "--format", "json").stdout)
    assert [entry["message"]["role"] for entry in kept["entries"]] == ["user", "model", "tool"]


@pytest.mark.promise("CLI-3", "ASK-2")
def test_a_model_whose_calls_stay_invalid_is_stopped_with_the_reason(pegboard: Command) -> None:
    with FakeProvider(proposes("fs_read_file", {})).running() as fake:
        done = pegboard("ask", "Read.", "--session", "s", "--model", "llamacpp:fake", "--base-url", fake.url)
    assert done.stderr.endswith("stopped by: invalid_args. The model's calls were invalid several times in a row.\n")


@pytest.mark.promise("CLI-3")
def test_on_a_terminal_the_text_streams_without_control_sequences(tmp_path: Path, home: Path) -> None:
    text = on_terminal(["tools.echo value='\x1b[31mred'"], tmp_path)
    assert "Your message matches `tools_echo` best" in text, "what it says before a call is shown too"
    assert "\x1b" not in text
    assert "␛" in text


@pytest.mark.promise("CLI-3", "ASK-5")
def test_text_that_turns_out_to_be_a_thought_is_named_so_on_a_terminal(tmp_path: Path, home: Path) -> None:
    with FakeProvider(says("I wonder why.", "\n</think>\n\n", "So.")).running() as fake:
        text = on_terminal(["Why?", "--model", "llamacpp:fake", "--base-url", fake.url], tmp_path)
    said = "I wonder why.\nThe text above is the model's thinking. Its answer:\nSo.\n"
    assert said in text.replace("\r", "")


@pytest.mark.promise("CLI-3", "ASK-2")
@pytest.mark.parametrize(
    ("answers", "end"),
    [
        ([says("")], "The model returned no answer.\n"),
        ([says("\n\n")], "The model returned no answer.\n"),
        (
            [proposes("time_now", {}), says("")],
            "The model returned no answer.\n\nIts calls:\n- time.now: done\n",
        ),
        ([says("So.")], "So.\n"),
    ],
)
def test_an_answer_is_shown_once_on_a_terminal_even_if_it_is_empty(
    answers: list[Answer], end: str, tmp_path: Path, home: Path
) -> None:
    with FakeProvider(*answers).running() as fake:
        arguments = ["Why?", "--session", "s", "--model", "llamacpp:fake", "--base-url", fake.url]
        text = on_terminal(arguments, tmp_path).replace("\r", "")
    assert text.endswith(end)
    assert text.count(end) == 1


def on_terminal(arguments: Sequence[str], folder: Path) -> str:
    """Run `pegboard ask` with its output on a terminal until it ends; return the output."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "pegboard", "ask", *arguments]
    with subprocess.Popen(command, stdout=child, stderr=child, stdin=subprocess.DEVNULL, cwd=folder) as asking:
        os.close(child)
        seen = b""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                piece = os.read(parent, 65536)
            except OSError:  # Linux says so that the other side is closed
                break
            if not piece:
                break
            seen += piece
        assert asking.wait(60) == 0
    os.close(parent)
    return seen.decode()


@pytest.mark.promise("CLI-3")
def test_asking_the_offline_model_loads_no_model_library() -> None:
    code = (
        "import sys\nfrom pegboard.cli import program\n"
        "try:\n    program()(['ask', 'time.now', '--json'])\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "loaded = {'pydantic_ai', 'openai', 'anthropic', 'textual', 'mcp', 'httpx', 'httpx2'} & set(sys.modules)\n"
        "print(sorted(loaded), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.promise("ASK-6", "CLI-4", "CLI-5")
def test_sessions_are_listed_searched_renamed_exported_and_deleted(pegboard: Command, tmp_path: Path) -> None:
    for session, question in [("one", "tools.echo value=hammer"), ("two", "Hello")]:
        assert pegboard("ask", question, "--session", session).returncode == 0
    listed = json.loads(pegboard("sessions", "list", "--json").stdout)
    assert [(session["id"], session["messages"]) for session in listed] == [("two", 2), ("one", 4)]
    [_, found] = pegboard("sessions", "list", "--search", "HAMMER").stdout.splitlines()
    assert found.startswith("one ")
    renamed = pegboard("sessions", "rename", "one", "Tools", "--json")
    assert json.loads(renamed.stdout)["name"] == "Tools"
    exported = pegboard("sessions", "export", "one", "--output", "one.md")
    assert (exported.returncode, exported.stdout) == (0, "")
    assert (tmp_path / "one.md").read_text().startswith("# Tools\n")
    assert (tmp_path / "one.md").stat().st_mode & 0o777 == 0o600
    again = pegboard("sessions", "export", "one", "--output", "one.md")
    assert (again.returncode, again.stderr) == (2, "one.md was not written: File exists. Choose another file.\n")
    assert pegboard("sessions", "export", "one", "--output", "-").stdout == (tmp_path / "one.md").read_text()
    assert pegboard("sessions", "delete", "one").returncode == 0
    gone = pegboard("sessions", "show", "one")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert "Session 'one' doesn't exist" in gone.stderr


@pytest.mark.promise("ASK-6")
def test_all_sessions_are_listed_however_many_there_are(pegboard: Command) -> None:
    runtime = Runtime.from_environment()
    runtime.sessions.start("new")  # creates the database
    with closing(sqlite3.connect(runtime.paths.database)) as database, database:
        database.executemany(
            "INSERT INTO sessions (id, name, created, changed, model) VALUES (?, '', ?, ?, 'a:b')",
            [(f"s{number}", number, number) for number in range(1_200)],
        )
    listed = json.loads(pegboard("sessions", "list", "--json").stdout)
    assert [session["id"] for session in listed] == ["new", *(f"s{number}" for number in reversed(range(1_200)))]


@pytest.mark.promise("ASK-6")
def test_a_session_continues_in_another_process(pegboard: Command) -> None:
    for value in ("one", "two"):
        pegboard("ask", f"tools.echo value={value}", "--session", "s")
    shown = pegboard("sessions", "show", "s", "--json")
    said = [entry["message"] for entry in json.loads(shown.stdout)["entries"]]
    assert [message["role"] for message in said] == ["user", "model", "tool", "model"] * 2
    assert [message["text"] for message in said if message["role"] == "tool"] == ["one", "two"]


@pytest.mark.promise("CLI-3", "ASK-7", "ASK-8")
def test_what_the_readme_shows_works(pegboard: Command, home: Path) -> None:
    guide = (Path(__file__).parents[2] / "src" / "pegboard" / "guide" / "models.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:sh|toml)\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    [rules] = [block for block in blocks if "[[rule]]" in block]
    (home / "approvals.toml").write_text(rules, encoding="utf-8")
    [lines] = [block.splitlines() for block in blocks if "pegboard ask" in block]
    offline = [shlex.split(line, comments=True) for line in lines if "--model" not in line]
    assert len(offline) >= 5
    for words in offline:
        done = pegboard(*words[1:])
        assert done.returncode == 0, done.stderr
        assert "approvals.toml" not in done.stderr
