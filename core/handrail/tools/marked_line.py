"""A model's report, in its last line, of what only a person can do: `HUMAN REQUIRED: <kind>: <needed>` (rule H1).

The line is read as people and models write it: any case, emphasis, quote and list marks, no kind, a courtesy behind it.
It is no report inside a code fence, about the past, quoted from elsewhere, or where the line itself is discussed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from handrail.events import HumanKind

_KINDS: Final[dict[str, HumanKind]] = {
    **{kind: kind for kind in get_args(HumanKind)},
    **dict.fromkeys(("recaptcha", "hcaptcha", "puzzle"), "captcha"),
    **dict.fromkeys(("signin", "logon", "authentication", "credentials"), "login"),
    **dict.fromkeys(("twofactor", "mfa", "otp", "secondfactor", "twofactorauthentication", "code"), "2fa"),
    **dict.fromkeys(("pay", "purchase", "billing"), "payment"),
    **dict.fromkeys(("access", "permissions", "approval"), "permission"),
    **dict.fromkeys(("choice", "confirmation"), "decision"),
    **dict.fromkeys(("info", "question"), "information"),
}
_MARKS: Final = r"[\s>*_`~#\"'“”‘’«»„•·|\[\]!⚠🛑🚨❗✋\ufe0f-]"
_MARK: Final = re.compile(
    rf"^{_MARKS}{{0,12}}(?:\d{{1,2}}[.)]\s)?{_MARKS}{{0,12}}human[\s_-]{{1,3}}required"
    rf"(?:\s?[(\[](?P<kind>[^)\]\n]{{1,24}})[)\]])?[*_`\"”’]{{0,4}}\s?[:：]{_MARKS}{{0,8}}(?P<rest>.*)$",
    re.IGNORECASE,
)
_KIND: Final = re.compile(
    r"[<(\[]?(?P<kind>[\w][\w /-]{0,23}?)[>)\]]?[*_`\"”]{0,4}(?:\s?[:：]|\s[–—-](?=\s))\s?(?P<needed>.+)"
)
_TRAILING: Final = " \t*_`~\"'“”‘’«»|"
_FENCE: Final = re.compile(r"^[\s>*+-]{0,12}(?P<fence>`{3,}|~{3,})")
_CODE: Final = re.compile(r"^(?: {4,}|\t)(?![-*+•>]|\d{1,2}[.)])")
_QUOTED: Final = re.compile(r"^\s{0,3}>")
_RULE: Final = re.compile(r"^\s{0,3}[-*_=]{3,}\s*$")
_INTRODUCES: Final = re.compile(
    r"\b(?:says?|said|saying|reads?|prints?|printed|shows?|showed|contains?|contained|returns?|returned|wrote|writes?"
    r"|output|log|file|page|notes?|tool|result|message|instructions?|prompt|example|template|format|quote"
    r"|quoted|told me"
    r"|asks? (?:me|you|us) to|such as|like this|line)\b[^\n]{0,60}[:：]\W{0,3}$",
    re.IGNORECASE,
)
_DISCUSSES: Final = re.compile(
    r"(?:is|are|was|were|means|marks|would|should|must|ends?|lines?|marker|format|convention)\b|[<\[{](?:kind|what)",
    re.IGNORECASE,
)
_OVER: Final = re.compile(
    r"^(?:none|nothing|nobody|no one|no|n/?a|not (?:needed|required|necessary|applicable)|false|-)\W*$"
    r"|\b(?:was|were|had been) (?:required|needed|necessary)\b|\bno longer (?:needed|required|necessary)\b"
    r"|\b(?:already|since|been|now|got|is|was) (?:been )?(?:solved|done|resolved|handled|completed"
    r"|answered|taken care of)\b"
    r"|^(?:solved|resolved|done|handled)\b",
    re.IGNORECASE,
)
_COURTESY: Final = re.compile(
    r"\b(?:let me know|thanks?|thank you|please|once (?:you|that|it|this|done)|when(?:ever)? (?:you|that"
    r"|it|this|done|ready)"
    r"|as soon as|after (?:that|you|this)|then i|i(?:'ll|’ll| will| can| am|'m|’m)|ready|waiting"
    r"|standing by|sorry|apologies"
    r"|cheers|tell me|reply|ping me|happy to|looking forward|regards|good luck|take your time|until then)\b",
    re.IGNORECASE,
)
_WENT_ON: Final = re.compile(
    r"\b(?:work(?:ed|ing)? around|without (?:it|that|this|you)|instead|nevertheless|anyway|solved"
    r"|skipp(?:ed|ing)|no longer"
    r"|in the meantime i (?:did|have)|i (?:have|did|went))\b",
    re.IGNORECASE,
)
_MAX_COURTESY: Final = 240


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """The last line of a reply that asks for a person."""

    kind: HumanKind
    needed: str


def marked_line(text: str) -> MarkedLine | None:
    """The report at the end of `text`, if there is one (rule H1). Several in a row are one report."""
    lines = _outside_fences(text)
    reports: list[MarkedLine] = []
    behind = 0
    position = len(lines) - 1
    while position >= 0:
        line = lines[position]
        found = _report(lines, position)
        if found is not None:
            reports.insert(0, found)
        elif line is not None and (not line.strip() or _RULE.match(line)):
            pass
        elif reports or line is None or not _is_courtesy(line) or behind + len(line) > _MAX_COURTESY:
            break
        else:
            behind += len(line)
        position -= 1
    if not reports:
        return None
    return MarkedLine(reports[0].kind, "\n".join(report.needed for report in reports))


def _outside_fences(text: str) -> list[str | None]:
    """The lines of a text; None for those of a code fence, closed or not, and of indented code."""
    lines: list[str | None] = []
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if fence:
            if found is not None and found["fence"].startswith(fence):
                fence = ""
            lines.append(None)
        elif found is not None and line.count(found["fence"]) == 1:
            fence = found["fence"]
            lines.append(None)
        else:
            blank_before = not lines or not (lines[-1] or "").strip()
            lines.append(None if _CODE.match(line) and blank_before and line.strip() else line)
    return lines


def _report(lines: Sequence[str | None], position: int) -> MarkedLine | None:
    line = lines[position]
    found = _MARK.match(line) if line is not None else None
    if line is None or found is None or _is_quoted(lines, position):
        return None
    rest = found["rest"].strip().rstrip(_TRAILING)
    kind, needed = _kind_of(found["kind"] or "") if found["kind"] else None, rest
    parted = _KIND.match(rest)
    if kind is None and parted is not None and (kind := _kind_of(parted["kind"])) is not None:
        needed = parted["needed"].strip().lstrip(_TRAILING)
    if not needed or _DISCUSSES.match(needed) or _OVER.search(needed):
        return None
    return MarkedLine(kind or _kind_of(needed.rstrip(".!")) or "other", needed)


def _kind_of(written: str) -> HumanKind | None:
    name = re.sub(r"[^a-z0-9]", "", written.lower())
    return _KINDS.get(name)


def _is_quoted(lines: Sequence[str | None], position: int) -> bool:
    """Whether the lines before it introduce it as someone else's, or it is one line of a longer quote."""
    before = [line for line in lines[:position] if line is None or line.strip()]
    if not before or before[-1] is None:
        return False
    if _INTRODUCES.search(before[-1].rstrip()):
        return True
    line = lines[position] or ""
    in_quote = _QUOTED.match(line) and _QUOTED.match(lines[position - 1] or "")
    return bool(in_quote) and not all(one is not None and _QUOTED.match(one) for one in before)


def _is_courtesy(line: str) -> bool:
    """Whether a line says no more than goodbye: it asks the person to come back, or thanks them."""
    return len(line) <= _MAX_COURTESY and _COURTESY.search(line) is not None and _WENT_ON.search(line) is None
