"""Makes the table of decisions in docs/recovery.md from the code: `python docs/make/recovery_table.py`.

Each row is a situation put to `decide`; a test holds that the page says what the code answers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from handrail.events import Ledger
from handrail.messages import Failure
from handrail.policy import NO_RECOVERY, RecoveryPolicy
from handrail.recovery.classify import classify
from handrail.recovery.decide import Decision, Facts, decide

PAGE: Final = Path(__file__).parents[1] / "recovery.md"
BEGIN: Final = "<!-- decisions: made by `python docs/make/recovery_table.py` -->"
END: Final = "<!-- end of decisions -->"
NOW: Final = 1_767_614_400.0
ON: Final = RecoveryPolicy()


def failed(text: str, status: int | None = None, **headers: str) -> Facts:
    """The facts of a request that failed in these words."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    failure = Failure(text, "openai", "response", status, names)
    return Facts("error", blank=True, classification=classify(failure, now=NOW), failure=failure)


OVERLOADED: Final = failed("The server is overloaded.", 503)
LIMITED: Final = failed("You have hit your usage limit.", 429)
CUT: Final = Facts("length", blank=False)

ROWS: Final[list[tuple[str, Facts, Ledger, RecoveryPolicy]]] = [
    ("stopped by the person", Facts("aborted"), Ledger(), ON),
    ("refused by the model", Facts("refusal"), Ledger(), ON),
    ("key refused", failed("Incorrect API key provided.", 401), Ledger(), ON),
    ("credits used up", failed("Your credit balance is too low.", 400), Ledger(), ON),
    (
        "request too long for the window",
        failed("prompt is too long: 9 tokens > 8 maximum", 400),
        Ledger(),
        ON,
    ),
    (
        "the same again after a compaction",
        failed("prompt is too long: 9 tokens > 8 maximum", 400),
        Ledger(compactions=1),
        ON,
    ),
    (
        "cut, and the window is full",
        Facts("length", context=950, output=20, cap=100, window=1000),
        Ledger(),
        ON,
    ),
    ("cut at the output cap", CUT, Ledger(), ON),
    ("the ninth time", CUT, Ledger(continues=8, unbroken=8), ON),
    (
        "usage limit, «in ~42 min»",
        failed("You have hit your usage limit. Try again in ~42 min.", 429),
        Ledger(),
        ON,
    ),
    (
        "usage limit, «in 3 days»",
        failed("You have hit your usage limit. Try again in 3 days.", 429),
        Ledger(),
        ON,
    ),
    ("usage limit, no word on when", LIMITED, Ledger(), ON),
    ("the same after 20 polls", LIMITED, Ledger(polls=20, limited_since=NOW - 18_000), ON),
    ("overloaded, stream broken, time-out", OVERLOADED, Ledger(), ON),
    ("again", OVERLOADED, Ledger(retries=1, unbroken=1), ON),
    ("again", OVERLOADED, Ledger(retries=2, unbroken=2), ON),
    ("again, the retries spent", OVERLOADED, Ledger(retries=3, unbroken=3), ON),
    ("again, the resumes spent too", OVERLOADED, Ledger(retries=3, resumes=6, unbroken=9), ON),
    ("overloaded, «Retry-After: 20»", failed("Overloaded.", 503, retry_after="20"), Ledger(), ON),
    ("overloaded, «Retry-After: 300»", failed("Overloaded.", 503, retry_after="300"), Ledger(), ON),
    ("the provider paused a long reply", Facts("stop", paused=True), Ledger(), ON),
    ("empty, or thinking alone", Facts("stop", blank=True), Ledger(), ON),
    ("tools ended the loop before the model spoke", Facts("tool_use", calls=1, tail=True), Ledger(), ON),
    ("the same right after", Facts("tool_use", calls=1, tail=True), Ledger(continues=1, tail=True), ON),
    ("a good reply", Facts("tool_use", calls=2), Ledger(), ON),
    ("recovery off: overloaded", OVERLOADED, Ledger(), NO_RECOVERY),
    ("recovery off: cut with calls", Facts("length", calls=1), Ledger(), NO_RECOVERY),
    ("recovery off: cut without calls", CUT, Ledger(), NO_RECOVERY),
]


def table() -> str:
    """The rows as Markdown."""
    lines = ["| what happened | decision | pause | allowance |", "| --- | --- | --- | --- |"]
    for words, facts, ledger, policy in ROWS:
        decision = decide(facts, ledger, policy, NOW)
        lines.append(f"| {words} | {_named(decision)} | {_pause(decision)} | {_allowance(decision)} |")
    return "\n".join(lines)


def _named(decision: Decision | None) -> str:
    return "the loop continues" if decision is None else f"`{decision.kind}` {decision.reason}"


def _pause(decision: Decision | None) -> str:
    if decision is None or not decision.delay_s:
        return ""
    seconds = decision.delay_s
    return f"{seconds:g} s" if seconds < 60 else f"{int(seconds // 60)}:{int(seconds % 60):02} min"


def _allowance(decision: Decision | None) -> str:
    if decision is None:
        return ""
    if decision.spent:
        return f"{decision.spent.replace('_', ' ')} spent"
    return "" if decision.number is None else f"{decision.number} of {decision.limit}"


def page() -> str:
    """docs/recovery.md with the table as the code has it."""
    text = PAGE.read_text("utf-8")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
