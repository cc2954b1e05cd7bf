"""Probes for programs, libraries and secrets; every failure becomes a row of the report."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from processes import is_alive

import pegboard
from pegboard.sdk.distributions import extra_command
from pegboard.sdk.findings import ProbeResult, report_row
from pegboard.sdk.probes import probe_all
from pegboard.sdk.requirements import DeclaredRequirement

pytestmark = pytest.mark.promise("SDK-9")

Program = Callable[[str, str], Path]

PRINTED = {
    "rg": ("ripgrep 14.1.0 (rev e50df40a19)\n-SIMD -AVX (compiled)\n", "14.1.0"),
    "ffmpeg": (
        "ffmpeg version 6.1.1-3ubuntu5 Copyright (c) 2000-2023 the FFmpeg developers\nbuilt with gcc 13.2.0\n",
        "6.1.1",
    ),
    "ffprobe": ("ffprobe version n6.0 Copyright (c) 2007-2023\n", "6.0"),
    "ffplay": ("ffplay version N-109542-g1bf1c40 Copyright (c) 2003\nbuilt with gcc 12.2.0\n", None),
    "git": ("git version 2.39.2 (Apple Git-143)\n", "2.39.2"),
    "jq": ("jq-1.6\n", "1.6"),
    "node": ("v18.19.0\n", "18.19.0"),
    "npm": ("10.2.4\n", "10.2.4"),
    "python3": ("Python 3.13.0rc1\n", "3.13.0rc1"),
    "docker": ("Docker version 24.0.7, build afdd53b\n", "24.0.7"),
    "curl": ("curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1 OpenSSL/3.0.11 zlib/1.2.13\n", "7.88.1"),
    "bash": ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n", "5.2.15"),
    "go": ("go version go1.21.5 linux/amd64\n", "1.21.5"),
    "gcc": ("gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.5.0\nCopyright (C) 2021\n", "11.5.0"),
    "clang": ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", "14.0.6"),
    "perl": ("\nThis is perl 5, version 36, subversion 0 (v5.36.0) built for x86_64-linux\n", "5.36.0"),
    "ruby": ("ruby 3.1.2p20 (2022-04-12 revision 4491e45f2b) [x86_64-linux-gnu]\n", "3.1.2p20"),
    "psql": ("psql (PostgreSQL) 15.5 (Debian 15.5-0+deb12u1)\n", "15.5"),
    "sqlite3": ("3.40.1 2022-12-28 14:03:47 df5c253c0b3dd24916e4ec7cf77d3db5\n", "3.40.1"),
    "aws": ("aws-cli/2.15.0 Python/3.11.6 Linux/6.1.0 exe/x86_64\n", "2.15.0"),
    "kubectl": ("Client Version: v1.29.0\nKustomize Version: v5.0.4\n", "1.29.0"),
    "tmux": ("tmux 3.3a\n", "3.3a"),
    "less": ("less 590 (GNU regular expressions)\nCopyright (C) 1984-2021  Mark Nudelman\n", "590"),
    "systemctl": ("systemd 252 (252.19-1~deb12u1)\n+PAM +AUDIT\n", "252.19"),
    "vim": ("VIM - Vi IMproved 9.0 (2022 Jun 28, compiled May 04 2023)\n", "9.0"),
    "convert": ("Version: ImageMagick 7.1.1-21 Q16-HDRI x86_64 https://imagemagick.org\n", "7.1.1"),
    "adb": ("Android Debug Bridge version 1.0.41\nVersion 34.0.4-10411341\n", "1.0.41"),
    "chrome": ("Google Chrome 120.0.6099.109 unknown\n", "120.0.6099.109"),
    "rsync": ("rsync  version 3.2.7  protocol version 31\n", "3.2.7"),
    "mvn": (
        "Apache Maven 3.8.7 (b89d5959fcde)\nJava version: 17.0.9, vendor: Debian\nOS name: linux, version: 6.1.0\n",
        "3.8.7",
    ),
    "nvcc": (
        "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005\nCuda compilation tools, release 12.3, V12.3.107\n",
        "12.3",
    ),
    "swift": ("swift-driver version: 1.87.1 Apple Swift version 5.9 (swiftlang-5.9.0.128 clang-1500.0.40)\n", "5.9"),
    "gradle": ("\n------\nGradle 8.5\n------\n\nKotlin:       1.9.20\nAnt:  Apache Ant(TM) version 1.10.13\n", "8.5"),
    "later": ("The file ~/.laterrc of 1.0.0 is ignored.\nlater version 2.1.0\nbuilt with gcc 13.2.0\n", "2.1.0"),
    "words": ("no version here\n", None),
}
"""Output of programs, and the version in it."""

PRINTED_AS_ERRORS = {
    "java": (
        'Picked up JAVA_TOOL_OPTIONS: -Dhttp.proxy=10.0.0.1\nopenjdk version "17.0.9" 2023-10-17\n',
        "17.0.9",
    ),
    "java21": ('openjdk version "21" 2023-09-19\nOpenJDK Runtime Environment (build 21+35-2513)\n', "21"),
    "javac": ("javac 1.8.0_392\n", "1.8.0"),
    "ssh": ("OpenSSH_9.2p1 Debian-2+deb12u1, OpenSSL 3.0.11 19 Sep 2023\n", "9.2p1"),
    "dot": ("dot - graphviz version 2.43.0 (0)\n", "2.43.0"),
    "nginx": ("nginx version: nginx/1.22.1\n", "1.22.1"),
}


def cli(name: str, version_flag: str = "--version", min_version: str | None = None) -> DeclaredRequirement:
    return DeclaredRequirement("cli", name, version_flag=version_flag, min_version=min_version)


def look(requirement: DeclaredRequirement, timeout: float = 60) -> ProbeResult:
    [(_, found)] = probe_all([requirement], find_secret=lambda name: (None, f"{name} is not set."), timeout=timeout)
    return found


def test_the_version_is_found_in_the_output_of_many_programs(program: Program) -> None:
    for name, (text, _) in PRINTED.items():
        program(name, f"cat <<'END'\n{text}END\n")
    for name, (text, _) in PRINTED_AS_ERRORS.items():
        program(name, f"cat >&2 <<'END'\n{text}END\n")
    wanted = {name: version for name, (_, version) in {**PRINTED, **PRINTED_AS_ERRORS}.items()}
    found = probe_all(map(cli, wanted), find_secret=lambda _: (None, ""), timeout=60)
    rows = {requirement.name: found for requirement, found in found}
    assert {name: found.version for name, found in rows.items()} == wanted
    assert {found.status for found in rows.values()} == {"ok"}
    assert all(found.path and found.path.endswith(f"/{name}") for name, found in rows.items())


@pytest.mark.parametrize(
    ("name", "flag"),
    [("git", "--version"), ("jq", "--version"), ("node", "--version"), ("curl", "--version"), ("java", "-version"),
     ("bash", "--version"), ("openssl", "version"), ("ssh", "-V"), ("perl", "--version"), ("tar", "--version")],
)  # fmt: skip
def test_the_versions_of_real_programs_are_found(name: str, flag: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on this machine")
    found = look(cli(name, flag))
    assert found.status == "ok"
    assert found.version is not None
    assert found.version[0].isdigit()


@pytest.mark.parametrize(
    ("has", "needs", "status"),
    [
        ("13.0.1", "13", "ok"),
        ("13.0", "13.0.0", "ok"),
        ("9.0", "10.0", "outdated"),
        ("14.0.0-rc1", "14.0.0", "outdated"),
        ("3.3a", "3.3", "ok"),
        ("9.2p1", "9.2", "ok"),
        ("590", "600", "outdated"),
        ("13.0", "v12.x", "ok"),
        ("13.0", "newest", "error"),
        ("unknown", "1.0", "error"),
    ],
)
def test_a_version_is_compared_with_the_minimum(program: Program, has: str, needs: str, status: str) -> None:
    program("tool", f"echo tool {has}")
    found = look(cli("tool", min_version=needs))
    assert found.status == status
    assert (found.error is None) is (status == "ok")


def test_a_program_that_is_not_installed_is_missing() -> None:
    assert look(cli("no-such-program-anywhere")) == ProbeResult(
        "missing", error="`no-such-program-anywhere` is not on the PATH."
    )


def test_a_folder_is_not_a_program(program: Program, tmp_path: Path) -> None:
    (tmp_path / "bin" / "tool").mkdir()
    assert look(cli("tool")).status == "missing"


def test_a_file_that_is_not_executable_is_an_error(program: Program) -> None:
    file = program("tool", "echo 1.0")
    file.chmod(0o644)
    assert look(cli("tool")) == ProbeResult("error", None, str(file), f"{file} is not executable.")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("echo 1.2.3; exit 3", "failed with exit code 3: 1.2.3"),
        ("printf 'not\\033[31m for\\a you\\n' >&2; exit 127", "failed with exit code 127: not[31m for you"),
        ("kill -SEGV $$", "failed with signal 11."),
        ("exit 1", "failed with exit code 1."),
    ],
)
def test_a_failing_program_is_an_error_with_its_own_message(program: Program, source: str, error: str) -> None:
    file = program("tool", source)
    assert look(cli("tool")) == ProbeResult("error", None, str(file), f"`tool --version` {error}")


@pytest.mark.parametrize("source", ["", "head -c 3000 /dev/zero", "printf '\\377\\376\\000'"])
def test_a_program_without_usable_output_has_no_version(program: Program, source: str) -> None:
    file = program("tool", source)
    assert look(cli("tool")) == ProbeResult("ok", None, str(file))
    assert look(cli("tool", min_version="1")).status == "error"


def test_a_program_with_endless_output_is_stopped(program: Program) -> None:
    program("tool", "echo tool 1.2.3; yes")
    assert look(cli("tool")).version == "1.2.3"


def test_a_program_that_hangs_is_killed_with_all_that_it_started(program: Program, tmp_path: Path) -> None:
    program("tool", f"sleep 600 & echo $! > {tmp_path}/child; wait")
    found = look(cli("tool"), timeout=3)
    assert (found.status, found.error) == ("error", "`tool --version` was stopped after 3 s.")
    child = int((tmp_path / "child").read_text())
    bound = time.monotonic() + 60
    while is_alive(child) and time.monotonic() < bound:
        time.sleep(0.02)
    assert not is_alive(child)


def test_remaining_child_processes_do_not_delay_the_result(program: Program, tmp_path: Path) -> None:
    wanted = tmp_path / "wanted"
    wanted.touch()
    program("tool", f"echo tool 2.0; (while test -e {wanted}; do sleep 0.1; done) &")
    try:
        assert look(cli("tool")).version == "2.0"
    finally:
        wanted.unlink()  # a file that is created here might be deleted with its folder before it is seen


def test_a_program_has_no_terminal_and_empty_input(program: Program) -> None:
    program("tool", "cat; test -t 1 || (: > /dev/tty) 2>/dev/null || echo tool 3.1")
    assert look(cli("tool")).version == "3.1"


def test_a_file_that_the_system_cannot_execute_is_an_error(program: Program) -> None:
    program("tool", "").write_bytes(b"\x00\x01\x02")
    found = look(cli("tool"))
    assert (found.status, found.path is not None) == ("error", True)


@pytest.mark.parametrize("flag", ["-c 'touch FILE'", "-rf .", "; touch FILE", "version --output=FILE", "upgrade", "-h"])
def test_a_program_is_only_run_with_a_version_flag(program: Program, flag: str, tmp_path: Path) -> None:
    program("tool", f"touch {tmp_path}/ran")
    found = look(cli("tool", flag))
    assert (found.status, (tmp_path / "ran").exists()) == ("error", False)


def test_a_program_does_not_run_files_of_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version").write_text("touch ran\n")
    monkeypatch.chdir(tmp_path)
    assert look(cli("sh", "version")).status == "error"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["./tool", "/bin/sh", "", "a\0b"])
def test_a_program_is_given_by_name_and_not_by_path(name: str) -> None:
    assert look(cli(name)).status == "error"


def test_without_a_flag_the_program_only_has_to_exist(program: Program, tmp_path: Path) -> None:
    file = program("tool", f"touch {tmp_path}/ran")
    assert look(cli("tool", "")) == ProbeResult("ok", None, str(file))
    assert not (tmp_path / "ran").exists()


def test_programs_receive_only_the_given_environment(program: Program) -> None:
    program("tool", "echo tool ${SECRET:-1.0}")
    requirement = cli("tool")
    environ = {"PATH": os.environ["PATH"]}
    os.environ["SECRET"] = "9.9"
    try:
        [(_, found)] = probe_all([requirement], find_secret=lambda _: (None, ""), environ=environ, timeout=60)
        assert found.version == "1.0"
    finally:
        del os.environ["SECRET"]


def test_two_hundred_programs_run_concurrently(program: Program, tmp_path: Path) -> None:
    gate, here = tmp_path / "gate", tmp_path / "here"
    os.mkfifo(gate)
    here.mkdir()
    names = [f"tool{number}" for number in range(200)]
    for name in names:
        program(name, f": > {here}/{name}; : < {gate}; echo {name} 1.0")  # waits until the test opens the gate
    seen: list[int] = []

    def open_gate() -> None:
        bound = time.monotonic() + 60
        while len(list(here.iterdir())) < len(names) and time.monotonic() < bound:
            time.sleep(0.02)
        seen.append(len(list(here.iterdir())))
        os.close(os.open(gate, os.O_WRONLY))

    opener = threading.Thread(target=open_gate)
    opener.start()
    found = dict(probe_all(map(cli, names), find_secret=lambda _: (None, ""), timeout=100))
    opener.join()
    assert seen == [len(names)]
    assert {item.version for item in found.values()} == {"1.0"}


def test_results_are_yielded_as_soon_as_they_are_known(program: Program, tmp_path: Path) -> None:
    program("slow", f"until test -e {tmp_path}/go; do sleep 0.05; done; echo slow 1.0")
    program("quick", "echo quick 2.0")
    wanted = [cli("slow"), cli("quick"), DeclaredRequirement("secret", "KEY")]
    rows = probe_all(wanted, find_secret=lambda _: ("environment", ""), timeout=60)
    assert {next(rows)[0].name, next(rows)[0].name} == {"quick", "KEY"}
    (tmp_path / "go").touch()
    assert next(rows)[1].version == "1.0"


def test_running_programs_are_killed_when_the_probe_is_closed(program: Program, tmp_path: Path) -> None:
    program("slow", f"echo $$ > {tmp_path}/pid; sleep 600")
    rows = probe_all([DeclaredRequirement("secret", "KEY"), cli("slow")], find_secret=lambda _: ("environment", ""))
    next(rows)
    file = tmp_path / "pid"
    bound = time.monotonic() + 60
    while not (file.exists() and file.read_text().strip()) and time.monotonic() < bound:
        time.sleep(0.02)
    assert is_alive(int(file.read_text()))
    rows.close()  # type: ignore[attr-defined] # it is a generator
    assert not is_alive(int(file.read_text()))


def test_duplicate_requirements_are_probed_once(program: Program, tmp_path: Path) -> None:
    program("tool", f"echo x >> {tmp_path}/runs; echo tool 1.0")
    assert len(list(probe_all([cli("tool"), cli("tool")], find_secret=lambda _: (None, "")))) == 1
    assert (tmp_path / "runs").read_text() == "x\n"


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install libraries that record their import: `spam`, `Eggs-Lib` with `eggs`, `under.ground.deep`."""
    folder = tmp_path / "site"
    shout = f"open({str(tmp_path / 'imported')!r}, 'a').close()\n"
    for module in ("spam.py", "eggs/__init__.py", "eggs/yolk.py", "under/ground/deep/__init__.py"):
        file = folder / module
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(shout)
    (folder / "moving.py").write_text(f"{shout}import sys\nsys.modules[__name__ + '.moves'] = sys\n")
    for name, version, top in (
        ("spam", "1.5", "spam"),
        ("moving", "4.2", "moving"),
        ("Eggs-Lib", "2.0.post1", "eggs"),
        ("under-ground-deep", "3.1", "under"),
        ("under-other", "9", "under"),
    ):
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "top_level.txt").write_text(top)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize(
    ("name", "needs", "expected"),
    [
        ("spam", None, ("ok", "1.5")),
        ("spam", "1.4", ("ok", "1.5")),
        ("spam", "2", ("outdated", "1.5")),
        ("eggs", "2", ("ok", "2.0.post1")),
        ("eggs.yolk", None, ("ok", "2.0.post1")),
        ("Eggs-Lib", "2", ("ok", "2.0.post1")),
        ("eggs.white", None, ("missing", None)),
        ("under.ground.deep", "3", ("ok", "3.1")),
        ("sqlite3", None, ("ok", None)),
        ("sqlite3", "1", ("error", None)),
        ("no_such_library", None, ("missing", None)),
        ("no_such_library.below.it", None, ("missing", None)),
        ("spam.below", None, ("missing", None)),
        ("os.path", None, ("ok", None)),
        ("moving.moves", "4.1", ("ok", "4.2")),
        ("not a name", None, ("missing", None)),
        ("..", None, ("missing", None)),
        ("", None, ("missing", None)),
    ],
)
def test_libraries_are_found_without_being_imported(
    libraries: Path, tmp_path: Path, name: str, needs: str | None, expected: tuple[str, str | None]
) -> None:
    found = look(DeclaredRequirement("lib", name, min_version=needs))
    assert (found.status, found.version) == expected
    assert not (tmp_path / "imported").exists()


