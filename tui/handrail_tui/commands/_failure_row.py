"""A failure as a row of JSON: what `handrail classify --json` reads (rule K5)."""

from __future__ import annotations

import json
from datetime import datetime, tzinfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from handrail.messages import Failure, Phase, clean
from handrail.recovery.moments.zones import zone_named


class FailureRow(BaseModel):
    """One row. `now` is RFC 3339 or seconds since the epoch. Other keys are ignored."""

    model_config = ConfigDict(strict=True, arbitrary_types_allowed=True)

    id: str | int | None = None
    text: str
    provider: str | None = None
    phase: Phase = "response"
    status: int | None = Field(default=None, ge=0, le=999)
    headers: dict[str, str | int | float] = Field(default_factory=dict)
    now: float | None = Field(default=None, allow_inf_nan=False)
    zone: tzinfo | None = Field(default=None, alias="local_zone")

    @field_validator("now", mode="before")
    @classmethod
    def _moment(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is not an RFC 3339 time") from None
        if moment.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; add Z for UTC")
        return moment.timestamp()

    @field_validator("zone", mode="before")
    @classmethod
    def _zone(cls, value: object) -> tzinfo | None:
        if value is None:
            return None
        zone = zone_named(value) if isinstance(value, str) else None
        if zone is None:
            raise ValueError(f"unknown time zone {value!r}")
        return zone

    def failure(self) -> Failure:
        """The row as recovery sees it: header names in lower case, text cleaned (rule L11)."""
        headers = {name.lower(): str(value) for name, value in self.headers.items()}
        return Failure(clean(self.text), self.provider, self.phase, self.status, headers)


def read_row(line: str) -> FailureRow:
    """The row in `line`. Raises ValueError that names the field and the problem."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"a row is a JSON object, not {type(value).__name__}")
    try:
        return FailureRow.model_validate(value)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise ValueError("; ".join(wrong)) from None
