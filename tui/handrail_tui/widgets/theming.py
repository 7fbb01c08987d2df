"""Themes: TOML in, a Textual theme with our own meanings out.

A theme names what a colour means, not where it is used: `person`, `tool`, `decision`, `waiting`, `needs-you`,
`accepted`, `rejected` for who or what speaks, `text`, `dim`, `faint` for how loud, `background`, `panel`,
`raised`, `line` for the ground. Each is a CSS variable of that name (`$person`, `$needs-you` …); `text` is
`$foreground`, since Textual's `$text` picks black or white by itself.

A person's own theme is a TOML file in the themes folder of the settings; its name is the file's name. It
gives what it changes and takes the rest from `extends` (else from our dark or light theme):

    title = "Mine"
    extends = "handrail-dark"
    [colors]
    person = "#ffd166"

`[textual]` may set any variable of Textual. A mistake is named with its file, line, key and what it may be.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import Theme

import handrail_themes
from handrail_tui.view.text import one_line

DEFAULT = "handrail-dark"
_TEXTUALS = "textual-dark"
GROUND = ("background", "panel", "raised", "line")
LOUDNESS = ("text", "dim", "faint")
MEANINGS = ("accent", "person", "tool", "decision", "waiting", "needs-you", "accepted", "rejected")
COLORS = GROUND + LOUDNESS + MEANINGS
KEYS = ("title", "dark", "ansi", "extends", "colors", "textual")

# Colours that Textual has under the same name, or that it makes itself: not handed on as variables of ours.
_TEXTUAL_OWN = ("background", "panel", "accent", "text")
_RELOAD_S = 1.0


class ThemeError(Exception):
    """A theme that cannot be used: `file:line: key: what is wrong, what it may be`."""


@dataclass(frozen=True, slots=True)
class Source:
    """A theme as it was written: where, and its values with those of the theme that it extends filled in."""

    name: str
    title: str
    dark: bool
    ansi: bool
    colors: Mapping[str, str]
    textual: Mapping[str, str] = field(default_factory=dict)

    def to_theme(self) -> Theme:
        """The theme for Textual, with a variable for each meaning."""
        c = self.colors
        ours = {name: c[name] for name in COLORS if name not in _TEXTUAL_OWN}
        return Theme(
            self.name,
            primary=c["accent"],
            secondary=c["person"],
            accent=c["accent"],
            warning=c["waiting"],
            error=c["rejected"],
            success=c["accepted"],
            foreground=c["text"],
            background=c["background"],
            surface=c["raised"],
            panel=c["panel"],
            dark=self.dark,
            ansi=self.ansi,
            variables={**ours, **_calm(c, self.ansi), **self.textual},
        )


def _calm(c: Mapping[str, str], ansi: bool) -> dict[str, str]:
    """What Textual's own widgets use, tuned to the same few colours."""
    return {
        "surface": c["raised"],
        "panel": c["panel"],
        "text-muted": c["dim"],
        "text-disabled": c["faint"],
        "border": c["accent"],
        "border-blurred": c["line"],
        "scrollbar": c["line"],
        "scrollbar-hover": c["faint"],
        "scrollbar-active": c["accent"],
        "scrollbar-background": c["background"],
        "scrollbar-background-hover": c["background"],
        "scrollbar-background-active": c["background"],
        "scrollbar-corner-color": c["background"],
        "footer-background": c["background"],
        "footer-key-foreground": c["text"],
        "footer-description-foreground": c["dim"],
        "block-cursor-background": c["accent"] if ansi else c["raised"],
        "block-cursor-foreground": c["text"],
        "input-cursor-background": c["accent"],
        "link-color": c["accent"],
        "link-background-hover": c["raised"],
        "ansi-background": c["background"],
        "ansi-foreground": c["text"],
    }


