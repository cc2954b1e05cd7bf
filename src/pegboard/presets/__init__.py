"""Saved presets and scripts, stored in files that people can read and edit: arguments as TOML, scripts as bash."""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.presets.saved_scripts import SavedScripts
    from pegboard.presets.store import Presets

__all__ = ["Presets", "SavedScripts"]

_ON_DEMAND = {
    "Presets": "store",
    "SavedScripts": "saved_scripts",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
