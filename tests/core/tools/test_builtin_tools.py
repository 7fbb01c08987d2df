from __future__ import annotations

import subprocess
import sys

import pytest
from toolbench import Bench

import handrail.tools
from handrail.errors import ConfigError
from handrail.tools import BUILTIN, builtin_tools

NAMES = ["read", "write", "edit", "bash", "grep", "find", "ls"]


def test_every_builtin_tool_is_what_its_name_says() -> None:
    assert list(BUILTIN) == NAMES
    tools = builtin_tools()
    assert [tool.name for tool in tools] == NAMES
    effects = ["read", "edit", "edit", "run", "read", "read", "read"]
    assert [tool.effect for tool in tools] == effects
    for tool in tools:
        assert tool.spec.description
        assert tool.parameters["type"] == "object"
        assert all("description" in each for each in tool.parameters["properties"].values())
    assert [tool.name for tool in builtin_tools(["ls", "read"])] == ["ls", "read"]


def test_an_unknown_tool_brings_the_nearest_name_and_the_list() -> None:
    with pytest.raises(
        ValueError, match=r"there is no tool 'raed'\. Did you mean 'read'\? The tools are: read, wri"
    ):
        builtin_tools(["ls", "raed"])
    with pytest.raises(ConfigError, match=r"there is no tool 'qqq'\. It may be: bash, edit, find, "):
        builtin_tools(["qqq"])


def test_null_means_left_out(bench: Bench) -> None:
    args = bench.parse(BUILTIN["read"](), {"path": "a", "offset": None, "limit": "7"})
    assert (args.offset, args.limit) == (1, 7)


def test_public_names_are_there() -> None:
    for name in handrail.tools.__all__:
        assert getattr(handrail.tools, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = handrail.tools.nothing


def test_importing_the_package_imports_no_tool() -> None:
    program = (
        "import sys, handrail.tools as t; t.BUILTIN; "
        "print([m for m in ('pydantic', 'asyncio', 'pathspec', 'handrail.tools.read') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
