"""Values that nobody promised: counts, words and errors wherever a server puts them (rules W3, W5).

A wrong type counts as absent. An error counts as one under whatever key it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from handrail.messages import Usage

MAX_ERROR: Final = 64 * 1024  # characters of an error that are kept
MAX_COUNT: Final = 10**12  # a larger count of tokens is not one
MAX_DIGITS: Final = 20


def name_set(names: str) -> frozenset[str]:
    """The words of a text, as a set of names."""
    return frozenset(names.split())


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Mapping[str, Any]]:
    """The objects of `value` if it is a list, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(value: object) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def text_name(value: object) -> str:
    """`value` as an id or a name: a string, or a number in digits."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int else ""


def readable(value: object) -> str:
    """The text in a string, in an object that holds one, or in a list of either."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(readable(item) for item in value)
    if isinstance(value, dict):
        keys = ("text", "content", "thinking", "summary", "value")
        return next((text for key in keys if (text := readable(value.get(key)))), "")
    return ""


def count(value: object) -> int | None:
    """`value` as a count, also where it comes as text; None if it is not one."""
    if type(value) is int and 0 <= value < MAX_COUNT:
        return value
    if isinstance(value, str) and len(value) <= MAX_DIGITS:
        try:
            value = float(value.replace(",", ""))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < MAX_COUNT else None


