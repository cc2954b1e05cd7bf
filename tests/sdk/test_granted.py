"""Secrets and configuration: a pack can read only its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pegboard.sdk import call_tool, get_config, get_secret
from pegboard.sdk.host import installed

pytestmark = pytest.mark.promise("SDK-10")

Script = Callable[..., None]

READER = '''
from pegboard.sdk import {imports}, batch_execute, call_tool, get_config, get_secret
{names}

def read(*, name: str) -> str | None:
    """Reads a secret."""
    return get_secret(name)

def setting(*, key: str) -> object:
    """Reads a value."""
    return get_config(key, "default")

def over(*, tool: str, name: str) -> object:
    """Has another read."""
    return call_tool(tool, name=name), get_secret(name)

def in_threads(*, name: str) -> str:
    """Reads it in a thread."""
    return batch_execute([name], get_secret)
'''


def reader(imports: str = "log", names: str = "") -> str:
    return READER.format(imports=imports, names=names)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set secrets in the environment."""
    for name in ("MINE", "YOURS"):
        monkeypatch.setenv(name, f"value of {name}")


@pytest.mark.parametrize(
    ("imports", "names"),
    [
        ("requires_secret", 'requires_secret("MINE")'),
        ("log", 'def key(): get_secret("MINE")'),
        ("api_headers", 'def headers(): return api_headers("MINE")'),
        ("lazy_client", 'client = lazy_client(dict, secret_name="MINE")'),
    ],
)
def test_a_pack_reads_the_secrets_that_its_file_names(script: Script, imports: str, names: str) -> None:
    script(mine=reader(imports, names))
    assert call_tool("mine.read", name="MINE") == "value of MINE"


def test_a_secret_that_was_not_granted_is_none_with_a_log_message(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    script(mine=reader("requires_secret", 'requires_secret("MINE")'))
    assert call_tool("mine.read", name="YOURS") is None
    said = capsys.readouterr().err
    assert "The pack mine was not granted the secret YOURS" in said
    assert "[packs.mine]" in said
    assert "value" not in said


def test_secrets_listed_in_the_configuration_are_granted(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_PACKS__MINE__SECRETS", '["YOURS"]')
    script(mine=reader())
    assert call_tool("mine.read", name="YOURS") == "value of YOURS"


@pytest.mark.promise("SDK-1")
def test_each_pack_has_its_own_secrets_also_when_one_calls_the_other(script: Script) -> None:
    script(
        mine=reader("requires_secret", 'requires_secret("MINE")'),
        yours=reader("requires_secret", 'requires_secret("YOURS")'),
    )
    assert call_tool("mine.over", tool="yours.read", name="YOURS") == ["value of YOURS", None]
    assert call_tool("mine.over", tool="yours.read", name="MINE") == [None, "value of MINE"]


def test_a_pack_is_identified_in_its_threads(script: Script) -> None:
    script(mine=reader("requires_secret", 'requires_secret("MINE")'))
    assert call_tool("mine.in_threads", name="MINE") == "=== MINE ===\nvalue of MINE"


def test_a_helper_has_the_grants_of_the_pack_that_uses_it(script: Script) -> None:
    script(
        _helper="from pegboard.sdk import get_secret\ndef key(): return get_secret('MINE')",
        mine='from pegboard.sdk import requires_secret\nimport _helper\nrequires_secret("MINE")\n'
        'def f():\n    """Asks."""\n    return _helper.key()\n',
        other='import _helper\nfrom pegboard.sdk import log\ndef f():\n    """Asks."""\n    return _helper.key()\n',
    )
    assert (call_tool("mine.f"), call_tool("other.f")) == ("value of MINE", None)


@pytest.mark.parametrize("value", ["", "  ", "${MINE}", "Bearer ${env:MINE}"])
def test_an_empty_or_unexpanded_secret_counts_as_missing(
    script: Script, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MINE", value)
    script(mine=reader("requires_secret", 'requires_secret("MINE")'))
    assert call_tool("mine.read", name="MINE") is None
    source, reason = installed().find_secret("MINE")
    assert source is None
    assert reason.startswith(("MINE is ", "MINE contains an unexpanded variable"))


def test_a_dollar_alone_is_part_of_a_secret(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "pa$word{1}")
    script(mine=reader("requires_secret", 'requires_secret("MINE")'))
    assert call_tool("mine.read", name="MINE") == "pa$word{1}"


def test_each_pack_has_its_own_config(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_PACKS__MINE__UNIT", "dozen")
    monkeypatch.setenv("PEGBOARD_PACKS__MINE__LIMIT", "3")
    monkeypatch.setenv("PEGBOARD_PACKS__MINE__HTTP__RETRIES", "[1, 2]")
    monkeypatch.setenv("PEGBOARD_PACKS__MINE__CODE", "1" * 5000)
    monkeypatch.setenv("PEGBOARD_PACKS__YOURS__UNIT", "piece")
    script(mine=reader(), yours=reader())
    assert call_tool("mine.setting", key="unit") == "dozen"
    assert call_tool("mine.setting", key="limit") == 3
    assert call_tool("mine.setting", key="http") == {"retries": [1, 2]}
    assert call_tool("mine.setting", key="code") == "1" * 5000
    assert call_tool("yours.setting", key="unit") == "piece"
    assert call_tool("yours.setting", key="limit") == "default"


def test_a_variable_configures_a_pack_whose_name_has_capital_letters_and_hyphens(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_PACKS__MY_PACK__UNIT", "dozen")
    script(mine=f"pack = 'My-Pack'\n{reader()}")
    assert call_tool("My-Pack.setting", key="unit") == "dozen"


def test_a_test_is_granted_the_secrets_that_it_names(script: Script) -> None:
    script()
    name = "YOUR" + "S"
    assert get_secret("MINE") == "value of MINE"
    assert get_secret(name) is None
    assert get_config("unit") is None


def test_an_interactive_session_can_read_every_secret(script: Script) -> None:
    import subprocess
    import sys

    code = "from pegboard.sdk import get_secret; print(get_secret('YOURS'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("value of YOURS\n", "")
