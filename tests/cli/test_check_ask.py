"""`pegboard check ask`: models are asked the questions of checks, and make the expected calls or don't."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import commands
import pytest
from provider import Answer, FakeProvider, call, delta, fails, proposes, says
from watched import eventually

Command = Callable[..., commands.Done]

PACK = '''
from pegboard.sdk import hints

@hints(read_only=True)
def find(*, words: str, limit: int = 10) -> list[str]:
    """Find books."""
    return [words]

def lend(*, book: str, to: str) -> str:
    """Lend a book."""
    with open(to, "w") as file:
        file.write(book)
    return book
'''


LINGER = '''
@hints(read_only=True, timeout=60)
def linger(*, mark: str) -> None:
    """Linger."""
    open(mark, "w").close()
    while True:
        pass
'''


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> str:
    return str(write_pack("books.py", PACK))


@pytest.fixture
def write_check(home: Path) -> Callable[[str, str], None]:
    """Return a function that writes one of the user's own checks."""

    def write(name: str, text: str) -> None:
        folder = home / "data" / "checks"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")

    return write


def _asked(done: commands.Done) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = json.loads(done.stdout)["checks"]
    return reports


def _sessions(pegboard: Command) -> list[str]:
    return [session["id"] for session in json.loads(pegboard("sessions", "list", "--json").stdout)]


@pytest.mark.promise("BAT-3")
def test_a_question_about_a_tool_of_a_broken_pack_or_server_is_not_asked_and_the_report_says_why(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None]
) -> None:
    pegboard("mcp", "add", "store", "--", sys.executable, "-c", "raise SystemExit('no disk')")
    (Path(packs) / "books.py").write_text("def broken(:")
    for pack in ("store", "books"):
        write_check(pack, f'tool = "{pack}.find"\nquestions = ["Which books are there?"]\n')
    done = pegboard("check", "ask", "--json", "--packs", packs)
    problems = {report["check"]: report["problem"] for report in _asked(done)}
    assert done.returncode == 1
    assert "no disk" in problems["store"]["message"]
    assert (problems["books"]["file"], problems["books"]["line"]) == (str(Path(packs) / "books.py"), 1)


@pytest.mark.promise("BAT-3", "ASK-7")
def test_a_question_passes_if_the_model_makes_the_call_of_the_check_which_is_not_run(
    pegboard: Command, packs: str, home: Path, tmp_path: Path
) -> None:
    (home / "approvals.toml").write_text('[[rule]]\nallow = "books.lend"\n')
    lent = {"book": "Emma", "to": str(tmp_path / "lent")}
    question = "Lend Emma to me."
    made = pegboard("check", "new", "books.lend", "--args", json.dumps(lent), "--question", question, "--packs", packs)
    assert made.returncode == 0, made.stderr
    with FakeProvider(proposes("books_find", {"words": "Emma"}), proposes("books_lend", lent)).running() as fake:
        reach = ["--model", "openai:fake", "--base-url", fake.url]
        done = pegboard("check", "ask", *reach, "--packs", packs)
    assert (done.returncode, done.stderr) == (0, "1 passed\n")
    assert done.stdout.startswith(f"passed  books.lend: openai:fake: {question}  ")
    assert "1 of 1 times" in done.stdout
    calls = {call["tool"]: call for call in json.loads(pegboard("history", "--json").stdout)}
    assert (calls["books.find"]["ok"], "books.lend" in calls) == (True, False)
    assert (Path(lent["to"]).exists(), _sessions(pegboard)) == (False, [])