def read_usage(usage: Mapping[str, Any]) -> Usage | None:
    """Tokens of a reply, under the names of any wire but Anthropic's; None when nothing was counted.

    `input` leaves out what a cache gave or took.
    """
    details = mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    said = mapping(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
    reasoning = count(said.get("reasoning_tokens")) or 0
    prompt = count(usage.get("prompt_tokens")) or count(usage.get("input_tokens")) or 0
    output = count(usage.get("completion_tokens")) or count(usage.get("output_tokens")) or 0
    if reasoning and count(usage.get("total_tokens")) == prompt + output + reasoning:
        output += reasoning  # xAI counts reasoning beside the completion, the others inside it
    read = count(details.get("cached_tokens"))
    read = read or count(usage.get("prompt_cache_hit_tokens")) or count(usage.get("cached_tokens")) or 0
    written = count(details.get("cache_write_tokens")) or 0
    if not prompt and not output:
        return None
    return Usage(max(0, prompt - read - written), output, read, written)


class StreamFault(Exception):
    """The reply tells of an error, or cannot be read. `status` is the HTTP status that the error means."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


_NO_ERROR: Final = frozenset(
    ("", "0", "200", "none", "null", "false", "ok", "success", "succeeded", "normal", "no error", "noerror")
)
_STATUS_KEYS: Final = ("status_code", "code", "status", "error_code", "type", "http_status", "statusCode")
_REPLY: Final = frozenset(("choices", "created", "model", "usage", "system_fingerprint"))
_STRONG: Final = name_set(
    """
    error errors errormessage errormsg errmsg errorcode errcode errno err errorresponse lasterror
    errorinfo errordetails exception fault faultstring failure
    """
)
_WRAPPERS: Final = ("data", "response", "result", "body", "payload", "output", "message", "delta", "chunk")
_KIND_KEYS: Final = ("type", "object", "event", "status", "level", "severity", "__type", "state")
_ERROR_KIND: Final = re.compile(r"(?:^|[._a-z])(?:error|exception|failure|failed|fatal)$", re.IGNORECASE)
_SQUASH: Final = re.compile(r"[^a-z0-9]+")
_ERROR_TEXT: Final = re.compile(
    r"\b\w*(?:error|exception|traceback|failed|failure|overloaded|unavailable|timed out|timeout|exceeded"
    r"|unauthorized|forbidden|denied|rate limit|quota|upstream)\b|\A\s*<(?:!doctype|html|\?xml)",
    re.IGNORECASE,
)


def fault(event: Mapping[str, Any], statuses: Mapping[str, int]) -> StreamFault:
    """An error event as a fault: its JSON, and the status that one of its fields is or, by `statuses`, means."""
    error = event.get("error") or event.get("errors") or event
    if isinstance(error, list) and error:
        error = error[0]
    found = None
    for holder in (error, event):
        if isinstance(holder, dict) and found is None:
            named = (holder.get(key) for key in _STATUS_KEYS)
            found = next((s for word in named if (s := _status(word, statuses)) is not None), None)
    told = {key: value for key, value in event.items() if key not in _REPLY} or event
    return StreamFault(json.dumps(told, ensure_ascii=False)[:MAX_ERROR], found)


def tells_error(event: Mapping[str, Any], *, known: bool = False) -> bool:
    """Whether an event is an error, whatever its shape.

    `known`: the event is one of the wire's own, so that a message or a code in it means nothing by itself.
    """
    for key, value in event.items():
        plain = _SQUASH.sub("", key.lower())
        if plain in _STRONG and _is_trouble(value):
            return True
        if plain == "baseresp" and _is_trouble(mapping(value).get("status_code")):
            return True
        if plain in ("success", "ok", "succeeded") and (value is False or words(value).lower() == "false"):
            return True
    if any(_ERROR_KIND.search(words(event.get(key))) for key in _KIND_KEYS):
        return True
    if known:
        return False
    return _looks_like_error(event) or any(
        tells_error(inner, known=key in ("message", "delta"))
        for key in _WRAPPERS
        if (inner := mapping(event.get(key)))
    )


def _looks_like_error(event: Mapping[str, Any]) -> bool:
    """The shapes without the word: FastAPI, RFC 9457, AWS, DashScope, a code beside a message."""
    status = next((s for key in _STATUS_KEYS if (s := _status(event.get(key), {})) is not None), None)
    if status is not None or _is_trouble(event.get("detail")):
        return True
    said = any(words(event.get(key)).strip() for key in ("message", "msg", "Message", "reason", "title"))
    codes = [event[key] for key in ("code", "status_code", "statusCode", "ret", "retcode") if key in event]
    return said and (all(map(_is_trouble, codes)) if codes else True)


def _is_trouble(value: object) -> bool:
    """Whether the value of an error's key says that there is one: servers send zeros, blanks and null as well."""
    if isinstance(value, str):
        return value.strip().lower() not in _NO_ERROR
    if isinstance(value, dict):
        return any(map(_is_trouble, value.values()))
    if isinstance(value, list):
        return any(map(_is_trouble, value))
    return bool(value) and value != 200


def _status(word: object, statuses: Mapping[str, int]) -> int | None:
    if isinstance(word, str) and word.isascii() and word.isdigit():
        word = int(word[:4])
    number = count(word) if not isinstance(word, str) else None
    if number is not None:
        return number if 400 <= number <= 599 else None
    return statuses.get(word) if isinstance(word, str) else None


def text_tells_error(text: str) -> bool:
    """Whether words that are no event of the wire speak of an error."""
    return _ERROR_TEXT.search(text[:MAX_ERROR]) is not None


# What a provider attaches to a call, a thought or a reply for its own use (rule W4).

ATTACHED: Final = name_set(
    """
    extra_content thought_signature thoughtSignature thought_signatures signature reasoning_signature
    thinking_signature reasoning_opaque reasoning_encrypted encrypted_content encrypted_reasoning
    reasoning_encrypted_content provider_specific_fields provider_metadata providerMetadata
    thinking_blocks reasoning_details reasoning_item reasoning_items reasoning_id
    """
)


def attached(holder: Mapping[str, Any]) -> dict[str, Any]:
    """What a provider attached to `holder`, by any of the names in use."""
    return {
        key: value for key, value in holder.items() if key in ATTACHED and value not in (None, "", [], {})
    }


def merged(held: Any, more: Any) -> Any:
    """What was attached so far, with what one more piece of the stream attaches.

    Text grows, unless it is repeated; the pieces of one detail are joined by their type and index.
    """
    if isinstance(held, dict) and isinstance(more, dict):
        return merge(held, more)
    if isinstance(held, list) and isinstance(more, list):
        return _merged_lists(held, more)
    if isinstance(held, str) and isinstance(more, str):
        return more if more.startswith(held) else held + more
    return more


def merge(held: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects of what was attached, as one."""
    return dict(held) | {
        key: merged(held.get(key), value) for key, value in more.items() if value is not None
    }


def _merged_lists(held: list[Any], more: list[Any]) -> list[Any]:
    found = list(held)
    for item in more:
        last = found[-1] if found else None
        if isinstance(item, dict) and isinstance(last, dict) and _is_piece_of(last, item):
            found[-1] = _joined(last, item)
        elif item not in found:
            found.append(item)
    return found


def _is_piece_of(last: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    return all(last.get(key) == item.get(key) for key in ("type", "index"))


def _joined(last: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    """Two pieces of one detail: its texts are deltas and grow, its names are repeated."""
    made = dict(last)
    for key, value in item.items():
        before = made.get(key)
        if (
            isinstance(before, str)
            and isinstance(value, str)
            and key in ("text", "summary", "data", "thinking")
        ):
            made[key] = before + value
        elif value not in (None, ""):
            made[key] = value
    return made


def first_text(
    holder: Mapping[str, Any], keys: Iterable[str], read: Callable[[object], str] = readable
) -> str:
    """The first readable text under one of `keys`."""
    return next((text for key in keys if (value := holder.get(key)) and (text := read(value))), "")
