"""`pegboard config show`."""

from __future__ import annotations

import typer

from pegboard.cli.root import JsonOption, PacksOption, group, open_runtime

config = group("config", "Tell what is set, and where.")


@config.command()
def show(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """Print every value of the configuration with where it comes from; secrets are masked."""
    import json as json_

    from pegboard.cli.output import narrate_problems, print_json
    from pegboard.config import Redactor, Secrets, shown_settings
    from pegboard.results.clean import clean_line

    runtime = open_runtime(context)
    narrate_problems(runtime.problems(packs=False))
    settings = list(shown_settings(runtime.settings, Redactor(Secrets(runtime.paths).known())))
    if json:
        print_json(settings)
        return
    for setting in settings:
        value = json_.dumps(setting.value, ensure_ascii=False)
        print(clean_line(f"{setting.key} = {value}  # {setting.origin}"))
