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

        Those of a tool include presets that were saved under a name that is an alias now. Presets that can't be read
        are in `problems`.
        """
        presets = self._parts.presets
        if tool is None:
            return tuple(preset for name in presets.tools() for preset in presets.of(name))
        full, *aliases = self._names(tool)
        found = {preset.name: preset for name in (*aliases, full) for preset in presets.of(name)}
        ordered = sorted(found.values(), key=lambda preset: (preset.name.casefold(), preset.name))
        return tuple(preset.model_copy(update={"tool": full}) for preset in ordered)

    def save(self, tool: str, name: str, arguments: JsonObject, *, replace: bool = True) -> Preset:
        """Save arguments under a name; write the disk.

        Raises:
            PresetError: The name or the arguments can't be saved, the name is taken and `replace` is False, or the file
                can't be written.
        """
        saved = self._parts.presets.save(self._holder(tool, name), name, arguments, replace=replace)
        return saved.model_copy(update={"tool": self._names(tool)[0]})

    def delete(self, tool: str, name: str) -> None:
        """Delete a preset, even a damaged one; write the disk.

        Raises:
            PresetError: No preset has this name, or it can't be deleted.
        """
        self._parts.presets.delete(self._holder(tool, name), name)

    def rename(self, tool: str, old: str, new: str) -> None:
        """Rename a preset; write the disk.

        Raises:
            PresetError: No preset has the old name, one has the new name, or it can't be renamed.
        """
        self._parts.presets.rename(self._holder(tool, old), old, new)

    def _names(self, tool: str) -> tuple[str, ...]:
        """Return the qualified name of a tool, followed by its aliases."""
        spec = self._parts.registry.get(tool)
        return (tool,) if spec is None else (spec.name, *spec.aliases)

    def _holder(self, tool: str, preset: str) -> str:
        """Return the name of a tool under which a preset is kept, or its qualified name for a new one."""
        names = self._names(tool)
        return next((name for name in names if self._parts.presets.has(name, preset)), names[0])
