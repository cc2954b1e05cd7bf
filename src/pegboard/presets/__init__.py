"""What users keep under names, in files that people can read and write: arguments of tools as TOML, scripts as bash."""

from pegboard.presets.saved_scripts import SavedScripts
from pegboard.presets.store import Presets

__all__ = ["Presets", "SavedScripts"]
