"""The watcher: reports all changes in packs folders, with and without notifications of the system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import pytest
import watchfiles

from pegboard.discovery import scan, watch
from pegboard.discovery.files import FileMark, mark_of

BOUND = 20.0
"""Time limit for a notification on a busy machine, in seconds."""

Watching = AsyncGenerator[frozenset[str], None]


@pytest.fixture(params=["notices", "sweeps"])
async def watched(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Watching]]:
    """Return a function that watches folders, with and without notifications of the system; stop it after the test."""
    if request.param == "sweeps":

        def refuse(*_args: object, **_options: object) -> None:
            raise OSError("no watches left")

        monkeypatch.setattr(watchfiles.main, "RustNotify", refuse)
    opened: list[Watching] = []

    def start(*paths: Path, modules: Callable[[], dict[str, FileMark | None]] = dict) -> Watching:
        opened.append(watch(paths, stop=asyncio.Event(), modules=modules))
        return opened[-1]

    yield start
    for watching in opened:
        await watching.aclose()


async def changes_until(watching: Watching, act: Callable[[], object], expected: set[str]) -> None:
    """Act, and wait until all expected files were reported."""
    waiting = asyncio.ensure_future(anext(watching))
    act()
    named: set[str] = set()
    async with asyncio.timeout(BOUND):
        named |= await waiting
        while not expected <= named:
            named |= await anext(watching)
    assert named == expected


@pytest.mark.promise("DSC-6")
async def test_changed_files_are_reported(watched: Callable[..., Watching], packs: Path) -> None:
    file = packs / "one.py"
    await changes_until(watched(packs), lambda: file.write_text("def f(): ..."), {str(file)})


@pytest.mark.promise("DSC-6")
async def test_new_removed_and_renamed_files_are_reported(watched: Callable[..., Watching], packs: Path) -> None:
    def act() -> None:
        (packs / "new.py").write_text("")
        (packs / "two.py").unlink()
        (packs / "one.py").rename(packs / "_helper.py")

    await changes_until(
        watched(packs), act, {str(packs / name) for name in ("new.py", "two.py", "one.py", "_helper.py")}
    )


@pytest.mark.promise("DSC-6")
async def test_other_files_are_not_reported(watched: Callable[..., Watching], packs: Path) -> None:
    (packs / "sub").mkdir()

    def act() -> None:
        (packs / "notes.txt").write_text("x")
        (packs / "sub" / "deep.py").write_text("x")
        (packs / "one.py").write_text("x = 1")

    await changes_until(watched(packs), act, {str(packs / "one.py")})


@pytest.mark.promise("DSC-6")
async def test_a_folder_created_later_is_noticed(watched: Callable[..., Watching], tmp_path: Path) -> None:
    later = tmp_path / "deep" / "later"

    def act() -> None:
        later.mkdir(parents=True)
        (later / "first.py").write_text("")

    watching = watched(later)
    await changes_until(watching, act, {str(later / "first.py")})
    await changes_until(watching, lambda: (later / "second.py").write_text(""), {str(later / "second.py")})


async def test_an_empty_new_folder_is_reported(watched: Callable[..., Watching], tmp_path: Path) -> None:
    watching = watched(tmp_path / "later")
    (tmp_path / "later").mkdir()
    async with asyncio.timeout(BOUND):
        assert await anext(watching) == frozenset()


@pytest.mark.promise("DSC-6")
async def test_a_replaced_folder_is_still_watched(watched: Callable[..., Watching], packs: Path) -> None:
    other = packs.parent / "other"
    other.mkdir()
    (other / "three.py").write_text("")
    await changes_until(
        watching := watched(packs),
        lambda: (packs.rename(packs.parent / "old"), other.rename(packs)),
        {str(packs / name) for name in ("one.py", "two.py", "three.py")},
    )
    await changes_until(watching, lambda: (packs / "four.py").write_text(""), {str(packs / "four.py")})


async def test_a_single_file_can_be_watched(watched: Callable[..., Watching], packs: Path) -> None:
    def act() -> None:
        (packs / "two.py").write_text("x")
        draft = packs / "draft"
        draft.write_text('def walk():\n    """Walk."""\n')
        draft.rename(packs / "one.py")

    watching = watched(packs / "one.py")
    await changes_until(watching, act, {str(packs / "one.py")})
    assert [spec.name for spec in scan([packs / "one.py"])[0]] == ["one.walk"]


@pytest.mark.parametrize("exists", [True, False])
async def test_watching_ends_when_it_is_stopped(packs: Path, exists: bool) -> None:
    stop = asyncio.Event()
    watching = watch([packs if exists else packs / "gone"], stop=stop)
    waiting = asyncio.ensure_future(anext(watching, None))
    asyncio.get_running_loop().call_soon(stop.set)
    async with asyncio.timeout(BOUND):
        assert await waiting is None


async def test_watching_can_be_cancelled_and_leaves_the_stop_alone(packs: Path) -> None:
    stop = asyncio.Event()
    watching = watch([packs], stop=stop)
    waiting = asyncio.ensure_future(anext(watching))
    (packs / "one.py").touch()
    async with asyncio.timeout(BOUND):
        await waiting
    waiting = asyncio.ensure_future(anext(watching))
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(BOUND):
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert not stop.is_set()


async def test_watching_notices_a_link_that_points_elsewhere(watched: Callable[..., Watching], packs: Path) -> None:
    for name in ("old", "new"):
        (packs.parent / name).write_text(name)
    (packs / "link.py").symlink_to(packs.parent / "old")

    def act() -> None:
        (packs / "draft").symlink_to(packs.parent / "new")
        (packs / "draft").replace(packs / "link.py")

    await changes_until(watched(packs), act, {str(packs / "link.py")})


@pytest.mark.promise("DSC-6")
async def test_changed_and_removed_modules_of_the_project_are_reported(
    watched: Callable[..., Watching], packs: Path, tmp_path: Path
) -> None:
    module, removed, later = tmp_path / "core.py", tmp_path / "old.py", tmp_path / "later.py"
    for file in (module, removed):
        file.write_text("")
    known = {str(file): mark_of(str(file)) for file in (module, removed, packs / "one.py")}
    watching = watched(packs, modules=lambda: known)

    def act() -> None:
        module.write_text("VALUE = 1")
        removed.unlink()

    await changes_until(watching, act, {str(module), str(removed)})
    known[str(later)] = None
    await changes_until(watching, lambda: later.write_text(""), {str(later)})
    known[str(tmp_path / "read.py")] = (1, 2)
    (tmp_path / "read.py").write_text("changed since it was read")
    await changes_until(watching, lambda: None, {str(tmp_path / "read.py")})
