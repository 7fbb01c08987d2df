"""What went wrong: one failure to one class, with the reason and the moment to ask again (rules K1 to K4).

Fields beat words, and what the body means beats the status. The ladder, first rung that holds:

1. someone on our side ended it;
2. sentences and fields that mean different things from different vendors (`special`);
3. names in fields (codes, types, stop reasons), then names and words in the text, in the order of PRECEDENCE;
4. a header that says whether to ask again, and weak names;
5. the status; at last the phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo

from handrail.messages import Failure
from handrail.recovery import special, vendors
from handrail.recovery.evidence import Evidence, examine
from handrail.recovery.guidance import Candidate, Guidance, find_moments, latest
from handrail.recovery.special import Finding
from handrail.recovery.vendors import FailureClass

__all__ = ["FailureClass", "Verdict", "classify"]

LONG_HINT_S = 3600.0
"""Without words that tell, a hint beyond this is a usage limit and no throttle (rule K4)."""

_WAITED_FOR = ("transient", "usage_limit")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a failure is.

    `class_` is one of rule K2, `why` one sentence for a person, `guidance` the moment that the provider names (only
    for classes that are waited for), `advice` what a person can do about a class that is not (rule R15).
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
    local = local_zone or datetime.fromtimestamp(now).astimezone().tzinfo
    assert local is not None  # astimezone always sets one
    moments = find_moments(evidence, now=now, local=local)
    finding = next(_findings(failure, evidence))
    guidance = _guidance(finding, evidence, moments, now)
    if finding.class_ == "transient" and not finding.telling and guidance and guidance.wait_s > LONG_HINT_S:
        finding = Finding("usage_limit", f"{guidance.source} is more than an hour away: that is no throttle")
    return Verdict(finding.class_, finding.why, guidance, vendors.FIXABLE.get(finding.class_, ""))


def _guidance(finding: Finding, evidence: Evidence, moments: list[Candidate], now: float) -> Guidance | None:
    if finding.class_ not in _WAITED_FOR:
        return None
    limited = (
        finding.class_ == "usage_limit"
        or evidence.status == 429
        or vendors.THROTTLE.search(evidence.words) is not None
    )
    return latest(moments, now=now, limited=limited)


def _findings(failure: Failure, evidence: Evidence) -> Iterator[Finding]:
    rungs: tuple[Callable[[Failure, Evidence], Finding | None], ...] = (
        special.cancelled,
        special.by_vendor,
        _by_field_name,
        _by_words,
        special.by_retry_header,
        _by_weak_name,
        _by_status,
    )
    for rung in rungs:
        finding = rung(failure, evidence)
        if finding is not None:
            yield finding
    yield _by_phase(failure)


def _by_field_name(failure: Failure, evidence: Evidence) -> Finding | None:
    """A name in a field: a code, a type, a stop reason. Of several the one that PRECEDENCE names first."""
    named: dict[FailureClass, str] = {}
    for name, written in evidence.codes.items():
        class_ = vendors.NAMES.get(name)
        if class_ is not None:
            named.setdefault(class_, f"the field {written} says {class_}")
    for field in evidence.fields:
        if field.key in vendors.FINISH_KEYS and (
            class_ := vendors.FINISH.get(field.value.lower().replace("_", ""))
        ):
            named.setdefault(class_, f"the field {field.name}: {field.value} says {class_}")
        elif field.key == "blockreason" and field.value:
            named.setdefault(
                "content_filter", f"the field {field.name}: {field.value} says that it was blocked"
            )
    overflow = vendors.WORDS["context_overflow"].search(evidence.words) if named else None
    if overflow is not None and not vendors.THROTTLE.search(evidence.words):
        named.setdefault("context_overflow", _said(overflow.group(), "context_overflow"))
    return _first(named)


def _by_words(failure: Failure, evidence: Evidence) -> Finding | None:
    """Names and words in the text. Permanent wording wins over transient wording (rule R1)."""
    throttle = vendors.THROTTLE.search(evidence.words)
    for class_ in vendors.PRECEDENCE:
        token = next((t for name, t in evidence.tokens.items() if vendors.NAMES.get(name) == class_), None)
        if token is not None:
            return Finding(class_, f"the text names {token}, which is {class_}")
        found = vendors.WORDS[class_].search(evidence.words)
        if found is None or (class_ == "context_overflow" and throttle is not None):
            continue
        if class_ == "usage_limit" and special.is_short_limit(evidence):
            continue
        if class_ == "empty" and (evidence.status or 200) >= 400:
            continue
        if class_ == "transient" and throttle is not None:
            break
        return Finding(class_, _said(found.group(), class_))
    if throttle is not None:
        return Finding("transient", _said(throttle.group(), "a throttle"), telling=False)
    return None


def _by_weak_name(failure: Failure, evidence: Evidence) -> Finding | None:
    named: dict[FailureClass, str] = {}
    for name, written in (*evidence.codes.items(), *evidence.tokens.items()):
        class_ = vendors.WEAK.get(name)
        if class_ is not None:
            named.setdefault(class_, f"no words tell, and {written} says {class_}")
    finding = _first(named)
    return Finding(finding.class_, finding.why, telling=False) if finding is not None else None


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


def _by_phase(failure: Failure) -> Finding:
    blank = not failure.text.strip()
    if failure.phase == "connect":
        return Finding("transient", "the connection did not come about, and no words say that it never can")
    if blank and failure.phase == "stream":
        return Finding("transient", "the stream broke without a word")
    if blank and failure.status is not None and failure.status < 300:
        return Finding("empty", f"status {failure.status} with an empty body")
    return Finding(
        "unknown", "no field, no known words and no status say what this is: asking again blindly is refused"
    )


def _first(named: dict[FailureClass, str]) -> Finding | None:
    class_ = next((c for c in vendors.PRECEDENCE if c in named), None)
    return None if class_ is None else Finding(class_, named[class_])


def _said(words: str, class_: str) -> str:
    words = " ".join(words.split())
    return f"the words «{words if len(words) <= 80 else words[:79] + '…'}» say {class_}"
