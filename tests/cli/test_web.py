"""`pegboard web` with real requests: without the right Host, Origin and token, nothing is served."""

from __future__ import annotations

import asyncio
import base64
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest
from servers import SDK_SERVER, start_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass(frozen=True)
class Served:
    """A running server."""

    address: str
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def authority(self) -> str:
        return urlsplit(self.address).netloc

    def cookie(self) -> str:
        """Return the cookie that a browser receives for the token."""
        admitted = httpx.get(self.address)
        assert admitted.status_code == 303
        return admitted.headers["Set-Cookie"].partition(";")[0]


@contextmanager
def _serving(folder: Path, *options: str) -> Iterator[Served]:
    """Run a server whose folders are in one folder."""
    folders = {name: str(folder / name) for name in ("DATA_DIR", "STATE_DIR", "CACHE_DIR")}
    own = {"HOME": str(folder), "PEGBOARD_CONFIG": str(folder / "config.toml")}
    with subprocess.Popen(
        [sys.executable, "-m", "pegboard", "web", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **own, **{f"PEGBOARD_{name}": path for name, path in folders.items()}},
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().strip(), process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20)
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a server that all tests share."""
    with _serving(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.mark.promise("WEB-1")
def test_the_token_becomes_a_cookie_that_pages_of_other_sites_cannot_use(served: Served) -> None:
    admitted = httpx.get(served.address)
    assert (admitted.status_code, admitted.headers["Location"]) == (303, "/")
    cookie = admitted.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert urlsplit(served.address).query.partition("=")[2] not in cookie
    page = httpx.get(served.url, headers={"Cookie": cookie.partition(";")[0]})
    assert page.status_code == 200
    assert f"ws://{served.authority}/ws" in page.text
    assert "https://" not in page.text
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]


@pytest.mark.promise("WEB-1")
@pytest.mark.parametrize(
    "path", ["/", "/static/js/textual.js", "/download/x", "/ws", "/nowhere", "/?token=", "/?token=x"]
)
def test_nothing_is_served_without_the_token(served: Served, path: str) -> None:
    for headers in ({}, {"Cookie": f"pegboard-{urlsplit(served.url).port}=x"}, {"Origin": served.url}):
        refused = httpx.get(served.url + path, headers=headers)
        assert (refused.status_code, refused.headers.get("Set-Cookie")) == (403, None)
        assert "websocket" not in refused.text


@pytest.mark.promise("WEB-1")
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": "evil.example:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "null"},
    ],
)
def test_a_wrong_host_or_origin_is_refused_even_with_token_and_cookie(served: Served, headers: dict[str, str]) -> None:
    port = str(urlsplit(served.url).port)
    wrong = {name: value.replace("{port}", port) for name, value in headers.items()}
    assert httpx.get(served.address, headers=wrong).status_code == 403
    assert httpx.get(served.url, headers={**wrong, "Cookie": served.cookie()}).status_code == 403
    assert asyncio.run(_upgrade(served, {"Origin": served.url, "Cookie": served.cookie(), **wrong})) == 403


@pytest.mark.promise("WEB-1")
def test_the_websocket_needs_an_origin_and_the_cookie(served: Served) -> None:
    cookie = served.cookie()
    assert asyncio.run(_upgrade(served, {"Cookie": cookie})) == 403
    assert asyncio.run(_upgrade(served, {"Origin": served.url})) == 403
    assert asyncio.run(_upgrade(served, {"Origin": served.url, "Cookie": f"{cookie}x"})) == 403
    assert asyncio.run(_upgrade(served, {"Origin": served.url, "Cookie": cookie})) == 101


async def _upgrade(served: Served, headers: dict[str, str]) -> int:
    """Return the status of the answer to a request for a WebSocket."""
    async with aiohttp.ClientSession() as client:
        try:
            async with client.ws_connect(
                f"{served.url}/ws", headers=headers, timeout=aiohttp.ClientWSTimeout(ws_close=20)
            ):
                return 101
        except aiohttp.WSServerHandshakeError as error:
            return error.status


@pytest.mark.promise("WEB-1")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading_requests_are_allowed(served: Served, method: str) -> None:
    assert httpx.request(method, served.address, headers={"Cookie": served.cookie()}).status_code == 403


@asynccontextmanager
async def _tab(served: Served) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Open a tab, as a browser does."""
    headers = {"Origin": served.url, "Cookie": await asyncio.to_thread(served.cookie)}
    async with (
        asyncio.timeout(60),
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{served.url}/ws?width=100&height=30", headers=headers) as socket,
    ):
        yield socket


