"""A piece of the history that a provider refuses: a picture or a document that cannot be processed (rule W6)."""

from __future__ import annotations

import re
from typing import Final

from handrail.messages import Failure

_WHAT: Final = (
    r"(?:images?|pictures?|photos?|media|documents?|pdfs?|base64|image[_ ]url|(?:media|mime)[_ ]type)"
)
_DO: Final = r"(?:process|decod|read|load|download|fetch|pars|identif)\w*"
_WRONG: Final = (
    rf"(?:(?:could(?:n't| not)|cannot|can't|unable to|fail(?:ed|ure)? to)(?: be)? {_DO}"
    r"|invalid|corrupt\w*|damaged|malformed|truncated|unsupported|not (?:a )?(?:valid|supported)"
    r"|(?:does|do) not (?:support|match|appear)|exceeds?|too (?:large|big|many|small)|dimensions?"
    r"|at least \d+ pixels?)"
)
_REFUSED: Final = re.compile(
    rf"\b{_WHAT}\b.{{0,120}}?\b{_WRONG}|\b{_WRONG}.{{0,80}}?\b{_WHAT}\b", re.IGNORECASE | re.DOTALL
)
_STATUSES: Final = (None, 400, 413, 415, 422)


def refuses_a_piece(failure: Failure) -> bool:
    """Whether this failure says that a picture or a document of the request cannot be processed."""
    return failure.status in _STATUSES and _REFUSED.search(failure.text[:20_000]) is not None
