"""Settings come from the user's file, the working directory's, and the environment."""

from __future__ import annotations

import os
import string
import sys
import tomllib
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.config import Settings, load
from pegboard.models import Problem


class User(Protocol):
    file: Path
    cwd: Path

    def write(self, text: str | bytes) -> None: ...
    def overlay(self, text: str) -> None: ...
    def trust(self) -> None: ...
    def load(self, environ: dict[str, str] | None = None) -> tuple[Settings, tuple[Problem, ...]]: ...


CLOSED = "No tool runs until this is fixed. No model is used until this is fixed."


def said(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]


@pytest.mark.promise("CFG-1")
def test_a_missing_file_counts_as_empty(user: User) -> None:
    loaded, problems = user.load()
    assert loaded == Settings()
    assert problems == ()


@pytest.mark.promise("CFG-1", "SEC-2")
def test_an_unknown_setting_that_may_be_the_place_of_the_model_lets_no_model_be_used(user: User) -> None:
    for text, is_blocked in (
        ('[model]\nendpoint = "https://example.org/v1"', True),
        ("[model]\nbase_ur = 5", True),
        ('[modell]\nbase_url = "x"', True),
        ('host = "http://127.0.0.1:1"', True),
        ('[model]\nendpoint = "x"', False),
        ('[packs.ckan]\nendpoint = "https://example.org"', False),
        ('[mcp]\nendpoint = "https://example.org"', False),
    ):
        user.write(text)
        found = [problem.fix.endswith("No model is used until this is fixed.") for problem in user.load()[1]]
        assert any(found) is is_blocked, text


@pytest.mark.promise("CFG-1", "SEC-2")
def test_a_setting_like_roots_confines_a_pack_to_no_folder_unless_it_has_roots(user: User) -> None:
    for own, roots, count in (("", [], 1), ('roots = ["data"]', ["data"], 0)):
        user.write(f'[packs.fs]\nroot = ["x"]\n{own}\n')
        loaded, problems = user.load()
        assert loaded.packs.model_dump()["fs"]["roots"] == roots
        assert sum("Did you mean `packs.fs.roots`?" in problem.fix for problem in problems) == count


@pytest.mark.promise("CFG-1")
def test_every_section_is_read(user: User) -> None:
    user.write("""
        [packs]
        folders = ["mine", "~/packs", "/abs/../packs"]
        [packs.ckan]
        base_url = "https://example.org"
        [tools]
        allow = ["fs.*"]
        timeout = 20
        memory_limit = "1 GiB"
        environment = ["CI"]
        [tools.timeouts]
        "fs.*" = 2.5
        time.now = 1
        [model]
        name = "openai:gpt"
        base_url = "http://localhost"
        [mcp.servers.files]
        command = "server"
        args = ["--root", "."]
        [keys]
        "tools.run" = "ctrl+x"
        tools.cancel = ["escape", "f2"]
        [ui]
        theme = "pegboard-light"
        vim_keys = true
    """)
    loaded, problems = user.load()
    assert problems == ()
    assert loaded.packs.folders == (user.file.parent / "mine", Path.home() / "packs", Path("/packs"))
    assert loaded.packs.of("ckan") == {"base_url": "https://example.org"}
    assert loaded.packs.of("other") == {}
    assert loaded.tools.allow == ("fs.*",)
    assert loaded.tools.timeout == 20
    assert loaded.tools.timeouts == {"fs.*": 2.5, "time.now": 1}
    assert loaded.tools.memory_limit == 2**30
    assert loaded.tools.environment == ("CI",)
    assert loaded.model.name == "openai:gpt"
    assert loaded.mcp.servers["files"].args == ("--root", ".")
    assert loaded.keys == {"tools.run": "ctrl+x", "tools.cancel": "escape,f2"}
    assert (loaded.ui.theme, loaded.ui.vim_keys) == ("pegboard-light", True)


