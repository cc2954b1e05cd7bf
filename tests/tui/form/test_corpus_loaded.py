"""Forms of real schemas on the screen: loaded arguments are shown and sent unchanged, as fields and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rows import Row, with_every_feature

from pegboard.errors import FormFaults
from pegboard.forms import TextField
from pegboard.models import JsonObject
from pegboard.tui.form.editors import JsonBox, TextBox, TextLine
from pegboard.tui.form.frame import lines_of

from .form_stage import SIZE, FormApp
from .hands import FormAlone, exact, tool_of, wait_for

pytestmark = pytest.mark.slow

SHARDS = 4
ROWS_OF_A_FEATURE = 4
FEWEST_ROWS = 120


def sent(app: FormApp) -> str:
    """Return the arguments to send, or the validation errors."""
    try:
        return exact(app.form.arguments())
    except FormFaults as error:
        return str(error)


def is_mounted(app: FormApp) -> bool:
    """Return whether the viewport of the form is mounted."""
    body = app.pane.body
    return body is None or (bool(body.views) and all(view.is_mounted for view in body.views))


def fields_shown_wrong(app: FormApp) -> list[str]:
    """Return the paths of the mounted fields whose editors don't show their values."""
    if app.pane.body is None:
        return []
    editors = [view.main for view in app.body.views if isinstance(view.main, TextLine | TextBox)]
    shown = {one: one.value if isinstance(one, TextLine) else one.text for one in editors}
    return [editor.field.path for editor, text in shown.items() if text != editor.field.text]


def heights_computed_wrong(app: FormApp) -> list[str]:
    """Return the paths of the mounted fields whose height differs from the computed one."""
    body = app.pane.body
    if body is None:
        return []
    others = [view for view in body.views if view is not body.focused]
    return [view.item.field.path for view in others if view.lines(view.space.width) != lines_of(view.item, view.space)]


def has_secrets(app: FormApp) -> bool:
    """Return whether the JSON text contains masked secrets."""
    return any(isinstance(one, TextField) and one.secret and one.state == "value" for one in app.form.walk())


def shows_as_json(app: FormApp, example: JsonObject) -> bool:
    """Return whether the JSON text on the screen equals an example, ignoring secrets."""
    texts = [box.text for box in app.query(JsonBox)]
    return any(has_secrets(app) or exact(json.loads(text)) == exact(example) for text in texts)


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_loaded_arguments_are_shown_and_sent_unchanged(corpus: list[Row], data_folder: Path, shard: int) -> None:
    rows = with_every_feature(corpus, data_folder / "schemas" / "open.jsonl", ROWS_OF_A_FEATURE)
    assert len(rows) >= FEWEST_ROWS
    app, wrong = FormAlone(), {}
    async with app.run_test(size=SIZE) as pilot:
        for row in rows[shard::SHARDS]:
            app.pane.show(tool_of(row.schema, f"pack.t{row.id}"))
            if not row.valid:
                continue
            example = max(row.valid, key=lambda one: len(exact(one)))
            doing = f"{row.id}: {exact(example)}".__str__
            app.pane.load(example)
            await wait_for(app, lambda: is_mounted(app), doing)
            await pilot.pause()  # until every widget has its styles
            assert app.text
            found = [sent(app), *fields_shown_wrong(app), *heights_computed_wrong(app)]
            app.pane.action_text()
            await wait_for(app, lambda example=example: shows_as_json(app, example), doing)  # type: ignore[misc]
            app.pane.action_text()
            await wait_for(app, lambda: is_mounted(app), doing)
            found += [sent(app), *fields_shown_wrong(app)]
            if found != [exact(example)] * 2:
                wrong[row.id] = f"{found} for {exact(example)}"
    assert wrong == {}
