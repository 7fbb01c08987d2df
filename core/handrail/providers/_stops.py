"""Finish words of all wires in one table (rule W1).

Gateways pass the words of one wire through another, in any case and with any separator. A word that is not in the
table finishes nothing: the reply is an error, and asking again is cheap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from handrail.messages import StopReason, clean

MAX_WORD: Final = 200  # characters of a finish word that are kept

_MEANINGS: Final[dict[StopReason, str]] = {
    "stop": """
        stop stopped eos eos_token end_turn end_of_turn end_of_text stop_sequence stop_token complete completed
        finish finished done success normal pause_turn
    """,
    "tool_use": """
        tool_calls tool_call tool_use function_call function_calls
    """,
    "length": """
        length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length model_length
        token_limit output_limit model_context_window_exceeded context_length incomplete time_limit
    """,
    "refusal": """
        content_filter content_filtered content_filter_error refusal refused safety recitation blocklist
        prohibited_content spii language sensitive image_safety image_prohibited_content image_recitation
        guardrail_intervened guardrails model_armor moderation flagged blocked filtered
    """,
    "error": """
        error network_error insufficient_system_resource abort aborted cancelled canceled failed timeout
        malformed_function_call malformed_tool_call malformed_tool_use malformed_model_output malformed_response
        unexpected_tool_call too_many_tool_calls missing_thought_signature other
    """,
}
_NO_WORD: Final = frozenset(
    ("", "null", "none", "nil", "undefined", "unspecified", "finishreasonunspecified", "notfinished")
) | {"inprogress"}
_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")


def _plain(word: str) -> str:
    return _SEPARATORS.sub("", word.lower())


_TABLE: Final[dict[str, StopReason]] = {
    _plain(word): meaning for meaning, words in _MEANINGS.items() for word in words.split()
}


def stop_of(word: str) -> StopReason:
    """What a finish word means; `error` for one that nobody knows."""
    return _TABLE.get(_plain(word), "error")


def is_known(word: str) -> bool:
    """Whether the table holds the word."""
    return _plain(word) in _TABLE


def is_full_window(word: str) -> bool:
    """Whether the word says that the context window, not the cap on output, ended the reply."""
    return _plain(word) == "modelcontextwindowexceeded"


def says_nothing(word: str) -> bool:
    """Whether a word stands where none was meant, such as `null`."""
    return _plain(word) in _NO_WORD


def promises_calls(word: str) -> bool:
    """Whether the word says that the reply ends in tool calls."""
    return _TABLE.get(_plain(word)) == "tool_use"


def word_in(value: Any) -> str:
    """The finish word that a field holds, whatever its type; empty when it holds none."""
    if isinstance(value, str):
        return clean(value[:MAX_WORD]).strip()
    if value is None or value is False or value == 0:
        return ""
    if isinstance(value, Mapping):
        inner = (
            value.get(key) for key in ("type", "reason", "value", "name", "finish_reason", "stop_reason")
        )
        return next((word for item in inner if isinstance(item, str) and (word := word_in(item))), "unknown")
    if isinstance(value, list):
        return word_in(value[0]) if len(value) == 1 else "unknown" if value else ""
    return clean(str(value)[:MAX_WORD])
