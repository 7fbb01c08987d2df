"""Tools whose parameters are a Python type: schema, validation and its errors come from pydantic.

Arguments are read from the raw JSON text and leniently: a tool takes "5" for 5 (a submission does not, rule
S2).
"""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails

from handrail.messages import ToolCall
from handrail.tools.base import InvalidArguments, Tool

A = TypeVar("A")

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


class Arguments(BaseModel):
    """The parameters of a built-in tool. Unknown names are refused; null means that the parameter was omitted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_null(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {name: value for name, value in data.items() if value is not None}
        return data


class TypedTool(Tool, Generic[A]):
    """A tool whose parsed arguments are an `A`: a pydantic model, a dataclass."""

    def __init__(self, arguments: type[A]) -> None:
        self._adapter: TypeAdapter[A] = TypeAdapter(arguments)
        self.parameters = _schema(self._adapter)

    def parse(self, call: ToolCall) -> A:
        if call.error is not None:
            raise InvalidArguments(call.error)
        try:
            return self._adapter.validate_json(_json_of(call))
        except ValidationError as error:
            raise InvalidArguments(self._explain(error)) from None

    def _explain(self, error: ValidationError) -> str:
        known = ", ".join(self.parameters.get("properties", {})) or "none"
        return "\n".join(_line(e, known) for e in error.errors(include_url=False))


class _PlainSchema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """JSON Schema without the titles that pydantic makes of names: they cost tokens."""
    root = adapter.json_schema(schema_generator=_PlainSchema)
    for schema in (root, *root.get("$defs", {}).values()):
        schema.pop("title", None)
    return root


def _json_of(call: ToolCall) -> str:
    """The raw text; the cleaned arguments where it holds escapes (they may hide what rule L11 forbids) or is
    absent."""
    if "\\u" in call.raw or call.raw.strip() in ("", "{}"):
        return json.dumps(call.arguments)
    return call.raw


def _line(error: ErrorDetails, known: str) -> str:
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] in _UNKNOWN and len(error["loc"]) == 1:
        return f"{path}: unknown parameter; the parameters are {known}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{path}: {message}" if path else message
