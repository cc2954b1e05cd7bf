"""Folders, settings, secrets, and the folders that the user trusts.

`Paths.from_environment()` returns the folders, `load()` the settings and their problems, and `packs_folders()` the
folders that are searched for packs. `Secrets` finds secrets, a `Redactor` removes them from texts, and
`shown_settings()` returns the settings without them. `review_folder()` returns what a folder would change if the user
trusted it, and `trust_folder()` records the trust.
"""

from typing import TYPE_CHECKING

from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.config.appearance import Appearance
    from pegboard.config.appearance_reader import simple_appearance
    from pegboard.config.descriptions import description
    from pegboard.config.display import ShownSetting, credentials_in, shown_settings
    from pegboard.config.edit import is_set, set_values, typed_value
    from pegboard.config.loader import load
    from pegboard.config.paths import Paths, packs_folders
    from pegboard.config.redaction import Redactor
    from pegboard.config.review import TrustRequest, review_folder, trust_folder
    from pegboard.config.secrets import Secret, Secrets
    from pegboard.config.servers import (
        ResolvedServer,
        configured_servers,
        given_option,
        given_server,
        pack_name,
        resolve_server,
    )
    from pegboard.config.settings import (
        PacksSettings,
        Settings,
        ToolsSettings,
        UiSettings,
    )
    from pegboard.config.trust import TrustError, TrustFile

__all__ = [
    "Appearance",
    "PacksSettings",
    "Paths",
    "Redactor",
    "ResolvedServer",
    "Secret",
    "Secrets",
    "Settings",
    "ShownSetting",
    "ToolsSettings",
    "TrustError",
    "TrustFile",
    "TrustRequest",
    "UiSettings",
    "configured_servers",
    "credentials_in",
    "description",
    "given_option",
    "given_server",
    "is_set",
    "load",
    "pack_name",
    "packs_folders",
    "resolve_server",
    "review_folder",
    "set_values",
    "shown_settings",
    "simple_appearance",
    "trust_folder",
    "typed_value",
]

_ON_DEMAND = {
    "Appearance": "appearance",
    "PacksSettings": "settings",
    "Paths": "paths",
    "Redactor": "redaction",
    "ResolvedServer": "servers",
    "Secret": "secrets",
    "Secrets": "secrets",
    "Settings": "settings",
    "ShownSetting": "display",
    "ToolsSettings": "settings",
    "TrustError": "trust",
    "TrustFile": "trust",
    "TrustRequest": "review",
    "UiSettings": "settings",
    "configured_servers": "servers",
    "credentials_in": "display",
    "description": "descriptions",
    "given_option": "servers",
    "given_server": "servers",
    "load": "loader",
    "pack_name": "servers",
    "packs_folders": "paths",
    "resolve_server": "servers",
    "review_folder": "review",
    "is_set": "edit",
    "set_values": "edit",
    "shown_settings": "display",
    "simple_appearance": "appearance_reader",
    "trust_folder": "review",
    "typed_value": "edit",
}
"""Name → module, imported on first use: most commands need only the settings."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
