"""Themes: built-in, user-defined and chosen."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import textual.css.parse
from chat_stage import on_chat
from headless import compose_strips
from models import calls
from rich.color import ColorType
from rich.style import Style
from stage import GivenRuntime, as_runtime, on_stage, tool
from textual.color import Color, rgb_to_lab
from textual.css.stylesheet import StylesheetParseError
from textual.theme import Theme
from textual.widgets import Input, Static

from pegboard.config import Settings, load
from pegboard.config.settings import UiSettings
from pegboard.config.theme_choice import ThemeChoice
from pegboard.models import Problem
from pegboard.tui.app import PegboardApp
from pegboard.tui.shell import themes
from pegboard.tui.widgets.external_editor import open_in_editor

SHIPPED, PROBLEMS = themes.load([themes.shipped()])
MINE = 'name = "mine"\nprimary = "#ff0000"\nbackground = "#101010"\n'


def by_name(name: str) -> Theme:
    return next(theme for theme in SHIPPED if theme.name == name)


@pytest.mark.promise("TUI-6")
def test_the_built_in_themes_have_no_problems() -> None:
    assert {theme.name for theme in SHIPPED} >= {"pegboard-dark", "pegboard-light", "pegboard-16"}
    assert PROBLEMS == []


def test_the_built_in_themes_are_valid_in_the_users_folder_too(tmp_path: Path) -> None:
    for file in themes.shipped().glob("*.toml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    found, problems = themes.load([tmp_path])
    assert (sorted(theme.name for theme in found), problems) == (sorted(theme.name for theme in SHIPPED), [])


def contrast(text: str, background: str) -> float:
    lighter, darker = sorted((_luminance(text), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = [part / 255 for part in Color.parse(color).rgb]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize("name", ["pegboard-dark", "pegboard-light"])
def test_every_text_color_is_readable_on_every_background(name: str) -> None:
    colors = by_name(name).to_color_system().generate()
    texts = ("text", "text-muted", "text-primary", "text-secondary", "text-accent", "foreground")
    states = ("text-success", "text-warning", "text-error")
    for text, background in product((*texts, *states), ("background", "surface", "panel")):
        assert contrast(colors[text], colors[background]) >= 4.5, (text, background)
    for kind in ("block-cursor", "block-cursor-blurred", "input-cursor"):
        assert contrast(colors[f"{kind}-foreground"], colors[f"{kind}-background"]) >= 4.5, kind
    assert contrast(colors["footer-key-foreground"], colors["footer-background"]) >= 4.5
    assert contrast(colors["footer-description-foreground"], colors["footer-background"]) >= 4.5


@pytest.mark.promise("TUI-6")
async def test_the_sixteen_color_theme_sends_no_other_colors_to_the_terminal(tmp_path: Path) -> None:
    given = GivenRuntime(tmp_path, settings=Settings(ui=UiSettings(theme="pegboard-16")))
    async with on_stage(given) as stage:
        await stage.press("end", "ctrl+r")
        await stage.until_seen("✓ ok")
        strips = stage.screen._compositor.render_strips(stage.app.size)
        colors = {
            color
            for strip in strips
            for segment in strip
            if segment.style is not None
            for color in (segment.style.color, segment.style.bgcolor)
            if color is not None
        }
        assert {color.type for color in colors} <= {ColorType.DEFAULT, ColorType.STANDARD}, colors


def _parts(app: PegboardApp, text: str) -> list[Style]:
    """Return the styles of the parts of the screen that contain a text."""
    return [part.style or Style() for strip in compose_strips(app) for part in strip if text in part.text]


@pytest.mark.promise("TUI-6")
async def test_a_selected_card_that_asks_can_be_read_with_the_colors_of_the_terminal(tmp_path: Path) -> None:
    turn = calls(("work_remove", {"path": "a.txt"}))
    async with on_chat(tmp_path, turn, config='[ui]\ntheme = "pegboard-16"\n') as stage:
        await stage.say("Remove")
        await stage.asked()
        await stage.select()
        for text in ("awaiting approval", "work.remove may delete", "work.remove", '"a.txt"'):
            [*_, style] = _parts(stage.app, text)
            assert style.bgcolor is None or style.bgcolor.is_default, text


@pytest.mark.promise("TUI-6")
async def test_the_hint_and_the_cursor_of_a_text_area_differ_from_text_in_sixteen_colors(tmp_path: Path) -> None:
    async with on_chat(tmp_path, config='[ui]\ntheme = "pegboard-16"\n') as stage:
        assert [style for style in _parts(stage.app, "sk something;") if not style.dim] == []
        await stage.press(*"abc")
        assert not any(style.dim for style in _parts(stage.app, "abc"))
        cursor = stage.line.get_component_rich_style("text-area--cursor")
        assert cursor.reverse
        assert cursor.color == cursor.bgcolor, "reversed, the default colors differ in every terminal"


@pytest.mark.promise("TUI-6")
async def test_the_cursor_of_a_line_differs_from_its_text_in_sixteen_colors(given: GivenRuntime) -> None:
    given.settings = Settings(ui=UiSettings(theme="pegboard-16"))
    async with on_stage(given) as stage:
        await stage.press("ctrl+p")
        await stage.until_seen("Find a command")
        cursor = stage.app.screen.query_one(Input).get_component_rich_style("input--cursor")
        assert cursor.reverse
        assert cursor.color == cursor.bgcolor, "reversed, the default colors differ in every terminal"


@pytest.mark.promise("TUI-6")
async def test_the_hint_and_the_cursor_of_a_text_area_are_readable_in_the_light_theme(tmp_path: Path) -> None:
    async with on_chat(tmp_path, config='[ui]\ntheme = "pegboard-light"\n') as stage:
        for style in (*_parts(stage.app, "sk something;"), stage.line.get_component_rich_style("text-area--cursor")):
            text, background = style.color, style.bgcolor
            assert text is not None
            assert background is not None
            assert contrast(text.get_truecolor().hex, background.get_truecolor().hex) >= 4.5


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize("theme", ["ansi-dark", "ansi-light", "pegboard-16"])
async def test_the_focus_and_the_selection_are_visible_with_the_colors_of_the_terminal(
    tmp_path: Path, theme: str
) -> None:
    settings = Settings(ui=UiSettings(theme=theme))
    tags = tool("work.tag", "", None, tags={"type": "array", "items": {"type": "string"}})
    problem = Problem(message="The saw is blunt.", severity="warning")
    async with on_stage(GivenRuntime(tmp_path, (tags,), (problem,), settings)) as stage:
        await stage.open("tag")
        assert all(style.reverse for style in _parts(stage.app, "+ add")), "the focused line"
        assert any(style.underline for style in _parts(stage.app, "● work")), "the selected tool"
        await stage.press("ctrl+g")
        await stage.until_seen("The saw is blunt.")
        assert any(style.underline for style in _parts(stage.app, "The saw is blunt.")), "the selected problem"


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize("theme", ["textual-light", "atom-one-light", "solarized-light", "textual-dark"])
async def test_muted_text_of_lists_is_readable_in_the_themes_of_textual(given: GivenRuntime, theme: str) -> None:
    given.settings = Settings(ui=UiSettings(theme=theme))
    async with on_stage(given) as stage:
        shown = _parts(stage.app, "▾ ")
        await stage.press("ctrl+right_square_bracket")
        await stage.until_seen("for a script over tools")
        for style in (*shown, *_parts(stage.app, "for a script over tools")):
            assert style.color is not None
            assert style.bgcolor is not None
            assert contrast(style.color.get_truecolor().hex, style.bgcolor.get_truecolor().hex) >= 4.5


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = ", "Invalid value"),
        ('name = "x"', "`primary`"),
        ('primary = "nonsense"', "'nonsense' is not a color"),
        ('primary = "red"\nsize = 3', "`size`"),
        ('primary = "red"\nname = ""', "`name`"),
        ('primary = "red"\ndark = "yes"', "`dark`"),
        ('primary = "red"\n[variables]\ntext = "nonsense"', "'nonsense' is not a color"),
        ('primary = "red"\n[variables]\nlink-style = "wavy"', "'wavy' is not a text style"),
        ('primary = "red"\n[variables]\n"a b" = "red"', "`a b`"),
        ('primary = "red"\n[variables]\nlink-style = "none bold"', "`none` is used alone"),
        ('primary = "red"\n[variables]\nblock-cursor-text-style = "bold not"', "`not` before a style"),
        ('primary = "red"\nluminosity_spread = nan', "`luminosity_spread`"),
        ('primary = "red"\nluminosity_spread = 1e308', "`luminosity_spread`"),
        ('primary = "red"\ntext_alpha = inf', "`text_alpha`"),
        pytest.param(f"primary = {'[' * 5000}{']' * 5000}", "nested too deeply", id="deep"),
        pytest.param(f"primary = {'1' * 5000}", "it has a number with too many digits", id="digits"),
    ],
)
def test_an_invalid_theme_file_is_a_problem_with_its_reason(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    (tmp_path / "good.toml").write_text(MINE)
    found, problems = themes.load([tmp_path])
    assert [theme.name for theme in found] == ["mine"]
    assert len(problems) == 1
    assert problems[0].file == str(tmp_path / "bad.toml")
    assert reason in problems[0].message


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ('primary = "red"\n[variables]\ntext = "red"\nborder = "nonsense"', "`variables.border`", 4),
        ('primary = "red"\n[variables]\nlink-style = "wavy"', "`variables.link-style`", 3),
        ('primary = "red"\npanel = "nonsense"', "`panel`", 2),
        ('primary = "red"\npanel = ]', "Invalid value", 2),
        ('name = "x"', "`primary`", None),
    ],
)
def test_the_problem_of_a_theme_file_names_the_invalid_value_and_its_line(
    tmp_path: Path, text: str, name: str, line: int | None
) -> None:
    (tmp_path / "bad.toml").write_text(text)
    problem = themes.load([tmp_path])[1][0]
    assert name in problem.message
    assert problem.line == line


def test_undecodable_bytes_and_a_folder_named_like_a_theme_are_problems(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.toml")
    (problem,) = themes.load([tmp_path])[1]
    assert problem.message == "The theme fifo.toml can't be used: it is not a regular file."
    (tmp_path / "fifo.toml").unlink()
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.toml").mkdir()
    assert len(themes.load([tmp_path, tmp_path / "missing"])[1]) == 2


def test_a_users_theme_replaces_the_built_in_one_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(MINE.replace("mine", "pegboard-dark"))
    found, _ = themes.load([themes.shipped(), tmp_path])
    assert next(theme for theme in found if theme.name == "pegboard-dark").primary == "#ff0000"


@pytest.mark.promise("TUI-6")
async def test_the_list_of_themes_begins_with_the_current_one(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        stage.app.theme = "nord"
        stage.app.search_themes()
        await stage.until_seen("● nord")
        await stage.until_seen("  dracula")
        await stage.press("enter")
        await stage.until(lambda: stage.app.screen is stage.screen, "the list is closed")
        assert stage.app.theme == "nord"


@pytest.mark.promise("TUI-6")
async def test_a_changed_theme_file_is_applied_immediately(given: GivenRuntime) -> None:
    given.paths.themes.mkdir(parents=True)
    file = given.paths.themes / "mine.toml"
    file.write_text(MINE)
    async with on_stage(given) as stage:
        stage.app.theme = "mine"
        await stage.until(lambda: stage.screen.styles.background.hex == "#101010", "the theme is worn")
        file.write_text(MINE.replace("#101010", "#202020"))
        await stage.until(lambda: stage.screen.styles.background.hex == "#202020", "the change is worn")
        file.write_text("broken")
        await stage.until_seen("! 1 problem")


@pytest.mark.promise("TUI-6")
async def test_the_chosen_theme_is_used_at_the_next_start(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        assert stage.app.theme == "pegboard-dark"
        stage.app.theme = "pegboard-light"
        kept = given.paths.state / "theme"
        await stage.until(lambda: kept.exists() and "light" in kept.read_text(), "the choice is written")
    assert PegboardApp(as_runtime(given)).theme == "pegboard-light"


@pytest.mark.promise("TUI-6")
async def test_a_theme_of_the_terminals_colors_needs_no_other_variables(given: GivenRuntime) -> None:
    given.paths.themes.mkdir(parents=True)
    (given.paths.themes / "own.toml").write_text('primary = "ansi_blue"\nansi = true\n')
    async with on_stage(given) as stage:
        assert not stage.app.theme_problems
        stage.app.theme = "own"
        await stage.until((given.paths.state / "theme").exists, "it is applied and saved")
    async with on_stage(given) as stage:
        assert stage.app.theme == "own"


async def _with_a_broken_theme(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        stage.app.register_theme(Theme(name="broken", primary="red", variables={"border": "$undefined"}))
        stage.app.theme = "broken"
        await stage.until(lambda: stage.app._exit, "the app ends")


@pytest.mark.promise("TUI-6")
async def test_a_theme_that_ends_the_app_is_not_stored(given: GivenRuntime) -> None:
    with pytest.raises(StylesheetParseError):
        await _with_a_broken_theme(given)
    assert not (given.paths.state / "theme").exists()


async def test_a_chosen_theme_that_cannot_be_saved_is_still_applied(given: GivenRuntime) -> None:
    (given.paths.state / "theme").mkdir(parents=True)  # a folder where the file should be
    async with on_stage(given) as stage:
        stage.app.theme = "pegboard-light"
        await stage.until_seen("The chosen theme could not be saved")
        assert stage.app.theme == "pegboard-light"


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize("theme", ["pegboard-dark", "pegboard-light", "nord", "textual-light"])
async def test_a_terminal_with_256_colors_gets_the_nearest_of_them(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    given.settings = Settings(ui=UiSettings(theme=theme))
    async with on_stage(given) as stage:
        exact = compose_strips(stage.app)
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "xterm-256color")
    async with on_stage(given) as stage:
        fewer = compose_strips(stage.app)
    assert [strip.text for strip in fewer] == [strip.text for strip in exact]
    compared: set[tuple[str, str]] = set()
    for whole, part in zip(exact, fewer, strict=True):
        for segment, other in zip(whole, part, strict=True):
            wanted, found = segment.style or Style(), other.style or Style()
            for one, nearest in ((wanted.color, found.color), (wanted.bgcolor, found.bgcolor)):
                if one is not None and one.triplet is not None:
                    assert nearest is not None
                    assert nearest.type is ColorType.EIGHT_BIT
                    compared.add((one.triplet.hex, nearest.get_truecolor().hex))
    assert len(compared) > 5
    for color, nearest_color in compared:
        assert _difference(color, nearest_color) < 25, (color, nearest_color)


def _difference(one: str, other: str) -> float:
    """Return the distance of two colors in the CIELAB color space; 100 between black and white."""
    first, second = rgb_to_lab(Color.parse(one)), rgb_to_lab(Color.parse(other))
    return math.dist((first.L, first.a, first.b), (second.L, second.a, second.b))


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize(
    ("configured", "chosen", "theme"),
    [
        ("pegboard-dark", None, "pegboard-16"),
        ("pegboard-dark", "pegboard-dark", "pegboard-dark"),
        ("pegboard-dark", "nord", "nord"),
        ("pegboard-light", None, "pegboard-light"),
        ("missing", None, "pegboard-16"),
    ],
)
def test_a_terminal_with_16_colors_gets_the_theme_for_it_unless_another_was_chosen(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch, configured: str, chosen: str | None, theme: str
) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "linux")
    given.settings = Settings(ui=UiSettings(theme=configured))
    if chosen is not None:
        ThemeChoice(given.paths.state / "theme", configured).save(chosen)
    assert PegboardApp(as_runtime(given)).theme == theme


async def test_a_theme_configured_after_the_choice_wins(given: GivenRuntime) -> None:
    ThemeChoice(given.paths.state / "theme", "pegboard-dark").save("nord")
    assert PegboardApp(as_runtime(given)).theme == "nord"
    given.settings = Settings(ui=UiSettings(theme="pegboard-light"))
    assert PegboardApp(as_runtime(given)).theme == "pegboard-light"


async def test_a_missing_theme_is_a_problem_and_the_default_is_applied(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[ui]\ntheme = 'solarised'\n")
    configured, _ = load({"PEGBOARD_CONFIG": str(config)}, tmp_path)
    given = GivenRuntime(tmp_path, settings=configured)
    async with on_stage(given) as stage:
        assert stage.app.theme == "pegboard-dark"
        (problem,) = stage.app.theme_problems
        assert (problem.file, problem.line) == (str(config), 2)
        await stage.press("ctrl+g")
        await stage.until_seen("The theme `solarised` was not found.")


@pytest.mark.promise("TUI-6")
async def test_a_missing_theme_is_applied_once_its_file_exists(given: GivenRuntime) -> None:
    given.paths.themes.mkdir(parents=True)
    given.settings = Settings(ui=UiSettings(theme="mine"))
    async with on_stage(given) as stage:
        await stage.until_seen("! 1 problem")
        (given.paths.themes / "bad.toml").write_text("broken")
        await stage.until_seen("! 2 problems")
        (given.paths.themes / "mine.toml").write_text(MINE)
        await stage.until(lambda: stage.app.theme == "mine", "the theme is worn")
        await stage.until_seen("! 1 problem")


@pytest.mark.promise("TUI-2")
async def test_no_style_is_parsed_twice_with_many_widget_classes(
    given: GivenRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def parse(scope: str, css: str, *rest: object, **options: object) -> object:
        read.append(css)
        return textual.css.parse.parse(scope, css, *rest, **options)  # type: ignore[arg-type]  # passed on as it came

    async with on_stage(given) as stage:
        monkeypatch.setattr("textual.css.stylesheet.parse", parse)
        for number in range(100):
            kind = type(f"Kind{number}", (Static,), {"DEFAULT_CSS": f"Kind{number} {{ height: {number}; }}"})
            await stage.screen.mount(kind())
        assert len(read) == len(set(read)) == 100


async def test_the_palette_changes_the_theme(given: GivenRuntime) -> None:
    async with on_stage(given) as stage:
        await stage.press("ctrl+p")
        await stage.type("theme")
        await stage.until_seen("Everywhere: Theme")
        await stage.press("enter")
        await stage.type("pegboard-light")
        await stage.until_seen("pegboard-light")
        await stage.press("enter")
        await stage.until(lambda: stage.app.theme == "pegboard-light", "the theme is worn")


def test_animations_are_off_by_default(given: GivenRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_ANIMATIONS", raising=False)
    assert PegboardApp(as_runtime(given)).animation_level == "none"
    given.settings = Settings(ui=UiSettings(animations=True))
    assert PegboardApp(as_runtime(given)).animation_level == "full"


async def test_no_color_is_honoured(given: GivenRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_stage(given) as stage:
        assert stage.app.no_color
        assert stage.marked == "fs.list_dir"


async def test_programs_that_get_the_terminal_have_no_color_either(
    given: GivenRuntime,
    monkeypatch: pytest.MonkeyPatch,
    external_editor: Callable[[str], None],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("NO_COLOR", "yes")
    external_editor(f'echo "$NO_COLOR" > {tmp_path / "seen"}')
    file = tmp_path / "a.txt"
    file.write_text("a")
    async with on_stage(given) as stage:
        await open_in_editor(stage.app.screen.app, str(file))
    assert (tmp_path / "seen").read_text() == "1\n"


def test_an_empty_no_color_is_not_a_setting(given: GivenRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert not PegboardApp(as_runtime(given)).no_color
