"""A check, its expectations and its report."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pegboard.data.json_text import write
from pegboard.models import DataModel, ErrorCode, JsonObject, Problem
from pegboard.models.ask import AskedCall

CheckStatus = Literal["passed", "failed", "error", "skipped"]
"""A check has an `error` if it could not run, such as in a folder that isn't trusted. It is `skipped` if the rules
don't allow its tool to run without a person.
"""


class ExpectedError(DataModel):
    """The error that a call must end with; None accepts any value."""

    code: ErrorCode | None = None
    detail: str | None = None


class StoredSnapshot(DataModel):
    """The data of an earlier result, which new data must equal."""

    ignore: tuple[str, ...] = ()
    """JSON Pointers of parts that may differ; the step `*` means every key and index."""
    data: JsonValue = None
    """The data; unset until `pegboard check run --update` stores it."""

    @field_validator("ignore")
    @classmethod
    def _are_pointers(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return the paths if all are JSON Pointers; another text would ignore the whole data, as the empty one."""
        wrong = next((path for path in paths if path and not path.startswith("/")), None)
        if wrong is not None:
            raise PydanticCustomError(
                "pointer", "must be JSON Pointers, which begin with a slash: {pointer}", {"pointer": write(f"/{wrong}")}
            )
        return paths

    @property
    def is_stored(self) -> bool:
        """Whether there is data to compare with; null is data."""
        return "data" in self.model_fields_set


class Expectations(DataModel):
    """Conditions on a result. Expectations that are unset are not verified."""

    outcome: Literal["ok", "failed"] = "ok"
    error: ExpectedError | None = None
    result_schema: JsonObject | Literal["output"] | None = Field(default=None, alias="schema")
    """A JSON Schema of the data; `output` is the output schema of the tool."""
    exact: JsonValue = None
    """Data that the result must equal, if it is set: null is data."""
    subset: JsonValue = None
    """Data that the result must contain: every key of an object, and every item of a list at its index."""
    jq: tuple[str, ...] = ()
    """jq filters that must return `true` for the data."""
    snapshot: StoredSnapshot | None = None
    max_seconds: float | None = Field(default=None, gt=0)
    """Longest duration of the call, in seconds."""

    @model_validator(mode="before")
    @classmethod
    def _fails(cls, value: object) -> object:
        """Return the expectations with the outcome that an expected error implies."""
        if not isinstance(value, dict) or value.get("error") is None:
            return value
        if value.get("outcome", "failed") != "failed":
            raise PydanticCustomError("outcome", 'needs `outcome = "failed"`, because it expects an error')
        return {**value, "outcome": "failed"}

    @field_validator("result_schema", mode="before")
    @classmethod
    def _is_schema(cls, value: object) -> object:
        """Return the value if it may be a schema; pydantic's own message about the alternatives is unreadable."""
        if value is None or value == "output" or isinstance(value, dict):
            return value
        raise PydanticCustomError("schema", "must be `output` or a JSON Schema as a table")

    def has(self, name: Literal["exact", "subset"]) -> bool:
        """Return whether an expectation that may be null is set."""
        return name in self.model_fields_set


class ModelQuestion(DataModel):
    """A message to which a model is expected to make the call of a check. A text is a question without `arguments`."""

    text: str
    arguments: JsonObject | None = None
    """Arguments that the call of the model must contain; None means those of the check."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str | dict | cls):
            raise PydanticCustomError("question", "must be text, or a table with `text`")
        return {"text": value} if isinstance(value, str) else value

    @field_validator("text")
    @classmethod
    def _is_not_empty(cls, text: str) -> str:
        if not text.strip():
            raise PydanticCustomError("question", "must not be empty")
        return text


class Check(DataModel):
    """A call with its expectations."""

    name: str
    tool: str
    description: str = ""
    arguments: JsonObject = Field(default_factory=dict)
    questions: tuple[ModelQuestion, ...] = ()
    expect: Expectations = Expectations.model_construct()
    file: str = ""
    """Absolute path of its file; empty before it is saved."""

    @field_validator("questions", mode="before")
    @classmethod
    def _is_list(cls, value: object) -> object:
        """Return the value if it is a list; pydantic's own message would ask for a tuple."""
        if isinstance(value, list | tuple):
            return value
        raise PydanticCustomError("questions", "must be a list")


class FailedExpectation(DataModel):
    """One failed expectation, or one part of it."""

    expectation: str
    """Name of the expectation, such as `outcome` or `subset`; `call` and `arguments` are those of a question."""
    path: str
    """JSON Pointer to the part of the data; empty for the whole."""
    message: str
    """One sentence; it may contain text of the tool."""
    expected: JsonValue = None
    got: JsonValue = None


class CheckReport(DataModel):
    """The result of running one check."""

    check: str
    tool: str
    file: str
    status: CheckStatus
    differences: tuple[FailedExpectation, ...] = ()
    problem: Problem | None = None
    """Why the check could not run."""
    call: str | None = None
    """Id of the recorded call."""
    duration_ms: float = 0.0
    updated: bool = False
    """Whether `--update` stored new data as the snapshot."""

    @property
    def title(self) -> str:
        """Its name in a report on all checks."""
        return self.check

    @property
    def advice(self) -> str:
        """A sentence about the parts that differ from the snapshot; empty if none differ."""
        varying: list[JsonValue] = [one.path for one in self.differences if one.expectation == "snapshot" and one.path]
        return f"If these parts always differ, set `expect.snapshot.ignore`: {write(varying)}" if varying else ""


class QuestionReport(CheckReport):
    """Number of times that a model made the call of a check when it was asked one question.

    The duration is that of all times together.
    """

    question: str
    model: str
    asked: int = 0
    """Number of times that the question was asked."""
    made: int = 0
    """Number of times that the model made the call."""
    tokens: int = 0
    """Tokens read and written, as far as the provider reports them."""
    calls: tuple[AskedCall, ...] = ()
    """The calls of the last time that the model didn't make the expected one."""
    session: str | None = None
    """The session of that time."""

    @property
    def title(self) -> str:
        """Its name in a report on all checks."""
        return f"{self.check}: {self.model}: {self.question}"
