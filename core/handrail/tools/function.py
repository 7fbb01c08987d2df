"""`@tool` makes a tool of a typed async function.

    @tool
    async def weather(city: Annotated[str, Field(description="a town")], days: int = 3) -> str:
        \"\"\"The weather of the coming days.\"\"\"

Parameters come from the signature (names, types, defaults, `Annotated[..., Field(...)]`), the description
from the docstring up to its first section, and text of an `Args:` section goes to the parameters. A parameter
annotated `ToolContext` receives the context and is not part of the schema.

A function that is not async is refused: it would block everything, and in a thread nothing could stop it
(rule L9). Blocking work inside goes through `await ctx.clock.in_thread(call)`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeAlias, overload

from pydantic import ConfigDict, Field
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_json

from handrail.messages import Content, Image, Text, clean
from handrail.tools._typed import TypedTool
from handrail.tools.base import Effect, Preview, Tool, ToolContext, ToolError, ToolResult
from handrail.tools.output import count, one_line

AsyncFunction: TypeAlias = Callable[..., Awaitable[Any]]
Vote: TypeAlias = bool | Callable[[Any], bool]

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?):?\s*$")
_PARAMETER = re.compile(r"^(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@overload
def tool(function: AsyncFunction, /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "read",
    sequential: bool = False,
    time_limit: float | None = None,
    terminate: Vote = False,
) -> Callable[[AsyncFunction], Tool]: ...


def tool(
    function: AsyncFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "read",
    sequential: bool = False,
    time_limit: float | None = None,
    terminate: Vote = False,
) -> Tool | Callable[[AsyncFunction], Tool]:
    """Make a tool of a typed async function; bare, or with options.

    `effect` decides whether the call needs approval (rule H5): say "edit" or "run" for a function
    that changes something. `time_limit` is in seconds. `terminate` votes for the end of the loop (rule L7),
    always or by what the function returned. Raises TypeError for a signature that cannot be described to a
    model.
    """

    scope = sys._getframe(1).f_locals  # types may be made where the function is

    def decorate(function: AsyncFunction) -> Tool:
        made = FunctionTool(function, name or _name_of(function), description, scope)
        made.effect, made.sequential, made.time_limit, made.vote = effect, sequential, time_limit, terminate
        return made

    return decorate if function is None else decorate(function)


class FunctionTool(TypedTool[Any]):
    """A tool made from an async function. `vote` is its vote to end the loop."""

    vote: Vote = False

    def __init__(
        self,
        function: AsyncFunction,
        name: str,
        description: str | None = None,
        local_names: Mapping[str, Any] | None = None,
    ) -> None:
        _require_async(function, name)
        text, words = _docstring(function)
        self.name = name
        self.description = text if description is None else description
        self._function = function
        self._injected: list[str] = []
        self._names: list[str] = []
        try:
            super().__init__(self._arguments(words, local_names or {}))
        except PydanticUserError as error:
            raise TypeError(f"tool {name}: {error.message}") from None

    def _arguments(self, words: Mapping[str, str], local_names: Mapping[str, Any]) -> type[Any]:
        """The parameters as a dataclass; names that a pydantic model reserves are allowed here."""
        hints = _hints(self._function, self.name, local_names)
        fields: list[Any] = []
        for parameter in inspect.signature(self._function).parameters.values():
            if parameter.kind in _VARIADIC:
                raise TypeError(
                    f"tool {self.name}: *{parameter.name} cannot be described to a model; name each parameter"
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise TypeError(f"tool {self.name}: parameter {parameter.name} must not be positional-only")
            if parameter.name not in hints:
                raise TypeError(f"tool {self.name}: parameter {parameter.name} has no type")
            hint = hints[parameter.name]
            if hint is ToolContext:
                self._injected.append(parameter.name)
                continue
            self._names.append(parameter.name)
            fields.append(_field(parameter, hint, words.get(parameter.name)))
        namespace = {"__pydantic_config__": ConfigDict(extra="forbid", arbitrary_types_allowed=False)}
        return dataclasses.make_dataclass("Arguments", fields, kw_only=True, namespace=namespace)

    def preview(self, args: Any, ctx: ToolContext) -> Preview:
        given = {name: getattr(args, name) for name in self._names}
        title = " ".join([self.name, *(f"{name}={value!r}" for name, value in given.items())])
        detail = to_json(given, indent=2, fallback=repr).decode() if given else ""
        return Preview(one_line(title), detail, pattern=f"{self.name} with any arguments")

    async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
        given = {name: getattr(args, name) for name in self._names}
        value = await self._function(**given, **dict.fromkeys(self._injected, ctx))
        result = self._result(value)
        votes = self.vote(value) if callable(self.vote) else self.vote
        if votes and not result.is_error:
            result = dataclasses.replace(result, terminate=True)
        return result

    def _result(self, value: Any) -> ToolResult:
        if isinstance(value, ToolResult):
            return value
        if isinstance(value, Text | Image):
            return ToolResult((value,))
        if value and isinstance(value, tuple | list) and all(isinstance(v, Text | Image) for v in value):
            blocks: tuple[Content, ...] = tuple(value)
            return ToolResult(blocks)
        text = clean("done" if value is None else value if isinstance(value, str) else self._json(value))
        return ToolResult(text, summary=_summary(text))

    def _json(self, value: Any) -> str:
        try:
            return to_json(value).decode()
        except PydanticSerializationError as error:
            raise ToolError(
                f"{self.name} returned a {type(value).__name__} that is no JSON: {error}"
            ) from None


def _name_of(function: AsyncFunction) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _require_async(function: AsyncFunction, name: str) -> None:
    call = getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__ is welcome
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        return
    raise TypeError(
        f"tool {name}: the function must be `async def`; "
        "do blocking work in it with `await ctx.clock.in_thread(...)` (ctx: ToolContext)"
    )


def _hints(function: AsyncFunction, name: str, local_names: Mapping[str, Any]) -> dict[str, Any]:
    """The types of the parameters. `local_names` are the names where the function was defined, for local
    types."""
    target = inspect.unwrap(function)
    target = getattr(target, "func", target)
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, localns=dict(local_names), include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {name}: a type of its signature is not known: {error}") from None


def _field(parameter: inspect.Parameter, hint: Any, words: str | None) -> tuple[str, Any]:
    """The field of a parameter. Description and default are part of the type, so that pydantic keeps the order of
    fields."""
    if words and not _described(hint, parameter.default):
        hint = Annotated[hint, Field(description=words)]
    default = parameter.default
    if default is not parameter.empty:
        hint = Annotated[hint, default if isinstance(default, FieldInfo) else Field(default=default)]
    return parameter.name, hint


def _described(hint: Any, default: Any) -> bool:
    said = [*getattr(hint, "__metadata__", ()), default]
    return any(isinstance(each, FieldInfo) and each.description for each in said)


def _docstring(function: AsyncFunction) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the description of each parameter in `Args:`."""
    lines = (inspect.getdoc(function) or "").splitlines()
    first = next((n for n, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    words: dict[str, str] = {}
    inside, name, indent = False, "", 0
    for line in lines[first:]:
        if section := _SECTION.match(line):
            inside = section[1] in ("Args", "Arguments", "Parameters")
        elif inside and (found := _PARAMETER.match(line)) and (not words or len(found[1]) == indent):
            indent, name = len(found[1]), found[2]
            words[name] = found[3].strip()
        elif inside and name and line.strip():
            words[name] = f"{words[name]} {line.strip()}".strip()
    return "\n".join(lines[:first]).strip(), words


def _summary(text: str) -> str:
    """The text itself when it is a few words, else how much it is."""
    if len(text) <= 40 and "\n" not in text:
        return text
    return count(text.count("\n") + 1, "line")
