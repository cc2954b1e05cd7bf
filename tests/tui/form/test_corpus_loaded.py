"""Forms of all real schemas on the screen: what is loaded is what is shown and sent, as fields and as JSON."""

from __future__ import annotations

import json

import pytest
from rows import Row

from pegboard.errors import FormFaults
from pegboard.forms import TextField
from pegboard.models import JsonObject
from pegboard.tui.form.editors import JsonBox, TextBox, TextLine
from pegboard.tui.form.frame import lines_of

from .form_stage import SIZE, FormApp
from .hands import FormAlone, exact, tool_of, wait_for

SHARDS = 16


def sent(app: FormApp) -> str:
    """Gives what would be sent, or what is wrong."""
    try:
        return exact(app.form.arguments())
    except FormFaults as error:
        return str(error)


def stands(app: FormApp) -> bool:
    """Whether all of the form that is in sight is on the screen."""
    body = app.pane.body
    return body is None or (bool(body.views) and all(view.is_mounted for view in body.views))


def shown_otherwise(app: FormApp) -> list[str]:
    """Names the fields in sight whose editors show something else than is in them."""
    if app.pane.body is None:
        return []
    editors = [view.main for view in app.body.views if isinstance(view.main, TextLine | TextBox)]
    shown = {one: one.value if isinstance(one, TextLine) else one.text for one in editors}
    return [editor.field.path for editor, text in shown.items() if text != editor.field.text]


def higher_or_lower_than_counted(app: FormApp) -> list[str]:
    """Names the fields in sight that take more or fewer lines than the form counts on before it mounts them."""
    body = app.pane.body
    if body is None:
        return []
    others = [view for view in body.views if view is not body.focused]
    return [view.item.field.path for view in others if view.lines(view.room.width) != lines_of(view.item, view.room)]


def has_secrets(app: FormApp) -> bool:
    """Whether dots stand for something in the JSON text."""
    return any(isinstance(one, TextField) and one.secret and one.state == "value" for one in app.form.walk())


def shows_as_json(app: FormApp, example: JsonObject) -> bool:
    """Whether the JSON text on the screen is that of an example, as far as it isn't hidden."""
    texts = [box.text for box in app.query(JsonBox)]
    return any(has_secrets(app) or exact(json.loads(text)) == exact(example) for text in texts)


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_what_is_loaded_is_what_the_fields_and_the_json_show_and_what_is_sent(
    corpus: list[Row], shard: int
) -> None:
    app, wrong = FormAlone(), {}
    async with app.run_test(size=SIZE):
        for row in corpus[shard::SHARDS]:
            app.pane.show(tool_of(row.schema, f"pack.t{row.id}"))
            if not row.valid:
                continue
            example = max(row.valid, key=lambda one: len(exact(one)))
            doing = f"{row.id}: {exact(example)}".__str__
            app.pane.load(example)
            await wait_for(app, lambda: stands(app), doing)
            found = [sent(app), *shown_otherwise(app), *higher_or_lower_than_counted(app)]
            app.pane.action_text()
            await wait_for(app, lambda example=example: shows_as_json(app, example), doing)  # type: ignore[misc]
            app.pane.action_text()
            await wait_for(app, lambda: stands(app), doing)
            found += [sent(app), *shown_otherwise(app)]
            if found != [exact(example)] * 2:
                wrong[row.id] = f"{found} for {exact(example)}"
    assert wrong == {}
