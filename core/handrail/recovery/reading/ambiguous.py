"""Sentences and fields that mean one thing from one vendor and another elsewhere (rule K4).

Each rule is one function; the first that has a finding decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from handrail.messages import FAILURE_WORDS, Failure, FailureClass
from handrail.recovery.reading import patterns, vendors
from handrail.recovery.reading.parse import Evidence


@dataclass(frozen=True, slots=True)
class Ruling:
    """A class and its reason. `telling`: the words tell what it is, so a long hint changes nothing (rule K4)."""

    class_: FailureClass
    why: str
    telling: bool = True


def by_vendor(failure: Failure, evidence: Evidence) -> Ruling | None:
    """What the first rule of this file says that has something to say."""
    return next((found for rule in _RULES if (found := rule(failure, evidence)) is not None), None)


def is_short_limit(evidence: Evidence) -> bool:
    """Whether the limit spoken of is per minute or second. Where both periods stand, the first one counts."""
    short = patterns.SHORT_PERIOD.search(evidence.words)
    long = patterns.LONG_PERIOD.search(evidence.words)
    return short is not None and (long is None or short.start() < long.start())


_LIMIT_REQUESTED: Final = re.compile(r"\blimit:? (\d{1,12})\b.{0,60}?\brequested:? (\d{1,12})\b")
_TOO_LARGE_FOR_RATE: Final = re.compile(
    r"request too large for .{0,120}(?:per min|per day|\b[tr]pm\b|\b[tr]pd\b)"
)
_STRING_TOO_LONG: Final = re.compile(r"string too long.{0,40}maximum length (\d{1,12})")
_TOKEN_LIMIT: Final = re.compile(r"tokens? limit (?:was |is |has been )?(?:reached|hit)")
_GOOGLE_QUOTA: Final = re.compile(
    r"exceeded your current quota|quota exceeded|exhausted your (?:capacity|quota)"
)
_FREE_THINGS: Final = (
    r"free (?:daily |weekly |monthly |model |plan |tier |api |chat )?"
    r"(?:usage|requests?|messages?|prompts?|generations?)"
)
_FREE_USAGE: Final = re.compile(
    rf"\b{_FREE_THINGS} (?:limits? |allowance )?(?:(?:is|are|was|were|has been|have been) )?"
    r"(?:exceeded|exhausted|reached|used up|over\b|hit)"
    rf"|\b(?:used up|used all|exceeded|exhausted|hit|reached|out of)(?: (?:of|your|the|all)){{0,3}} {_FREE_THINGS}\b"
)
_GOOGLE_MARKS: Final = ("generativelanguage.", "aiplatform.", "ai.google.dev", "retry_delay {")
_WINDOW_USED: Final = re.compile(r"x-[a-z0-9-]{1,40}-(?:primary|secondary)-used-percent")
_WINDOW_LEFT: Final = re.compile(r".{0,30}-remaining-.{0,20}(?:day|hour|week|month)")
_MONEY: Final = frozenset(name for name, class_ in vendors.NAMES.items() if class_ == "billing")
_LONGEST_NAME: Final = 10_000


def _never_fits(failure: Failure, evidence: Evidence) -> Ruling | None:
    """More is asked for than a rate limit ever lets through at once: no waiting makes it fit."""
    if _TOO_LARGE_FOR_RATE.search(evidence.words):
        return Ruling("invalid_request", "the request is larger than its rate limit ever allows")
    asked = _LIMIT_REQUESTED.search(evidence.words)
    if asked is None or int(asked[2]) <= int(asked[1]):
        return None
    if not (patterns.THROTTLE.search(evidence.words) or patterns.LONG_PERIOD.search(evidence.words)):
        return None
    return Ruling("invalid_request", f"asks for {asked[2]} where the limit is {asked[1]}: it never fits")


def _own_mistake(failure: Failure, evidence: Evidence) -> Ruling | None:
    found = patterns.OWN_MISTAKE.search(evidence.words)
    if found is None:
        return None
    return Ruling("transient", f"“{found.group()}”: the model's own mistake, so asking again can help")


def _broken_reply(failure: Failure, evidence: Evidence) -> Ruling | None:
    """What came back could not be read. With a 4xx status the same words are a server's about our request."""
    found = patterns.BROKEN_REPLY.search(evidence.words)
    if found is None or 400 <= (evidence.status or 0) < 500:
        return None
    return Ruling("transient", f"“{found.group()}”: what came back could not be read")


def _long_string(failure: Failure, evidence: Evidence) -> Ruling | None:
    """A string over a limit of megabytes is the conversation; one over a limit of 64 is a name or an id."""
    found = _STRING_TOO_LONG.search(evidence.words)
    if found is None:
        return None
    limit = int(found[1])
    if limit >= _LONGEST_NAME:
        return Ruling(
            "context_overflow", f"a string is longer than {limit} characters: the conversation is too large"
        )
    return Ruling("invalid_request", f"a string is longer than the {limit} characters that it may have")


