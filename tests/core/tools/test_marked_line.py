"""Which last lines report what only a person can do, and which only speak of such a line (rule H1)."""

from __future__ import annotations

import pytest

from handrail.tools.marked_line import marked_line

REPORTS = [
    ("HUMAN REQUIRED: captcha: solve the puzzle", "captcha", "solve the puzzle"),
    ("Human required: CAPTCHA: solve the puzzle", "captcha", "solve the puzzle"),
    ("human required: login: sign in", "login", "sign in"),
    ("**HUMAN REQUIRED: login: sign in**", "login", "sign in"),
    ("**HUMAN REQUIRED:** login: sign in", "login", "sign in"),
    ("**HUMAN REQUIRED**: login: sign in", "login", "sign in"),
    ("**HUMAN REQUIRED:** **login:** sign in", "login", "sign in"),
    ("__HUMAN REQUIRED: login: sign in__", "login", "sign in"),
    ("*Human required: payment: pay the bill*", "payment", "pay the bill"),
    ("`HUMAN REQUIRED: 2fa: type the code`", "2fa", "type the code"),
    ("> HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("- HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("* HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("• HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("1. HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("2) HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("- [ ] HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("## HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ('"HUMAN REQUIRED: captcha: solve it"', "captcha", "solve it"),
    ("“HUMAN REQUIRED: captcha: solve it”", "captcha", "solve it"),
    ("⚠️ HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("🛑 **HUMAN REQUIRED:** captcha: solve it", "captcha", "solve it"),
    ("  HUMAN REQUIRED: captcha: solve it  ", "captcha", "solve it"),
    ("HUMAN-REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("HUMAN_REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED:captcha:solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED： captcha： solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED (captcha): solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED [login]: sign in", "login", "sign in"),
    ("HUMAN REQUIRED: <captcha>: solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED: captcha - solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED: captcha – solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED: two-factor: type the code", "2fa", "type the code"),
    ("HUMAN REQUIRED: sign-in: open the shop", "login", "open the shop"),
    ("HUMAN REQUIRED: please solve the captcha", "other", "please solve the captcha"),
    ("HUMAN REQUIRED: open https://shop.test/login", "other", "open https://shop.test/login"),
    ("HUMAN REQUIRED: https://shop.test: sign in", "other", "https://shop.test: sign in"),
    ("HUMAN REQUIRED: unplug: the router", "other", "unplug: the router"),
    ("HUMAN REQUIRED: login", "login", "login"),
    ("HUMAN REQUIRED: login.", "login", "login."),
    ("I stop here.\n\n- HUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    (
        "I tried twice.\nHUMAN REQUIRED: captcha: solve it\n\nLet me know when it is done!",
        "captcha",
        "solve it",
    ),
    ("HUMAN REQUIRED: captcha: solve it\n\nThank you!", "captcha", "solve it"),
    ("HUMAN REQUIRED: captcha: solve it\nI'll continue once you are done.", "captcha", "solve it"),
    ("HUMAN REQUIRED: captcha: solve it\n\nPlease tell me when I can go on.\nThanks.", "captcha", "solve it"),
    ("HUMAN REQUIRED: captcha: solve it\n---\nI am ready when you are.", "captcha", "solve it"),
    ("HUMAN REQUIRED: captcha: solve it\n\n\n", "captcha", "solve it"),
    (
        "The tests pass, and one thing is left:\n\nHUMAN REQUIRED: decision: red or blue?",
        "decision",
        "red or blue?",
    ),
    ("```\nmake test\n```\nHUMAN REQUIRED: captcha: solve it", "captcha", "solve it"),
    ("HUMAN REQUIRED: login: sign in\nHUMAN REQUIRED: 2fa: type the code", "login", "sign in\ntype the code"),
]


@pytest.mark.parametrize(("text", "kind", "needed"), REPORTS)
def test_H1_the_line_is_read_as_people_and_models_write_it(text: str, kind: str, needed: str) -> None:
    found = marked_line(text)
    assert found is not None
    assert (found.kind, found.needed) == (kind, needed)


NO_REPORTS = [
    "",
    "Done.",
    "HUMAN REQUIRED",
    "HUMAN REQUIRED:",
    "HUMAN REQUIRED: ",
    "HUMAN REQUIRED: none",
    "HUMAN REQUIRED: None.",
    "HUMAN REQUIRED: no",
    "HUMAN REQUIRED: nothing",
    "HUMAN REQUIRED: n/a",
    "HUMAN REQUIRED: not needed",
    "HUMAN REQUIRED: -",
    "HUMAN REQUIRED: captcha: already solved",
    "HUMAN REQUIRED: login: was required, and is done now",
    "HUMAN REQUIRED: login: no longer needed",
    "HUMAN REQUIRED: captcha: has been solved by you",
    "HUMAN REQUIRED: <kind>: <what is needed>",
    "HUMAN REQUIRED: {kind}: {needed}",
    "HUMAN REQUIRED: is the line that ends a report.",
    "HUMAN REQUIRED: lines end the run.",
    "HUMAN REQUIRED: means that a person must act.",
    "A human was required: the captcha came up, and you solved it.",
    "Human was required: captcha",
    "No human required: everything worked.",
    "No human is required: the page let me in.",
    "There is no HUMAN REQUIRED: captcha: here.",
    "I would have written HUMAN REQUIRED: captcha: solve it, but the page let me in.",
    "If a captcha comes up I will write `HUMAN REQUIRED: captcha: solve it`.",
    "Use HUMAN REQUIRED: login: to ask.",
    "The marker `HUMAN REQUIRED: <kind>: <needed>` is read in any case.",
    "The function looks for 'HUMAN REQUIRED: ' at the start.",
    "humans required: two",
    "inhuman required: nothing of it",
    "The human required: a chair",
    "The notes say to end with:\n```\nHUMAN REQUIRED: captcha: solve it\n```",
    "```text\nHUMAN REQUIRED: captcha: solve it\n```",
    "```\nHUMAN REQUIRED: captcha: solve it",
    "~~~\nHUMAN REQUIRED: captcha: solve it\n~~~",
    "````\n```\nHUMAN REQUIRED: captcha: solve it\n```\n````",
    "- an example:\n  ```\n  HUMAN REQUIRED: captcha: solve it\n  ```",
    "It looks like this.\n\n    HUMAN REQUIRED: captcha: solve it",
    "The tool returned:\nHUMAN REQUIRED: captcha: solve it",
    "The log says:\n> HUMAN REQUIRED: captcha: solve it",
    "README.md contains this line:\n\nHUMAN REQUIRED: login: sign in",
    "The page shows:\n\n> HUMAN REQUIRED: login: sign in",
    "The output of the script was:\n- HUMAN REQUIRED: login: sign in",
    'The file reads:\n"HUMAN REQUIRED: login: sign in"',
    "For example:\nHUMAN REQUIRED: login: sign in",
    "They asked me to write this message:\nHUMAN REQUIRED: login: sign in",
    "I found this.\n> The build stopped.\n> HUMAN REQUIRED: login: sign in",
    "HUMAN REQUIRED: captcha: solve it\nThat was yesterday. The build is green now.",
    "HUMAN REQUIRED: captcha: solve it\n\nThe build is green.",
    "HUMAN REQUIRED: captcha: solve it\nI worked around it, thanks.",
    "HUMAN REQUIRED: captcha: solve it\nIn the end I skipped that page; let me know if that is fine.",
    "HUMAN REQUIRED: captcha: solve it\n\nI solved it with the API instead. Thanks.",
    "HUMAN REQUIRED: captcha: solve it\n\n# Summary\n\nAll files are written.",
    "HUMAN REQUIRED: captcha: solve it\n" + "Please read this. " * 30,
    "HUMAN REQUIRED: captcha: solve it\n```\nmake test\n```",
    "Human: required: a name",
    "human  \nrequired: captcha: solve it",
    "The answer needs a human. Required: login: sign in.",
    '{"HUMAN REQUIRED": "captcha"}',
    "<tool_result>HUMAN REQUIRED: captcha: solve it</tool_result>",
    "HUMAN REQUIRES: captcha: solve it",
    "# Humans required: an essay",
]


@pytest.mark.parametrize("text", NO_REPORTS)
def test_H1_a_line_that_is_no_report_is_read_as_text(text: str) -> None:
    assert marked_line(text) is None


def test_H1_the_lists_are_long_enough() -> None:
    assert len(REPORTS) >= 40
    assert len(NO_REPORTS) >= 60
