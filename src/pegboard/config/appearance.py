"""The settings of the first frame, which can be read before all others are validated."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.config.files import read_text
from pegboard.config.paths import OVERLAY, Paths, absolute

if TYPE_CHECKING:
    from pegboard.config.settings import Settings

_SECTIONS: Final = ("ui", "keys")
_VARIABLES: Final = tuple(f"PEGBOARD_{section.upper()}__" for section in _SECTIONS)


@dataclass(frozen=True)
class Appearance:
    """Theme and keys of the interface; the defaults are those of the settings."""

    theme: str = "pegboard-dark"
    vim_keys: bool = False
    animations: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    """Command id → its keys."""

    @classmethod
    def of(cls, settings: Settings) -> Appearance:
        """Return the appearance that settings have."""
        ui = settings.ui
        return cls(ui.theme, ui.vim_keys, ui.animations, settings.keys)


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
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
