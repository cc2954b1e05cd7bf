"""Forms of real schemas, filled on the screen by keys and pastes."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import Row, with_every_feature
from typist import fill

from pegboard.forms import Form
from pegboard.models import JsonObject

from .form_stage import SIZE
from .hands import FormAlone, Hands, exact, tool_of

pytestmark = pytest.mark.slow

SHARDS = 6
ROWS_OF_A_FEATURE = 1
FEWEST_ROWS = 80
MOST_ACTS = 20
"""Most acts of an example, unless the schema has no shorter one."""

NOT_TYPED = {
    "H11": "a whole number typed in a field of integers is one: 3.0 is sent as 3",
}
"""Reason why an example can't be typed exactly, by id."""


def examples_of(row: Row) -> list[JsonObject]:
    """Return all examples of a hard case, or the longest acceptable example of a real schema."""
    if row.id.startswith("H"):
        return row.valid
    by_acts = sorted(row.valid, key=lambda example: len(fill(Form(row.schema), example)))
    short = [example for example in by_acts if len(fill(Form(row.schema), example)) <= MOST_ACTS]
    return short[-1:] or by_acts[:1]


@pytest.mark.promise("TUI-3", "TUI-7")
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_a_form_filled_by_keys_sends_exactly_the_arguments(
    corpus: list[Row], data_folder: Path, shard: int
) -> None:
    rows = with_every_feature(corpus, data_folder / "schemas" / "open.jsonl", ROWS_OF_A_FEATURE)
    assert len(rows) >= FEWEST_ROWS
    app, wrong = FormAlone(), {}
    async with app.run_test(size=SIZE) as pilot:
        hands = Hands(pilot)
        for row in rows[shard::SHARDS]:
            for number, example in enumerate(examples_of(row)):
                sent = await hands.fill(tool_of(row.schema, f"pack.t{row.id}_{number}"), example)
                if exact(sent) != exact(example):
                    wrong[row.id] = f"{exact(sent)} is sent, not {exact(example)}"
    assert wrong.keys() == NOT_TYPED.keys() & {row.id for row in rows[shard::SHARDS]}, wrong