@pytest.mark.promise("BAT-3")
def test_a_question_may_use_another_name_of_a_parameter(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None]
) -> None:
    write_check("one", 'tool = "fs.list_dir"\narguments.maxDepth = 2\nquestions = ["List it."]\n')
    with FakeProvider(proposes("fs_list_dir", {"max_depth": 2})).running() as fake:
        done = pegboard("check", "ask", "--model", "openai:fake", "--base-url", fake.url, "--packs", packs)
    assert (done.returncode, done.stderr) == (0, "1 passed\n"), done.stdout


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("answers", "expectation", "message"),
    [
        (
            [proposes("books_find", {"words": "novels", "limit": 5}), says("None.")],
            "arguments",
            'Expected `words` to be "Austen", got "novels".',
        ),
        (
            [proposes("time_now", {}), says("It is late.")],
            "call",
            'The model didn\'t call books.find. It called time.now. Its answer: "It is late."',
        ),
        ([says("No.")], "call", 'The model didn\'t call books.find. It called no tool. Its answer: "No."'),
        (
            [proposes("books_find", {"author": "Austen"}), says("Hm.")],
            "arguments",
            "The model called books.find with invalid arguments: ",
        ),
    ],
    ids=["other arguments", "another tool", "no tool", "invalid arguments"],
)
def test_a_question_fails_with_what_the_model_did_instead_and_its_session_is_kept(
    pegboard: Command,
    packs: str,
    write_check: Callable[[str, str], None],
    answers: list[Any],
    expectation: str,
    message: str,
) -> None:
    write_check("austen", 'tool = "books.find"\narguments.words = "Austen"\nquestions = ["What did Austen write?"]\n')
    with FakeProvider(*answers).running() as fake:
        reach = ["--model", "openai:fake", "--base-url", fake.url]
        done = pegboard("check", "ask", "austen", *reach, "--json", "--packs", packs)
    assert done.returncode == 1
    [report] = _asked(done)
    assert (report["status"], report["asked"], report["made"]) == ("failed", 1, 0)
    assert report["differences"][0]["expectation"] == expectation
    assert report["differences"][0]["message"].startswith(message)
    assert _sessions(pegboard) == [report["session"]]


@pytest.mark.promise("BAT-3", "ASK-5")
@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([call(id="call_1", name="time_now", arguments="{zone"), delta("tool_calls")], "time.now was not called. "),
        (
            [call(id="call_1", name="time_now", arguments="{}"), delta("length")],
            "time.now was not called because the model's turn ended early",
        ),
    ],
    ids=["not JSON", "cut off"],
)
def test_a_call_whose_arguments_cannot_be_read_is_not_the_expected_one(
    pegboard: Command, write_check: Callable[[str, str], None], tmp_path: Path, chunks: list[Any], reason: str
) -> None:
    write_check("now", 'tool = "time.now"\nquestions = ["What time is it?"]\n')
    with FakeProvider(Answer(chunks), says("I don't know.")).running() as fake:
        reach = ["--model", "openai:fake", "--base-url", fake.url]
        done = pegboard("check", "ask", "now", *reach, "--junit", str(tmp_path / "report.xml"), "--json")
    assert done.returncode == 1, done.stderr
    [report] = _asked(done)
    assert (report["status"], report["made"]) == ("failed", 0)
    assert report["differences"][0]["message"].startswith(reason)


@pytest.mark.promise("BAT-3")
def test_each_model_is_asked_several_times_and_a_percentage_suffices(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None], tmp_path: Path
) -> None:
    question = '[{ text = "Books by Austen?", arguments = { limit = 10 } }]'
    write_check("austen", f'tool = "books.find"\narguments.words = "Austen"\nquestions = {question}\n')
    right = proposes("books_find", {"words": "Jane Austen"})  # the default of `limit` is what the question expects
    with FakeProvider(right, says("No."), right, right, right, says("No."), says("No.")).running() as fake:
        reach = ["--model", "openai:good", "--model", "openai:bad", "--base-url", fake.url]
        often = ["--repeat", "4", "--at-least", "75"]
        report = tmp_path / "report.xml"
        done = pegboard("check", "ask", *reach, *often, "--junit", str(report), "--json", "--packs", packs)
    assert done.returncode == 1
    good, bad = _asked(done)
    assert (good["model"], good["status"], good["made"], good["asked"]) == ("openai:good", "passed", 3, 4)
    assert (bad["model"], bad["status"], bad["made"]) == ("openai:bad", "failed", 1)
    cases = ET.parse(report).getroot().iter("testcase")
    assert [(case.get("name"), [child.tag for child in case]) for case in cases] == [
        ("austen: openai:good: Books by Austen?", []),
        ("austen: openai:bad: Books by Austen?", ["failure"]),
    ]


