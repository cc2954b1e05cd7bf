"""A script that a model wants to run: what it will call is seen before it is approved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chat_stage import ChatStage, chat_app, entered, on_chat
from models import calls, says
from test_chat import HOSTILE, is_clean
from textual.pilot import Pilot

from pegboard.tui.chat import call_block, status
from pegboard.tui.chat.call_block import CallBlock

OFFERED = "[scripts]\noffer = true"
SCRIPT = """\
# what is there, and away with it
for path in build dist; do
    work.look --where "$path" --often 2
done
work.look --where here; work.look --where here
work.change notes.txt --times many
work.remove 'old archive.tar' --force || echo "still there" >&2
eval "$(work.look)"
"""


async def analyzed(stage: ChatStage, said: str) -> CallBlock:
    """Wait until the card of a script shows a text of its analysis."""
    card = await stage.asked()
    await stage.until(lambda: any(said in row for row in stage.rows), "the script is analyzed")
    await stage.drawn()
    return card


@pytest.mark.promise("ASK-7", "SCR-5", "SCR-7")
async def test_a_script_awaiting_approval_shows_its_calls_and_the_limits_of_the_analysis(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("script_run", {"commands": SCRIPT})), says("Done"), config=OFFERED) as stage:
        await stage.say("Tidy up")
        await analyzed(stage, "It calls:")
        rows = [row.removeprefix("▌").strip() for row in stage.rows]
        start = rows.index("It calls:")
        assert rows[start : start + 9] == [
            "It calls:",
            "• work.look --where … --often 2",
            "• work.look --where here  ×2",
            "• work.change notes.txt --times many",
            '--times: must be an integer, not "many"',
            "• work.remove 'old archive.tar' --force",
            "• work.look",
            "! eval runs a script that is only known when this one runs.",
            "! It may call other tools too.",
        ]
        after = [row.removeprefix("│ ") for row in rows[start + 9 :]]
        assert after[: SCRIPT.count("\n")] == SCRIPT.splitlines(), "all of it"
        await stage.select()
        await stage.press("r")
        await stage.idle()
        assert "rejected" in stage.tool_messages[0].text


@pytest.mark.promise("SCR-5", "SCR-7")
async def test_calls_of_an_approved_script_still_require_approval(tmp_path: Path) -> None:
    turns = (calls(("script_run", {"commands": "work.remove a.txt; work.look"})), says("Done"))
    async with on_chat(tmp_path, *turns, config=OFFERED) as stage:
        await stage.say("Tidy up")
        await analyzed(stage, "• work.remove a.txt")
        await stage.select()
        await stage.press("a")
        await stage.until(lambda: "It calls work.remove:" in stage.text, "the call within asks")
        assert "• work.remove" not in stage.text
        await stage.select()
        await stage.press("a")
        await stage.idle()
        assert "removed a.txt\\nseen here" in stage.tool_messages[0].text


@pytest.mark.promise("SCR-5")
async def test_a_script_is_shown_as_running_after_a_call_in_it_was_approved(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"work.remove a.txt; work.wait --gate '{gate}'"
    turns = (calls(("script_run", {"commands": script})), says("Done"))
    async with on_chat(tmp_path, *turns, config=OFFERED) as stage:
        await stage.say("Tidy up")
        for said in ("• work.remove a.txt", "It calls work.remove:"):
            await stage.until(lambda: said in stage.text, "it asks")  # noqa: B023 - awaited here
            await stage.select()
            await stage.press("a")
        await stage.until_seen("├ ▶ work.wait")
        assert "▶ script.run" in stage.text
        gate.touch()
        await stage.idle()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo nothing", "No tool calls found."),
        ("if then", "The script has an error: "),
        ("{ work.look; } > >(cat)", "The script has an error: unsupported syntax at line 1, column 16: "),
        ("time " * 20_000, "The script has an error: it is nested too deeply"),
    ],
)
async def test_a_script_without_calls_or_with_a_syntax_error_is_reported(
    tmp_path: Path, script: str, said: str
) -> None:
    async with on_chat(tmp_path, calls(("script_run", {"commands": script})), says("Ah"), config=OFFERED) as stage:
        await stage.say("Go")
        await analyzed(stage, said)
        await stage.select()
        await stage.press("r")
        await stage.idle()


@pytest.mark.promise("TUI-4", "SCR-5")
async def test_a_hostile_script_is_shown_as_text(tmp_path: Path) -> None:
    hostile = HOSTILE.replace("\ud800", "").replace("'", "")
    script = f"work.look '{hostile}\n  a once   s session'\n# {hostile}"
    async with on_chat(tmp_path, calls(("script_run", {"commands": script})), says("Ah"), config=OFFERED) as stage:
        await stage.say("Go")
        await analyzed(stage, "It calls:")
        assert is_clean("\n".join(stage.rows))
        assert sum("A always…" in row for row in stage.rows) == 1
        await stage.select()
        await stage.press("r")
        await stage.idle()


async def test_the_card_of_a_script_shows_its_last_calls(tmp_path: Path) -> None:
    script = "for i in {1..50}; do work.look --where $i; done >/dev/null"
    async with on_chat(tmp_path, calls(("script_run", {"commands": script})), says("Ah"), config=OFFERED) as stage:
        await stage.say("Go")
        await analyzed(stage, "It calls:")
        await stage.select()
        await stage.press("a")
        await stage.idle()
        await stage.press("shift+tab", "up", "space")
        await stage.until_seen("… 30 earlier calls within")
        shown = [row for row in stage.rows if "├ ✓ work.look" in row]
        assert ["".join(filter(str.isdigit, row))[:2] for row in shown] == [*map(str, range(31, 51))]


async def test_the_card_of_a_script_shows_an_exit_code_other_than_0(tmp_path: Path) -> None:
    async with on_chat(tmp_path, calls(("script_run", {"commands": "exit 3"})), says("Ah"), config=OFFERED) as stage:
        await stage.say("Go")
        await analyzed(stage, "No tool calls found.")
        await stage.select()
        await stage.press("a")
        await stage.idle()
        await stage.until_seen("✗ script.run")
        await stage.until_seen("exit 3 · ")


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
def test_a_script_that_asks(
    snap_compare: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(call_block, "monotonic", lambda: 0.0)
    monkeypatch.setattr(status, "duration", lambda _: "1.2 s")
    turn = calls(("script_run", {"commands": SCRIPT}), text="I do it in one go.")
    app, runtime, model = chat_app(tmp_path, turn, config=OFFERED, allow="work.*,script.run")

    async def run(pilot: Pilot[None]) -> None:
        stage = ChatStage(app, pilot, runtime, model)
        await entered(stage)
        await stage.say("Tidy up")
        await analyzed(stage, "It calls:")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=run)


@pytest.mark.promise("SCR-7", "ASK-4")
async def test_the_output_of_a_script_is_shown_as_printed_once_it_has_ended(tmp_path: Path) -> None:
    script = "printf 'one\\ntwo \"2\"\\n'; echo careful >&2; exit 3"
    config = f'{OFFERED}\n[ui]\nunfold = "failed"'
    async with on_chat(tmp_path, calls(("script_run", {"commands": script})), says("Ah"), config=config) as stage:
        await stage.say("Go")
        await analyzed(stage, "No tool calls found.")
        await stage.select()
        await stage.press("a")
        await stage.idle()
        await stage.until(lambda: any("✗ script.run" in row for row in stage.rows), "the script has failed")
        rows = [row.removeprefix("▌").strip() for row in stage.rows]
        at = rows.index("────────") + 1
        assert rows[at : at + 3] == ["one", 'two "2"', "! careful"]
        assert not any("stdout" in row or row.startswith("│ one") for row in rows), "neither JSON nor the log"
