"""Dialog that shows every setting, where it is set, and changes or resets it in the user's file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import JsonValue
from textual import on, work
from textual.binding import BindingType
from textual.content import Content

from pegboard.config import Redactor, Secrets, ShownSetting, description, set_values, shown_settings, typed_value
from pegboard.errors import ConfigError
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings, key_of
from pegboard.tui.widgets.dialog import ListDialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_STATUS: Final = {
    "used": "",
    "trusted": "set by this trusted folder",
    "untrusted": "not used: the folder is not trusted",
    "unknown": "not used: unknown setting",
    "ignored": "not used: only your own configuration sets it",
    "withheld": "not used: this folder configures its pack or server",
}


class SettingsScreen(ListDialog[None]):
    """All settings with their values and origins.

    Args:
        runtime: Provides the settings.
        reload: Applies the changed configuration.
    """

    PAGE = "Settings"
    DEFAULT_CSS = """
    SettingsScreen > #box { height: 36; #preview { height: 7; } }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("settings.reset", "delete", "reset", "Reset", "Remove the setting from your file.", footer=True),
        Command("settings.file", "f4", "file", "File", "Open your configuration file in your editor.", footer=True),
        Command("settings.close", "escape", "close", "Close", "Close the settings.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, reload: Callable[[], Awaitable[None]]) -> None:
        super().__init__("Settings", "{pick.choose} changes · {settings.reset} resets")
        self._runtime = runtime
        self._reload = reload
        self._settings: Sequence[ShownSetting] = ()
        self._in_use: Mapping[str, JsonValue] = {}
        self._descriptions: Mapping[str, str] = {}

    def on_mount(self) -> None:
        """Read the settings, again whenever the configuration changes."""
        self.list.empty = "Loading…"
        self._read()
        self.watch(self.app, "settings_version", self._read_again, init=False)

    def _read_again(self) -> None:
        self._read(self._marked.key if self._marked else "")

    @work(exclusive=True, group="read")
    async def _read(self, marked: str = "") -> None:
        """List the settings and select one."""
        settings, self._in_use = await asyncio.to_thread(self._load)
        self._settings = settings
        self._descriptions = await asyncio.to_thread(lambda: {one.key: description(one.key) for one in settings})
        keys = [setting.key for setting in settings]
        lines = [
            PickLine(
                clean_line(f"{'●' if setting.origin != 'default' else ' '} {setting.key} = {_written(setting.value)}")
            )
            for setting in settings
        ]
        self.list.empty = "No matches."
        self.list.renew(lines, keys.index(marked) if marked in keys else 0)

    def _load(self) -> tuple[Sequence[ShownSetting], Mapping[str, JsonValue]]:
        """Return the configured settings, and the values in use."""
        redactor = Redactor(Secrets(self._runtime.paths).known())
        in_use = {
            setting.key: setting.value
            for setting in shown_settings(self._runtime.settings, redactor)
            if setting.status in {"used", "trusted"}
        }
        return [*shown_settings(self._runtime.configuration.read_settings(), redactor)], in_use

    @property
    def _marked(self) -> ShownSetting | None:
        index = self.list.marked
        return self._settings[index] if index is not None and index < len(self._settings) else None

    @on(PickList.Marked)
    def _show_marked(self, event: PickList.Marked) -> None:
        event.stop()
        setting = self._marked
        self.refresh_bindings()
        if setting is None:
            self.show_preview(Content(), Content())
            return
        lines = [*filter(None, [self._descriptions.get(setting.key)])]
        lines += [f"Value: {_written(setting.value)}", f"Set in: {setting.origin}"]
        in_use = self._in_use.get(setting.key)
        if setting.status == "used" and in_use != setting.value:
            lines.append(f"In use until Pegboard restarts: {_written(in_use)}")
        if _STATUS[setting.status]:
            lines.append(_STATUS[setting.status])
        if why := self._why_fixed(setting):
            lines.append(why)
        about = Content.styled(clean_line(setting.key), "bold")
        self.show_preview(about, Content("\n".join(clean_line(line) for line in lines)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to reset only a selected setting."""
        return self._marked is not None if action == "reset" else super().check_action(action, parameters)

    @property
    def _file_key(self) -> str:
        return key_of(self, "settings.file") or "Settings: File"

    def _why_fixed(self, setting: ShownSetting) -> str:
        """Return why a setting can't be changed here; empty if it can."""
        file = str(self._runtime.paths.config_file)
        if setting.masked:
            return f"It may contain a secret. {self._file_key} opens the file, where you can change it."
        if setting.status != "used":
            return f"{self._file_key} opens your file, where you can change it."
        if setting.origin != "default" and not setting.origin.startswith(file):
            return f"It is overridden by {setting.origin}."
        return ""

    # Changes

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        self._change()

    @work(exclusive=True, group="change")
    async def _change(self) -> None:
        """Ask for a value as JSON or text, and write it."""
        from pegboard.tui.dialogs.ask_name import ask_name

        setting = self._marked
        if setting is None:
            return
        if why := self._why_fixed(setting):
            self.notify(clean_line(why), severity="warning", markup=False)
            return
        before = setting.value if isinstance(setting.value, str) else _written(setting.value)
        seen = setting.value

        async def write(text: str) -> bool:
            nonlocal seen
            settings, _ = await asyncio.to_thread(self._load)
            now = next((one.value for one in settings if one.key == setting.key), None)
            if now != seen:
                seen = now
                raise ConfigError(
                    f"Another program has changed {setting.key} to {_written(now)}. Press enter again to overwrite it."
                )
            await self._write(setting.key, typed_value(text, setting.value))
            return True

        about = self._descriptions.get(setting.key, "")
        await ask_name(self.app, clean_line(setting.key), "" if before == "null" else before, write, about=about)

    @work(exclusive=True, group="change")
    async def action_reset(self) -> None:
        """Remove the selected setting from the user's file."""
        setting = self._marked
        if setting is None or setting.origin == "default":
            self.notify("This setting already has its default.", markup=False)
        elif setting.status == "used" and not setting.origin.startswith(str(self._runtime.paths.config_file)):
            self.notify(f"It is set by {clean_line(setting.origin)}. Remove it there.", markup=False)
        else:
            try:
                await self._write(setting.key, None)
            except ConfigError as error:
                self.notify(clean_line(str(error)), severity="error", markup=False)

    async def _write(self, key: str, value: JsonValue) -> None:
        """Set a value in the user's file, or remove it (None), and apply it.

        Raises:
            ConfigError: The file can't be changed.
        """
        problem = await asyncio.to_thread(set_values, self._runtime.paths.config_file, {key: value})
        if problem is not None:
            raise ConfigError(str(problem))
        await self._reload()
        self._read(key)

    @work(exclusive=True, group="change")
    async def action_file(self) -> None:
        """Open the user's configuration file."""
        from pegboard.tui.widgets.external_editor import open_or_create

        await open_or_create(self.app, str(self._runtime.paths.config_file))
        await self._reload()
        self._read()


def _written(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
