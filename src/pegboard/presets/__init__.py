"""Saved presets and scripts, stored in files that people can read and edit: arguments as TOML, scripts as bash."""

from pegboard.presets.saved_scripts import SavedScripts
from pegboard.presets.store import Presets

__all__ = ["Presets", "SavedScripts"]