def test_timeouts_keep_the_order_of_the_file_as_the_first_match_applies(user: User) -> None:
    user.write("""
        [tools.timeouts]
        fs.read_file = 1
        "fs.*" = 2
        "*" = 3
    """)
    assert [*user.load()[0].tools.timeouts] == ["fs.read_file", "fs.*", "*"]


@pytest.mark.promise("CFG-1")
def test_the_working_directorys_file_overrides_the_users_and_the_environment_overrides_both(user: User) -> None:
    user.write('[model]\nname = "user"\nbase_url = "user"\n[tools]\ntimeout = 1\n[packs.x]\na = 1\nb = 1')
    user.overlay('[model]\nbase_url = "overlay"\n[packs]\nfolders = ["here"]\n[packs.x]\nb = 2')
    user.trust()
    loaded, problems = user.load({"PEGBOARD_TOOLS__TIMEOUT": "3", "PEGBOARD_PACKS__X__C": "3"})
    assert problems == ()
    assert (loaded.model.name, loaded.model.base_url) == ("user", "overlay")
    assert loaded.tools.timeout == 3
    assert loaded.packs.folders == (user.cwd / "here",)
    assert loaded.packs.of("x") == {"a": 1, "b": 2, "c": 3}


@pytest.mark.promise("SEC-3")
def test_a_pack_that_a_folder_configures_gets_no_secret_of_the_users_configuration(user: User) -> None:
    user.write(
        '[packs.hub]\napi_token = "of-the-user"\nproxy = "http://me:of-the-user@host"\nlogin = { password = "x" }\n'
        'region = "eu"\nroots = ["~"]\nsecrets = ["HUB_KEY"]\n[packs.other]\napi_token = "of-the-user"\n'
    )
    variable = {"PEGBOARD_PACKS__HUB__KEY": "of-the-user", "PEGBOARD_PACKS__HUB__UNIT": "2"}
    assert user.load(variable)[0].packs.of("hub")["api_token"] == "of-the-user"
    user.overlay('[packs.hub]\nbase_url = "https://evil"\n')
    user.trust()
    settings, problems = user.load(variable)
    assert settings.packs.of("hub") == {
        "region": "eu", "roots": ["~"], "secrets": ["HUB_KEY"], "login": {}, "base_url": "https://evil", "unit": 2,
    }  # fmt: skip
    assert settings.packs.of("other") == {"api_token": "of-the-user"}
    assert {problem.message.split("`")[1] for problem in problems} == {
        "packs.hub.api_token", "packs.hub.proxy", "packs.hub.login.password", "packs.hub.key",
    }  # fmt: skip
    assert "of-the-user" not in str(problems)


@pytest.mark.promise("CFG-1", "SEC-3")
def test_a_folder_does_not_limit_the_history_of_the_user(user: User) -> None:
    user.write("[history]\nsize_limit = 2_000_000\n")
    user.overlay("[history]\nsize_limit = 1_000_000\n")
    user.trust()
    settings, [problem] = user.load()
    assert settings.history.size_limit == 2_000_000
    assert problem.message == "`history.size_limit` is ignored in the pegboard.toml of a folder."


