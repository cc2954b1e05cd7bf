"""Check files: `checks/NAME.toml` in the working directory and in the data folder."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import JsonValue, ValidationError

from pegboard import storage
from pegboard.checks.model import Check
from pegboard.config import Paths, TrustFile
from pegboard.config.files import read_text, shown
from pegboard.config.lines import key_lines
from pegboard.config.paths import absolute
from pegboard.config.trust import CHECKS, FolderFiles
from pegboard.data.json_text import identical, write
from pegboard.errors import PegboardError
from pegboard.models import JsonObject, Problem
from pegboard.presets.files import file_name, normal, plain_name
from pegboard.presets.toml_text import TomlTextError, read_toml, write_toml

_SUFFIX: Final = ".toml"
_REASONS: Final = {
    "missing": "is required",
    "extra_forbidden": "is an unknown key",
    "dict_type": "must be a table",
    "float_parsing": "must be a number",
    "model_type": "must be a table",
    "tuple_type": "must be a list",
}
"""Pydantic's name for an error → what it means in TOML, where its own message has words of Python."""
LARGEST_DATA: Final = 1_000_000
"""Bytes of data that a check contains."""
_LONGEST_NAME: Final = 200
"""Maximum length of a file name, in bytes."""
_SHARED: Final = 0o666
"""Permissions of files in the working directory, less those of the umask."""


_Problems: TypeAlias = list[Problem]


class CheckError(PegboardError):
    """A check can't be read, saved or run; the message is one or more sentences."""