def test_the_version_of_a_project_that_is_installed_as_editable_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, project = tmp_path / "env" / "site", tmp_path / "my project"
    for folder in (site, project / "src", tmp_path / "my project 2"):
        folder.mkdir(parents=True)
    (project / "src" / "mine.py").write_text("")
    (tmp_path / "my project 2" / "other.py").write_text("")
    (site / "loose.py").write_text("")
    for name, version, direct_url in (
        ("acme-mine", "4.2", f'{{"url": "{project.as_uri()}", "dir_info": {{"editable": true}}}}'),
        ("all-else", "9", f'{{"url": "{tmp_path.as_uri()}", "dir_info": {{}}}}'),
        ("odd", "9", '{"editable": 3}'),
        ("damaged", "9", '"editable'),
    ):
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text("_editable_impl_mine.pth,,\n")
        (info / "direct_url.json").write_text(direct_url)
    for folder in (site, project / "src", tmp_path / "my project 2"):
        monkeypatch.syspath_prepend(str(folder))
    found = {name: look(DeclaredRequirement("lib", name, min_version="4")) for name in ("mine", "other", "loose")}
    assert {name: (one.status, one.version) for name, one in found.items()} == {
        "mine": ("ok", "4.2"),
        "other": ("error", None),
        "loose": ("error", None),
    }
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert look(DeclaredRequirement("lib", "mine")).version is None, "an environment within the project"


