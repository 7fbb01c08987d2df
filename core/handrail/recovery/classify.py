"""What went wrong: one failure to one class, with the reason and the moment to ask again (rules K1 to K4).

Fields beat words, and what the body means beats the status. The ladder, first rung that holds:

1. someone on our side ended it;
2. sentences and fields that mean one thing here and another there (`special`);
3. names in fields: codes, types, stop reasons;
4. names and words in the text, in the order of PRECEDENCE; faults of the wire last;
5. a header that says whether to ask again, then names that say little;
6. the status, vague words, the phase.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from handrail.messages import Failure
from handrail.recovery import patterns, vendors
from handrail.recovery.parse import HEAD, Evidence, examine
from handrail.recovery.patterns import advise
from handrail.recovery.retry_after import Guidance, find_moments, latest
from handrail.recovery.vendors import FailureClass


@dataclass(frozen=True, slots=True)
class Finding:
    """A class and its reason. `telling`: the words tell what it is, so a long hint changes nothing (rule K4)."""

    class_: FailureClass
    why: str
    telling: bool = True


def cancelled(failure: Failure, evidence: Evidence) -> Finding | None:
    """A whole, short text that says so, from our side of the wire. A provider's own abort is a fault like others."""
    said = evidence.words.strip()
    if len(said) > 240 or (evidence.status or 0) >= 400 or patterns.CANCELLED.fullmatch(said) is None:
        return None
    if "timeout" in said or "timed out" in said:
        return None
    return Finding("cancelled", f"“{said[:80]}”: someone ended it")


def by_vendor(failure: Failure, evidence: Evidence) -> Finding | None:
    """What the first rule of this file says that has something to say."""
    return next((found for rule in _RULES if (found := rule(failure, evidence)) is not None), None)


def by_retry_header(failure: Failure, evidence: Evidence) -> Finding | None:
    """`x-should-retry`, or a field like it, overrides the status; words have been heard before."""
    told = evidence.headers.get("x-should-retry", "").strip().lower()
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
        return Finding("usage_limit", f"status 429, and the {source} says that asking soon does not help")
    if (evidence.status or 0) >= 500:
        return Finding("unknown", f"the {source} says that asking again does not help")
    return None


def is_short_limit(evidence: Evidence) -> bool:
    """Whether the limit spoken of is per minute or second. Where both periods stand, the first one counts."""
    short = patterns.SHORT_PERIOD.search(evidence.words)
    long = patterns.LONG_PERIOD.search(evidence.words)
    return short is not None and (long is None or short.start() < long.start())


# -- rules ------------------------------------------------------------------------------------------------------------

_LIMIT_REQUESTED: Final = re.compile(r"\blimit:? (\d{1,12})\b.{0,60}?\brequested:? (\d{1,12})\b")
_TOO_LARGE_FOR_RATE: Final = re.compile(
    r"request too large for .{0,120}(?:per min|per day|\b[tr]pm\b|\b[tr]pd\b)"
)
_STRING_TOO_LONG: Final = re.compile(r"string too long.{0,40}maximum length (\d{1,12})")
_TOKEN_LIMIT: Final = re.compile(r"tokens? limit (?:was |is |has been )?(?:reached|hit)")
_GOOGLE_QUOTA: Final = re.compile(
    r"exceeded your current quota|quota exceeded|exhausted your (?:capacity|quota)"
)
_GOOGLE_MARKS: Final = ("generativelanguage.", "aiplatform.", "ai.google.dev", "retry_delay {")
_WINDOW_USED: Final = re.compile(r"x-[a-z0-9-]{1,40}-(?:primary|secondary)-used-percent")
_WINDOW_LEFT: Final = re.compile(r".{0,30}-remaining-.{0,20}(?:day|hour|week|month)")
_MONEY: Final = frozenset(name for name, class_ in vendors.NAMES.items() if class_ == "billing")
_LONGEST_NAME: Final = 10_000


