"""What a failed call really says: its fields, its words, its status, taken apart before anyone judges them (rule K1).

Bodies come as JSON, as JSON inside text (`429 {"error":…}`), inside SSE frames, inside JSON strings (a router that
wraps its upstream), as a Python dict's repr, cut in the middle, or as HTML. They may be huge and hostile: only a
head and a tail are looked at, every pattern is linear, and nothing here raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from handrail.messages import Failure
from handrail.recovery.reading.vendors import name_set, vendor_of

HEAD, TAIL = 48_000, 16_000
"""Characters of a body that are looked at; what decides stands at its ends."""
PROSE_HEAD, PROSE_TAIL = 8_000, 4_000
"""Characters of its words that are looked at, once fields and markup are gone."""
_MAX_FIELDS, _MAX_DEPTH, _MAX_MISSES = 400, 24, 24


# What a provider echoes of our own request, what the model said, and ids: no word of these says what went wrong.
_ECHO = name_set(
    """
    failedgeneration input inputs prompt messages requestid id userid orgid organizationid traceid model providername
    url uri documentationurl helpurl helplink link links arguments body instance eventid sessionid responseid
    requestheaders request stack traceback flaggedinput content reasoning reasoningcontent thinking partialjson
    """
)
# Keys whose value is a name from a closed list, not a sentence.
_CODE_KEYS = name_set(
    """
    code type status reason errorcode errortype subtype finishreason stopreason nativefinishreason blockreason
    ratelimitreachedtype error errorname errorstatus statuscode httpstatus httpcode exception quotaid quotametric
    limitname limittype providercode param domain
    """
)
_NO_CODE = name_set("param domain quotaid quotametric")
_STATUS_KEYS = name_set("status statuscode httpstatus httpcode httpstatuscode code errorcode")

_LOOSE = re.compile(
    r"""["']([A-Za-z][\w.-]{1,40})["']\s{0,3}[:=]\s{0,3}(?:"([^"\\]{0,400})"|'([^'\\]{0,400})'|(-?\d[\d.]{0,24}))"""
)
_HEADER_LINE = re.compile(
    r"(?<![\w-])((?:x-|anthropic-)?(?:retry-after|ratelimit|rate-limit|codex)[\w-]{0,60})\s{0,2}[:=]\s{0,2}"
    r"([^\s,;\"'}]{1,60})",
    re.IGNORECASE,
)
# Digits are a status only where they stand alone (rule K3): at the start, in brackets, or behind a word that says so.
_STATUS = re.compile("[45][0-9]{2}")
_UNITS = (
    "tokens|ms|s|sec|seconds|minutes|bytes|kb|mb|chars|characters|lines|items|messages|requests|files|times"
)
_STATUS_IN_TEXT = re.compile(
    rf"^\W{{0,3}}(?:\w{{0,24}}error:?\s)?([45]\d\d)(?![\w.%-]|\s?(?:{_UNITS})\b)"
    r"|\((?:status\s(?:code\s)?|http\s|code:?\s)?([45]\d\d)\)"
    r"|\b(?:http(?:/[\d.]{1,3})?|http error|status|status code|statuscode|error code|code|api error|got|returned"
    r"|responded with|response|unexpected status|last status|error)[\s:=#]{1,4}(?:a\s)?\(?([45]\d\d)"
    rf"(?![\w.%-]|\s?(?:{_UNITS})\b)",
    re.IGNORECASE,
)
_REASON_LINE = re.compile(
    r"(?<!\w)([45]\d\d)\s(?:bad request|unauthorized|payment required|forbidden|not found|method not allowed"
    r"|request timeout|conflict|gone|payload too large|content too large|request entity too large"
    r"|unprocessable|too many requests|client closed|internal server error|bad gateway"
    r"|service (?:temporarily )?unavailable|gateway time-?out)",
    re.IGNORECASE,
)
_FRAME = re.compile(r"^(?:event|data|id|retry):\s?", re.MULTILINE)
_FRAME_RETRY = re.compile(r"^retry:\s?\d{1,12}[ \t\r]{0,4}$", re.MULTILINE)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,400})", re.IGNORECASE)
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}|[A-Z][A-Z0-9_]{3,})\b"
)
_URL = re.compile(r"\bhttps?://[^\s\"'<>]{1,2000}")
_NOT_ALNUM = re.compile(r"[^a-z0-9]+")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "", "*": "", "_": " ", "\u00a0": " "})


@dataclass(frozen=True, slots=True)
class Field:
    """One scalar of a body: `key` squashed (`retry_after` → `retryafter`), `name` as written, `group` its object."""

    key: str
    name: str
    value: str
    group: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A failure taken apart. `words` are lower case with `_` as a space, `prose` the same words as they came."""

    vendor: str
    status: int | None
    prose: str
    words: str
    fields: tuple[Field, ...]
    codes: Mapping[str, str]
    tokens: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Parts:
    prose: list[str] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    groups: int = 0


def squash(name: str) -> str:
    """`context_length_exceeded`, `ContextLengthExceeded` and `context-length-exceeded` are one name."""
    return _NOT_ALNUM.sub("", name.lower())


def examine(failure: Failure) -> Evidence:
    """Take a failure apart. Never raises, whatever the text."""
    text = (
        failure.text if len(failure.text) <= HEAD + TAIL else f"{failure.text[:HEAD]}\n{failure.text[-TAIL:]}"
    )
    parts = _Parts()
    _take_text(text, parts, 0)
    headers = parts.headers
    headers.update((str(k).lower(), str(v)[:200]) for k, v in failure.headers.items())
    prose = _ends(" ".join(" ".join(parts.prose).split()), PROSE_HEAD, PROSE_TAIL)
    status = next(iter(parts.statuses), None) or failure.status
    if status is None or status < 400:
        status = _status_in(prose) or status
    return Evidence(
        vendor=vendor_of(squash(failure.provider or "")),
        status=status,
        prose=prose,
        words=_URL.sub(" url ", prose).translate(_QUOTES).lower(),
        fields=tuple(parts.fields),
        codes=parts.codes,
        tokens={squash(found): found for found in _IDENTIFIER.findall(prose)},
        headers=headers,
    )


def _ends(text: str, head: int, tail: int) -> str:
    return text if len(text) <= head + tail else f"{text[:head]} {text[-tail:]}"


def _status_in(prose: str) -> int | None:
    found = _STATUS_IN_TEXT.search(prose) or _REASON_LINE.search(prose)
    return int(next(filter(None, found.groups()))) if found is not None else None


def _take_text(text: str, parts: _Parts, depth: int) -> None:
    """Words and fields of a text, with the JSON that stands anywhere in it."""
    if "data:" in text or "event:" in text:
        text = _FRAME.sub("", _FRAME_RETRY.sub("", text))
    for piece in _pieces(text):
        if isinstance(piece, str):
            _take_prose(piece, parts)
        else:
            _take_object(piece, parts, depth)


def _pieces(text: str) -> Iterator[str | dict[str, Any]]:
    """The text as a row of plain parts and JSON objects. What does not parse stays plain."""
    decoder, start, search, misses = json.JSONDecoder(), 0, 0, 0
    while misses < _MAX_MISSES and (brace := text.find("{", search)) >= 0:
        try:
            value, end = decoder.raw_decode(text, brace)
        except (ValueError, RecursionError):
            search, misses = brace + 1, misses + 1
            continue
        yield text[start:brace]
        yield value
        start = search = end
    yield text[start:]


def _take_prose(text: str, parts: _Parts) -> None:
    if not text.strip(" \t\r\n[],"):
        return
    for name, double, single, number in _LOOSE.findall(text):
        _take_scalar(name, double or single or number, parts, parts.groups)
    for name, value in _HEADER_LINE.findall(text):
        parts.headers.setdefault(name.lower(), value)
    parts.prose.append(_without_tags(text) if "</" in text or "<html" in text.lower() else text)


def _without_tags(page: str) -> str:
    """The readable words of an HTML page: its title, and what stands outside tags, scripts and styles."""
    title = _TITLE.search(page)
    for name in ("head", "style", "script", "svg"):
        lower, kept, position = page.lower(), list[str](), 0
        while (opened := lower.find(f"<{name}", position)) >= 0:
            closed = lower.find(f"</{name}>", opened)
            if closed < 0:
                break
            kept.append(page[position:opened])
            position = closed + len(name) + 3
        page = " ".join([*kept, page[position:]])
    return f"{title.group(1) if title else ''} {_TAG.sub(' ', page)}"


def _take_object(value: Mapping[str, Any], parts: _Parts, depth: int) -> None:
    parts.groups += 1
    group = parts.groups
    for name, item in value.items():
        if len(parts.fields) > _MAX_FIELDS:
            return
        key = squash(name)
        if key in _ECHO:
            continue
        if key.endswith("headers") and isinstance(item, Mapping):
            parts.headers.update((str(k).lower(), str(v)[:200]) for k, v in item.items())
        else:
            _take_item(name, item, parts, group, depth)


def _take_item(name: str, item: Any, parts: _Parts, group: int, depth: int) -> None:
    if depth > _MAX_DEPTH or item is None:
        return
    if isinstance(item, Mapping):
        _take_object(item, parts, depth + 1)
    elif isinstance(item, list):
        for entry in item[:40]:
            _take_item(name, entry, parts, group, depth + 1)
    elif isinstance(item, str) and not _is_code(name, item):
        _take_scalar(name, item[:400], parts, group)
        if "{" in item:
            _take_text(item, parts, depth + 1)
        else:
            _take_prose(item, parts)
    else:
        written = str(item).lower() if isinstance(item, bool) else str(item)
        _take_scalar(name, written[:400], parts, group)


def _is_code(name: str, value: str) -> bool:
    return squash(name) in _CODE_KEYS and " " not in value.strip()


def _take_scalar(name: str, value: str, parts: _Parts, group: int) -> None:
    key = squash(name)
    if key in _ECHO:
        return
    parts.fields.append(Field(key, name, value, group))
    if key not in _CODE_KEYS or key in _NO_CODE or " " in value.strip():
        return
    if key in _STATUS_KEYS and _STATUS.fullmatch(value):
        parts.statuses.append(int(value))
    parts.codes.setdefault(squash(value.split(":")[0].rsplit("/", 1)[-1]), f"{name}: {value}")