@pytest.mark.promise("BAT-3", "ASK-5")
def test_a_failure_of_the_provider_is_the_problem_of_a_question(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None]
) -> None:
    write_check("any", 'tool = "books.find"\nquestions = ["Any books?"]\n')
    with FakeProvider(fails(401, "Incorrect API key")).running() as fake:
        reach = ["--model", "openai:fake", "--base-url", fake.url]
        done = pegboard("check", "ask", *reach, "--repeat", "3", "--json", "--packs", packs)
    assert done.returncode == 1
    [report] = _asked(done)
    assert (report["status"], report["asked"]) == ("error", 1)
    assert report["problem"]["message"]
    assert (report["session"], _sessions(pegboard)) == (None, [])


@pytest.mark.promise("BAT-3", "SEC-3")
def test_a_key_is_sent_to_the_named_server_and_a_missing_one_is_reported_with_that_option(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_check("any", 'tool = "books.find"\nquestions = ["Any books?"]\n')
    with FakeProvider(fails(401, "No key"), fails(401, "Wrong key")).running() as fake:
        reach = ["--model", "acme:fake", "--base-url", fake.url, "--json", "--packs", packs]
        [without] = _asked(pegboard("check", "ask", *reach))
        monkeypatch.setenv("ACME_API_KEY", "sk-of-acme")
        pegboard("check", "ask", *reach)
        keys = [asked.headers.get("authorization", "") for asked in fake.asked]
    assert "sk-of-acme" not in keys[0]
    assert keys[1] == "Bearer sk-of-acme"
    assert "sent only to the configured base_url, or to `--base-url` of the command line." in without["problem"]["fix"]


@pytest.mark.promise("BAT-3", "ASK-7")
def test_another_call_that_may_change_something_is_rejected(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None], tmp_path: Path
) -> None:
    write_check("any", 'tool = "books.find"\nquestions = ["Any books?"]\n')
    file = tmp_path / "lent"
    with FakeProvider(proposes("books_lend", {"book": "Emma", "to": str(file)}), says("No.")).running() as fake:
        done = pegboard("check", "ask", "--model", "openai:fake", "--base-url", fake.url, "--packs", packs)
    assert (done.returncode, file.exists()) == (1, False)
    [call] = json.loads(pegboard("history", "--json").stdout)
    assert (call["tool"], call["error"]["detail"]) == ("books.lend", "denied")


@pytest.mark.promise("BAT-3", "SEC-1")
def test_questions_of_a_folder_are_asked_only_if_it_is_trusted(pegboard: Command, packs: str, tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "any.toml").write_text('tool = "books.find"\nquestions = ["books.find words=x"]\n')
    done = pegboard("check", "ask", "--packs", packs)
    assert (done.returncode, "were not asked because this folder is not trusted" in done.stdout) == (1, True)
    assert json.loads(pegboard("history", "--json").stdout) == []


@pytest.mark.promise("BAT-3")
def test_a_call_that_a_model_made_is_kept_with_its_question(pegboard: Command, packs: str) -> None:
    question = "books.find words=Emma"
    assert pegboard("ask", question, "--session", "s", "--packs", packs).returncode == 0
    kept = pegboard("check", "keep", "-", "--packs", packs)
    assert tomllib.loads(Path(kept.stdout.strip()).read_text())["questions"] == [question]
    assert pegboard("check", "run", "--packs", packs).returncode == 0
    done = pegboard("check", "ask", "--packs", packs)
    assert (done.returncode, done.stderr) == (0, "1 passed\n")
    assert pegboard("ask", question, "--session", "s", "--packs", packs).returncode == 0
    later = pegboard("check", "keep", "-", "--name", "later", "--packs", packs)
    assert "questions" not in tomllib.loads(Path(later.stdout.strip()).read_text()), "it may refer to earlier messages"


