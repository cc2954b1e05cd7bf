"""Presets: argument objects of tools, kept under names as TOML files that people can read and write."""

from pegboard.presets.store import Presets

__all__ = ["Presets"]