def _never_fits(failure: Failure, evidence: Evidence) -> Finding | None:
    """More is asked for than a rate limit ever lets through at once: no waiting makes it fit."""
    if _TOO_LARGE_FOR_RATE.search(evidence.words):
        return Finding("invalid_request", "the request is larger than its rate limit ever allows")
    asked = _LIMIT_REQUESTED.search(evidence.words)
    if asked is None or int(asked[2]) <= int(asked[1]):
        return None
    if not (patterns.THROTTLE.search(evidence.words) or patterns.LONG_PERIOD.search(evidence.words)):
        return None
    return Finding("invalid_request", f"asks for {asked[2]} where the limit is {asked[1]}: it never fits")


def _own_mistake(failure: Failure, evidence: Evidence) -> Finding | None:
    found = patterns.OWN_MISTAKE.search(evidence.words)
    if found is None:
        return None
    return Finding("transient", f"“{found.group()}”: the model's own mistake, so asking again can help")


def _broken_reply(failure: Failure, evidence: Evidence) -> Finding | None:
    """What came back could not be read. With a 4xx status the same words are a server's about our request."""
    found = patterns.BROKEN_REPLY.search(evidence.words)
    if found is None or 400 <= (evidence.status or 0) < 500:
        return None
    return Finding("transient", f"“{found.group()}”: what came back could not be read")


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
    """Google says “exceeded your current quota” of a quota that refills; its quotaId says how soon."""
    quotas = [
        squashed for f in evidence.fields if f.key.startswith("quota") and (squashed := f.value.lower())
    ]
    if not _GOOGLE_QUOTA.search(evidence.words) or not _is_google(evidence) or _speaks_of_money(evidence):
        return None
    if any("perday" in q or "per_day" in q for q in quotas):
        return Finding("usage_limit", "Google's quotaId counts by the day")
    if any("perminute" in q or "per_minute" in q for q in quotas) or is_short_limit(evidence):
        return Finding("transient", "Google's quota refills every minute", telling=False)
    if patterns.LONG_PERIOD.search(evidence.words):
        return Finding("usage_limit", "Google's quota counts by the day")
    if "aiplatform." in evidence.prose or any(f.key == "retrydelay" for f in evidence.fields):
        return Finding("transient", "Google names no period, but a moment to ask again", telling=False)
    if "please retry in" in evidence.words or "retry_delay {" in evidence.prose:
        return Finding("transient", "Google names no period, but a moment to ask again", telling=False)
    return Finding("usage_limit", "Google's “current quota” is one that refills, not a bill")


def _is_google(evidence: Evidence) -> bool:
    if evidence.vendor == "google" or "resourceexhausted" in evidence.codes:
        return True
    return not evidence.vendor and any(mark in evidence.prose for mark in _GOOGLE_MARKS)


def _speaks_of_money(evidence: Evidence) -> bool:
    """Words or names of money; “plan and billing details” alone stands in every quota text of Google."""
    found = patterns.WORDS["billing"].search(evidence.words.replace("plan and billing details", ""))
    return found is not None or not _MONEY.isdisjoint(evidence.codes)


def _dashscope_quota(failure: Failure, evidence: Evidence) -> Finding | None:
    """DashScope words its throttle per minute as a quota; only the free allocation is one."""
    if evidence.vendor != "dashscope":
        return None
    if "free allocated quota" in evidence.words:
        return Finding("usage_limit", "DashScope's free allocation is used up")
    if "allocated quota exceeded" in evidence.words or "exceeded your current quota" in evidence.words:
        return Finding("transient", "DashScope says “quota exceeded” of a throttle per minute", telling=False)
    return None


def _numbered(failure: Failure, evidence: Evidence) -> Finding | None:
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
            return Finding(class_, f"the code {field.value} of {evidence.vendor or 'zai'} is {class_}")
    return None


def _windows(failure: Failure, evidence: Evidence) -> Finding | None:
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
            return Finding("usage_limit", f"header {name}: {value}: that window is used up")
    return None


def _token_limit(failure: Failure, evidence: Evidence) -> Finding | None:
    """“Token limit reached”: in a stream the output's, before it the input's."""
    if not _TOKEN_LIMIT.search(evidence.words) or patterns.THROTTLE.search(evidence.words):
        return None
    if failure.phase == "stream":
        return Finding(
            "output_truncated", "“token limit reached” in the middle of a stream is the output's limit"
        )
    return Finding("context_overflow", "“token limit reached” before any output is the input's limit")


