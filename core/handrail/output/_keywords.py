r"""Keywords of JSON Schema that are judged as JSON Schema means them, not as Python does (rule S2).

`multipleOf` counts in decimals: 19.99 is a multiple of 0.01. Patterns are ECMAScript's: named groups are `(?<name>…)`,
`\d` is ASCII. A pattern that only Python understands is Python's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final


def is_multiple(validator: Any, step: Any, value: Any, schema: Any) -> Iterator[Any]:
    """`multipleOf`, counted in the decimals that are written."""
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(step)):
        yield ValidationError(f"{value!r} is not a multiple of {step}")


def found_in(pattern: str, text: str) -> bool:
    """Whether `text` matches `pattern` anywhere. Raises re.error for what is no pattern."""
    return _finder(pattern)(text)


def is_pattern(value: object) -> bool:
    """Whether a value of the format `regex` is one; other types pass."""
    try:
        return not isinstance(value, str) or _finder(value) is not None
    except re.error:
        return False


@lru_cache(maxsize=256)
def _finder(pattern: str) -> Callable[[str], bool]:
    from regress import Regex, RegressError

    for flags in ("u", ""):  # with `u`, superfluous escapes such as `\-` are errors
        try:
            found = Regex(pattern, flags).find
        except (RegressError, UnicodeEncodeError):
            continue
        return lambda text: found(text) is not None
    search = re.compile(pattern).search
    return lambda text: search(text) is not None


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "string") and not found_in(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, schema: Any
) -> Iterator[Any]:
    if not validator.is_type(value, "object"):
        return
    for pattern, inner in patterns.items():
        for name, item in value.items():
            if found_in(pattern, name):
                yield from validator.descend(item, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not validator.is_type(value, "object"):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [k for k in value if k not in known and not any(found_in(p, k) for p in patterns)]
    if validator.is_type(allowed, "object"):
        for extra in extras:
            yield from validator.descend(value[extra], allowed, path=extra)
    elif not allowed and extras:
        yield ValidationError(f"Additional properties are not allowed: {', '.join(map(repr, extras))}")


PATTERNS: Final = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
"""The keywords that read patterns, for `jsonschema.validators.extend`."""
