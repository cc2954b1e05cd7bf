"""Presets: saved arguments. A tool is found by any of its names, and may be missing now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.models import JsonObject, Preset
    from pegboard.runtime.parts import Parts


class ToolPresets:
    """The saved arguments of tools.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def list(self, tool: str | None = None) -> tuple[Preset, ...]:
        """Return the presets of a tool, or of all tools, by name; read the disk.

        Presets that can't be read are in `problems`.
        """
        tools = self._parts.presets.tools() if tool is None else (self._full_name(tool),)
        return tuple(preset for name in tools for preset in self._parts.presets.of(name))

    def save(self, tool: str, name: str, arguments: JsonObject, *, replace: bool = True) -> Preset:
        """Save arguments under a name; write the disk.

        Raises:
            PresetError: The name or the arguments can't be saved, the name is taken and `replace` is False, or the file
                can't be written.
        """
        return self._parts.presets.save(self._full_name(tool), name, arguments, replace=replace)

    def delete(self, tool: str, name: str) -> None:
        """Delete a preset, even a damaged one; write the disk.

        Raises:
            PresetError: No preset has this name, or it can't be deleted.
        """
        self._parts.presets.delete(self._full_name(tool), name)

    def rename(self, tool: str, old: str, new: str) -> None:
        """Rename a preset; write the disk.

        Raises:
            PresetError: No preset has the old name, one has the new name, or it can't be renamed.
        """
        self._parts.presets.rename(self._full_name(tool), old, new)

    def _full_name(self, tool: str) -> str:
        spec = self._parts.registry.get(tool)
        return tool if spec is None else spec.name
