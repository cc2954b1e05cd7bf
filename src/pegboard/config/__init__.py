"""Where Pegboard keeps its files, and what its user has set.

`Paths.from_environment()` says where everything is, `load()` gives the settings and what is wrong with them, and
`packs_folders()` the folders in which tools are looked for. `Secrets` finds secrets, a `Redactor` takes them out of
what is shown or kept, and `shown_settings()` gives the settings without them.
"""

from pegboard.config.load import load
from pegboard.config.paths import Paths, packs_folders
from pegboard.config.redaction import Redactor
from pegboard.config.secrets import Secret, Secrets
from pegboard.config.settings import (
    AskSettings,
    McpServer,
    McpSettings,
    ModelSettings,
    PacksSettings,
    Settings,
    ToolsSettings,
    UiSettings,
)
from pegboard.config.showing import ShownSetting, credentials_in, shown_settings

__all__ = [
    "AskSettings",
    "McpServer",
    "McpSettings",
    "ModelSettings",
    "PacksSettings",
    "Paths",
    "Redactor",
    "Secret",
    "Secrets",
    "Settings",
    "ShownSetting",
    "ToolsSettings",
    "UiSettings",
    "credentials_in",
    "load",
    "packs_folders",
    "shown_settings",
]
