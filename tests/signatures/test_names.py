"""Names of fields in JSON, compared with those of pydantic, and keys that a class doesn't have."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from pegboard.discovery import read
from pegboard.models import ToolSpec

HEAD = """
from dataclasses import dataclass
from typing import Annotated, TypedDict
from pydantic import AliasChoices, AliasGenerator, AliasPath, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel, to_pascal, to_snake
import pydantic.alias_generators as generators
COMMON = ConfigDict(alias_generator=to_camel)
def shout(name): return name.upper()
class Base(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    dry_run: bool = False
"""


def tool(head: str, annotation: str = "Options") -> ToolSpec:
    """Return a tool whose only parameter `a` has this annotation."""
    source = f'{HEAD}{textwrap.dedent(head)}\ndef f(*, a: {annotation}) -> {annotation}:\n    """Do it."""\n'
    (spec,), _ = read(source, "/packs/sample.py")
    Draft202012Validator.check_schema(spec.input_schema)
    return spec


def definition(spec: ToolSpec, name: str = "Options") -> Any:
    """Return the schema of a class in the arguments of a tool."""
    defs: Any = spec.input_schema["$defs"]
    return defs[name]


GENERATED = """
    dry_run: bool = False
    _private: int = 1
    http2_port: int
    aB1c_d2: int
    named: int = Field(alias="theName")
    out_only: int = Field(1, serialization_alias="x")
"""


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "head",
    [
        "class Options(BaseModel):\n    model_config = ConfigDict(alias_generator=to_camel)" + GENERATED,
        "class Options(BaseModel):\n    model_config = {'alias_generator': generators.to_pascal}" + GENERATED,
        "class Options(BaseModel, alias_generator=to_snake):" + GENERATED,
        "class Options(Base):" + GENERATED,
        "class Options(Base, alias_generator=to_pascal):" + GENERATED,
        "class Options(BaseModel):\n    model_config = COMMON" + GENERATED,
        "class Options(BaseModel):\n    model_config = ConfigDict(**COMMON)" + GENERATED,
        "class Options(BaseModel):\n    model_config = ConfigDict(alias_generator=AliasGenerator(to_camel))"
        + GENERATED,
        "class Options(BaseModel):\n    model_config = ConfigDict(alias_generator=AliasGenerator(alias=to_camel, "
        "validation_alias=to_pascal))" + GENERATED,
        "class Options(Base):\n    model_config = ConfigDict(populate_by_name=True)" + GENERATED,
        "class Options(Base):\n    model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)"
        + GENERATED,
        "class Options(BaseModel):\n    limit: int = Field(10, validation_alias=AliasChoices('max', 'lim'))",
        "class Options(BaseModel):\n    limit: int = Field(validation_alias=AliasChoices(AliasPath('x', 0), 'lim'))",
        "class Options(BaseModel):\n    limit: int = Field(alias='a', validation_alias='b')",
        "class Options(BaseModel):\n    limit: int = Field(validation_alias='b', alias='a')",
    ],
)
def test_a_schema_has_the_names_that_pydantic_accepts(head: str) -> None:
    spec = tool(head)
    assert spec.problems == ()
    names: dict[str, Any] = {}
    exec(compile(HEAD + head, "sample", "exec", dont_inherit=True), names)
    model: type[BaseModel] = names["Options"]
    ours, theirs = definition(spec), model.model_json_schema()
    assert ours["properties"].keys() == theirs["properties"].keys()
    assert ours.get("required") == theirs.get("required")


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "config",
    [
        "",
        "alias_generator=to_camel",
        "serialize_by_alias=True",
        "alias_generator=to_camel, serialize_by_alias=True",
        "alias_generator=None, serialize_by_alias=True",
        "alias_generator=AliasGenerator(serialization_alias=to_camel), serialize_by_alias=True",
        "alias_generator=AliasGenerator(validation_alias=to_camel), serialize_by_alias=True",
        "alias_generator=AliasGenerator(to_camel, None, to_pascal), serialize_by_alias=True",
        "alias_generator=to_camel, serialize_by_alias=False",
    ],
)
def test_a_result_has_the_names_that_pydantic_writes(config: str) -> None:
    head = f"""
class Options(BaseModel):
    model_config = ConfigDict({config})
    dry_run: bool
    named: int = Field(alias="theName")
    given: int = Field(validation_alias="theGiven")
    written: int = Field(serialization_alias="theWritten")
    both: Annotated[int, Field(alias="theBoth", serialization_alias="bothWritten")]
"""
    spec = tool(head)
    assert spec.problems == ()
    assert spec.output_schema is not None
    names: dict[str, Any] = {}
    exec(compile(HEAD + head, "sample", "exec", dont_inherit=True), names)
    model: type[BaseModel] = names["Options"]
    arguments = dict.fromkeys(definition(spec)["properties"], 1)
    written = model.model_validate(arguments).model_dump(mode="json")
    returned: Any = spec.output_schema["$defs"]
    assert returned["Options"]["properties"].keys() == written.keys()
    assert Draft202012Validator(spec.output_schema).is_valid(written)


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize("config", ["alias_generator=shout, serialize_by_alias=True", "serialize_by_alias=not False"])
def test_the_names_of_results_that_are_unknown_are_not_required(config: str) -> None:
    spec = tool(f"class Options(BaseModel):\n    model_config = ConfigDict({config})\n    dry_run: bool")
    assert spec.output_schema is not None
    assert Draft202012Validator(spec.output_schema).is_valid({"DRY_RUN": True})


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("ConfigDict(alias_generator=shout)", "Field(1)"),
        ("ConfigDict(alias_generator=lambda name: name.upper())", "Field(1)"),
        ("ConfigDict(alias_generator=AliasGenerator(validation_alias=shout))", "Field(1)"),
        ("ConfigDict()", "Field(1, alias=shout('x'))"),
        ("ConfigDict()", "Field(1, validation_alias=AliasPath('x', 0))"),
        ("elsewhere()[0]", "Field(1)"),
    ],
)
def test_a_class_accepts_anything_and_is_a_problem_if_the_names_of_its_fields_are_unknown(
    config: str, field: str
) -> None:
    spec = tool(f"class Options(BaseModel):\n    model_config = {config}\n    dry_run: int = {field}")
    assert definition(spec) == {}
    assert {problem.tool for problem in spec.problems} == {"sample.f"}
    assert "the name of `Options.dry_run` in JSON can't be read" in spec.problems[0].message


@pytest.mark.promise("DSC-4")
def test_a_field_with_an_unknown_alias_keeps_its_name_if_pydantic_accepts_the_name() -> None:
    spec = tool(
        "class Options(BaseModel):\n"
        "    model_config = ConfigDict(alias_generator=shout, populate_by_name=True)\n    dry_run: int = 1"
    )
    assert definition(spec)["properties"].keys() == {"dry_run"}
    assert spec.problems == ()


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("head", "is_closed"),
    [
        ("@dataclass\nclass Options:\n    a: int = 1", True),
        ("class Options(TypedDict, total=False):\n    a: int", True),
        ("Options = TypedDict('Options', {'a': int})", True),
        ("class Options(TypedDict):\n    __pydantic_config__ = ConfigDict(extra='allow')\n    a: int", False),
        ("class Options(BaseModel):\n    a: int = 1", True),
        ("class Options(BaseModel, extra='ignore'):\n    a: int = 1", False),
        ("class Options(BaseModel, extra='forbid'):\n    a: int = 1", True),
        ("class Options(BaseModel, extra='allow'):\n    a: int = 1", False),
    ],
)
def test_arguments_have_no_keys_that_their_class_does_not_know(head: str, is_closed: bool) -> None:
    spec = tool(head)
    validator = Draft202012Validator(spec.input_schema)
    assert validator.is_valid({"a": {"a": 1}})
    assert validator.is_valid({"a": {"a": 1, "b": 2}}) is not is_closed
    assert spec.problems == ()


@pytest.mark.promise("DSC-4")
def test_results_may_have_keys_that_their_class_does_not_know() -> None:
    spec = tool("class Options(TypedDict):\n    a: int")
    assert spec.output_schema is not None
    assert Draft202012Validator(spec.output_schema).is_valid({"a": 1, "b": 2})
