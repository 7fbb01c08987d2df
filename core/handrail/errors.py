"""Errors that a person can mend."""

from __future__ import annotations


class ConfigError(Exception):
    """Something that a person set is wrong or missing: a setting, a flag, a key, a file, a scenario.

    The message is for that person: what is wrong, where it stands, what to do. It is shown without a traceback
    and the program ends with exit code 2.
    """
