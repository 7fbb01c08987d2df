"""Forms: what a person fills in to answer a question that asks for several things, or for one of a type.

An answer is JSON, or `name=value` pairs as one types them; a form with one field takes the bare value. Either way it
comes out as an object that fits the fields, or as errors that name each field.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from handrail.events.parts import FieldError, FieldKind, FormField

_TRUE: Final = frozenset({"true", "yes", "y", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "n", "off", "0"})
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PAIR: Final = re.compile(r"\s*([^\s=]+)\s*=")


class FormError(ValueError):
    """An answer that does not fit. `errors` names each field."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{e.path}: {e.message}" if e.path else e.message for e in errors))


def read_answer(fields: Sequence[FormField], text: str) -> dict[str, Any]:
    """The values that `text` gives for `fields`. What is left out takes its default. Raises FormError."""
    return check_values(fields, _given(fields, text.strip()))


def check_values(fields: Sequence[FormField], given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` as the fields' types. An empty text counts as left out. Raises FormError."""
    errors = [
        FieldError(name, "there is no such field; the fields are " + ", ".join(f.name for f in fields))
        for name in given
        if all(name != f.name for f in fields)
    ]
    values: dict[str, Any] = {}
    for field in fields:
        value = given.get(field.name)
        if value is None or value == "" or (field.kind == "choices" and value == []):
            value = field.default
        if value is None:
            if field.required:
                errors.append(FieldError(field.name, f"is required: {expected(field)}"))
            continue
        try:
            values[field.name] = _READERS[field.kind](field, value)
        except (ValueError, TypeError, OverflowError):
            errors.append(FieldError(field.name, f"{_short(value)} does not fit: {expected(field)}"))
    if errors:
        raise FormError(errors)
    return values


def expected(field: FormField) -> str:
    """What a field takes, in a few words."""
    words = _WORDS[field.kind]
    low, high = field.minimum, field.maximum
    if field.kind in ("choice", "choices"):
        names = ", ".join(value if value == label else f"{value} ({label})" for value, label in field.options)
        words = f"{words} {names}"
    if field.kind == "choices":
        return words + _range(low, high, ", {} of them")
    if field.kind in ("number", "integer"):
        return words + _range(low, high, ", {}")
    return words + _range(low, high, ", {} characters")


def described(fields: Sequence[FormField]) -> list[str]:
    """A line for each field: its name, what it takes, whether it must be given, its help."""
    lines = []
    for field in fields:
        notes = ["required" if field.required else "optional"]
        if field.default is not None:
            notes.append(f"default {shown(field.default)}")
        label = field.label if field.label and field.label != field.name else ""
        tail = " · ".join(part for part in (label, field.help) if part)
        lines.append(f"{field.name}: {expected(field)} ({', '.join(notes)})" + (f" · {tail}" if tail else ""))
    return lines


def shown(value: Any) -> str:
    """A value as a person would type it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    return str(value)


def _given(fields: Sequence[FormField], text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        return parsed
    names = {field.name for field in fields}
    first = _PAIR.match(text)
    if len(fields) == 1 and (first is None or first[1] not in names):
        return {fields[0].name: text if parsed is None or isinstance(parsed, float) else parsed}
    return _pairs(names, text)


def _pairs(names: set[str], text: str) -> dict[str, Any]:
    """`name=value name2='two words'`, or one a line, where a value may hold spaces."""
    parts = text.splitlines() if "\n" in text else _words(text)
    given: dict[str, Any] = {}
    for part in filter(str.strip, parts):
        name, equals, value = part.partition("=")
        if not equals:
            known = ", ".join(f"{n}=…" for n in sorted(names))
            raise FormError([FieldError("", f"{_short(part)} is no name=value; write {known}, or JSON")])
        given[name.strip()] = value.strip()
    return given


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def _text(field: FormField, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    _within(field, len(value))
    return value


def _number(field: FormField, value: Any) -> float | int:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError
    _within(field, number)
    return (
        int(number) if isinstance(value, int) or (isinstance(value, str) and number.is_integer()) else number
    )


def _integer(field: FormField, value: Any) -> int:
    number = _number(field, value)
    if number != int(number):
        raise ValueError
    return int(number)


def _boolean(field: FormField, value: Any) -> bool:
    word = str(value).strip().lower()
    if isinstance(value, bool) or word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError


def _choice(field: FormField, value: Any) -> str:
    word = str(value).strip()
    for match in (lambda v, _: v == word, lambda v, la: word.lower() in (v.lower(), la.lower())):
        for option, label in field.options:
            if match(option, label):
                return option
    if word.isdecimal() and 0 < int(word) <= len(field.options):
        return field.options[int(word) - 1][0]  # by its number, as a person types it
    raise ValueError


def _choices(field: FormField, value: Any) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else list(value)
    taken = list(dict.fromkeys(_choice(field, part) for part in parts if str(part).strip()))
    _within(field, len(taken))
    return taken


def _date(field: FormField, value: Any) -> str:
    return date.fromisoformat(_text(field, value).strip()).isoformat()


def _moment(field: FormField, value: Any) -> str:
    """RFC 3339: with a zone. A moment without one is local time."""
    moment = datetime.fromisoformat(_text(field, value).strip())
    return (moment if moment.tzinfo else moment.astimezone()).isoformat()


def _email(field: FormField, value: Any) -> str:
    text = _text(field, value).strip()
    if _EMAIL.fullmatch(text) is None:
        raise ValueError
    return text


def _uri(field: FormField, value: Any) -> str:
    text = _text(field, value).strip()
    if not urlsplit(text).scheme or " " in text:
        raise ValueError
    return text


def _within(field: FormField, size: float) -> None:
    if field.minimum is not None and size < field.minimum:
        raise ValueError
    if field.maximum is not None and size > field.maximum:
        raise ValueError


def _range(low: float | None, high: float | None, words: str) -> str:
    if low is None and high is None:
        return ""
    if low is None:
        return words.format(f"at most {high:g}")
    if high is None:
        return words.format(f"at least {low:g}")
    return words.format(f"{low:g} to {high:g}")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"'{text[:60]}…'" if len(text) > 60 else f"'{text}'"


_WORDS: Final[Mapping[FieldKind, str]] = {
    "text": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "yes or no",
    "choice": "one of",
    "choices": "some of",
    "date": "a date such as 2026-07-28",
    "date-time": "a date and time such as 2026-07-28T09:30:00Z",
    "email": "an e-mail address",
    "uri": "an address such as https://example.com",
}
_READERS: Final[Mapping[FieldKind, Callable[[FormField, Any], Any]]] = {
    "text": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "choice": _choice,
    "choices": _choices,
    "date": _date,
    "date-time": _moment,
    "email": _email,
    "uri": _uri,
}
