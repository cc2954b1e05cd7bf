"""Presets: any name and any value is saved and read back."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pegboard import storage
from pegboard.errors import PresetError
from pegboard.models import JsonObject
from pegboard.presets import Presets
from pegboard.presets.files import rename
from pegboard.presets.toml_text import TomlTextError, read_toml, write_toml
from pegboard.runtime import Runtime

TOOL = "fs.list_dir"

TEXTS = st.text(st.characters(exclude_categories=[]), max_size=8)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from(['"""', 'a\n"', "'", '\\"""\n""', "\r\n", "\x00", "\ud800", "2024-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("$json"), inner, max_size=3),
    max_leaves=12,
)


@pytest.fixture
def presets(tmp_path: Path) -> Presets:
    return Presets(tmp_path / "presets")


@pytest.mark.promise("STO-3")
@given(st.dictionaries(TEXTS | st.just("$json"), VALUES, max_size=4))
def test_any_argument_object_is_read_back_exactly_and_in_order(arguments: JsonObject) -> None:
    text = write_toml(arguments)
    text.encode()
    assert repr(read_toml(text)) == repr(arguments)


def test_a_deep_object_and_a_long_number_are_read_back() -> None:
    deep: JsonValue = 10**400
    for _ in range(150):
        deep = [{"a": deep}]
    assert read_toml(write_toml({"deep": deep})) == {"deep": deep}


def test_values_that_are_not_json_are_rejected(presets: Presets) -> None:
    for number in (float("nan"), float("-inf"), 10**5000):
        with pytest.raises(PresetError):
            presets.save(TOOL, "numbers", {"x": [number]})
    assert presets.of(TOOL) == ()


def test_a_file_is_toml_that_a_person_would_write(presets: Presets, tmp_path: Path) -> None:
    arguments: JsonObject = {
        "path": "src",
        "filter": {"kind": "file", "size": {"max": 10}, "tags": ["a", "b"]},
        "depth": 2,
        "text": 'one "line"\ntwo',
        "ops": [{"kind": "add", "path": "x"}, {"kind": "del", "path": None}],
        "none": {},
    }
    presets.save(TOOL, "deep", arguments)
    text = (tmp_path / "presets" / TOOL / "deep.toml").read_text(encoding="utf-8")
    assert text == (
        'path = "src"\n'
        'filter.kind = "file"\n'
        "filter.size.max = 10\n"
        'filter.tags = ["a", "b"]\n'
        "depth = 2\n"
        'text = """\none "line"\ntwo"""\n'
        "ops = [\n"
        '    { kind = "add", path = "x" },\n'
        '    { kind = "del", path = { "$json" = "null" } },\n'
        "]\n"
        "none = {}\n"
    )
    assert tomllib.loads(text)["filter"]["size"] == {"max": 10}


def test_a_handwritten_file_is_a_preset(presets: Presets, tmp_path: Path) -> None:
    folder = tmp_path / "presets" / TOOL
    folder.mkdir(parents=True)
    (folder / "by hand.toml").write_bytes(b'\xef\xbb\xbf# mine\r\npath = "."\r\n\r\n[filter]\r\nkind = "file"\r\n')
    (folder / "notes.txt").write_text("not a preset")
    [found] = presets.of(TOOL)
    assert (found.tool, found.name) == (TOOL, "by hand")
    assert found.arguments == {"path": ".", "filter": {"kind": "file"}}


NAMES = [
    "plain",
    "a/b",
    "../../etc/passwd",
    ".hidden",
    'say "hi"',
    "it's",
    "ünïcode 名 🙂",
    "50%2F",
    "new\nline\x1b[31m",
    "\ud800",
    "con:*?<>|",
    "x.toml",
    "$HOME",
]


@pytest.mark.promise("STO-3")
@pytest.mark.parametrize("odd", NAMES)
def test_odd_names_of_presets_and_tools_stay_within_the_folder(presets: Presets, tmp_path: Path, odd: str) -> None:
    presets.save(odd, odd, {"x": 1})
    presets.save(odd, "other", {})
    assert presets.tools() == (odd,)
    assert {preset.name: preset.arguments for preset in presets.of(odd)} == {odd: {"x": 1}, "other": {}}
    assert {file.parent.parent for file in tmp_path.rglob("*") if file.is_file()} == {tmp_path / "presets"}
    presets.rename(odd, odd, "renamed")
    presets.rename(odd, "renamed", odd)
    presets.delete(odd, odd)
    assert [preset.name for preset in presets.of(odd)] == ["other"]


def test_many_names_are_as_many_presets(presets: Presets) -> None:
    for number, name in enumerate(reversed(NAMES)):
        presets.save(TOOL, name, {"number": number})
    assert sorted(preset.name for preset in presets.of(TOOL)) == sorted(NAMES)
    assert [preset.name for preset in presets.of(TOOL)] == sorted(NAMES, key=str.casefold)


@pytest.mark.parametrize(
    ("name", "words"), [("", "Enter a name"), (" \n", "Enter a name"), ("x" * 300, "too long"), ("DEEP", "`deep`")]
)
def test_an_invalid_name_is_rejected_with_a_reason(presets: Presets, tmp_path: Path, name: str, words: str) -> None:
    presets.save(TOOL, "deep", {})
    presets.save(TOOL, "other", {})
    with pytest.raises(PresetError, match=words):
        presets.save(TOOL, name, {})
    with pytest.raises(PresetError, match=words):
        presets.rename(TOOL, "other", name)
    assert [preset.name for preset in presets.of(TOOL)] == ["deep", "other"]
    assert len(list(tmp_path.rglob("*.*"))) == 3, "nothing but the two files in the tool's folder"


def test_saving_replaces_unless_forbidden_and_renaming_never_does(presets: Presets) -> None:
    presets.save(TOOL, "a", {"x": 1}, replace=False)
    with pytest.raises(PresetError, match="already"):
        presets.save(TOOL, "a ", {"x": 0}, replace=False)
    assert [preset.arguments for preset in presets.of(TOOL)] == [{"x": 1}]
    presets.save(TOOL, " a ", {"x": 2})
    presets.save(TOOL, "b", {"x": 3})
    with pytest.raises(PresetError, match="already"):
        presets.rename(TOOL, "a", "b")
    presets.rename(TOOL, "a", "A")
    assert [(preset.name, preset.arguments) for preset in presets.of(TOOL)] == [("A", {"x": 2}), ("b", {"x": 3})]


def test_renaming_never_replaces_a_preset_whose_name_differs_only_in_case(presets: Presets, tmp_path: Path) -> None:
    presets.save(TOOL, "x", {"value": 1})
    other = tmp_path / "presets" / TOOL / "X.toml"
    other.write_text("value = 2\n")
    if len(presets.of(TOOL)) == 1:
        pytest.skip("the file system ignores case")
    with pytest.raises(PresetError, match="A preset named `X` already exists"):
        presets.rename(TOOL, "x", "X")
    with pytest.raises(FileExistsError):
        rename(other.with_name("x.toml"), other)
    assert [(one.name, one.arguments) for one in presets.of(TOOL)] == [("X", {"value": 2}), ("x", {"value": 1})]


def test_the_problem_of_a_damaged_preset_ends_when_its_file_is_deleted(presets: Presets, tmp_path: Path) -> None:
    presets.save(TOOL, "a", {"x": 1})
    broken = tmp_path / "presets" / TOOL / "broken.toml"
    broken.write_text("x = ")
    assert [one.name for one in presets.of(TOOL)] == ["a"]
    assert len(presets.problems) == 1
    broken.unlink()
    assert [one.name for one in presets.of(TOOL)] == ["a"]
    assert not presets.problems


def test_a_preset_may_be_renamed_to_its_own_name(presets: Presets) -> None:
    presets.save(TOOL, "Überblick", {"n": 1})
    for name in ("Überblick", "  U\u0308berblick "):
        presets.rename(TOOL, name, name)
    assert [(preset.name, preset.arguments) for preset in presets.of(TOOL)] == [("Überblick", {"n": 1})]
    presets.delete(TOOL, " U\u0308berblick")
    assert (presets.of(TOOL), presets.tools()) == ((), ())


@pytest.mark.promise("STO-3")
def test_the_problem_of_a_file_or_folder_disappears_when_it_can_be_read(presets: Presets, tmp_path: Path) -> None:
    presets.save(TOOL, "a", {"n": 1})
    (folder,) = (tmp_path / "presets").iterdir()
    (folder / ".draft.toml").write_text("n = 2\n")
    (folder / "b.toml").write_text("n = = 2\n")
    assert ([preset.name for preset in presets.of(TOOL)], len(presets.problems)) == (["a"], 1)
    (folder / "b.toml").write_text("n = 2\n")
    assert ([preset.name for preset in presets.of(TOOL)], presets.problems) == (["a", "b"], ())
    folder.rename(tmp_path / "moved")
    folder.write_text("in the way")
    assert (presets.of(TOOL), len(presets.problems)) == ((), 1)
    folder.unlink()
    (tmp_path / "moved").rename(folder)
    assert ([preset.name for preset in presets.of(TOOL)], presets.problems) == (["a", "b"], ())


def test_the_case_of_a_name_can_change_where_both_names_are_one_file(
    presets: Presets, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise FileExistsError  # as on a file system that ignores case

    presets.save(TOOL, "a", {"n": 1})
    monkeypatch.setattr(os, "link", link)
    presets.rename(TOOL, "a", "A")
    assert [preset.name for preset in presets.of(TOOL)] == ["A"]


@pytest.mark.parametrize("act", [lambda p: p.delete(TOOL, "nope"), lambda p: p.rename(TOOL, "nope", "x")])
def test_an_unknown_preset_is_reported(presets: Presets, act: Callable[[Presets], None]) -> None:
    with pytest.raises(PresetError, match="no preset `nope`"):
        act(presets)


@pytest.mark.promise("STO-3")
@pytest.mark.parametrize(
    ("damage", "words", "line"),
    [
        (b"x = 1\ny = = 2\n", "is not TOML", 2),
        (b"\xff\xfe", "is not UTF-8", None),
        (b"at = 2024-01-01\n", "write it as text", None),
        (b"x = inf\n", "JSON can't represent", None),
        (b'x = { "$json" = "{" }\n', "is not JSON", None),
        (b'"$json" = "[1]"\n', "not an object", None),
        (b"x = " + b"[" * 5000, "nested too deeply", None),
        pytest.param(b"x = " + b"1" * 5000, "has a number with too many digits", None, id="digits"),
    ],
)
def test_a_damaged_file_is_a_problem_and_is_set_aside_when_replaced(
    presets: Presets, tmp_path: Path, damage: bytes, words: str, line: int | None
) -> None:
    presets.save(TOOL, "good", {})
    presets.save(TOOL, "bad", {})
    file = tmp_path / "presets" / TOOL / "bad.toml"
    file.write_bytes(damage)
    assert [preset.name for preset in presets.of(TOOL)] == ["good"]
    [problem] = presets.problems
    assert words in problem.message
    assert (problem.file, problem.line, problem.tool) == (str(file), line, TOOL)
    assert file.read_bytes() == damage

    presets.save(TOOL, "bad", {"x": 1})
    assert [preset.arguments for preset in presets.of(TOOL)] == [{"x": 1}, {}]
    [aside] = file.parent.glob("*damaged*")
    assert aside.read_bytes() == damage
    assert [problem.file for problem in presets.problems] == [str(aside)]
    file.write_bytes(b"x = ")
    presets.save(TOOL, "bad", {"x": 2})
    assert len(list(file.parent.glob("*damaged*"))) == 2


def test_fixed_and_deleted_files_stop_being_problems(presets: Presets, tmp_path: Path) -> None:
    folder = tmp_path / "presets" / TOOL
    presets.save(TOOL, "a", {})
    presets.save(TOOL, "b", {})
    for name in ("a", "b"):
        (folder / f"{name}.toml").write_text("x = ")
    assert presets.of(TOOL) == ()
    assert {problem.file for problem in presets.problems} == {str(folder / "a.toml"), str(folder / "b.toml")}
    (folder / "a.toml").write_text("x = 1")
    presets.delete(TOOL, "b")
    assert [preset.arguments for preset in presets.of(TOOL)] == [{"x": 1}]
    assert not presets.problems


@pytest.mark.promise("STO-3")
def test_a_folder_that_cannot_be_used_is_a_problem_or_a_preset_error(tmp_path: Path) -> None:
    (tmp_path / "presets").write_text("a file where the folder should be")
    presets = Presets(tmp_path / "presets")
    assert presets.of(TOOL) == ()
    assert len(presets.problems) >= 1
    with pytest.raises(PresetError, match="can't be written"):
        presets.save(TOOL, "x", {})


def test_a_link_that_cannot_be_followed_hides_no_tool_with_presets(presets: Presets, tmp_path: Path) -> None:
    presets.save(TOOL, "x", {})
    (tmp_path / "presets" / "fs.closed").symlink_to("x" * 300)  # no one may follow it, not even root
    assert presets.tools() == (TOOL,)


WRITER = """
import sys
from pathlib import Path
from pegboard.presets import Presets
presets = Presets(Path(sys.argv[1]))
for round in range(60):
    presets.save("fs.list_dir", "shared", {"writer": sys.argv[2], "text": sys.argv[2] * 20_000})
    presets.save("fs.list_dir", f"own-{sys.argv[2]}-{round % 5}", {"round": round})
    found = {preset.name: preset.arguments for preset in presets.of("fs.list_dir")}
    shared = found["shared"]
    assert shared["text"] == shared["writer"] * 20_000
