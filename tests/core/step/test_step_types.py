"""The types that `step()` takes and gives back (rules S1, S2)."""

from __future__ import annotations

import sys
import typing
from pathlib import Path
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel, field_validator
from step_models import ANSWER, TREE, Crash, Model, Point, Row, Verdict, submits

from handrail import step
from handrail.messages import ToolMessage

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("output", "raw", "value"),
    [
        (Verdict, '{"flaky": true, "cause": "a timeout"}', Verdict(flaky=True, cause="a timeout")),
        (Point, '{"x": 3}', Point(3)),
        (Row, '{"name": "a"}', {"name": "a"}),
        (Verdict | Crash, '{"value": {"signal": 11}}', Crash(signal=11)),
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (Literal["yes", "no"], '{"value": "no"}', "no"),
        (Optional[int], '{"value": null}', None),  # noqa: UP045
        (bool, '{"value": false}', False),
        (ANSWER, '{"answer": 5}', {"answer": 5}),
        (
            TREE,
            '{"value": {"name": "a", "children": [{"name": "b"}]}}',
            {"name": "a", "children": [{"name": "b"}]},
        ),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)
async def test_S1_what_comes_back_is_the_validated_object(output: Any, raw: str, value: Any) -> None:
    got = await step("Go.", output, model=Model(submits(raw)))
    assert (got, type(got)) == (value, type(value))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes typing.TypedDict from 3.12 on")
async def test_S1_a_typed_dict_of_typing_gets_one_clear_error_before_any_request() -> None:
    class Old(typing.TypedDict):
        a: int

    model = Model()
    with pytest.raises(ValueError, match="Import TypedDict from typing_extensions instead"):
        await step("Go.", Old, model=model)
    assert model.asked == []


async def test_S2_a_validator_that_raises_makes_the_submission_invalid() -> None:
    class Careful(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def _check(cls, n: int) -> int:
            if n == 1:
                raise RuntimeError("the table is gone")
            return n

    model = Model(submits('{"n": 1}'), submits('{"n": 2}'))
    assert await step("Go.", Careful, model=model) == Careful(n=2)
    result = model.asked[1].messages[-1]
    assert isinstance(result, ToolMessage) and "the table is gone" in result.text


async def test_S2_strict_whatever_the_type() -> None:
    model = Model(submits('{"x": "3"}'), submits('{"x": null}'), submits('{"x": 3}'))
    assert await step("Go.", Point, model=model) == Point(3)
    assert len(model.asked) == 3


def test_a_type_checker_knows_the_type_of_the_result(tmp_path: Path, monkeypatch: Any) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    monkeypatch.setenv("MYPYPATH", str(ROOT / "core"))
    monkeypatch.chdir(tmp_path)
    snippet = tmp_path / "snippet.py"
    snippet.write_text(CHECKED)
    options = ["--config-file=", "--strict", "--follow-imports=silent", "--no-color-output"]
    out, errors, _ = api.run([*options, str(snippet)])
    assert not errors
    revealed = [
        line.split('"')[1].replace("builtins.", "") for line in out.splitlines() if "Revealed type" in line
    ]
    assert revealed == REVEALED
    assert {int(line.split(":")[1]) for line in out.splitlines() if "error:" in line} == {17, 18}, out
    assert 'Unexpected keyword argument "max_turn"' in out


CHECKED = """
from typing import Literal
from pydantic import BaseModel
from handrail import step, step_sync

class Verdict(BaseModel):
    flaky: bool

async def f() -> None:
    reveal_type(await step("?", Verdict, model="a/b"))
    reveal_type(await step("?", list[int], model="a/b", tools=[]))
    reveal_type(await step("?", Verdict | None, model="a/b", max_turns=3))
    reveal_type(await step("?", Literal["yes", "no"], model="a/b"))
    reveal_type(await step("?", {"type": "integer"}, model="a/b"))

reveal_type(step_sync("?", Verdict, model="a/b"))
step_sync("?", Verdict, model="a/b", max_turn=3)
step_sync("?", Verdict)
"""
REVEALED = [
    "snippet.Verdict",
    "list[int]",
    "snippet.Verdict | None",
    "Literal['yes'] | Literal['no']",
    "Any",
    "snippet.Verdict",
]