@pytest.mark.promise("CFG-1")
def test_variables_set_values_of_packs_and_servers_whose_names_have_capital_letters_or_hyphens(user: User) -> None:
    user.write(
        '[packs.MyPack]\nRegion = "us"\nunit = 1\n[packs.other]\nunit = 1\n'
        '[mcp.servers.My-Files]\ncommand = "files"\nenv = { Level = "1" }\n'
    )
    loaded, problems = user.load(
        {
            "PEGBOARD_PACKS__MYPACK__REGION": "eu",
            "PEGBOARD_PACKS__Mypack__Unit": "2",
            "PEGBOARD_PACKS__ANY_PACK__UNIT": "3",
            "PEGBOARD_PACKS__any-other__UNIT": "4",
            "PEGBOARD_MCP__SERVERS__MY_FILES__ENABLED": "false",
            "PEGBOARD_MCP__SERVERS__MY_FILES__ENV__LEVEL": "2",
            "PEGBOARD_MCP__SERVERS__MY_FILES__ENV__API_URL": "3",
        }
    )
    assert problems == ()
    assert loaded.packs.of("MyPack") == {"Region": "eu", "unit": 2}
    assert loaded.origin("packs.MyPack.Region") == "PEGBOARD_PACKS__MYPACK__REGION"
    assert loaded.packs.of("Any-Pack") == loaded.packs.of("any_pack") == {"unit": 3}
    assert loaded.packs.of("Any-Other") == {"unit": 4}
    assert loaded.packs.of("Other") == loaded.packs.of("mypack") == {}, "their config is in a file, under their name"
    assert [*loaded.mcp.servers] == ["My-Files"]
    server = loaded.mcp.servers["My-Files"]
    assert (server.enabled, server.env) == (False, {"Level": "2", "API_URL": "3"})


@pytest.mark.promise("CFG-1", "SEC-3")
def test_an_empty_packs_folder_is_a_problem_and_not_the_working_directory(user: User) -> None:
    user.write('[packs]\nfolders = ["", "tools"]')
    loaded, [problem] = user.load()
    assert loaded.packs.folders == (user.file.parent / "tools",)
    assert "should be the path of a folder, but is empty" in problem.message
    assert problem.line == 2


@pytest.mark.promise("CFG-1", "SEC-4")
def test_a_mistake_in_a_variable_blocks_the_server_whose_name_in_the_file_is_similar(user: User) -> None:
    user.write('[mcp.servers.My-Files]\ncommand = "files"\n')
    loaded, [problem] = user.load({"PEGBOARD_MCP__SERVERS__MY_FILES__TIMEOUT": "long"})
    assert "`mcp.servers.My-Files.timeout` should be" in problem.message
    assert [*loaded.loaded.blocked_servers] == ["My-Files"]


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("MODEL__BASE_URL", "http://localhost:1234/v1", "model.base_url", "http://localhost:1234/v1"),
        ("MODEL__NAME", "42", "model.name", "42"),
        ("MODEL__NAME", '"quoted"', "model.name", "quoted"),
        ("TOOLS__TIMEOUT", "2.5", "tools.timeout", 2.5),
        ("TOOLS__TIMEOUTS", '{"fs.*" = 3}', "tools.timeouts", {"fs.*": 3}),
        ("TOOLS__ALLOW", "fs.*, time.now", "tools.allow", ("fs.*", "time.now")),
        ("TOOLS__ALLOW", '["fs.*"]', "tools.allow", ("fs.*",)),
        ("TOOLS__ALLOW", "", "tools.allow", ()),
        ("TOOLS__LOG_LIMIT", "5 MB", "tools.log_limit", 5_000_000),
        ("UI__VIM_KEYS", "true", "ui.vim_keys", True),
        ("UI__THEME", "a\nb = 1", "ui.theme", "a\nb = 1"),
        ("KEYS__TOOLS__RUN", "f2", "keys", {"tools.run": "f2"}),
    ],
)
def test_a_variable_is_a_toml_value_if_valid_and_text_otherwise(
    user: User, variable: str, text: str, key: str, value: object
) -> None:
    loaded, problems = user.load({f"PEGBOARD_{variable}": text})
    assert problems == ()
    found: object = loaded
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("ASK__STEPS", "1", "`ask.steps` should be greater than or equal to 2."),
        ("ASK__SECONDS", "-4", "`ask.seconds` should be greater than 0."),
        ("TOOLS__MEMORY_LIMIT", "1", "`tools.memory_limit` should be greater than or equal to 67108864."),
        ("ASK__STEPS", "many", "`ask.steps` should be a whole number, but is text."),
        ("ASK__STEPS", "true", "`ask.steps` should be a whole number, but is text."),
        ("ASK__STEPS", "", "`ask.steps` should be a whole number, but is text."),
    ],
)
def test_a_number_in_a_variable_that_is_out_of_range_is_reported_as_such(
    user: User, variable: str, text: str, message: str
) -> None:
    loaded, problems = user.load({f"PEGBOARD_{variable}": text})
    assert [problem.message for problem in problems] == [f"PEGBOARD_{variable}: {message}"]
    assert (loaded.ask, loaded.tools) == (Settings().ask, Settings().tools)


