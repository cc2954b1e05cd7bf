"""Checks made from recorded calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from pegboard.checks.file import LARGEST_DATA, CheckError
from pegboard.checks.model import Check, Expectations, ExpectedError, ModelQuestion, StoredSnapshot
from pegboard.data.mask import masked_secret
from pegboard.models import CallRecord, JsonObject, ToolResult, ToolSpec
from pegboard.models.turn import LONGEST_TEXT, ModelTurn
from pegboard.results.export import whole
from pegboard.runtime import Runtime

Kept: TypeAlias = Literal["snapshot", "exact", "schema", "outcome"]
"""What a kept check expects of the data."""

_SHORTEST_ID: Final = 4


def new_check(spec: ToolSpec, name: str, arguments: JsonObject, questions: Sequence[str] = ()) -> Check:
    """Return a check that expects success, the output schema, and a snapshot that isn't stored yet."""
    schema = {} if spec.output_schema is None else {"result_schema": "output"}
    expect = Expectations.model_validate({"outcome": "ok", **schema, "snapshot": {"ignore": ()}})
    asked = tuple(ModelQuestion(text=text) for text in questions)
    return Check(name=name, tool=spec.name, arguments=arguments, questions=asked, expect=expect)


def recorded(runtime: Runtime, call_id: str) -> tuple[CallRecord, ToolResult]:
    """Return a recorded call and its result; read the history.

    Args:
        runtime: The runtime with the history.
        call_id: The id or its first characters; `-` is the last call.

    Raises:
        CheckError: No call or more than one has this id, or its result isn't stored.
        StoreError: The history can't be read.
    """
    if call_id != "-" and len(call_id) < _SHORTEST_ID:
        raise CheckError(f"The id `{call_id}` is too short. Enter at least {_SHORTEST_ID} characters.")
    last = runtime.history.records(limit=1) if call_id == "-" else ()
    record = next(iter(last), None) if call_id == "-" else runtime.activity.get(call_id)
    if call_id == "-" and record is None:
        raise CheckError("No call is recorded yet. `pegboard tools invoke` runs a tool.")
    if record is None or record.is_turn:
        raise CheckError(
            f"No recorded call has the id `{call_id}`. If other ids start with it too, enter more of it."
            " `pegboard history --json` lists the ids."
        )
    if record.is_batch:
        raise CheckError(f"The call `{call_id}` is a batch, which no check can repeat. Keep a call of one of its rows.")
    result = runtime.history.result(record.id)
    if result is None:
        raise CheckError(f"The result of the call `{call_id}` is not stored.")
    return record, result


def kept_check(runtime: Runtime, record: CallRecord, result: ToolResult, name: str, expect: Kept) -> Check:
    """Return a check that expects the result of a recorded call; may read the file of a large result.

    A call that a model made also keeps the question to which the model made it.

    Args:
        runtime: The runtime with the tool.
        record: The call.
        result: Its result.
        name: Name of the check.
        expect: What to expect of the data. Outcome and error are always expected.

    Raises:
        CheckError: The arguments contain a redacted secret, or the data can't be stored in a check.
    """
    if masked_secret(record.args) is not None:
        raise CheckError(
            f"The call of {record.tool} was not kept because its arguments contain a redacted secret."
            " Write the check with `pegboard check new`."
        )
    wanted: JsonObject = {"outcome": "ok" if result.ok else "failed"}
    if result.error is not None:
        wanted["error"] = ExpectedError(code=result.error.code, detail=result.error.detail).model_dump(
            mode="json", exclude_none=True
        )
    elif expect != "outcome":
        spec = runtime.tools.get(record.tool)
        if spec is not None and spec.output_schema is not None:
            wanted["result_schema"] = "output"
        elif expect == "schema":
            raise CheckError(f"{record.tool} has no output schema. Choose another expectation.")
    has_data = result.error is None or result.data is not None
    if expect == "snapshot" and has_data:
        wanted["snapshot"] = StoredSnapshot(ignore=(), data=_data(result)).model_dump(mode="json")
    elif expect == "exact" and has_data:
        wanted["exact"] = _data(result)
    expectations = Expectations.model_validate(wanted)
    questions = _questions(runtime, record)
    return Check(name=name, tool=record.tool, arguments=record.args, questions=questions, expect=expectations)


def _questions(runtime: Runtime, record: CallRecord) -> tuple[ModelQuestion, ...]:
    """Return the message of the user to which a model made a call.

    Nothing if it isn't the first one of its session, which the others refer to, isn't stored whole, or has a secret.
    """
    turn = runtime.activity.get(record.turn) if record.turn is not None and record.parent is None else None
    if turn is None or turn.source != "ask":  # the turns of other agents have the text of their model
        return ()
    said = ModelTurn.of(turn)
    text = said.text
    if said.message or not text.strip() or len(text) >= LONGEST_TEXT or masked_secret(text) is not None:
        return ()
    return (ModelQuestion(text=text),)


def _data(result: ToolResult) -> JsonValue:
    if result.meta.size > LARGEST_DATA:
        raise CheckError(
            f"The result has {result.meta.size:,} bytes; a check contains at most {LARGEST_DATA:,}."
            " Expect its schema or its outcome instead."
        )
    try:
        return whole(result)
    except (OSError, ValueError) as error:
        raise CheckError(f"The whole result can't be read: {error}.") from error
