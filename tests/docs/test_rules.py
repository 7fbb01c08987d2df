"""The rule book and those who cite it: no number without a rule, no rule without a test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pages import DESIGN, ROOT, name_of

RULES = (DESIGN / "rules.md").read_text("utf-8")
CONTRACT, _, NOT_YET = RULES.partition("\n## Not yet\n")
CITING = ("core", "tui", "themes", "tests", "docs")
NUMBER = r"[SLRWUKHJ]\d{1,2}"

NOT_RULES = {"S0": "a pricing tier that Azure names in its errors"}

UNTESTED = {
    "U9": "not implemented yet",
}
"""Rules that no test cites, and why. A rule leaves this table with its first test."""


def defined(text: str = CONTRACT) -> list[str]:
    return re.findall(rf"^- \*\*({NUMBER})\*\* ", text, re.M)


def sources() -> Iterator[tuple[str, str]]:
    """Every file that may cite a rule, with its text."""
    for page in sorted(ROOT.glob("*.md")):
        yield name_of(page), page.read_text("utf-8")
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md", ".toml", ".tcss") and path != Path(__file__):
                yield name_of(path), path.read_text("utf-8")


def cited_by_tests() -> set[str]:
    """Rules in the names of tests and scenarios, and in what their words cite; `L1 to L3` cites three."""
    found: set[str] = set()
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix not in (".py", ".toml") or path == Path(__file__):
            continue
        text = path.read_text("utf-8")
        found.update(re.findall(rf"\bdef test_({NUMBER})_", text))
        for words in re.findall(rf"\brules? ({NUMBER}(?:(?:,| and| to) {NUMBER})*)", text):
            found.update(expanded(words))
        if path.suffix == ".toml":
            found.update(re.findall(rf"^about *= *\"({NUMBER})\b", text, re.M))
            named = re.match(r"([slrwukhj])(\d\d)-", path.name)
            found.update({f"{named[1].upper()}{int(named[2])}"} if named else ())
    return found


def expanded(words: str) -> set[str]:
    found = set(re.findall(NUMBER, words))
    for letter, first, last in re.findall(r"([A-Z])(\d+) to [A-Z](\d+)", words):
        found.update(f"{letter}{n}" for n in range(int(first), int(last) + 1))
    return found


def test_each_rule_is_there_once_and_in_order() -> None:
    rules = defined()
    by_letter: dict[str, list[int]] = {}
    for rule in rules:
        by_letter.setdefault(rule[0], []).append(int(rule[1:]))
    assert {letter: len(numbers) for letter, numbers in by_letter.items()} == {
        letter: numbers[-1] for letter, numbers in by_letter.items()
    }
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in by_letter.values())


def test_every_rule_number_that_is_cited_exists() -> None:
    known = {*defined(), *NOT_RULES}
    unknown = {
        f"{name}: {number}"
        for name, text in sources()
        for number in re.findall(rf"(?<![\w#]){NUMBER}(?!\w)|(?<=\btest_){NUMBER}(?=_)", text)
        if number not in known
    }
    assert unknown == set()


def test_every_rule_has_a_test_that_cites_it() -> None:
    cited = cited_by_tests()
    assert [rule for rule in defined() if rule not in cited and rule not in UNTESTED] == []
    assert [rule for rule in UNTESTED if rule in cited] == [], "these have tests now: take them off the table"


def test_what_is_not_yet_there_is_a_rule() -> None:
    assert set(defined(NOT_YET)) <= set(defined())


def test_ranges_are_read_as_all_their_rules() -> None:
    assert expanded("L9 to L11, S2 and S4") == {"L9", "L10", "L11", "S2", "S4"}
