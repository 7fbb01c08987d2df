"""What went wrong: one failure to one class, with the reason and the moment to ask again (rules K1 to K4).

Fields beat words, and what the body means beats the status. The ladder, first rung that holds:

1. someone on our side ended it;
2. sentences and fields that mean one thing here and another there (`_ambiguous`);
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

from handrail.messages import FAILURE_WORDS, Failure, FailureClass
from handrail.recovery._advice import advise
from handrail.recovery.moments.cues import in_words
from handrail.recovery.moments.guidance import Guidance, When, latest
from handrail.recovery.moments.retry_after import in_fields, in_headers
from handrail.recovery.reading import counts, patterns, vendors
from handrail.recovery.reading.ambiguous import Ruling, by_vendor, is_short_limit
from handrail.recovery.reading.parse import HEAD, Evidence, examine


def cancelled(failure: Failure, evidence: Evidence) -> Ruling | None:
    """A whole, short text that says so, from our side of the wire. A provider's own abort is a fault like others."""
    said = evidence.words.strip()
    if len(said) > 240 or (evidence.status or 0) >= 400 or patterns.CANCELLED.fullmatch(said) is None:
        return None
    if "timeout" in said or "timed out" in said:
        return None
    return Ruling("cancelled", f"“{said[:80]}”: someone ended it")


def by_retry_header(failure: Failure, evidence: Evidence) -> Ruling | None:
    """`x-should-retry`, or a field like it, overrides the status. Words come first."""
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
        return Ruling("transient", f"the {source} says that asking again helps", telling=False)
    if evidence.status == 429:
        return Ruling("usage_limit", f"status 429, and the {source} says that asking soon does not help")
    if (evidence.status or 0) >= 500:
        return Ruling("unknown", f"the {source} says that asking again does not help")
    return None


LONG_HINT_S = 3600.0
"""Without words that tell, a hint beyond this is a usage limit and no throttle (rule K4)."""

_REFUSED = frozenset({401, 402, 403, 407})
"""Statuses that say more than words of the wire, courtesies and names of gateways."""
_PLAIN_REFUSALS = frozenset({400, 404, 405, 406, 410, 411, 414, 415, 422, 431})
_HOLLOW = re.compile(r'"(?:choices|candidates|content|output)"\s{0,9}:\s{0,9}(?:\[\s{0,9}\]|""|null)')
_WAITED_FOR = ("transient", "usage_limit")


@dataclass(frozen=True, slots=True)
class Classification:
    """What a failure is.

    `class_` is one of rule K2, `why` one sentence for a person, `guidance` the moment that the provider names (only
    for the classes that are waited for), `advice` what a person can do about a permanent class (rule R15), else "".
    """

    class_: FailureClass
    why: str
    guidance: Guidance | None
    advice: str


def classify(
    failure: Failure, *, now: float, local_zone: tzinfo | None = None, waited_for: float | None = None
) -> Classification:
    """The class of `failure`, why, and when to ask again. Total: any text, headers and status give a verdict.

    `now` is in seconds since the epoch; `local_zone` is the zone of clock times without one (None: the machine's).
    `waited_for` is the moment that the last wait was for: named again, it is the same one (rule U1).
    """
    evidence = examine(failure)
    finding = _find(failure, evidence)
    guidance = None
    if finding.class_ in _WAITED_FOR:
        since = now if waited_for is None else min(now, waited_for)
        when = When(now, since, local_zone)
        moments = [*in_headers(evidence, when), *in_fields(evidence, when), *in_words(evidence, when)]
        guidance = latest(moments, now=now, limited=_was_limited(finding, evidence))
    if finding.class_ == "transient" and not finding.telling and guidance and guidance.wait_s > LONG_HINT_S:
        finding = Ruling("usage_limit", f"{guidance.source}: more than an hour away, which is no throttle")
    return Classification(finding.class_, finding.why, guidance, advise(finding.class_, evidence.words))


def _find(failure: Failure, evidence: Evidence) -> Ruling:
    for rung in _LADDER:
        finding = rung(failure, evidence)
        if finding is not None:
            return finding
    return _by_phase(failure)


def _was_limited(finding: Ruling, evidence: Evidence) -> bool:
    """Whether a limit was hit, so that the resets of its windows mean something."""
    limited = finding.class_ == "usage_limit" or evidence.status == 429
    return limited or patterns.THROTTLE.search(evidence.words) is not None


def _by_field_name(failure: Failure, evidence: Evidence) -> Ruling | None:
    """A name in a field. Of several the class that PRECEDENCE names first; overflow wording wins over all."""
    named: dict[FailureClass, str] = {}
    for name, written in evidence.codes.items():
        class_ = vendors.NAMES.get(name)
        if class_ is not None:
            named.setdefault(class_, f"the field {written}: {FAILURE_WORDS[class_]}")
    for field in evidence.fields:
        if field.key == "blockreason" and field.value:
            named.setdefault(
                "content_filter", f"the field {field.name}: {field.value} says that it was blocked"
            )
        elif field.key in vendors.FINISH_KEYS:
            class_ = vendors.FINISH.get(field.value.lower().replace("_", ""))
            if class_ is not None:
                named.setdefault(class_, f"the field {field.name}: {field.value}: {FAILURE_WORDS[class_]}")
    if named and (overflow := _overflow_words(evidence)) is not None:
        return overflow
    return _first(named)