@pytest.mark.promise("CFG-1")
def test_an_unknown_key_names_file_line_key_and_the_nearest_known_one(user: User) -> None:
    user.write('[tools]\ntimeout = 4\ntimout = 8\n\n[ui]\nthem = "x"\ncolour = 1\n[pakcs]\n')
    loaded, problems = user.load()
    assert loaded.tools.timeout == 4
    assert said(problems) == [
        f"{user.file}:3: Unknown setting `tools.timout`. Did you mean `tools.timeout`?",
        f"{user.file}:6: Unknown setting `ui.them`. Did you mean `ui.theme`?",
        f"{user.file}:7: Unknown setting `ui.colour`.",
        f"{user.file}:8: Unknown setting `pakcs`. Did you mean `packs`?",
    ]


@pytest.mark.promise("CFG-1")
def test_a_key_in_the_wrong_section_is_reported_with_the_right_one(user: User) -> None:
    user.write('theme = "x"\n[packs]\nfolder = "x"\n[ui]\nallow = []')
    _, problems = user.load()
    assert [problem.fix for problem in problems] == [
        "Did you mean `ui.theme`?",
        "Did you mean `packs.folders`?",
        "Did you mean `tools.allow`? No tool runs until this is fixed.",
    ]


@pytest.mark.promise("CFG-1")
def test_a_wrong_type_is_reported_with_file_and_line_and_affects_no_other_value(user: User) -> None:
    user.write(
        '[tools]\ntimeout = "8"\nworkers = 0\nlog_limit = "much"\nmemory_limit = true\n'
        '[ui]\nvim_keys = 1\ntheme = "x"\n[packs]\nfolders = ["a", 3, "b", "c\\u0000"]\n[model]\nname = 3\n'
        "[mcp.servers.a]\nenv = [1]\n[keys]\n'tools.run' = 4\n"
    )
    loaded, problems = user.load({"PEGBOARD_TOOLS__RESULT_LIMIT": "lots"})
    size = 'should be a number of bytes, or a size such as "2 GiB" or "500 MB".'
    assert [(problem.line, problem.message) for problem in problems] == [
        (2, "`tools.timeout` should be a number, but is text."),
        (3, "`tools.workers` should be greater than 0."),
        (4, f"`tools.log_limit` {size}"),
        (5, "`tools.memory_limit` should be a whole number, but is true."),
        (7, "`ui.vim_keys` should be true or false, but is a number."),
        (10, "`packs.folders.3` should be the path of a folder, but is text."),
        (10, "`packs.folders.1` should be the path of a folder, but is a number."),
        (12, "`model.name` should be text, but is a number."),
        (14, "`mcp.servers.a.env` should be a table, but is a list."),
        (16, "`keys.tools.run` should be text, but is a number."),
        (None, f"PEGBOARD_TOOLS__RESULT_LIMIT: `tools.result_limit` {size}"),
    ]
    assert loaded.tools == Settings().tools
    assert loaded.loaded.blocked is None
    assert loaded.ui.theme == "x"
    assert loaded.packs.folders == (user.file.parent / "a", user.file.parent / "b")


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("memory_limit", "1", "greater than or equal to 67108864"),
        ("memory_limit", str(10**23 - 1), f"less than or equal to {2**62}"),
        ("memory_limit", "'999999999999999999 GiB'", f"less than or equal to {2**62}"),
        ("result_limit", str(2**63), f"less than or equal to {2**62}"),
        ("log_limit", str(2**63), f"less than or equal to {2**62}"),
        ("workers", "1001", "less than or equal to 1000"),
        ("timeout", "1e300", "less than or equal to 31622400"),
        ("timeout", "inf", "a finite number"),
        ("timeouts", '{ "fs.*" = 1e300 }', "less than or equal to 31622400"),
    ],
)
def test_a_limit_that_no_system_supports_is_not_used(user: User, key: str, value: str, message: str) -> None:
    user.write(f"[tools]\n{key} = {value}")
    loaded, problems = user.load()
    assert loaded.tools == Settings().tools
    (problem,) = problems
    assert problem.line == 2
    assert f"`tools.{key}" in problem.message
    assert message in problem.message