_RULES: tuple[Callable[[Failure, Evidence], Finding | None], ...] = (
    _never_fits,
    _own_mistake,
    _broken_reply,
    _long_string,
    _google_quota,
    _dashscope_quota,
    _numbered,
    _windows,
    _token_limit,
)


__all__ = ["FailureClass", "Verdict", "classify"]

LONG_HINT_S = 3600.0
"""Without words that tell, a hint beyond this is a usage limit and no throttle (rule K4)."""

_PLAIN_REFUSALS = frozenset({400, 404, 405, 406, 410, 411, 414, 415, 422, 431})
_HOLLOW = re.compile(r'"(?:choices|candidates|content|output)"\s{0,9}:\s{0,9}(?:\[\s{0,9}\]|""|null)')
_WAITED_FOR = ("transient", "usage_limit")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a failure is.

    `class_` is one of rule K2, `why` one sentence for a person, `guidance` the moment that the provider names (only
    for the classes that are waited for), `advice` what a person can do about a permanent class (rule R15), else "".
    """

    class_: FailureClass
    why: str
    guidance: Guidance | None
    advice: str


def classify(failure: Failure, *, now: float, local_zone: tzinfo | None = None) -> Verdict:
    """The class of `failure`, why, and when to ask again. Total: any text, headers and status give a verdict.

    `now` is in seconds since the epoch; `local_zone` is the zone of clock times without one (None: the machine's).
    """
    evidence = examine(failure)
    finding = _find(failure, evidence)
    guidance = None
    if finding.class_ in _WAITED_FOR:
        moments = find_moments(evidence, now=now, local=local_zone)
        guidance = latest(moments, now=now, limited=_was_limited(finding, evidence))
    if finding.class_ == "transient" and not finding.telling and guidance and guidance.wait_s > LONG_HINT_S:
        finding = Finding("usage_limit", f"{guidance.source}: more than an hour away, which is no throttle")
    return Verdict(finding.class_, finding.why, guidance, advise(finding.class_, evidence.words))


def _find(failure: Failure, evidence: Evidence) -> Finding:
    for rung in _LADDER:
        finding = rung(failure, evidence)
        if finding is not None:
            return finding
    return _by_phase(failure)


def _was_limited(finding: Finding, evidence: Evidence) -> bool:
    """Whether a limit was hit, so that the resets of its windows mean something."""
    limited = finding.class_ == "usage_limit" or evidence.status == 429
    return limited or patterns.THROTTLE.search(evidence.words) is not None


def _by_field_name(failure: Failure, evidence: Evidence) -> Finding | None:
    """A name in a field. Of several the class that PRECEDENCE names first; overflow wording wins over all."""
    named: dict[FailureClass, str] = {}
    for name, written in evidence.codes.items():
        class_ = vendors.NAMES.get(name)
        if class_ is not None:
            named.setdefault(class_, f"the field {written} says {class_}")
    for field in evidence.fields:
        if field.key == "blockreason" and field.value:
            named.setdefault(
                "content_filter", f"the field {field.name}: {field.value} says that it was blocked"
            )
        elif field.key in vendors.FINISH_KEYS:
            class_ = vendors.FINISH.get(field.value.lower().replace("_", ""))
            if class_ is not None:
                named.setdefault(class_, f"the field {field.name}: {field.value} says {class_}")
    if named and (overflow := _overflow_words(evidence)) is not None:
        return overflow
    return _first(named)


def _by_words(failure: Failure, evidence: Evidence) -> Finding | None:
    """Names and words in the text. Permanent wording wins over transient wording (rule R1)."""
    for class_ in vendors.PRECEDENCE:
        token = next((t for name, t in evidence.tokens.items() if vendors.NAMES.get(name) == class_), None)
        if token is not None:
            return Finding(class_, f"the text names {token}, which is {class_}")
        finding = _words_of(class_, evidence)
        if finding is not None:
            return finding
    wire = patterns.WIRE.search(evidence.words)
    if wire is not None and evidence.status not in _PLAIN_REFUSALS:
        return Finding("transient", _said(wire.group(), "a fault on the way"))
    return None


def _words_of(class_: FailureClass, evidence: Evidence) -> Finding | None:
    if class_ == "context_overflow":
        return _overflow_words(evidence)
    if class_ == "usage_limit" and is_short_limit(evidence):
        return None
    if class_ == "empty" and (evidence.status or 200) >= 400:
        return None
    if class_ == "transient" and (throttle := patterns.THROTTLE.search(evidence.words)) is not None:
        return Finding("transient", _said(throttle.group(), "a throttle"), telling=False)
    found = patterns.WORDS[class_].search(evidence.words)
    return None if found is None else Finding(class_, _said(found.group(), class_))


def _overflow_words(evidence: Evidence) -> Finding | None:
    """Overflow wording, but not that of a throttle: «too many tokens, please wait» is none."""
    found = patterns.WORDS["context_overflow"].search(evidence.words)
    if found is None or patterns.THROTTLE.search(evidence.words) is not None:
        return None
    return Finding("context_overflow", _said(found.group(), "context_overflow"))


def _by_weak_name(failure: Failure, evidence: Evidence) -> Finding | None:
    named: dict[FailureClass, str] = {}
    for name, written in (*evidence.codes.items(), *evidence.tokens.items()):
        class_ = vendors.WEAK.get(name)
        if class_ is not None:
            named.setdefault(class_, f"no words tell, and {written} says {class_}")
    return _first(named, telling=False)


def _by_status(failure: Failure, evidence: Evidence) -> Finding | None:
    status = evidence.status
    if status is None or status < 300:
        return None
    class_ = _of_status(status)
    return Finding(class_, f"nothing but the status tells: {status} is {class_}", telling=False)


def _of_status(status: int) -> FailureClass:
    if status in (401, 403, 407, 419, 440, 511):
        return "auth"
    if status == 402:
        return "billing"
    if status == 413:
        return "context_overflow"
    if status == 451:
        return "content_filter"
    if status in (408, 409, 423, 424, 425, 429, 498, 499) or (status >= 500 and status not in (501, 505)):
        return "transient"
    return "invalid_request"


def _by_vague_words(failure: Failure, evidence: Evidence) -> Finding | None:
    for class_, pattern in patterns.VAGUE.items():
        if (found := pattern.search(evidence.words)) is not None:
            return Finding(class_, f"no status, and {_said(found.group(), class_)}")
    return None


def _by_phase(failure: Failure) -> Finding:
    blank = not failure.text.strip()
    if failure.phase == "connect":
        return Finding("transient", "the connection did not come about, and no words say that it never can")
    if blank and failure.status is not None:
        return Finding("empty", f"status {failure.status} with an empty body")
    if blank and failure.phase == "stream":
        return Finding("transient", "the stream broke without a word")
    hollow = _HOLLOW.search(failure.text[:HEAD])
    if hollow is not None:
        return Finding("empty", f"no error is named, and “{hollow.group()}” holds nothing")
    return Finding("unknown", "no field, no known words and no status tell: asking again blindly is refused")


_LADDER: tuple[Callable[[Failure, Evidence], Finding | None], ...] = (
    cancelled,
    by_vendor,
    _by_field_name,
    _by_words,
    by_retry_header,
    _by_weak_name,
    _by_status,
    _by_vague_words,
)


def _first(named: dict[FailureClass, str], *, telling: bool = True) -> Finding | None:
    class_ = next((c for c in vendors.PRECEDENCE if c in named), None)
    return None if class_ is None else Finding(class_, named[class_], telling)


_PLAIN = {
    "usage_limit": "a usage limit",
    "auth": "the key was refused",
    "billing": "a matter of money",
    "content_filter": "a content filter",
    "context_overflow": "it does not fit the window",
    "output_truncated": "the output cap was hit",
    "invalid_request": "the request itself is wrong",
    "transient": "a passing fault",
    "cancelled": "it was cancelled",
    "empty": "the reply was empty",
}
"""What a class means, for a person who reads why."""


def _said(said: str, meaning: str) -> str:
    said = " ".join(said.split())
    quoted = said if len(said) <= 80 else said[:79] + "…"
    return f"“{quoted}”: {_PLAIN.get(meaning, meaning)}"