class Checks:
    """The checks of the working directory and of the user.

    Every method reads or writes the disk.

    Args:
        paths: The user's own files.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._here = absolute(CHECKS)

    def folders(self) -> tuple[Path, ...]:
        """Return the folders that may contain checks: that of the working directory first."""
        here, own = self._here, self._paths.checks
        return (own,) if os.path.realpath(here) == os.path.realpath(own) else (here, own)

    def is_trusted(self) -> bool:
        """Return whether the user trusts the working directory, so that its checks run."""
        files = FolderFiles.read(None, self._paths)
        return TrustFile(self._paths.trust).of(files).state == "trusted"

    def is_runnable(self, check: Check) -> bool:
        """Return whether a check may run: it is the user's own, or its folder is trusted."""
        return Path(check.file).parent == self._paths.checks or self.is_trusted()

    def list(self, pattern: str | None = None) -> tuple[tuple[Check, ...], tuple[Problem, ...]]:
        """Return the checks whose name or tool matches, by folder and name, and the problems of invalid files.

        Args:
            pattern: A part of the name or of the tool's name, or a pattern with wildcards such as `fs.*`.
        """
        checks: list[Check] = []
        problems: list[Problem] = []
        for folder in self.folders():
            for file in self._files(folder, problems):
                found = read_check(file)
                if isinstance(found, Check):
                    if _fits(pattern, found.name, found.tool):
                        checks.append(found)
                elif _fits(pattern, _name_of(file)):
                    problems.append(found)
        return tuple(checks), tuple(problems)

    def save(self, check: Check, *, replace: bool = False, own: bool = False) -> Check:
        """Write a check and return it with its file.

        Args:
            check: The check.
            replace: Whether to replace an existing file.
            own: Whether to write it to the data folder even if the working directory is trusted.

        Raises:
            CheckError: Its name or its values can't be saved, the name is taken, or the file can't be written.
        """
        name = normal(check.name)
        if not name:
            raise CheckError("Enter a name for the check.")
        if len(os.fsencode(file_name(name) + _SUFFIX)) > _LONGEST_NAME:
            raise CheckError("The name of the check is too long for a file.")
        is_own = own or not self.is_trusted()
        folder = self._paths.checks if is_own else self._here
        try:
            text = write_toml(_table(check))
        except TomlTextError as error:
            raise CheckError(f"The check was not saved because it can't be written as TOML: {error}.") from error
        file = self._file(folder, name)
        try:
            if is_own:
                storage.make_folder(folder)
            else:
                folder.mkdir(exist_ok=True)
            storage.write(file, text.encode(), replace=replace, mode=storage.PRIVATE_FILE if is_own else _SHARED)
        except FileExistsError as error:
            raise CheckError(f"A check named `{name}` already exists. Choose another name.") from error
        except OSError as error:
            raise CheckError(f"The check `{name}` can't be written: {error.strerror or error}.") from error
        return check.model_copy(update={"name": name, "file": shown(file)})

    def find(self, name: str) -> Path:
        """Return the file of a check, even of a damaged one; that of the working directory precedes the user's own.

        Raises:
            CheckError: No check has the name.
        """
        files = (self._file(folder, name) for folder in self.folders())
        found = next(filter(os.path.isfile, files), None)
        if found is None:
            raise CheckError(f"There is no check named `{name}`. `pegboard check list` lists all.")
        return found

    @staticmethod
    def delete(file: Path) -> None:
        """Delete the file of a check.

        Raises:
            CheckError: It can't be deleted.
        """
        try:
            file.unlink()
        except OSError as error:
            raise CheckError(f"The check `{_name_of(file)}` can't be deleted: {error.strerror or error}.") from error

    def free_name(self, tool: str) -> str:
        """Return a name for a new check of a tool that no file has: `fs.read_file`, `fs.read_file-2`."""
        for number in itertools.count(1):
            name = tool if number == 1 else f"{tool}-{number}"
            if not any(self._file(folder, name).exists() for folder in self.folders()):
                return name
        raise AssertionError

    def store_snapshot(self, check: Check, data: JsonValue) -> None:
        """Replace the data of the snapshot in the file of a check; comments and other values stay.

        Raises:
            CheckError: The check in the file is another one by now, the file can't be read or written, or the data
                is too large or can't be written as TOML.
        """
        size = len(write(data).encode("utf-8", "surrogatepass"))
        if size > LARGEST_DATA:
            raise CheckError(
                f"The snapshot of `{check.name}` was not stored because the data has {size:,} bytes; a check contains"
                f" at most {LARGEST_DATA:,}. Expect the schema or parts of the data instead."
            )
        file = self._real(check)
        try:
            with storage.locked(file):
                text = read_text(file)
                if isinstance(text, Problem):
                    raise CheckError(f"The snapshot was not stored. {text.message}")
                if _read_check(file, text) != check:  # it may have other arguments than those of the call
                    raise CheckError(
                        f"The snapshot of `{check.name}` was not stored because its file was changed while the check"
                        " ran. Run it again."
                    )
                storage.rewrite(file, _with_snapshot(text, data).encode())
        except TomlTextError as error:
            raise CheckError(f"The snapshot of `{check.name}` can't be written as TOML: {error}.") from error
        except OSError as error:
            raise CheckError(f"The check `{check.name}` can't be written: {error.strerror or error}.") from error

    def _real(self, check: Check) -> Path:
        """Return the file of a check, whose name may not be UTF-8."""
        known = (file for folder in self.folders() for file in self._files(folder, []) if shown(file) == check.file)
        return next(known, Path(check.file))

    @staticmethod
    def _files(folder: Path, problems: _Problems) -> Iterator[Path]:
        try:
            found = sorted(folder.iterdir(), key=lambda file: _name_of(file).casefold())
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            message = f"The checks can't be read: {error.strerror or error}."
            problems.append(Problem(message=message, file=shown(folder)))
            return
        yield from (file for file in found if file.suffix == _SUFFIX and not file.name.startswith("."))

    def _file(self, folder: Path, name: str) -> Path:
        """Return the file of the check with a name, which may not exist yet."""
        name = normal(name)
        known = (file for file in self._files(folder, []) if _name_of(file) == name)
        return next(known, folder / (file_name(name) + _SUFFIX))


def read_check(file: Path) -> Check | Problem:
    """Return the check in a file, or the problem that makes it unusable, with its line."""
    text = read_text(file)
    return text if isinstance(text, Problem) else _read_check(file, text)