def _google_quota(failure: Failure, evidence: Evidence) -> Ruling | None:
    """Google says “exceeded your current quota” of a quota that refills; its quotaId says how soon."""
    quotas = [
        squashed for f in evidence.fields if f.key.startswith("quota") and (squashed := f.value.lower())
    ]
    if not _GOOGLE_QUOTA.search(evidence.words) or not _is_google(evidence) or _speaks_of_money(evidence):
        return None
    if any("perday" in q or "per_day" in q for q in quotas):
        return Ruling("usage_limit", "Google's quotaId counts by the day")
    if any("perminute" in q or "per_minute" in q for q in quotas) or is_short_limit(evidence):
        return Ruling("transient", "Google's quota refills every minute", telling=False)
    if patterns.LONG_PERIOD.search(evidence.words):
        return Ruling("usage_limit", "Google's quota counts by the day")
    if "aiplatform." in evidence.prose or any(f.key == "retrydelay" for f in evidence.fields):
        return Ruling("transient", "Google names no period, but a moment to ask again", telling=False)
    if "please retry in" in evidence.words or "retry_delay {" in evidence.prose:
        return Ruling("transient", "Google names no period, but a moment to ask again", telling=False)
    return Ruling("usage_limit", "Google's “current quota” is one that refills, not a bill")


def _is_google(evidence: Evidence) -> bool:
    if evidence.vendor == "google" or "resourceexhausted" in evidence.codes:
        return True
    return not evidence.vendor and any(mark in evidence.prose for mark in _GOOGLE_MARKS)


def _speaks_of_money(evidence: Evidence) -> bool:
    """Words or names of money; “plan and billing details” alone stands in every quota text of Google."""
    found = patterns.WORDS["billing"].search(evidence.words.replace("plan and billing details", ""))
    return found is not None or not _MONEY.isdisjoint(evidence.codes)


def _dashscope_quota(failure: Failure, evidence: Evidence) -> Ruling | None:
    """DashScope words its throttle per minute as a quota; only the free allocation is one."""
    if evidence.vendor != "dashscope":
        return None
    if "free allocated quota" in evidence.words:
        return Ruling("usage_limit", "DashScope's free allocation is used up")
    if "allocated quota exceeded" in evidence.words or "exceeded your current quota" in evidence.words:
        return Ruling("transient", "DashScope says “quota exceeded” of a throttle per minute", telling=False)
    return None


def _free_usage(failure: Failure, evidence: Evidence) -> Ruling | None:
    """Free usage comes back, whatever is offered for sale beside it; free credits and trials do not (rule U6)."""
    found = _FREE_USAGE.search(evidence.words)
    return None if found is None else Ruling("usage_limit", f"“{found.group()}”: free usage comes back")


def _numbered(failure: Failure, evidence: Evidence) -> Ruling | None:
    """A vendor's numbered code. Four digits from nobody named are Z.ai's: nobody else sends them as `code`."""
    if patterns.WORDS["context_overflow"].search(evidence.words):
        return None  # overflow wording wins (rule R1): Z.ai has one code for every wrong parameter
    for field in evidence.fields:
        if field.key not in ("code", "statuscode", "errorcode") or not field.value.isdigit():
            continue
        table = vendors.NUMBERED.get(evidence.vendor)
        if table is None and not evidence.vendor and len(field.value) == 4:
            table = vendors.NUMBERED["zai"]
        if table is not None and (class_ := table.get(field.value)) is not None:
            return Ruling(
                class_, f"the code {field.value} of {evidence.vendor or 'zai'}: {FAILURE_WORDS[class_]}"
            )
    return None


def _windows(failure: Failure, evidence: Evidence) -> Ruling | None:
    """Headers that say which window is used up: a subscription's, or one of a day."""
    if evidence.status not in (429, None) or _speaks_of_money(evidence):
        return None
    for name, value in evidence.headers.items():
        if name == "anthropic-ratelimit-unified-status":
            used = value.lower() == "rejected"
        elif _WINDOW_USED.fullmatch(name):
            used = value.startswith("100")
        else:
            used = _WINDOW_LEFT.fullmatch(name) is not None and value in ("0", "0.0")
        if used:
            return Ruling("usage_limit", f"header {name}: {value}: that window is used up")
    return None


def _token_limit(failure: Failure, evidence: Evidence) -> Ruling | None:
    """“Token limit reached”: in a stream the output's, before it the input's."""
    if not _TOKEN_LIMIT.search(evidence.words) or patterns.THROTTLE.search(evidence.words):
        return None
    if failure.phase == "stream":
        return Ruling(
            "output_truncated", "“token limit reached” in the middle of a stream is the output's limit"
        )
    return Ruling("context_overflow", "“token limit reached” before any output is the input's limit")


_RULES: tuple[Callable[[Failure, Evidence], Ruling | None], ...] = (
    _never_fits,
    _own_mistake,
    _broken_reply,
    _long_string,
    _google_quota,
    _dashscope_quota,
    _free_usage,
    _numbered,
    _windows,
    _token_limit,
)
