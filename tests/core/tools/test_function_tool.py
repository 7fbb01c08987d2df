from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from toolbench import Bench, words

from handrail.messages import Image, Text
from handrail.tools import Tool, ToolContext, ToolError, ToolResult, tool
from handrail.tools.base import InvalidArguments


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Pair:
    left: str
    right: float


async def test_parameters_come_from_the_signature() -> None:
    @tool
    async def plan(
        where: str,
        when: date,
        days: Annotated[int, Field(ge=1, le=14, description="how long")] = 3,
        colour: Colour = Colour.RED,
        tags: list[str] = [],  # noqa: B006 - a default that a call must not be able to change
        json: Literal["yes", "no"] = "no",
    ) -> str:
        """Plan a trip.

        It may rain.

        Args:
            where: a town,
                or a village
            days: not shown, the annotation has said it
        """
        return where

    assert isinstance(plan, Tool)
    assert (plan.name, plan.description) == ("plan", "Plan a trip.\n\nIt may rain.")
    properties = plan.parameters["properties"]
    assert list(properties) == ["where", "when", "days", "colour", "tags", "json"]
    assert properties["where"] == {"type": "string", "description": "a town, or a village"}
    assert properties["when"] == {"type": "string", "format": "date"}
    assert properties["days"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 14,
        "default": 3,
        "description": "how long",
    }
    assert properties["tags"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert plan.parameters["required"] == ["where", "when"]
    assert plan.parameters["additionalProperties"] is False
    assert "title" not in str(plan.parameters)


async def test_arguments_are_read_leniently_from_the_raw_json(bench: Bench) -> None:
    seen: list[Any] = []

    @tool
    async def take(number: int, day: date, point: Point, colour: Colour = Colour.RED) -> None:
        seen.append((number, day, point, colour))

    raw = '{"number": "5", "day": "2026-01-05", "point": {"x": "1"}, "colour": "blue"}'
    result = await take.run(bench.parse(take, raw), bench.ctx)
    assert seen == [(5, date(2026, 1, 5), Point(x=1), Colour.BLUE)]
    assert words(result) == "done"


async def test_L6_invalid_arguments_name_each_field(bench: Bench) -> None:
    @tool
    async def take(number: int, point: Point) -> None: ...

    with pytest.raises(InvalidArguments) as caught:
        bench.parse(take, {"number": "many", "point": {"y": 1}, "nmber": 3})
    assert str(caught.value).splitlines() == [
        "number: Input should be a valid integer, unable to parse string as an integer",
        "point.x: Field required",
        "nmber: unknown parameter; the parameters are number, point",
    ]


async def test_L4_arguments_that_do_not_parse_are_refused_with_the_parse_error(bench: Bench) -> None:
    @tool
    async def take(number: int = 1) -> None: ...

    with pytest.raises(InvalidArguments, match="the arguments are not JSON"):
        bench.parse(take, '{"number": 5')


async def test_L11_surrogates_and_nul_in_escapes_are_replaced(bench: Bench) -> None:
    @tool
    async def echo(text: str) -> str:
        return text

    assert words(await echo.run(bench.parse(echo, r'{"text": "a\ud800b\u0000c"}'), bench.ctx)) == "a�b�c"


async def test_a_context_is_handed_in_and_is_no_parameter(bench: Bench) -> None:
    @tool
    async def where(ctx: ToolContext, deep: int = 0) -> str:
        return f"{ctx.cwd.name} {deep}"

    assert list(where.parameters["properties"]) == ["deep"]
    assert words(await bench.run(where)) == "work 0"


async def test_a_default_is_not_shared_between_calls(bench: Bench) -> None:
    @tool
    async def grow(seen: list[int] = []) -> list[int]:  # noqa: B006
        seen.append(1)
        return seen

    assert [words(await bench.run(grow)) for _ in range(2)] == ["[1]", "[1]"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain [/] text", "plain [/] text"),
        (None, "done"),
        (Point(x=1), '{"x":1,"y":0}'),
        (Pair("ä", 0.5), '{"left":"ä","right":0.5}'),
        ({"a": [1, None, date(2026, 1, 5)]}, '{"a":[1,null,"2026-01-05"]}'),
        ((1, 2), "[1,2]"),
        ([], "[]"),
        (0, "0"),
        ("", ""),
        ("a\ud800b\0", "a�b�"),
    ],
)
async def test_what_a_function_returns_becomes_text(bench: Bench, value: Any, expected: str) -> None:
    @tool
    async def give() -> Any:
        return value

    assert words(await bench.run(give)) == expected