@pytest.mark.promise("WEB-2")
async def test_a_connection_runs_the_app_until_it_is_closed(served: Served) -> None:
    async with _tab(served) as socket:
        await _read_until(socket, "Tools")
        assert await asyncio.to_thread(_children, served.process.pid)
    await _until(lambda: not _children(served.process.pid))


@pytest.mark.promise("WEB-2")
async def test_a_tab_stays_open_and_reacts_to_keys(served: Served) -> None:
    async with _tab(served) as socket:
        await _read_until(socket, "Tools")
        with pytest.raises(TimeoutError):
            await _read_until(socket, "never painted", seconds=5)  # the app checks its terminal every two seconds
        await socket.send_json(["stdin", "\x10"])
        await _read_until(socket, "ommand or a tool")  # its first letter is under the cursor


@pytest.mark.promise("WEB-2")
async def test_the_options_of_one_run_apply_to_the_app_in_the_browser(
    tmp_path: Path, write_pack: Callable[[str, str], Path]
) -> None:
    packs = str(write_pack("shelf.py", 'def tidy() -> None:\n    """Tidy."""\n'))
    server = shlex.join(start_of(SDK_SERVER))
    with _serving(tmp_path, "--packs", packs, "--mcp", server, "--tool-allow", "shelf.*,fixture.*") as served:
        async with _tab(served) as socket:
            await _read_until(socket, "shelf")
        async with _tab(served) as socket:
            await _read_until(socket, "fixture")


async def _read_until(socket: aiohttp.ClientWebSocketResponse, text: str, seconds: float = 60) -> None:
    """Receive what the app paints until it contains a text."""
    screen = ""
    async with asyncio.timeout(seconds):
        while text not in screen:
            screen += (await socket.receive_bytes()).decode("utf-8", "replace")


@pytest.mark.promise("WEB-2", "CLI-2")
async def test_ctrl_c_ends_the_server_and_its_apps_with_the_exit_code_of_an_interruption(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        async with _tab(served) as socket:
            await socket.receive_bytes()
            children = await asyncio.to_thread(_children, served.process.pid)
            served.process.send_signal(signal.SIGINT)
            code = await asyncio.to_thread(served.process.wait, 30)
    assert code == 130
    await _until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def test_a_port_in_use_is_an_error(served: Served) -> None:
    port = str(urlsplit(served.url).port)
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "web", "--port", port],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Port {port} on 127.0.0.1 can't be used" in done.stderr


async def _until(condition: Callable[[], bool]) -> None:
    """Wait until a condition of other processes holds."""
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.05)


def _children(process: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.promise("WEB-2")
async def test_chromium_shows_the_app(served: Served, tmp_path: Path) -> None:
    async with _browser(served.address, tmp_path) as command:

        async def value(expression: str) -> Any:
            answer = await command("Runtime.evaluate", {"expression": expression})
            return answer.get("result", {}).get("value")

        while not await value("document.body?.classList.contains('-first-byte')"):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.1)
        assert await value("location.href") == f"{served.url}/", "the token has left the address bar"
        assert await value("document.cookie") == ""
        assert await value("document.title") == "Pegboard"
        assert await value("document.activeElement.tagName") == "TEXTAREA", "the terminal receives the keys"
        picture = b""
        while len(picture) < 40_000:  # An app without a list of tools compresses to less.
            await asyncio.sleep(0.5)
            answer = await command("Page.captureScreenshot", {})
            picture = base64.b64decode(answer.get("data", ""))
    (tmp_path / "web.png").write_bytes(picture)  # To look at.


@asynccontextmanager
async def _browser(address: str, folder: Path) -> AsyncIterator[Callable[[str, dict[str, Any]], Any]]:
    """Open an address in a headless Chromium; yield a function that sends it a command and returns the answer."""
    assert CHROMIUM is not None
    profile = folder / "profile"
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
        "--window-size=1300,800",
        f"--user-data-dir={profile}",
        address,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(90), aiohttp.ClientSession() as client:
            port = profile / "DevToolsActivePort"
            while not port.exists() or "\n" not in port.read_text():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.1)
            base = f"http://127.0.0.1:{port.read_text().splitlines()[0]}"
            pages: list[dict[str, str]] = []
            while not pages:
                async with client.get(f"{base}/json") as listed:
                    pages = [page for page in await listed.json() if page["type"] == "page"]
            async with client.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                last = 0

                async def command(method: str, params: dict[str, Any]) -> Any:
                    nonlocal last
                    last += 1
                    await socket.send_json({"id": last, "method": method, "params": params})
                    while (answer := await socket.receive_json()).get("id") != last:
                        pass
                    return answer.get("result", {})

                yield command
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
