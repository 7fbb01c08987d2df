"""Strict reading of a submission's JSON text, with errors that the model can act on (rule S2)."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from handrail.messages import clean
from handrail.output.json_schema import brief, shorten

MAX_DIGITS = 4000
MAX_DEPTH = 150
_TOO_DEEP = f"The arguments are nested more than {MAX_DEPTH} levels deep"

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')
_OPENING = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:')


def without_bad_escapes(raw: str) -> str:
    """`raw` with escaped lone surrogates and NULs replaced by U+FFFD (rule L11)."""
    return _ESCAPE.sub(_replaced_escape, clean(raw)) if "\\u" in raw else clean(raw)


def _replaced_escape(match: re.Match[str]) -> str:
    text = match[0]
    bad = len(text) == 6 and (text == "\\u0000" or 0xD800 <= int(text[2:], 16) <= 0xDFFF)
    return "\\ufffd" if bad else text


def read(raw: str) -> dict[str, Any]:
    """The object in `raw`. Raises ValueError with a message for the model.

    Stricter than json.loads: no NaN or Infinity, no duplicate keys, no number that overflows a float, at most
    MAX_DEPTH levels.
    """
    try:
        value = json.loads(
            raw,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as fault:
        raise ValueError(f"The arguments are not valid JSON: {fault}") from None
    if isinstance(value, str):
        raise ValueError("The arguments are a string; send the object itself, not a string that holds JSON")
    if not isinstance(value, dict):
        raise ValueError(f"The arguments must be an object, not {brief(value)}")
    if raw.count("{") + raw.count("[") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    return value


def _depth(raw: str) -> int:
    """How deeply valid JSON is nested."""
    deepest = depth = 0
    for match in _BRACKET.finditer(raw):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
        deepest = max(deepest, depth)
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):  # which of the two values counts is undefined
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {brief(twice)} occurs twice in one object")
    return made


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _float(word: str) -> float:
    number = float(word)
    if math.isinf(number):
        raise ValueError(f"the number {shorten(word, 30)} is too large")
    return number


def _int(word: str) -> int:
    if len(word) > MAX_DIGITS:
        raise ValueError(f"a number of {len(word)} digits is too large")
    return int(word)


def inner(raw: str) -> str:
    """The text of the only value of an object, as the model wrote it."""
    opening = _OPENING.match(raw)
    return raw[opening.end() if opening else 0 : raw.rindex("}")]
