"""Sentences and fields that mean one thing here and another there (rules K1, K4).

Each rule is a small function from the evidence to a finding, or None. They are asked before the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from handrail.messages import Failure
from handrail.recovery import vendors
from handrail.recovery.evidence import Evidence
from handrail.recovery.vendors import FailureClass


@dataclass(frozen=True, slots=True)
class Finding:
    """A class and its reason. `telling`: the words tell what it is, so a long hint changes nothing (rule K4)."""

    class_: FailureClass
    why: str
    telling: bool = True


Rule = Callable[[Failure, Evidence], Finding | None]


def cancelled(failure: Failure, evidence: Evidence) -> Finding | None:
    """A whole, short text that says so, from our side of the wire. A provider's own abort is a fault like others."""
    if len(evidence.words) > 240 or (evidence.status or 0) >= 400:
        return None
    if vendors.CANCELLED.fullmatch(evidence.words.strip()) and "timeout" not in evidence.words:
        return Finding("cancelled", f"the words «{evidence.words.strip()[:80]}» say that someone ended it")
    return None


def by_vendor(failure: Failure, evidence: Evidence) -> Finding | None:
    """The first rule that holds."""
    return next((found for rule in _RULES if (found := rule(failure, evidence)) is not None), None)


def vendor_of(evidence: Evidence) -> str:
    """The vendor's own name behind the aliases under which people configure it."""
    name = vendors.ALIASES.get(evidence.provider)
    if name is not None:
        return name
    return next(
        (v for v in ("google", "dashscope", "minimax", "mistral", "zai") if v in evidence.provider),
        evidence.provider,
    )


def is_short_limit(evidence: Evidence) -> bool:
    """Whether the limit that the words speak of is per minute or second; where both periods stand, the first one."""
    short = vendors.SHORT_PERIOD.search(evidence.words)
    long = vendors.LONG_PERIOD.search(evidence.words)
    return short is not None and (long is None or short.start() < long.start())


def by_retry_header(failure: Failure, evidence: Evidence) -> Finding | None:
    """`x-should-retry`, or a field like it, overrides the status; words have been heard before."""
    told = evidence.headers.get("x-should-retry", "").lower()
    source = f"header x-should-retry: {told}"
    if told not in ("true", "false"):
        field = next(
            (f for f in evidence.fields if f.key in ("retryable", "isretryable", "shouldretry")), None
        )
        if field is None or field.value not in ("true", "false"):
            return None
        told, source = field.value, f"field {field.name}: {field.value}"
    if told == "true":
        return Finding("transient", f"the {source} says that asking again helps", telling=False)
    if evidence.status == 429:
        return Finding(
            "usage_limit", f"status 429, and the {source} says that asking again soon does not help"
        )
    if (evidence.status or 0) >= 500:
        return Finding("unknown", f"the {source} says that asking again does not help")
    return None


# -- rules ------------------------------------------------------------------------------------------------------------

_LIMIT_REQUESTED = re.compile(r"\blimit:? (\d{1,12})\b.{0,60}?\brequested:? (\d{1,12})\b")
_TOO_LARGE_FOR_RATE = re.compile(r"request too large for .{0,120}(?:per min|per day|\btpm\b|\btpd\b)")
_STRING_TOO_LONG = re.compile(r"string too long.{0,40}maximum length (\d{1,12})")
_CURRENT_QUOTA = re.compile(r"exceeded your current quota|quota exceeded for")
_ALLOCATED_QUOTA = re.compile(r"allocated quota exceeded")
_TOKEN_LIMIT = re.compile(r"(?:token|tokens) limit (?:was |is |has been )?(?:reached|hit)")
_LONGEST_NAME = 10_000


def _own_mistake(failure: Failure, evidence: Evidence) -> Finding | None:
    found = vendors.OWN_MISTAKE.search(evidence.words)
    if found is None:
        return None
    return Finding(
        "transient",
        f"«{found.group()}»: the model's own mistake, reported by the provider; asking again helps",
    )


def _never_fits(failure: Failure, evidence: Evidence) -> Finding | None:
    """More is asked for than a rate limit ever lets through at once: no waiting makes it fit."""
    asked = _LIMIT_REQUESTED.search(evidence.words)
    throttled = vendors.THROTTLE.search(evidence.words) or vendors.LONG_PERIOD.search(evidence.words)
    if asked is not None and throttled and int(asked[2]) > int(asked[1]):
        return Finding("invalid_request", f"asks for {asked[2]} where the limit is {asked[1]}: it never fits")
    if _TOO_LARGE_FOR_RATE.search(evidence.words):
        return Finding("invalid_request", "the request is larger than its rate limit ever allows")
    return None


def _long_string(failure: Failure, evidence: Evidence) -> Finding | None:
    """A string over a limit of megabytes is the conversation; one over a limit of 64 is a name or an id."""
    found = _STRING_TOO_LONG.search(evidence.words)
    if found is None:
        return None
    limit = int(found[1])
    if limit >= _LONGEST_NAME:
        return Finding(
            "context_overflow", f"a string is longer than {limit} characters: the conversation is too large"
        )
    return Finding("invalid_request", f"a string is longer than the {limit} characters that it may have")


