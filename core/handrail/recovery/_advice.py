"""What a person can do about a failure that is not asked again (rule R15)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from handrail.messages import FailureClass

_BY_CLASS: Final[Mapping[str, str]] = {
    "auth": "Check the key, or sign in again; `handrail doctor` says which key is used.",
    "billing": "Add credits, raise the spend cap or change the plan with the provider, or take another model.",
    "content_filter": "Reword the request or leave out what the provider objects to, or take another model.",
    "invalid_request": "The request cannot work as it is. Check the model, the API and the limits that were asked for.",
    "unknown": "Read the words: if asking again can help, resume the session by hand.",
}
_CLOSER: Final[tuple[tuple[FailureClass, re.Pattern[str], str], ...]] = (
    (
        "invalid_request",
        re.compile(r"^scenario has no more replies"),
        "A scenario says what was written into it, and no more. `handrail run` asks a model.",
    ),
    (
        "invalid_request",
        re.compile(r"certificate|self[ -]signed|hostname mismatch"),
        "Make this machine trust the server's certificate (SSL_CERT_FILE), or check --base-url.",
    ),
    (
        "invalid_request",
        re.compile(r"wrong version number|unknown url|unsupported protocol|missing an 'http"),
        "Check --base-url: it needs http:// or https://, whichever the server speaks.",
    ),
    (
        "invalid_request",
        re.compile(
            r"\b(?:model|deployment|endpoints?)\b[^.]{0,90}(?:not found|exist|support|available|decommissioned)"
        ),
        "Check the model's name and what it supports; `handrail models` lists what is known.",
    ),
    (
        "invalid_request",
        re.compile(r"request too large|requested:? \d"),
        "Send less at once, or ask the provider for a higher limit: waiting does not make it fit.",
    ),
    (
        "auth",
        re.compile(r"region|country|territory|location"),
        "The provider does not serve this place. Take another provider.",
    ),
    (
        "auth",
        re.compile(r"expired|sign(?:ing)? in|log ?in|revoked|invalidated"),
        "Sign in again, or put a fresh key in place.",
    ),
    (
        "auth",
        re.compile(r"permission|access|not authori[sz]ed|forbidden"),
        "Ask the owner of the account for access to this model, or take another key or model.",
    ),
)


def advise(class_: str, words: str) -> str:
    """One or two sentences for a permanent class, "" for one that recovery handles. `words` are lower case."""
    closer = (advice for c, pattern, advice in _CLOSER if c == class_ and pattern.search(words))
    return next(closer, _BY_CLASS.get(class_, ""))