@pytest.mark.promise("CFG-1")
def test_a_section_that_is_not_a_table_is_ignored(user: User) -> None:
    user.write('tools = 3\nkeys = "x"\nmcp = {servers = [1]}\n[ui]\ntheme = "x"')
    loaded, problems = user.load()
    assert [(problem.line, problem.message) for problem in problems] == [
        (1, "`tools` should be a table, but is a number."),
        (2, "`keys` should be a table, but is text."),
        (3, "`mcp.servers` should be a table, but is a list."),
    ]
    assert loaded.ui.theme == "x"


def test_no_problem_shows_a_value_since_it_may_be_a_secret(user: User) -> None:
    user.write('[mcp.servers.a]\nenv = "hunter2"\nargs = "hunter2"\ntoken = "hunter2"\n[tools]\ntimeout = "hunter2"')
    _, problems = user.load()
    assert len(problems) == 4
    assert "hunter2" not in "".join(said(problems))


@pytest.mark.promise("CFG-1")
@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"[ui]\ntheme = \n", 2, "This file is not valid TOML"),
        (b"[ui]\ntheme = 'x'\ntheme = 'y'", 3, "This file is not valid TOML"),
        (b"[ui]\n\n\ntheme = [1,", 4, "This file is not valid TOML"),
        (b"[ui]\ntheme = '\xff'", 2, "This file is not UTF-8 text."),
        (b"a = " + b"[" * 5000, None, "This file can't be parsed: it is nested too deeply."),
        pytest.param(
            b"a = " + b"1" * 5000, None, "This file can't be parsed: it has a number with too many digits.", id="digits"
        ),
    ],
)
def test_a_file_that_is_not_toml_is_a_problem(user: User, content: bytes, line: int | None, message: str) -> None:
    user.write(content)
    user.overlay('[ui]\ntheme = "kept"')
    loaded, problems = user.load()
    assert loaded.ui.theme == "kept"
    assert [(problem.file, problem.line) for problem in problems] == [(str(user.file), line)]
    assert loaded.loaded.blocked == problems[0]
    assert problems[0].message.startswith(message)


@pytest.mark.promise("CFG-1")
def test_a_file_that_cannot_be_read_is_a_problem(user: User) -> None:
    user.file.mkdir()
    assert said(user.load()[1]) == [f"{user.file}: This is not a regular file. {CLOSED}"]
    user.file.rmdir()
    os.mkfifo(user.file)
    assert said(user.load()[1]) == [f"{user.file}: This is not a regular file. {CLOSED}"]
    user.file.unlink()
    user.file.symlink_to(user.file)
    assert "can't be read" in user.load()[1][0].message


@pytest.mark.promise("CFG-1")
def test_an_endless_file_is_not_read(user: User) -> None:
    assert said(user.load({"PEGBOARD_CONFIG": "/dev/zero"})[1]) == [f"/dev/zero: This is not a regular file. {CLOSED}"]
    with user.file.open("wb") as file:
        file.truncate(2**40)
    assert said(user.load()[1]) == [f"{user.file}: This file is longer than 10,000,000 bytes. {CLOSED}"]


def test_the_null_device_can_be_selected_as_an_empty_file(user: User) -> None:
    assert user.load({"PEGBOARD_CONFIG": "/dev/null"}) == (Settings(), ())


