"""Conversion of parsed files to models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from pegboard.models import DataModel, Hints, PackHandler, Problem, Requirement, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pegboard.discovery.parsed import ParsedFile, PlainProblem, PlainTool

_M = TypeVar("_M", bound=DataModel)

_UNSAID = Hints.model_construct()


def problem(plain: PlainProblem) -> Problem:
    """Return the model of a problem."""
    return _restored(Problem, plain)


def specs(reading: ParsedFile) -> list[ToolSpec]:
    """Return the models of a file's tools. The models own the data of `reading`; don't use it afterwards."""
    return [_spec(cast("dict[str, object]", tool), tool) for tool in reading["tools"]]


def _spec(fields: dict[str, object], tool: PlainTool) -> ToolSpec:
    fields["handler"] = _restored(PackHandler, tool["handler"])
    fields["hints"] = _hints(tool["hints"]) if tool["hints"] else _UNSAID
    fields["requirements"] = tuple(_restored(Requirement, requirement) for requirement in tool["requirements"])
    fields["problems"] = tuple(map(problem, tool["problems"]))
    return _restored(ToolSpec, fields)


def _hints(stated: Mapping[str, bool | float | str]) -> Hints:
    """Return the model of valid hints, without validation; a duration written as an integer becomes a float."""
    seconds = {name: float(stated[name]) for name in ("timeout", "cache_seconds") if name in stated}
    fields: dict[str, Any] = {**stated, **seconds}  # each was checked when the file was parsed
    return Hints.model_construct(**fields)


_FIELDS: dict[type[DataModel], set[str]] = {
    model: set(model.model_fields) for model in (PackHandler, Problem, Requirement, ToolSpec)
}


def _restored(model: type[_M], fields: Mapping[str, object]) -> _M:
    """Return a model with these valid fields, without validation.

    `model_construct` takes four times as long, which is noticeable with ten thousand tools.
    """
    made = model.__new__(model)
    made.__setstate__(
        {
            "__dict__": fields,
            "__pydantic_fields_set__": _FIELDS[model],
            "__pydantic_extra__": None,
            "__pydantic_private__": None,
        }
    )
    return made
