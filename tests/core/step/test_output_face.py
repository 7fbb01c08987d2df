"""How an output is named on the command line, what submit says to a model, and what a type checker knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handrail.events import FieldError
from handrail.messages import ToolCall
from handrail.output.types import OutputError, load_output, make_output
from handrail.tools.submit import SubmitTool

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "answer.json").write_text('{"type": "object", "required": ["a"]}')
    (tmp_path / "shapes_for_a_test.py").write_text(
        "from pydantic import BaseModel\n"
        "class Verdict(BaseModel):\n"
        "    flaky: bool\n"
        "    class Part(BaseModel):\n"
        "        n: int\n"
        "SCHEMA = {'type': 'array'}\n"
        "number = object()\n"
    )
    (tmp_path / "breaks_for_a_test.py").write_text("raise RuntimeError('no luck')\n")
    (tmp_path / "leaves_for_a_test.py").write_text("raise SystemExit(3)\n")
    return tmp_path


def test_a_file_and_a_type_are_loaded_from_the_working_folder(folder: Path) -> None:
    assert load_output("answer.json", folder).parameters["required"] == ["a"]
    assert load_output("shapes_for_a_test:Verdict", folder).parameters["title"] == "Verdict"
    assert load_output("shapes_for_a_test:Verdict.Part", folder).parameters["title"] == "Part"
    assert load_output("shapes_for_a_test:SCHEMA", folder).wrapped
    assert load_output("builtins:int", folder).wrapped


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nope.json", "There is no schema file"),
        ("nope", "is no schema. Give a JSON Schema file"),
        (":Type", "is no schema"),
        ("broken.json", "is not JSON: Expecting"),
        ("list.json", "holds an array of 0; a JSON Schema is an object"),
        ("remote.json", "remote.json: The JSON Schema refers to"),
        ("bytes.json", "is not JSON"),
        ("folder.json", "cannot be read"),
        ("shapes_for_a_test.py:Verdict", "Give the module without .py: shapes_for_a_test:Verdict"),
        ("shapes_for_a_test:Verdikt", "Did you mean 'Verdict'?"),
        ("shapes_for_a_test:number", "cannot be the type of an answer"),
        ("no_such_module_here:T", "cannot be imported from"),
        ("breaks_for_a_test:T", "RuntimeError: no luck"),
        ("leaves_for_a_test:T", "SystemExit"),
    ],
)
def test_what_cannot_be_loaded_is_said_with_its_place(folder: Path, spec: str, words: str) -> None:
    (folder / "broken.json").write_text("{")
    (folder / "list.json").write_text("[]")
    (folder / "remote.json").write_text('{"$ref": "http://example.com"}')
    (folder / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (folder / "folder.json").mkdir()
    with pytest.raises(OutputError) as caught:
        load_output(spec, folder)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_S1_submit_shows_the_schema_and_says_how_to_use_it() -> None:
    plain, wrapped = SubmitTool(make_output({"type": "object"})), SubmitTool(make_output(list[int]))
    assert plain.spec.name == "submit"
    assert plain.spec.parameters == {"type": "object"}
    assert "only way to finish" in plain.spec.description
    assert "`value`" in wrapped.spec.description
    assert "`value`" not in plain.spec.description


def test_S3_S6_an_accepted_submission_is_told_so_and_votes_for_the_end() -> None:
    result = SubmitTool.accepted()
    assert (result.content, result.terminate, result.is_error) == ("accepted", True, False)


def test_S4_a_rejected_submission_is_told_field_by_field() -> None:
    errors = (FieldError("a.0", "Field required"), FieldError("", "Too long"))
    result = SubmitTool.rejected(errors, left=2)
    assert result.is_error and not result.terminate
    assert str(result.content).splitlines()[1:] == [
        "- a.0: Field required",
        "- Too long",
        "Correct that and call submit again: 2 attempts left.",
    ]
    assert str(SubmitTool.rejected(errors, left=1).content).endswith("1 attempt left.")
    assert "again" not in str(SubmitTool.rejected(errors, left=0).content)


def test_importing_the_face_stays_cheap() -> None:
    code = (
        "import sys, handrail.tools.submit; print({'jsonschema', 'referencing'} & sys.modules.keys() or '')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()


SNIPPET = """
from typing import Literal
from typing_extensions import assert_type
from pydantic import BaseModel
from handrail.messages import ToolCall
from handrail.output.types import make_output

class Verdict(BaseModel):
    flaky: bool

call = ToolCall("1", "submit")
assert_type(make_output(Verdict).validate(call), Verdict)
assert_type(make_output(list[int]).validate(call), list[int])
assert_type(make_output(int | None).validate(call), int | None)
assert_type(make_output(Literal["a"]).validate(call), Literal["a"])
"""


def test_a_type_checker_knows_the_type_of_the_answer(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file=",
        "--strict",
        "--follow-imports=silent",
        str(file),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "core"), "PATH": "", "HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_S10_a_value_that_fits_need_not_be_true() -> None:
    output = make_output(int)
    assert (
        output.validate(ToolCall("1", "submit", {"value": 5}, '{"value": 5}')) == 5
    )  # nobody asked whether it is 6
