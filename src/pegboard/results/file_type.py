"""The file that a text result is the content of, by the arguments of its call."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

_NAMES = ("path", "file", "file_path", "filename", "filepath", "file_name", "name", "uri", "url")
_SUFFIXES = frozenset("""
    bash bat c cc cfg clj cmake conf cpp cs css csv cxx dart diff ex exs go graphql h hpp hs htm html ini java js json
    jsonl jsx jl kt less lua m md mjs mk ml nix patch php pl proto ps1 py pyi r rb rs sass scala scss sh sql svelte
    swift tex tf toml ts tsx vim vue xml yaml yml zig zsh
""".split())  # fmt: skip # noqa: SIM905
_WHOLE_NAMES = {"dockerfile": "Dockerfile", "makefile": "Makefile", "cmakelists.txt": "CMakeLists.txt"}
_LONGEST = 4_000


def code_file(args: Mapping[str, JsonValue]) -> str:
    """Return a short file name with the type of the code in a call's file, such as `x.py`; empty if it isn't code."""
    for argument in _NAMES:
        path = args.get(argument)
        if not isinstance(path, str) or len(path) > _LONGEST:
            continue
        name = path.replace("\\", "/").rpartition("/")[2].partition("?")[0].casefold()
        if name in _WHOLE_NAMES:
            return _WHOLE_NAMES[name]
        _, dot, suffix = name.rpartition(".")
        if dot and suffix in _SUFFIXES:
            return f"x.{suffix}"
    return ""
