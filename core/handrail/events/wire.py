"""Events to and from JSON lines."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from handrail.events import Event


class Codec:
    """Events to and from JSON lines. Built on first use, since building the adapter takes tens of milliseconds."""

    _adapter: ClassVar[Any] = None

    @classmethod
    def _get(cls) -> Any:
        if cls._adapter is None:
            from pydantic import TypeAdapter

            cls._adapter = TypeAdapter(Annotated[Event, Field(discriminator="type")])
        return cls._adapter

    @classmethod
    def dumps(cls, event: Event) -> bytes:
        """One event as JSON, without a newline. It has `type` and `at`; docs/events.md lists the keys."""
        return cls._get().dump_json(event, by_alias=True, warnings="none")  # type: ignore[no-any-return]

    @classmethod
    def loads(cls, line: bytes | str) -> Event:
        """The event of one line. Raises pydantic.ValidationError."""
        return cls._get().validate_json(line)  # type: ignore[no-any-return]