def test_a_library_is_found_although_a_test_replaced_its_module(
    libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "spam", ModuleType("spam"))
    assert look(DeclaredRequirement("lib", "spam")).version == "1.5"


def test_a_failing_import_hook_is_an_error_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bad:
        def find_spec(self, *args: object) -> None:
            raise RuntimeError("out of order")

    monkeypatch.setattr(sys, "meta_path", [Bad(), *sys.meta_path])
    found = look(DeclaredRequirement("lib", "no_such_library"))
    assert (found.status, found.error) == ("error", "Looking for `no_such_library` failed: RuntimeError: out of order")


def test_the_hint_installs_into_an_environment_of_pipx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pegboard").mkdir()
    (tmp_path / "pegboard" / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "pegboard"))
    row = report_row("a.b", DeclaredRequirement("lib", "yaml", min_version="6"), ProbeResult("missing"))
    assert row["install"] == "pipx inject pegboard 'pyyaml>=6'"
    assert extra_command("web") == "pipx inject pegboard 'pegboard[web]'"


def test_the_hint_installs_into_an_environment_without_pip(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from pegboard.sdk.distributions import extra_command, install_command\n"
        "print(install_command('yaml'), extra_command('web'), sep='\\n')"
    )
    command = [str(python), "-c", code, str(Path(pegboard.__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    uv = f"uv pip install --python {python}"
    assert done.stdout.splitlines() == [f"{uv} pyyaml", f"{uv} 'pegboard[web]'"]


@pytest.mark.parametrize(
    ("library", "min_version", "advice"),
    [
        (
            "sqlite3",
            "3.35",
            "This module of Python has no version of its own. Remove `min_version` from the requirement.",
        ),
        ("winreg", None, "It is a module of Python that this build lacks. Use a Python that has it."),
        (
            "telnetlib",
            None,
            "Python 3.13 removed this module. Use a library in its place, or an older Python.",
        ),
    ],
)
def test_the_hint_on_a_module_of_python_installs_no_project_of_the_same_name(
    monkeypatch: pytest.MonkeyPatch, library: str, min_version: str | None, advice: str
) -> None:
    monkeypatch.setattr(sys, "stdlib_module_names", sys.stdlib_module_names - {"telnetlib", "distutils"})
    row = report_row("a.b", DeclaredRequirement("lib", library, min_version=min_version), ProbeResult("missing"))
    assert row["install"] == advice
    row = report_row("a.b", DeclaredRequirement("lib", "distutils"), ProbeResult("missing"))
    assert row["install"].endswith("-m pip install setuptools")


@pytest.mark.parametrize(
    ("library", "installed"),
    [("agents", "openai-agents"), ("strands", "strands-agents"), ("strands_tools", "strands-agents-tools")],
)
def test_the_hint_installs_the_agent_framework_and_no_other_package_with_its_import_name(
    library: str, installed: str
) -> None:
    row = report_row("a.b", DeclaredRequirement("lib", library), ProbeResult("missing"))
    assert row["install"].endswith(f"-m pip install {installed}")


def test_a_row_contains_an_installation_hint() -> None:
    missing = ProbeResult("missing", error="It is not here.")
    assert report_row(
        "a.b", DeclaredRequirement("cli", "rg", min_version="13", install="apt install ripgrep"), missing
    ) == {
        "tool": "a.b",
        "kind": "cli",
        "name": "rg",
        "status": "missing",
        "version": None,
        "minVersion": "13",
        "path": None,
        "install": "apt install ripgrep",
        "error": "It is not here.",
    }
    assert report_row("a.b", DeclaredRequirement("lib", "yaml"), missing)["install"].endswith("-m pip install pyyaml")
    outdated = DeclaredRequirement("lib", "yaml", min_version="6")
    assert report_row("a.b", outdated, missing)["install"].endswith("-m pip install 'pyyaml>=6'")
    assert "rg" in report_row("a.b", DeclaredRequirement("cli", "rg"), missing)["install"]
    rg = DeclaredRequirement("cli", "rg", min_version="13")
    older = ProbeResult("outdated", "12.0", "/bin/rg", "It is 12.0.")
    assert report_row("a.b", rg, older)["install"] == "Install rg 13 or later."
    failing = ProbeResult("error", None, "/bin/rg", "It failed.")
    assert "PATH" not in report_row("a.b", rg, failing)["install"]
    assert "pegboard auth set KEY" in report_row("a.b", DeclaredRequirement("secret", "KEY"), missing)["install"]
