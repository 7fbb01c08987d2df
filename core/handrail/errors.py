"""Errors that a person can fix, and suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable


class ConfigError(Exception):
    """Something a person provided is wrong or missing: a setting, a flag, a key, a file, a scenario.

    The message tells that person what is wrong, where, and what to do. It is shown without a
    traceback and the program ends with exit code 2.
    """


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'run'?` for the known name nearest to `word`, or a sentence with all of them."""
    import difflib

    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.55)
    if near:
        return f" Did you mean '{near[0]}'?"
    return f" It may be: {', '.join(names)}." if names else ""


def described(error: BaseException) -> str:
    """`ValueError: no such row`. Never raises, whatever the exception's own `__str__` does."""
    try:
        words = str(error).strip()
    except BaseException:
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
