"""Every link from one page of the project to another leads somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pages import PAGES, ROOT, anchors, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    dead = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if (
            not target.is_relative_to(ROOT)
            or not target.exists()
            or (anchor and anchor not in anchors(target))
        ):
            dead.append(link)
    assert dead == []


def test_every_page_of_docs_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            targets = (link.partition("#")[0] for link in links(page))
            ahead += [t for path in targets if path and (t := (page.parent / path).resolve()) in PAGES]
    assert {name_of(page) for page in set(PAGES) - reached} == set()


def test_the_source_distribution_holds_every_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {name_of(page).partition("/")[0] for page in PAGES} <= set(included)


def test_pages_that_the_code_names_are_there() -> None:
    """`rules.md` or `docs/events.md` in a docstring; what a prompt or an example is called counts as there."""
    there = {name for page in PAGES for name in (page.name, name_of(page))}
    prompts = [path.name for path in (ROOT / "core/handrail/prompts").glob("*.md")]
    there |= {"session.md", *prompts, *(f"handrail/prompts/{name}" for name in prompts)}
    named = {
        (name_of(path), name)
        for folder in ("core", "tui", "themes")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"(?<![\w./])[\w-]+(?:/[\w-]+)*\.md\b", path.read_text("utf-8"))
    }
    assert {f"{path}: {name}" for path, name in named if name not in there} == set()
