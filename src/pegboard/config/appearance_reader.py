"""Reader of the appearance for the first frame, before the settings are validated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from pegboard.config.appearance import Appearance
from pegboard.config.files import read_text
from pegboard.config.paths import OVERLAY, Paths, absolute
from pegboard.data.toml import TomlError, parse_toml

_SECTIONS: Final = ("ui", "keys")
_VARIABLES: Final = tuple(f"PEGBOARD_{section.upper()}__" for section in _SECTIONS)


def simple_appearance(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Appearance | None:
    """Return the appearance if the user's file alone sets it; None if only the complete settings can say what applies.

    That is the case if keys are remapped, if the environment or the working directory's `pegboard.toml` has a say, or
    if a file or a value is invalid. Reading this loads no validator, which takes longer than the rest of the start.

    Args:
        environ: The environment; the process's own by default.
        cwd: The working directory; the process's own by default.
    """
    environ = os.environ if environ is None else environ
    if any(variable.startswith(_VARIABLES) for variable in environ):
        return None
    own, folder = _table(Paths.from_environment(environ).config_file), _table(absolute(OVERLAY, cwd))
    if own is None or folder is None or "keys" in own or folder.keys() & set(_SECTIONS):
        return None
    ui = own.get("ui", {})
    if not isinstance(ui, dict):
        return None
    defaults = {setting.name: setting.default for setting in fields(Appearance) if setting.name != "keys"}
    chosen = {name: ui[name] for name in defaults.keys() & ui.keys()}
    is_valid = all(type(value) is type(defaults[name]) for name, value in chosen.items())
    return Appearance(**chosen) if is_valid else None


def _table(file: Path) -> dict[str, Any] | None:
    """Parse a configuration file; return None if it can't be used, and an empty table if it is missing."""
    text = read_text(file)
    if not isinstance(text, str):
        return None
    try:
        return parse_toml(text)
    except TomlError:
        return None