@pytest.mark.promise("BAT-3")
def test_a_question_of_which_only_the_start_is_recorded_is_not_kept(pegboard: Command, packs: str) -> None:
    assert pegboard("ask", "books.find words=Emma " + "please " * 600, "--packs", packs).returncode == 0
    kept = pegboard("check", "keep", "-", "--packs", packs)
    assert "questions" not in tomllib.loads(Path(kept.stdout.strip()).read_text())


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('questions = [" "]', "is invalid: `questions.0.text` must not be empty."),
        ('questions = "Which books?"', "is invalid: `questions` must be a list."),
        ("questions = [3]", "is invalid: `questions.0` must be text, or a table with `text`."),
        ('questions = [{ ask = "x" }]', "is invalid: `questions.0.text` is required."),
    ],
)
def test_an_invalid_question_is_a_problem_of_its_file(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None], line: str, reason: str
) -> None:
    write_check("bad", f'tool = "books.find"\n{line}\n')
    done = pegboard("check", "ask", "--packs", packs)
    assert (done.returncode, reason in done.stderr) == (1, True)


@pytest.mark.promise("BAT-3", "CLI-2")
def test_without_questions_a_message_says_how_to_write_one(pegboard: Command, packs: str) -> None:
    pegboard("check", "new", "books.find", "--arg", "words=x", "--packs", packs)
    done = pegboard("check", "ask", "--packs", packs)
    assert (done.returncode, "`pegboard guide checks`" in done.stderr) == (0, True)
    empty = pegboard("check", "new", "books.find", "--arg", "words=x", "--question", " ", "--packs", packs)
    assert (empty.returncode, "A question is empty." in empty.stderr) == (2, True)
    assert pegboard("check", "ask", "books.find", "--packs", packs).returncode == 2


@pytest.mark.promise("BAT-3", "CLI-2")
def test_ctrl_c_ends_the_questions_and_leaves_no_session(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None], tmp_path: Path
) -> None:
    mark = tmp_path / "lingers"
    write_check("any", f'tool = "books.find"\nquestions = ["books.linger mark={mark}", "books.find words=x"]\n')
    (Path(packs) / "books.py").write_text(PACK + LINGER)
    command = [sys.executable, "-m", "pegboard", "check", "ask", "--packs", packs, "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True
    ) as asking:
        eventually(mark.exists)
        asking.send_signal(signal.SIGINT)
        out, _ = asking.communicate(timeout=60)
    assert (asking.returncode, json.loads(out)["checks"]) == (130, [])
    assert _sessions(pegboard) == []


@pytest.mark.promise("BAT-3", "CLI-2")
def test_ctrl_c_leaves_no_session_of_an_earlier_time_which_no_report_names(
    pegboard: Command, packs: str, write_check: Callable[[str, str], None], tmp_path: Path
) -> None:
    write_check("any", 'tool = "books.find"\nquestions = ["Any books?"]\n')
    command = [sys.executable, "-m", "pegboard", "check", "ask", "--repeat", "3", "--packs", packs]
    with FakeProvider(says("No."), Answer([delta(content="Hm")], end="hang")).running() as fake:
        reach = ["--model", "openai:fake", "--base-url", fake.url]
        with subprocess.Popen(
            [*command, *reach], stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True
        ) as asking:
            eventually(lambda: len(fake.asked) == 2)
            asking.send_signal(signal.SIGINT)
            asking.communicate(timeout=60)
    assert (asking.returncode, _sessions(pegboard)) == (130, [])
