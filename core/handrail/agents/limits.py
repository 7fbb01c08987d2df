"""What is known of usage limits, by account (rules U1, U3)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Limit:
    """A usage limit in force. `until` is in seconds since the epoch; `guided` says whether the provider named it.

    `status`, `headers` and `body` are the provider's answer, to be repeated while the limit lasts; `words` is what a
    person reads.
    """

    until: float
    words: str
    source: str = ""
    guided: bool = True
    status: int = 429
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)


class AccountLimits(Protocol):
    """What one session tells the others of its account. `account` is a digest, never a key."""

    def current(self, account: str, now: float) -> Limit | None:
        """The limit that holds for `account` at the moment `now`."""
        ...

    def hit(self, account: str, limit: Limit) -> None:
        """A session of `account` met `limit`."""
        ...

    def clear(self, account: str) -> None:
        """A request of `account` went through: no limit holds any more."""
        ...


class LimitsHere:
    """The limits that the sessions of this process know of."""

    def __init__(self) -> None:
        self._known: dict[str, Limit] = {}

    def current(self, account: str, now: float) -> Limit | None:
        limit = self._known.get(account)
        return limit if limit is not None and now < limit.until else None

    def hit(self, account: str, limit: Limit) -> None:
        self._known[account] = limit

    def clear(self, account: str) -> None:
        self._known.pop(account, None)


def account_of(origin: str, key: str) -> str:
    """The account that `key` opens at `origin`: a digest that tells nobody the key."""
    return hashlib.sha256(f"{origin}\0{key}".encode()).hexdigest()[:16]
