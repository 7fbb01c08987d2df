"""Themes: every one whole and readable, a person's own picked up, mistakes named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.color import Color
from textual.widgets import Static

import handrail_themes
from handrail_tui.screens.themes import ThemesScreen
from handrail_tui.widgets import theming
from handrail_tui.widgets.theming import COLORS, LOUDNESS, MEANINGS, ThemeError, Themes


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it."""

    def luminance(color: str) -> float:
        parts = [channel / 255 for channel in Color.parse(color).rgb]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class Sample(App[None]):
    """An app that uses each of our variables, and keeps what it was told."""

    CSS = "\n".join(f".{name} {{ color: ${name}; }}" for name in COLORS if name != "text")

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        self.told: list[str] = []
        self.themes = theming.install(self, folder)
        self.theme = theming.DEFAULT

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.defaults()

    def compose(self) -> ComposeResult:
        yield Static("x", classes="person")

    def on_mount(self) -> None:
        theming.watch(self, self.themes)

    def notify(self, message: str, **_: object) -> None:  # type: ignore[override]
        self.told.append(message)

    @property
    def person(self) -> str:
        return self.query_one(Static).styles.color.hex.lower()


@pytest.mark.parametrize("name", handrail_themes.NAMES)
def test_each_theme_gives_every_meaning(name: str) -> None:
    source = theming.builtin()[name]
    assert tuple(sorted(source.colors)) == tuple(sorted(COLORS))
    theme = source.to_theme()
    assert set(COLORS) <= {**theme.to_color_system().generate(), **theme.variables}.keys()


@pytest.mark.parametrize(
    ("name", "least"), [("handrail-dark", 4.5), ("handrail-light", 4.5), ("high-contrast", 7.0)]
)
def test_text_can_be_read_on_every_ground(name: str, least: float) -> None:
    colors = theming.builtin()[name].colors
    poor = {
        f"{text} on {ground}": round(ratio, 2)
        for text in (*LOUDNESS, *MEANINGS)
        for ground in ("background", "panel", "raised")
        if (ratio := contrast(colors[text], colors[ground])) < least
    }
    assert poor == {}


def test_the_ansi_theme_uses_the_terminals_colours_only() -> None:
    source = theming.builtin()["ansi"]
    assert source.ansi
    assert all(value.startswith("ansi_") for value in source.colors.values())


@pytest.mark.parametrize("name", handrail_themes.NAMES)
async def test_an_app_runs_in_each_theme(name: str) -> None:
    app = Sample()
    async with app.run_test() as pilot:
        app.theme = name
        await pilot.pause()
        assert app.person == Color.parse(theming.builtin()[name].colors["person"]).hex.lower()


async def test_no_color_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Sample()
    async with app.run_test() as pilot:
        await pilot.pause()
        segments = [s for strip in app.screen._compositor.render_strips() for s in strip]
        colors = {s.style.color for s in segments if s.style and s.style.color}
        triplets = [c.triplet for c in colors if c.triplet]
        assert triplets
        assert all(t.red == t.green == t.blue for t in triplets)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 3", "mine.toml:1: title: must be a text"),
        ('dark = "yes"', "mine.toml:1: dark: must be true or false"),
        ("colours = {}", "colours: unknown; did you mean colors?"),
        (
            '[colors]\nperson = "blurple"',
            "mine.toml:2: colors.person: 'blurple' is not a colour; it may be #rrggbb",
        ),
        ("[colors]\nperson = 7", "mine.toml:2: colors.person: 7 is not a colour"),
        ('[colors]\nneeds_you = "red"', "colors.needs_you: unknown; did you mean needs-you?"),
        ('[colors]\nxyzzy = "red"', "unknown; colours are background, panel"),
        ('extends = "nord"', "extends: no theme 'nord'; it may be handrail-dark, handrail-light"),
        ("colors = 1", "colors: must be a table: [colors]"),
        ("[textual]\nborder = 1", "textual.border: must be a text"),
        ("title =", "mine.toml: not TOML:"),
    ],
)
def test_a_mistake_is_named_with_file_line_key_and_what_it_may_be(text: str, words: str) -> None:
    with pytest.raises(ThemeError) as caught:
        theming.parse(text, "mine", "mine.toml", theming.builtin())
    assert words in str(caught.value)


def test_a_persons_theme_gives_only_what_it_changes() -> None:
    known = theming.builtin()
    mine = theming.parse('dark = false\n[colors]\nperson = "#123456"', "mine", "mine.toml", known)
    assert mine.colors == {**known["handrail-light"].colors, "person": "#123456"}
    assert not mine.dark
    child = theming.parse('extends = "ansi"', "child", "child.toml", known)
    assert child.ansi


def touch(path: Path, text: str, tick: int) -> None:
    path.write_text(text)
    os.utime(path, ns=(tick, tick))


def test_the_folder_is_looked_at_again_and_again(tmp_path: Path) -> None:
    themes = Themes(tmp_path)
    assert themes.poll() == theming.Reload()
    touch(tmp_path / "mine.toml", '[colors]\nperson = "#111111"', 1)
    assert [t.name for t in themes.poll().themes] == ["mine"]
    assert themes.poll() == theming.Reload()
    touch(tmp_path / "mine.toml", '[colors]\nperson = "#222222"', 2)
    assert themes.poll().themes[0].variables["person"] == "#222222"
    touch(tmp_path / "mine.toml", "oops", 3)
    broken = themes.poll()
    assert broken.themes == [] and len(broken.problems) == 1
    assert themes.sources["mine"].colors["person"] == "#222222", "the last good one stays"
    (tmp_path / "mine.toml").unlink()
    assert themes.poll().gone == ["mine"]


def test_a_theme_of_ours_cannot_be_replaced_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "ansi.toml").write_text("")
    (tmp_path / "broken.toml").write_bytes(b"\xff")
    found = Themes(tmp_path).poll()
    assert "that name is taken" in found.problems[0]
    assert "cannot be read" in found.problems[1]


async def test_the_theme_in_force_changes_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(theming, "_RELOAD_S", 0.01)
    touch(tmp_path / "mine.toml", '[colors]\nperson = "#111111"', 1)
    app = Sample(tmp_path)
    async with app.run_test() as pilot:
        app.theme = "mine"
        await pilot.pause()
        assert app.person == "#111111"
        touch(tmp_path / "mine.toml", '[colors]\nperson = "#222222"', 2)
        await pilot.pause(0.05)
        assert app.person == "#222222"
        touch(tmp_path / "mine.toml", "[colors]\nperson = [/]", 3)
        await pilot.pause(0.05)
        assert len(app.told) == 1 and "mine.toml" in app.told[0]
        (tmp_path / "mine.toml").unlink()
        await pilot.pause(0.05)
        assert app.theme == theming.DEFAULT
        assert "mine" not in app.available_themes


async def test_the_list_wears_each_theme_and_esc_takes_the_old_one_back() -> None:
    app = Sample()
    ended: list[str | None] = []
    async with app.run_test() as pilot:
        app.push_screen(ThemesScreen(app.themes), ended.append)
        await pilot.pause()
        await pilot.press("down")
        await pilot.pause()
        assert app.theme == "handrail-light"
        await pilot.press("escape")
        await pilot.pause()
        assert app.theme == "handrail-dark" and ended == [None]
        app.push_screen(ThemesScreen(app.themes), ended.append)
        await pilot.pause()
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert app.theme == "high-contrast" and ended == [None, "high-contrast"]