assert presets.problems == (), presets.problems
"""


@pytest.mark.slow
@pytest.mark.promise("STO-3")
def test_processes_that_write_concurrently_leave_complete_presets(presets: Presets, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "presets")]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "abc"]
    for writer in writers:
        _, told = writer.communicate(timeout=60)
        assert (writer.returncode, told) == (0, "")
    assert len(presets.of(TOOL)) == 16
    assert [file.name for file in (tmp_path / "presets" / TOOL).iterdir() if file.suffix != ".toml"] == []


def test_only_their_owner_reads_presets_because_they_may_hold_secrets(presets: Presets, tmp_path: Path) -> None:
    presets.save(TOOL, "x", {"password": "p"})
    assert (tmp_path / "presets" / TOOL / "x.toml").stat().st_mode & 0o077 == 0


def test_presets_of_a_tool_that_was_renamed_are_those_of_its_alias(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    pack = 'from pegboard.sdk import aliases\n\n{}def {}(*, {}: str) -> str:\n    """Greet."""\n    return {}\n'
    folder = write_pack("greet.py", pack.format("", "hello", "name", "name"))
    before = open_runtime(folder)
    for name in ("you", "me"):
        before.presets.save("greet.hello", name, {"name": name})
    write_pack("greet.py", pack.format('@aliases("greet.hello", whom="name")\n', "greet", "whom", "whom"))
    after = open_runtime(folder)
    after.presets.save("greet.greet", "all", {"whom": "all"})
    after.presets.save("greet.greet", "you", {"whom": "you"})
    with pytest.raises(PresetError, match="already exists"):
        after.presets.save("greet.greet", "me", {}, replace=False)
    found = after.presets.list("greet.greet")
    assert [(one.tool, one.name, one.arguments) for one in found] == [
        ("greet.greet", "all", {"whom": "all"}),
        ("greet.greet", "me", {"name": "me"}),
        ("greet.greet", "you", {"whom": "you"}),
    ]
    after.presets.rename("greet.greet", "me", "us")
    after.presets.delete("greet.greet", "you")
    assert [one.name for one in after.presets.list("greet.hello")] == ["all", "us"]


def test_the_runtime_keeps_them_in_the_data_folder_under_the_tools_full_name(
    home: Path, write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    pack = """
        from pegboard.sdk import aliases

        @aliases("sayHello")
        def hello(*, name: str) -> str:
            \"\"\"Greets somebody.\"\"\"
            return name
        """
    runtime = open_runtime(write_pack("greet.py", pack))
    saved = runtime.presets.save("sayHello", "you", {"name": "you"})
    runtime.presets.save("gone.tool", "old", {})
    assert saved.tool == "greet.hello"
    assert json.loads(json.dumps([p.name for p in runtime.presets.list("greet.hello")])) == ["you"]
    assert [preset.tool for preset in runtime.presets.list()] == ["gone.tool", "greet.hello"]
    runtime.presets.rename("sayHello", "you", "me")
    file = home / "data" / "presets" / "greet.hello" / "me.toml"
    assert file.read_text() == 'name = "you"\n'
    file.write_text("name = ")
    assert runtime.presets.list("greet.hello") == ()
    assert [problem.file for problem in runtime.problems()] == [str(file)]
    runtime.presets.delete("greet.hello", "me")
    assert runtime.problems() == ()
    assert [preset.tool for preset in runtime.presets.list()] == ["gone.tool"]


@pytest.mark.parametrize("text", ["x", "x = 1\nx = 2", "[a]\n[a]", '"\\uD800" = 1'])
def test_text_that_is_not_toml_is_rejected(text: str) -> None:
    with pytest.raises(TomlTextError, match="is not TOML"):
        read_toml(text)


@pytest.mark.promise("STO-3")
def test_a_preset_whose_file_name_is_decomposed_unicode_is_replaced_and_deleted_by_its_name(
    presets: Presets, tmp_path: Path
) -> None:
    presets.save(TOOL, "other", {})
    file = tmp_path / "presets" / TOOL / "e\u0301te\u0301.toml"
    file.write_text("x = 1\n")
    assert [one.name for one in presets.of(TOOL)] == ["other", "été"]
    assert presets.has(TOOL, "été")
    presets.rename(TOOL, "été", "été")
    presets.save(TOOL, "été", {"x": 2})
    assert [(one.name, one.arguments) for one in presets.of(TOOL)] == [("other", {}), ("été", {"x": 2})]
    presets.delete(TOOL, "e\u0301te\u0301")
    assert [one.name for one in presets.of(TOOL)] == ["other"]


@pytest.mark.promise("STO-3")
def test_presets_are_renamed_and_set_aside_where_the_file_system_has_no_hard_links(
    presets: Presets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fail)
    folder = tmp_path / "presets" / TOOL
    presets.save(TOOL, "old", {"x": 1})
    presets.save(TOOL, "other", {"x": 2})
    with pytest.raises(PresetError, match="already exists"):
        presets.rename(TOOL, "old", "other")
    presets.rename(TOOL, "old", "new")
    (folder / "other.toml").write_text("x = ")
    presets.save(TOOL, "other", {"x": 3})
    assert [(one.name, one.arguments) for one in presets.of(TOOL)] == [("new", {"x": 1}), ("other", {"x": 3})]
    assert (folder / "other.damaged-1").read_text() == "x = "
    with pytest.raises(FileNotFoundError):
        storage.rename_to_new(folder / "missing", folder / "free")
    assert {one.name for one in folder.iterdir()} == {"new.toml", "other.toml", "other.damaged-1"}