async def test_results_and_blocks_pass_as_they_are(bench: Bench) -> None:
    picture = Image("aGk=", "image/png")
    given: list[Any] = [ToolResult("no", is_error=True), picture, [Text("see"), picture]]

    @tool(terminate=True)
    async def give(which: int) -> Any:
        return given[which]

    assert await bench.run(give, which=0) == ToolResult("no", is_error=True)
    assert await bench.run(give, which=1) == ToolResult((picture,), terminate=True)
    assert (await bench.run(give, which=2)).blocks == (Text("see"), picture)


async def test_what_is_no_json_is_an_error_that_names_the_type(bench: Bench) -> None:
    @tool
    async def give() -> object:
        return object()

    with pytest.raises(ToolError, match="give returned a object that is no JSON"):
        await bench.run(give)


async def test_L7_the_vote_may_depend_on_the_result(bench: Bench) -> None:
    @tool(terminate=lambda value: value > 2)
    async def number(n: int) -> int:
        return n

    assert [(await bench.run(number, n=n)).terminate for n in (2, 3)] == [False, True]


def test_options_are_those_of_a_tool() -> None:
    @tool(name="deploy", description="Ship it.", effect="run", sequential=True, time_limit=30)
    async def function(target: str) -> None: ...

    assert (function.name, function.description) == ("deploy", "Ship it.")
    assert (function.effect, function.sequential, function.time_limit) == ("run", True, 30)


def test_H5_the_preview_shows_the_arguments_and_names_what_a_session_approval_allows(bench: Bench) -> None:
    @tool(effect="run")
    async def deploy(target: str, note: str = "") -> None: ...

    preview = bench.preview(deploy, target="pro\nd", note="[/]")
    assert preview.title == r"deploy target='pro\nd' note='[/]'"
    assert preview.detail == '{\n  "target": "pro\\nd",\n  "note": "[/]"\n}'
    assert preview.pattern == "deploy with any arguments"


def test_a_type_made_in_the_same_function_is_found() -> None:
    class Local(BaseModel):
        x: int

    @tool
    async def take(local: Local) -> None: ...

    assert "local" in take.parameters["properties"]


async def test_partials_and_callable_objects_are_tools_too(bench: Bench) -> None:
    class Adder:
        async def __call__(self, n: int) -> int:
            return n + 1

    async def add(n: int, to: int) -> int:
        return n + to

    assert words(await bench.run(tool(name="adder")(Adder()), n=1)) == "2"
    assert words(await bench.run(tool(name="plus")(functools.partial(add, to=5)), n=1)) == "6"


def test_bad_signatures_are_refused_with_a_reason() -> None:
    async def untyped(a):  # type: ignore[no-untyped-def]
        ...

    async def many(*args: int) -> None: ...

    async def named(**options: int) -> None: ...

    async def positional(a: int, /) -> None: ...

    async def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    async def odd(a: object, b: type(lambda: 0)) -> None: ...  # type: ignore[valid-type]

    def plain(a: int) -> int:
        return a

    async def stream(a: int):  # type: ignore[no-untyped-def]
        yield a

    for function, reason in [
        (untyped, "tool untyped: parameter a has no type"),
        (many, r"tool many: \*args cannot be described"),
        (named, r"tool named: \*options cannot be described"),
        (positional, "tool positional: parameter a must not be positional-only"),
        (unknown, "tool unknown: a type of its signature is not known: name 'Nowhere'"),
        (odd, "tool odd: "),
        (plain, "tool plain: the function must be `async def`"),
        (stream, "tool stream: the function must be `async def`"),
    ]:
        with pytest.raises(TypeError, match=reason):
            tool(function)