def test_line_ends_and_byte_order_mark_of_other_systems_are_fine(user: User) -> None:
    user.write(b'\xef\xbb\xbf[ui]\r\ntheme = "x"\r\nthem = "y"\r\n')
    loaded, problems = user.load()
    assert loaded.ui.theme == "x"
    assert [problem.line for problem in problems] == [3]


def test_every_value_has_an_origin(user: User) -> None:
    user.write('[ui]\ntheme = "x"\nvim_keys = true\n[packs]\nfolders = ["a"]\n[packs.x]\n"a.b" = { c = 1 }')
    user.overlay('ui.theme = "y"')
    loaded, _ = user.load({"PEGBOARD_MODEL__NAME": "z"})
    assert loaded.origin("ui.theme") == f"{user.cwd / 'pegboard.toml'}:1"
    assert loaded.origin("ui.vim_keys") == f"{user.file}:3"
    assert loaded.origin("packs.folders") == f"{user.file}:5"
    assert loaded.origin("packs.x.a.b.c") == f"{user.file}:7"
    assert loaded.origin("model.name") == "PEGBOARD_MODEL__NAME"
    assert loaded.origin("tools.timeout") == "default"


@pytest.mark.promise("CFG-1")
def test_a_warning_about_a_value_names_the_place_where_it_was_set(user: User) -> None:
    user.write("[keys]\ntools.run = 'f6'")
    user.overlay("[ui]\n\ntheme = 'y'")
    loaded, _ = user.load({"PEGBOARD_MODEL__NAME": "z"})
    assert [
        str(loaded.warning(key, "No.")) for key in ("keys.tools.run", "ui.theme", "model.name", "tools.timeout")
    ] == [
        f"{user.file}:2: No.",
        f"{user.cwd / 'pegboard.toml'}:3: No.",
        "PEGBOARD_MODEL__NAME: No.",
        "No.",
    ]


def test_a_value_that_was_dropped_has_no_origin(user: User) -> None:
    user.write("[ui]\ntheme = 3")
    assert user.load()[0].origin("ui.theme") == "default"


def test_a_very_deep_table_is_read(user: User) -> None:
    deep = 3000 if sys.version_info < (3, 14) else 900  # later, Python reads at most 1,000 parts
    user.write(f"packs.x.{'.'.join('a' * deep)} = 1")
    loaded, problems = user.load()
    assert problems == ()
    assert "a" in loaded.packs.of("x")


def test_a_deleted_working_directory_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load({"PEGBOARD_CONFIG": str(tmp_path / "none.toml")}) == (Settings(), ())


NAMES = st.sampled_from(
    [
        *Settings.model_fields,
        "folders",
        "allow",
        "timeout",
        "timeouts",
        "servers",
        "a",
        "command",
        "env",
        "fs.*",
        "args",
    ]
) | st.text(string.printable, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{toml(str(key))} = {toml(item)}" for key, item in value.items() if item is not None)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(toml(item) for item in value if item is not None)}]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    return str(value).lower()


@pytest.mark.slow
@pytest.mark.promise("CFG-1")
@given(st.dictionaries(NAMES, VALUES, max_size=5))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_is_loaded_as_far_as_it_is_valid_and_every_problem_has_its_line(
    user: User, table: dict[str, Any]
) -> None:
    text = "\n".join(f"{toml(key)} = {toml(value)}" for key, value in table.items() if value is not None)
    tomllib.loads(text)
    user.write(text)
    _, problems = user.load()
    assert all(problem.line for problem in problems)


@pytest.mark.slow
@given(st.text(max_size=30))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_of_a_variable_raises_an_error(user: User, text: str) -> None:
    for variable in ("TOOLS__TIMEOUT", "PACKS__X", "PACKS__FOLDERS", "KEYS", "TOOLS__TIMEOUTS__A", "X__Y"):
        user.load({f"PEGBOARD_{variable}": text})
