"""Makes docs/architecture.svg: `python docs/make/architecture.py`. A test holds it equal."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

PICTURE: Final = Path(__file__).parents[1] / "architecture.svg"
WIDTH, HEIGHT = 900, 528
TEXT, DIM, LINE, PANEL, ACCENT, PERSON = "#d8dee6", "#93a1b0", "#3d4a57", "#171d24", "#6ea8fe", "#8fd18a"


@dataclass(frozen=True, slots=True)
class Box:
    """A part of the program: where it lies on the picture, its name, and what it is in one line."""

    x: int
    y: int
    width: int
    name: str
    about: str

    HEIGHT = 58

    def draw(self) -> str:
        middle = self.x + self.width / 2
        return (
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.HEIGHT}" rx="6" '
            f'fill="{PANEL}" stroke="{LINE}"/>\n'
            + _words(middle, self.y + 25, self.name, TEXT, 15)
            + _words(middle, self.y + 44, self.about, DIM, 12)
        )


BOXES: Final = (
    Box(30, 66, 250, "screens · widgets", "draw what changed"),
    Box(325, 66, 250, "controller · commands", "keys and words become commands"),
    Box(620, 66, 250, "lines", "--plain, --json, exports"),
    Box(30, 152, 250, "view", "fold: events → what is shown"),
    Box(325, 270, 250, "session", "commands in, events out"),
    Box(620, 270, 250, "journal", "append-only, fsynced"),
    Box(30, 356, 250, "recovery", "classify, decide: pure"),
    Box(325, 356, 250, "loop", "request · batch · recover"),
    Box(620, 356, 250, "tools", "run here, ask first"),
    Box(325, 446, 250, "providers", "one file per wire"),
)
COMMAND, EVENT = (
    f'stroke="{PERSON}" marker-end="url(#command)"',
    f'stroke="{ACCENT}" marker-end="url(#event)"',
)
ARROWS: Final = (
    (COMMAND, "M 410 124 V 266"),
    (COMMAND, "M 410 328 V 352"),
    (COMMAND, "M 410 414 V 442"),
    (COMMAND, "M 575 395 H 616"),
    (EVENT, "M 490 446 V 418"),
    (EVENT, "M 490 356 V 332"),
    (EVENT, "M 616 375 H 579"),
    (EVENT, "M 575 299 H 616"),
    (EVENT, "M 490 270 V 248 H 155 V 214"),
    (EVENT, "M 490 270 V 248 H 745 V 128"),
    (EVENT, "M 155 152 V 128"),
    (f'stroke="{DIM}"', "M 325 385 H 280"),
)


def picture() -> str:
    """The SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="ui-sans-serif, system-ui, sans-serif">\n'
        "<title>Commands go down to the loop and the provider; events come back up</title>\n"
        f"<defs>{_head('command', PERSON)}{_head('event', ACCENT)}</defs>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#0f1216"/>\n',
        f'<path d="M 20 230 H 880" stroke="{LINE}" stroke-dasharray="3 5"/>\n',
        _words(30, 34, "the program · tui/handrail_tui", DIM, 13, "start"),
        _words(30, 290, "the library · core/handrail", DIM, 13, "start"),
        _words(560, 34, "commands ↓", PERSON, 13, "start"),
        _words(680, 34, "events ↑", ACCENT, 13, "start"),
    ]
    parts += [f'<path d="{way}" fill="none" stroke-width="1.6" {style}/>\n' for style, way in ARROWS]
    parts += [box.draw() for box in BOXES]
    return "".join([*parts, "</svg>\n"])


def _words(x: float, y: float, words: str, colour: str, size: int, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(words)}</text>\n"
    )


def _head(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="{colour}"/></marker>'
    )


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(), "utf-8")
    sys.stdout.write(f"docs/{PICTURE.name}\n")


if __name__ == "__main__":
    main()