def _google_quota(failure: Failure, evidence: Evidence) -> Finding | None:
    """Google says «exceeded your current quota» of a quota that refills; its quotaId says how soon."""
    found = _CURRENT_QUOTA.search(evidence.words)
    quotas = [f.value.lower() for f in evidence.fields if f.key in ("quotaid", "quotametric", "quotalimit")]
    google = (
        vendor_of(evidence) == "google"
        or any(
            mark in evidence.words
            for mark in ("generativelanguage", "aiplatform.googleapis", "ai.google.dev", "resource exhausted")
        )
        or "resourceexhausted" in evidence.codes
    )
    if not google or (found is None and not quotas) or _has_money_words(evidence):
        return None
    if any("perday" in q or "per_day" in q for q in quotas) or _long_first(evidence):
        return Finding("usage_limit", "Google's quota counts by the day")
    soon = any("perminute" in q or "per_minute" in q for q in quotas) or is_short_limit(evidence)
    if soon or "aiplatform" in evidence.words or _has_retry_info(evidence):
        return Finding("transient", "Google's quota refills within minutes", telling=False)
    return Finding("usage_limit", "Google's «current quota» is one that refills, not a bill")


def _has_money_words(evidence: Evidence) -> bool:
    found = vendors.WORDS["billing"].search(evidence.words)
    return found is not None and found.group() != "plan and billing details"


def _has_retry_info(evidence: Evidence) -> bool:
    return any(f.key == "retrydelay" for f in evidence.fields) or "please retry in" in evidence.words


def _long_first(evidence: Evidence) -> bool:
    return vendors.LONG_PERIOD.search(evidence.words) is not None and not is_short_limit(evidence)


def _allocated_quota(failure: Failure, evidence: Evidence) -> Finding | None:
    """DashScope calls its per-minute throttle «allocated quota»; the free allocation is another thing."""
    if vendor_of(evidence) != "dashscope" or not _ALLOCATED_QUOTA.search(evidence.words):
        if vendor_of(evidence) == "dashscope" and _CURRENT_QUOTA.search(evidence.words):
            return Finding("transient", "DashScope says «current quota» of a throttle", telling=False)
        return None
    if "free allocated" in evidence.words:
        return Finding("usage_limit", "DashScope's free allocation is used up")
    return Finding("transient", "DashScope says «allocated quota» of a throttle per minute", telling=False)


def _numbered(failure: Failure, evidence: Evidence) -> Finding | None:
    """Numbered codes of a vendor. Four digits that begin with 1 and come as a string are Z.ai's, named or not."""
    vendor = vendor_of(evidence)
    for field in evidence.fields:
        if field.key not in ("code", "statuscode", "errorcode") or not field.value.isdigit():
            continue
        table = vendors.NUMBERED.get(vendor)
        if table is None and not vendor and len(field.value) == 4:
            table = vendors.NUMBERED["zai"]
        if table is not None and (class_ := table.get(field.value)) is not None:
            return Finding(class_, f"{vendor or 'zai'}'s code {field.value} is {class_}")
    return None


def _windows(failure: Failure, evidence: Evidence) -> Finding | None:
    """Headers that say which window is used up: a subscription's, or one of a day."""
    if evidence.status != 429 and evidence.status is not None:
        return None
    if evidence.headers.get(
        "anthropic-ratelimit-unified-status", ""
    ).lower() == "rejected" and not _has_money_words(evidence):
        return Finding(
            "usage_limit", "header anthropic-ratelimit-unified-status: rejected: the plan's window is used up"
        )
    for name, value in evidence.headers.items():
        if re.fullmatch(r"x-[a-z0-9-]{1,40}-(?:primary|secondary)-used-percent", name) and value.startswith(
            "100"
        ):
            if not _has_money_words(evidence) and not (set(evidence.codes) & _MONEY_NAMES):
                return Finding("usage_limit", f"header {name}: {value}: that window is used up")
        elif re.fullmatch(r".{0,30}-remaining-.{0,20}(?:day|hour|month)", name) and value.strip() in (
            "0",
            "0.0",
        ):
            return Finding("usage_limit", f"header {name}: {value}: that window is used up")
    return None


_MONEY_NAMES = frozenset(name for name, class_ in vendors.NAMES.items() if class_ == "billing")


def _token_limit(failure: Failure, evidence: Evidence) -> Finding | None:
    """«Token limit reached»: in a stream the output's, before it the input's."""
    if not _TOKEN_LIMIT.search(evidence.words) or vendors.THROTTLE.search(evidence.words):
        return None
    if failure.phase == "stream":
        return Finding(
            "output_truncated", "«token limit reached» in the middle of a stream is the output's limit"
        )
    return Finding("context_overflow", "«token limit reached» before any output is the input's limit")


_RULES: tuple[Rule, ...] = (
    _never_fits,
    _own_mistake,
    _long_string,
    _google_quota,
    _allocated_quota,
    _numbered,
    _windows,
    _token_limit,
)
