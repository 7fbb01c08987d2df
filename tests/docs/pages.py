"""The Markdown pages of the project, and what they say."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DESIGN = ROOT / "docs" / "design"


def name_of(page: Path) -> str:
    """The page as people name it: `docs/design/rules.md`."""
    return page.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    """The page without its code: blocks in fences, indented blocks, words in backticks."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]+`", "", text)


def links(page: Path) -> Iterator[str]:
    """The targets of links and pictures that point into the project."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text("utf-8"))):
        if not re.match(r"[a-z]+:", target):
            yield unquote(target)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    found: dict[str, int] = {}
    made = set()
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text("utf-8"), flags=re.M | re.S)
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")
        number = found.get(anchor, 0)
        found[anchor] = number + 1
        made.add(f"{anchor}-{number}" if number else anchor)
    return made


def block(text: str, heading: str) -> str:
    """The first block in fences below a heading."""
    found = re.search(rf"^#+ {re.escape(heading)}.*?^```\w*\n(.*?)^```", text, re.M | re.S)
    assert found is not None, f"no block under {heading}"
    return found[1]


def program(path: str) -> ModuleType:
    """A program of docs/make, imported."""
    name = f"docs_make_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