def _by_words(failure: Failure, evidence: Evidence) -> Ruling | None:
    """Names and words in the text. Permanent wording wins over transient wording (rule R1)."""
    for class_ in vendors.PRECEDENCE:
        token = next((t for name, t in evidence.tokens.items() if vendors.NAMES.get(name) == class_), None)
        if token is not None:
            return Ruling(class_, f"the text names {token}: {FAILURE_WORDS[class_]}")
        finding = _words_of(class_, evidence)
        if finding is not None:
            return finding
    if evidence.status in _REFUSED:
        return None
    courtesy = patterns.COURTESY.search(evidence.words)
    if courtesy is not None:
        return Ruling("transient", _said(courtesy.group(), FAILURE_WORDS["transient"]))
    wire = patterns.WIRE.search(evidence.words)
    if wire is not None and evidence.status not in _PLAIN_REFUSALS:
        return Ruling("transient", _said(wire.group(), "a fault on the way"))
    return None


def _words_of(class_: FailureClass, evidence: Evidence) -> Ruling | None:
    if class_ == "context_overflow":
        return _overflow_words(evidence)
    if class_ == "invalid_request" and (asked := _output_request(evidence)) is not None:
        return asked
    if class_ == "usage_limit" and is_short_limit(evidence):
        return None
    if class_ == "empty" and (evidence.status or 200) >= 400:
        return None
    if class_ == "transient" and (throttle := patterns.THROTTLE.search(evidence.words)) is not None:
        return Ruling("transient", _said(throttle.group(), "a throttle"), telling=False)
    found = patterns.WORDS[class_].search(evidence.words)
    return None if found is None else Ruling(class_, _said(found.group(), FAILURE_WORDS[class_]))


def _overflow_words(evidence: Evidence) -> Ruling | None:
    """Overflow wording, or two token counts that say it, but not those of a throttle."""
    if patterns.THROTTLE.search(evidence.words) is not None:
        return None
    overflow = FAILURE_WORDS["context_overflow"]
    if (found := patterns.WORDS["context_overflow"].search(evidence.words)) is not None:
        return Ruling("context_overflow", _said(found.group(), overflow))
    if (negative := counts.used_up(evidence.words)) is not None:
        return Ruling("context_overflow", f"“{negative}”: the input leaves less than nothing of the window")
    excess = _excess(evidence) or counts.excess_in_fields(evidence.fields)
    paid = evidence.status == 402 or patterns.WORDS["billing"].search(evidence.words) is not None
    if (
        excess is None or excess.of != "input" or paid
    ):  # a limit of an unpaid account is about money (rule U6)
        return None
    return Ruling("context_overflow", f"{excess.count:g} tokens where {excess.limit:g} fit: {overflow}")


def _excess(evidence: Evidence) -> counts.Excess | None:
    return counts.excess(evidence.words, strict=evidence.status == 429)


def _output_request(evidence: Evidence) -> Ruling | None:
    """A larger output cap than the model has: shortening the input does not help."""
    excess = _excess(evidence)
    if excess is None or excess.of != "output" or patterns.CAP_REACHED.search(evidence.words):
        return None
    return Ruling(
        "invalid_request", f"asks for {excess.count:g} tokens of output where {excess.limit:g} are allowed"
    )


def _by_weak_name(failure: Failure, evidence: Evidence) -> Ruling | None:
    named: dict[FailureClass, str] = {}
    for name, written in (*evidence.codes.items(), *evidence.tokens.items()):
        class_ = vendors.WEAK.get(name)
        if class_ is not None and not (name in vendors.OF_THE_WAY and evidence.status in _REFUSED):
            named.setdefault(class_, f"the words do not tell, but {written} does: {FAILURE_WORDS[class_]}")
    return _first(named, telling=False)


def _by_status(failure: Failure, evidence: Evidence) -> Ruling | None:
    status = evidence.status
    if status is None or status < 300:
        return None
    class_ = _of_status(status)
    return Ruling(class_, f"only the status tells, {status}: {FAILURE_WORDS[class_]}", telling=False)


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


def _by_vague_words(failure: Failure, evidence: Evidence) -> Ruling | None:
    for class_, pattern in patterns.VAGUE.items():
        if (found := pattern.search(evidence.words)) is not None:
            return Ruling(class_, f"there is no status, but {_said(found.group(), FAILURE_WORDS[class_])}")
    return None


def _by_phase(failure: Failure) -> Ruling:
    blank = not failure.text.strip()
    if failure.phase == "connect":
        return Ruling("transient", "the connection did not come about, and no words say that it never can")
    if blank and failure.status is not None:
        return Ruling("empty", f"status {failure.status} with an empty body")
    if blank and failure.phase == "stream":
        return Ruling("transient", "the stream broke without a word")
    hollow = _HOLLOW.search(failure.text[:HEAD])
    if hollow is not None:
        return Ruling("empty", f"no error is named, and “{hollow.group()}” holds nothing")
    return Ruling("unknown", "no field, no known words and no status tell: asking again blindly is refused")


_LADDER: tuple[Callable[[Failure, Evidence], Ruling | None], ...] = (
    cancelled,
    by_vendor,
    _by_field_name,
    _by_words,
    by_retry_header,
    _by_weak_name,
    _by_status,
    _by_vague_words,
)


def _first(named: dict[FailureClass, str], *, telling: bool = True) -> Ruling | None:
    class_ = next((c for c in vendors.PRECEDENCE if c in named), None)
    return None if class_ is None else Ruling(class_, named[class_], telling)


def _said(said: str, meaning: str) -> str:
    said = " ".join(said.split())
    quoted = said if len(said) <= 80 else said[:79] + "…"
    return f"“{quoted}”: {meaning}"
