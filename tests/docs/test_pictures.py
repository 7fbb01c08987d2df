"""Pictures of the pages: each one that is shown is there, loads nothing, and is what the program draws."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
WORDS = {
    "run.svg": ("RUNNING", "connection lost", "src/cart.py", "retry"),
    "needs-you.svg": ("NEEDS YOU", "Only you can do this", "captcha"),
    "waiting.svg": ("WAITING", "asks again at", "0:37:47"),
    "home.svg": ("needs you", "waiting until", "running elsewhere", "interrupted"),
}


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("docs_pictures", ROOT / "docs" / "make" / "pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in (("TZ", "UTC"), ("HOME", "/home/ada")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield module
    monkeypatch.undo()
    time.tzset()


def words_of(svg: str) -> str:
    return re.sub(r"<[^>]+>", "", svg).replace("&#160;", " ")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_picture_of_a_page_is_there(page: Path) -> None:
    shown = re.findall(r"!\[[^]]*\]\(([^)\s]+)\)", page.read_text("utf-8"))
    assert [name for name in shown if not (page.parent / name).is_file()] == []
    assert page.name != "README.md" or "docs/run.svg" in shown


@pytest.mark.parametrize("name", WORDS)
def test_a_kept_picture_tells_what_it_is_for_and_loads_nothing(name: str) -> None:
    svg = (ROOT / "docs" / name).read_text("utf-8")
    assert [word for word in WORDS[name] if word not in words_of(svg)] == []
    assert not re.search(r"@import|@font-face|<image|<script|xlink:href|url\((?!#)", svg)


@pytest.mark.parametrize("name", WORDS)
def test_the_command_makes_the_pictures_that_are_kept(name: str, pictures: ModuleType) -> None:
    drawn = words_of(pictures.picture(name))
    assert drawn == words_of((ROOT / "docs" / name).read_text("utf-8")), "run: python docs/make/pictures.py"