def parse(text: str, name: str, origin: str, known: Mapping[str, Source]) -> Source:
    """Read one theme. `origin` is what errors call the file, `known` what `extends` may name.

    Raises ThemeError.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ThemeError(f"{origin}: not TOML: {error}") from None
    reader = _Reader(text, origin)
    reader.names(data, KEYS, "a theme has")
    base = reader.base(data, known, DEFAULT if reader.flag(data, "dark", True) else "handrail-light")
    colors = reader.table(data, "colors")
    reader.names(colors, COLORS, "colours are", "colors.")
    for key, value in colors.items():
        reader.color(key, value)
    inherited = base.colors if base else {}
    if missing := [key for key in COLORS if key not in colors and key not in inherited]:
        raise ThemeError(f"{origin}: colors: missing {', '.join(missing)}")
    textual = reader.table(data, "textual")
    for key, value in textual.items():
        if not isinstance(value, str):
            reader.fail(key, f"textual.{key}", "must be a text, as in Textual's CSS")
    return Source(
        name,
        reader.text(data, "title", name),
        reader.flag(data, "dark", base.dark if base else True),
        reader.flag(data, "ansi", base.ansi if base else False),
        {**inherited, **colors},
        {**(base.textual if base else {}), **textual},
    )


class _Reader:
    """Checks of one file that know its text, so that an error can name the line."""

    def __init__(self, text: str, origin: str) -> None:
        self._lines, self._origin = text.splitlines(), origin

    def fail(self, key: str, path: str, problem: str) -> None:
        pattern = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
        line = next((n for n, line in enumerate(self._lines, 1) if pattern.match(line)), None)
        where = f"{self._origin}:{line}" if line else self._origin
        raise ThemeError(f"{where}: {path}: {problem}")

    def names(self, table: Mapping[str, Any], allowed: tuple[str, ...], are: str, prefix: str = "") -> None:
        for key in table:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, 1)
                hint = f"did you mean {near[0]}?" if near else f"{are} {', '.join(allowed)}"
                self.fail(key, prefix + key, f"unknown; {hint}")

    def text(self, table: Mapping[str, Any], key: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            self.fail(key, key, "must be a text")
        return str(value)

    def flag(self, table: Mapping[str, Any], key: str, default: bool) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, key, "must be true or false")
        return bool(value)

    def table(self, data: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = data.get(key, {})
        if not isinstance(value, dict):
            self.fail(key, key, f"must be a table: [{key}]")
        return dict(value)

    def base(self, data: Mapping[str, Any], known: Mapping[str, Source], default: str) -> Source | None:
        name = self.text(data, "extends", default)
        if "extends" in data and name not in known:
            self.fail("extends", "extends", f"no theme {name!r}; it may be {', '.join(known)}")
        return known.get(name)

    def color(self, key: str, value: object) -> None:
        try:
            Color.parse(value if isinstance(value, str) else repr(value))
        except ColorParseError:
            problem = f"{value!r} is not a colour; it may be #rrggbb, rgb(…), hsl(…), a CSS name or ansi_…"
            self.fail(key, f"colors.{key}", problem)


def builtin() -> dict[str, Source]:
    """The themes that come with the program, by name."""
    return {
        name: parse(handrail_themes.source(name), name, f"{name}.toml", {}) for name in handrail_themes.NAMES
    }


@dataclass(slots=True)
class Reload:
    """What a look into a person's folder found: themes new or changed, names that are gone, mistakes."""

    themes: list[Theme] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Themes:
    """All themes: ours, and a person's own from `folder` (None, or a missing folder: ours alone)."""

    def __init__(self, folder: Path | None = None) -> None:
        self.sources = builtin()
        self._folder = folder
        self._seen: dict[Path, tuple[int, int]] = {}

    def poll(self) -> Reload:
        """Read the files that are new or changed since the last look."""
        found, now = Reload(), self._stamps()
        for path in self._seen.keys() - now.keys():
            if path.stem in self.sources and path.stem not in handrail_themes.NAMES:
                del self.sources[path.stem]
                found.gone.append(path.stem)
        for path, stamp in sorted(now.items()):
            if self._seen.get(path) != stamp:
                self._read(path, found)
        self._seen = now
        return found

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        if self._folder is None:
            return {}
        stamps = {}
        for path in self._folder.glob("*.toml"):
            try:
                stat = path.stat()
            except OSError:
                continue  # removed between the listing and the look
            stamps[path] = (stat.st_mtime_ns, stat.st_size)
        return stamps

    def _read(self, path: Path, found: Reload) -> None:
        if path.stem in handrail_themes.NAMES:
            found.problems.append(f"{path}: that name is taken by a theme of ours; rename the file")
            return
        try:
            text = path.read_text(encoding="utf-8")
            source = parse(text, path.stem, str(path), self.sources)
        except ThemeError as error:
            found.problems.append(str(error))
        except (OSError, UnicodeDecodeError) as error:
            found.problems.append(f"{path}: cannot be read: {error}")
        else:
            self.sources[path.stem] = source
            found.themes.append(source.to_theme())


def defaults() -> dict[str, str]:
    """For `App.get_theme_variable_defaults`: our variables, should a theme of Textual's own be in force."""
    return dict(builtin()[DEFAULT].to_theme().variables)


def names(app: App[Any]) -> list[str]:
    """The themes that can be chosen: ours and the person's own, not the one that Textual cannot do without."""
    return sorted(name for name in app.available_themes if name != _TEXTUALS)


def install(app: App[Any], folder: Path | None = None) -> Themes:
    """Give `app` our themes and a person's own in place of Textual's; mistakes become notifications.

    Call it before the app runs; then `watch` from its `on_mount`.
    """
    for name in [name for name in app.available_themes if name != _TEXTUALS]:
        app.unregister_theme(name)
    themes = Themes(folder)
    for source in themes.sources.values():
        app.register_theme(source.to_theme())
    return themes


def watch(app: App[Any], themes: Themes) -> None:
    """Look for a person's themes now and once a second, apply changes to the one in force at once."""

    def look() -> None:
        found = themes.poll()
        for theme in found.themes:
            app.register_theme(theme)
        for name in found.gone:
            if app.theme == name:
                app.theme = DEFAULT
            app.unregister_theme(name)
        if any(theme.name == app.theme for theme in found.themes):
            app.mutate_reactive(App.theme)
        for problem in found.problems:
            app.notify(problem, title="Theme not loaded", severity="error", markup=False, timeout=15)

    look()
    app.set_interval(_RELOAD_S, look)


def use(app: App[Any], name: str) -> str:
    """Switch to the theme `name`. Returns an error message when there is none of that name, else nothing."""
    if name not in (known := names(app)):
        return f"there is no theme {one_line(name, 40)}; there are {', '.join(known)}"
    app.theme = name
    return ""