def _read_check(file: Path, text: str) -> Check | Problem:
    """Return the check of a file with a text; see `read_check`."""
    name = _name_of(file)
    try:
        table = read_toml(text)
    except TomlTextError as error:
        return _invalid(file, name, str(error), error.line)
    lines = key_lines(text)
    for key in ("name", "file"):
        if key in table:
            return _invalid(file, name, f"has the unknown key `{key}`", lines.get(key))
    try:
        check = Check.model_validate({**table, "name": name, "file": shown(file)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"]))
        while path and path not in lines:
            path = path.rpartition(".")[0]
        where = ".".join(str(step) for step in first["loc"])
        reason = _REASONS.get(first["type"], first["msg"][:1].lower() + first["msg"][1:])
        return _invalid(file, name, f"is invalid: `{where}` {reason}", lines.get(path))
    return check


def _name_of(file: Path) -> str:
    return normal(plain_name(file.stem))


def _invalid(file: Path, name: str, reason: str, line: int | None) -> Problem:
    return Problem(message=f"The check `{name}` {reason}.", fix="Fix the file.", file=shown(file), line=line)


def _table(check: Check) -> JsonObject:
    """Return the content of the file of a check."""
    expect = check.expect.model_dump(mode="json", by_alias=False, exclude_unset=True)
    if "result_schema" in expect:
        expect["schema"] = expect.pop("result_schema")
    expect = {"outcome": check.expect.outcome} | expect
    described: JsonObject = {"description": check.description} if check.description else {}
    arguments: JsonObject = {"arguments": check.arguments} if check.arguments else {}
    asked: list[JsonValue] = [
        one.text if one.arguments is None else {"text": one.text, "arguments": one.arguments} for one in check.questions
    ]
    questions: JsonObject = {"questions": asked} if asked else {}
    return {"tool": check.tool, **described, **arguments, **questions, "expect": expect}


def _with_snapshot(text: str, data: JsonValue) -> str:
    """Return the text of a check file with other data in its snapshot.

    Raises:
        TomlTextError: The text is not TOML, or the data can't be written as TOML.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    table = read_toml(text)
    _snapshot(table)["data"] = data
    for keeps_lines in (True, False):
        # tomlkit fails to change some tables with dotted keys, and doesn't preserve every text, such as "\r\n"
        with suppress(TOMLKitError, TomlTextError, RecursionError, LookupError):
            document = tomlkit.parse(text)
            snapshot = _snapshot(document)
            if not keeps_lines:
                snapshot.pop("data", None)
            _put(snapshot, "data", data)
            edited = tomlkit.dumps(document)
            if identical(read_toml(edited), table):
                return edited
    return write_toml(table)


def _snapshot(table: Mapping[str, object]) -> MutableMapping[str, object]:
    """Return `expect.snapshot` in a table of either library."""
    expect = table["expect"]
    assert isinstance(expect, Mapping), "validated with the check"
    snapshot = expect["snapshot"]
    assert isinstance(snapshot, MutableMapping), "validated with the check"
    return snapshot


def _put(node: MutableMapping[str, object], key: str, value: JsonValue) -> None:
    """Set a value in a table of tomlkit; values that stay keep their form and their comments."""
    import tomlkit

    old = node.get(key)
    if isinstance(old, MutableMapping) and isinstance(value, dict) and value:
        for name, inner in value.items():
            _put(old, name, inner)
        for name in [name for name in old if name not in value]:
            del old[name]
        return
    written = tomlkit.parse(write_toml({"value": value}))
    plain = written.unwrap()["value"]
    if old is not None and identical(tomlkit.item(old).unwrap(), plain):
        return
    if isinstance(old, MutableMapping):
        del node[key]
    if isinstance(plain, dict):
        table = tomlkit.inline_table()
        table.update(plain)
        node[key] = table
    else:
        node[key] = written["value"] if isinstance(plain, list) else plain


def _fits(pattern: str | None, *names: str) -> bool:
    if pattern is None:
        return True
    if set(pattern) & set("*?["):
        return any(fnmatchcase(name, pattern) for name in names)
    return any(pattern.casefold() in name.casefold() for name in names)
