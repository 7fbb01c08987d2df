from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from toolbench import Bench, words

from handrail.tools import _search as search
from handrail.tools._globs import Glob
from handrail.tools._tree import files
from handrail.tools.base import ToolError
from handrail.tools.find import FindTool
from handrail.tools.grep import GrepTool

Rg: TypeAlias = Callable[[], str | None]
RG = shutil.which("rg")
needs_rg = pytest.mark.skipif(RG is None, reason="ripgrep is not installed")


@pytest.fixture(params=["own", pytest.param("ripgrep", marks=needs_rg)])
def rg(request: pytest.FixtureRequest) -> Rg:
    return (lambda: RG) if request.param == "ripgrep" else (lambda: None)


async def found(bench: Bench, rg: Rg, pattern: str = "*", **more: object) -> list[str]:
    text = words(await bench.run(FindTool(rg), pattern=pattern, **more))
    return [] if text.startswith("[") else text.split("\n\n[")[0].splitlines()


async def test_grep_gives_path_line_and_text(bench: Bench, rg: Rg) -> None:
    bench.write("src/cart.py", "import os\ndef cart_total():\n    return [/]\n")
    bench.write("src/b/x.py", "cart_total()\r\n")
    bench.write("README", "nothing\n")
    result = await bench.run(GrepTool(rg), pattern=r"cart_\w+\(\)")
    assert words(result) == "src/b/x.py:1: cart_total()\nsrc/cart.py:2: def cart_total():"
    assert result.summary == "2 matches in 2 files"
    result = await bench.run(GrepTool(rg), pattern=r"total\(\)$", path="src/b")
    assert words(result) == "src/b/x.py:1: cart_total()"
    result = await bench.run(GrepTool(rg), pattern="return", path="src/cart.py")
    assert (words(result), result.summary) == ("src/cart.py:3:     return [/]", "1 match in 1 file")
    result = await bench.run(GrepTool(rg), pattern="zzz")
    assert (words(result), result.summary, result.is_error) == ("[no matches]", "no matches", False)


async def test_grep_options(bench: Bench, rg: Rg) -> None:
    bench.write("a.py", "One\none.*\n-x\n")
    bench.write("b.ts", "one\n")
    bench.write("c/d.tsx", "one\n")
    grep = GrepTool(rg)

    async def names(**options: object) -> list[str]:
        return [line.rsplit(":", 1)[0] for line in words(await bench.run(grep, **options)).splitlines()]

    assert await names(pattern="one") == ["a.py:2", "b.ts:1", "c/d.tsx:1"]
    assert await names(pattern="one", ignore_case=True, glob="*.py") == ["a.py:1", "a.py:2"]
    assert await names(pattern="e.*", literal=True) == ["a.py:2"]
    assert await names(pattern="one", glob="*.{ts,tsx}") == ["b.ts:1", "c/d.tsx:1"]
    assert await names(pattern="one", glob="c/**") == ["c/d.tsx:1"]
    assert await names(pattern="one", glob="!*.py") == ["b.ts:1", "c/d.tsx:1"]
    assert await names(pattern="-x") == ["a.py:3"]
    assert await names(pattern="--help", literal=True) == ["[no matches]"]


async def test_grep_context_does_not_repeat_lines(bench: Bench, rg: Rg) -> None:
    bench.write("a", "".join(f"{n}\n" for n in range(1, 21)))
    text = words(await bench.run(GrepTool(rg), pattern="^(3|5|15)$", context=1))
    assert text.splitlines() == [
        "a-2- 2",
        "a:3: 3",
        "a-4- 4",
        "a:5: 5",
        "a-6- 6",
        "--",
        "a-14- 14",
        "a:15: 15",
        "a-16- 16",
    ]


async def test_grep_stops_at_its_limit_and_gives_the_call_for_more(bench: Bench, rg: Rg) -> None:
    for name in ("a", "b"):
        bench.write(name, "hit\n" * 60)
    result = await bench.run(GrepTool(rg), pattern="hit", limit=70)
    lines = words(result).splitlines()
    assert (lines[0], lines[69], lines[70]) == ("a:1: hit", "b:10: hit", "")
    assert lines[71].startswith("[70 matches shown, there are more: narrow the search, or grep {")
    assert result.summary == "70+ matches in 2 files"
    call = json.loads(lines[71][lines[71].index("{") : -1])
    assert call == {"pattern": "hit", "limit": 140}
    assert (await bench.run(GrepTool(rg), **call)).summary == "120 matches in 2 files"
    bench.write("c", "hit\n" + "no\n" * 8 + "hit\n")
    context = words(await bench.run(GrepTool(rg), pattern="hit", path="c", limit=1, context=1))
    assert context.splitlines()[:3] == ["c:1: hit", "c-2- no", ""]


async def test_grep_cuts_long_lines_around_the_match(bench: Bench, rg: Rg) -> None:
    bench.write("min.js", "é" * 3_000 + "needle" + "ü" * 3_000 + "\n")
    text = words(await bench.run(GrepTool(rg), pattern="needle"))
    assert text == f"min.js:1: …{'é' * 100}needle{'ü' * 394} [… 2,606 more characters]"


async def test_grep_output_is_bounded(bench: Bench, rg: Rg) -> None:
    bench.write("a", ("xy" * 200 + "\n") * 2_000)
    text = words(await bench.run(GrepTool(rg), pattern="x", limit=2_000))
    assert len(text) < 51_000
    assert re.search(r"\n\[1,8\d\d lines more did not fit: narrow the search\]$", text)


async def test_grep_leaves_binary_files_out(bench: Bench, rg: Rg) -> None:
    bench.write("a.bin", b"needle\n" * 3 + b"\0\n")
    bench.write("late.bin", b"needle\n" * 3 + b"other\n" * 50_000 + b"\0\n")
    bench.write("b.txt", "needle\n")
    bench.write("utf16.txt", "needle\r\n".encode("utf-16"))
    result = await bench.run(GrepTool(rg), pattern="needle")
    assert words(result) == "b.txt:1: needle\nutf16.txt:1: needle"


async def test_L11_what_is_no_utf8_is_found_and_shown_replaced(bench: Bench, rg: Rg) -> None:
    bench.write(os.fsdecode(b"caf\xe9/a.txt"), b"na\xefve needle\n")
    text = words(await bench.run(GrepTool(rg), pattern="needle"))
    assert text == "caf�/a.txt:1: na�ve needle"
    assert await found(bench, rg, "*.txt") == ["caf�/a.txt"]


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}"])
async def test_a_bad_pattern_is_one_clear_error(bench: Bench, rg: Rg, pattern: str) -> None:
    bench.write("a", "x\n")
    with pytest.raises(ToolError, match=r"(?i)regex|not a regular expression"):
        await bench.run(GrepTool(rg), pattern=pattern)


async def test_gitignore_of_every_level_holds(bench: Bench, rg: Rg) -> None:
    bench.write(".gitignore", "*.log\n/build/\n!keep.log\nnode_modules\n# comment\n\n\\#odd\nsub/only-here\n")
    bench.write("sub/.gitignore", "*.txt\n!important.txt\n!*.log\nlocal/\n")
    bench.write("sub/deep/.gitignore", "*.log\nimportant.txt\n")
    for name in [
        "a.py", "a.log", "keep.log", "build/x.py", "sub/build/x.py", "node_modules/m.js", "sub/node_modules/m.js",
        "#odd", "sub/a.txt", "sub/important.txt", "sub/a.log", "sub/only-here", "only-here", "sub/local/x",
        "local/x", "sub/deep/a.log", "sub/deep/important.txt", "sub/deep/ok.py", ".github/ci.yml", ".git/config",
    ]:  # fmt: skip
        bench.write(name, "needle\n")
    expected = [
        ".github/ci.yml", "a.py", "keep.log", "local/x", "only-here", "sub/a.log", "sub/build/x.py",
        "sub/deep/ok.py", "sub/important.txt",
    ]  # fmt: skip
    assert [f for f in await found(bench, rg) if not f.endswith(".gitignore")] == expected
    text = words(await bench.run(GrepTool(rg), pattern="^needle$"))
    assert text.splitlines() == [f"{name}:1: needle" for name in expected]
    assert await found(bench, rg, "*.log", path="sub") == ["sub/a.log"]
    assert await found(bench, rg, "*.log") == ["keep.log", "sub/a.log"]
    assert await found(bench, rg, "*.js", path="node_modules") == ["node_modules/m.js"]


async def test_a_broken_gitignore_spoils_nothing(bench: Bench, rg: Rg) -> None:
    bench.write(".gitignore", b"!\n[\n*.log\n***\xff\n")
    bench.write("a.log", "")
    bench.write("b.py", "")
    assert "a.log" not in await found(bench, rg)
    assert "b.py" in await found(bench, rg)


async def test_rules_above_the_repository_do_not_count(bench: Bench, rg: Rg) -> None:
    bench.write(".gitignore", "*.py\n")
    bench.write("repo/.git/HEAD", "")
    bench.write("repo/src/a.py", "")
    bench.write("other/src/a.py", "")
    assert await found(bench, rg, "*.py", path="repo/src") == ["repo/src/a.py"]
    assert await found(bench, rg, "*.py", path="other/src") == []


async def test_symlinks_are_not_followed_out_of_the_folder(bench: Bench, rg: Rg, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("needle\n")
    (bench.cwd / "out").symlink_to(secret)
    (bench.cwd / "key.txt").symlink_to(secret / "key.txt")
    (bench.cwd / "loop").symlink_to(bench.cwd)
    os.mkfifo(bench.cwd / "pipe")
    assert await found(bench, rg) == []
    assert words(await bench.run(GrepTool(rg), pattern="needle")) == "[no matches]"
    for tool, arguments in (
        (GrepTool(rg), {"pattern": "n", "path": "out"}),
        (FindTool(rg), {"pattern": "*", "path": "out"}),
    ):
        preview = bench.preview(tool, **arguments)
        assert preview.outside == (str(secret),)
        assert preview.pattern == f"{tool.name} in {secret}"


async def test_find_by_name_path_and_folder(bench: Bench, rg: Rg) -> None:
    for name in ("src/a.py", "src/b/c.py", "src/b/test_c.ts", "tests/test_a.py", "top.py"):
        bench.write(name, "")
    assert await found(bench, rg, "*.py") == ["src/a.py", "src/b/c.py", "tests/test_a.py", "top.py"]
    assert await found(bench, rg, "./src/*.py") == ["src/a.py"]
    assert await found(bench, rg, "**/test_*.{py,ts}") == ["src/b/test_c.ts", "tests/test_a.py"]
    assert await found(bench, rg, "b/*.py", path="src") == ["src/b/c.py"]
    assert await found(bench, rg, "*/") == ["src/", "src/b/", "tests/"]
    assert await found(bench, rg, "src/*/") == ["src/b/"]
    nothing = await bench.run(FindTool(rg), pattern="tests")
    assert words(nothing) == "[no files match, but folders do: tests/]"
    assert words(await bench.run(FindTool(rg), pattern="*.rs")) == "[no files match]"
    with pytest.raises(ToolError, match=r"top\.py is not a folder"):
        await bench.run(FindTool(rg), pattern="*", path="top.py")


async def test_find_is_bounded_and_gives_the_call_for_more(bench: Bench, rg: Rg) -> None:
    for number in range(30):
        bench.write(f"{number:02}.txt", "")
    result = await bench.run(FindTool(rg), pattern="*.txt", limit=20)
    assert words(result).splitlines()[19:] == [
        "19.txt",
        "",
        '[20 of 30 shown: narrow the pattern, or find {"pattern": "*.txt", "limit": 30}]',
    ]
    assert result.summary == "30 files"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(8))
def test_gitignore_means_what_git_takes_it_for(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    names = ["a", "b", "B.py", "c.py", "d.log", "e f", ".h", "é.py", "z-1"]
    rules = [
        "*.py", "c.py", "!c.py", "d.log", "/z*", "a/", "!B.py", ".h", "**/b/*.log", "b/*", "!b/a", "/b/**/c.py", "z?1",
        "!a/", "*/", "!*/", "*", "a/**", "**/e f", "b/**/a", "!**/d.log",
    ]  # fmt: skip
    for _ in range(100):
        path = "/".join(chance.choice(names) for _ in range(chance.randint(1, 4)))
        if not (bench.cwd / path).is_dir() and not any(p.is_file() for p in (bench.cwd / path).parents):
            bench.write(path, "x")
    for folder in ("", "a", "b/a"):
        if (bench.cwd / folder).is_dir():
            bench.write(
                f"{folder}/.gitignore".lstrip("/"), "\n".join(chance.sample(rules, chance.randint(1, 5)))
            )
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(bench.cwd)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "-z", "-o", "--exclude-standard"], check=True, capture_output=True
    )
    assert sorted(files(bench.cwd)) == sorted(filter(None, listed.stdout.decode().split("\0")))


@needs_rg
async def test_both_programs_say_the_same(bench: Bench) -> None:
    chance = random.Random(7)
    names = ["a", "b", "B.py", "c.py", "d.log", "e f", ".h", "é.py", "z-1", "z.1"]
    lines = ["needle x", "none", "", "the Needle", "café needle"]
    for _ in range(150):
        path = "/".join(chance.choice(names) for _ in range(chance.randint(1, 4)))
        if not (bench.cwd / path).is_dir() and not any(p.is_file() for p in (bench.cwd / path).parents):
            bench.write(path, chance.choice(["\n", "\r\n"]).join(chance.choices(lines, k=8)))
    for folder in ("", "a", "b/a"):
        if (bench.cwd / folder).is_dir():
            rules = chance.sample(["c.py", "!c.py", "d.log", "/z*", "a/", "!B.py", ".h", "**/b/*.log"], 4)
            bench.write(f"{folder}/.gitignore".lstrip("/"), "\n".join(rules))
    for pattern in ("*", "*.py", "a/**", "**/b/*", "[!a]*", "{a,z}*", "*/"):
        ours = await bench.run(FindTool(lambda: None), pattern=pattern)
        assert ours == await bench.run(FindTool(lambda: RG), pattern=pattern), pattern
    queries: list[dict[str, object]] = [
        {"pattern": "needle"},
        {"pattern": "needle", "ignore_case": True, "context": 2},
        {"pattern": "e$", "limit": 7, "context": 1},
        {"pattern": "needle", "glob": "**/*.py"},
        {"pattern": "é needle", "literal": True},
        {"pattern": "^$", "path": "a"},
    ]
    for query in queries:
        ours = await bench.run(GrepTool(lambda: None), **query)
        assert ours == await bench.run(GrepTool(lambda: RG), **query), query
        assert ours.summary != "no matches", query


async def test_a_search_that_crashes_is_no_empty_result(bench: Bench, tmp_path: Path) -> None:
    broken = tmp_path / "rg"
    broken.write_text("#!/bin/sh\necho 'rg: out of luck' >&2\nexit 3\n")
    broken.chmod(0o755)
    for tool in (GrepTool(lambda: str(broken)), FindTool(lambda: str(broken))):
        with pytest.raises(ToolError, match=r"^out of luck$"):
            await bench.run(tool, pattern="x")
    bench.ctx.env = {"PATH": "", "PYTHONHOME": str(tmp_path)}
    with pytest.raises(ToolError, match=r"^the search failed: "):
        await bench.run(FindTool(lambda: None), pattern="x")


async def test_L9_an_endless_expression_is_ended_by_a_stop(bench: Bench) -> None:
    bench.write("a", "a" * 60 + "b\n")
    task = asyncio.ensure_future(
        bench.run(GrepTool(lambda: None), pattern="(a|a)*(a|a)*(a|a)*$", literal=False)
    )
    await asyncio.wait([task], timeout=0.4)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(60):  # the search itself has no end in sight
            await task


async def test_L6_an_endless_expression_is_ended_by_its_time_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LIMIT_S", 0.4)
    bench.write("a", "a" * 60 + "b\n")
    result = await bench.run(GrepTool(lambda: None), pattern="(a|a)*(a|a)*(a|a)*$")
    assert words(result).startswith("[no matches]\n[ended after ")
    assert (result.is_error, result.summary) == (True, "timed out")


async def test_code_of_the_searched_folder_is_never_run(bench: Bench) -> None:
    bench.write("re.py", "raise SystemExit('hijacked')\n")
    bench.write("pathspec.py", "raise SystemExit('hijacked')\n")
    bench.write("handrail/__init__.py", "raise SystemExit('hijacked')\n")
    result = await bench.run(GrepTool(lambda: None), pattern="hijacked")
    assert result.summary == "3 matches in 3 files"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a/b.py", True),
        ("*.py", "a.pyc", False),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("**/c.py", "c.py", True),
        ("**/c.py", "a/b/c.py", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("a/**/d", "a/d", True),
        ("a/**/d", "a/b/c/d", True),
        ("a/**/**/d", "a/d", True),
        ("**", "a/b", True),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("{a,b{1,2}}.py", "b2.py", True),
        ("{a,b}/x.{c,d}", "b/x.d", True),
        ("{a", "{a", True),
        ("a}", "a}", True),
        ("x{}y", "xy", True),
        ("!*.md", "a.md", False),
        ("!*.md", "b/a.py", True),
        ("/a.py", "b/a.py", False),
        ("A.py", "a.py", False),
    ],
)
def test_globs(pattern: str, path: str, fits: bool) -> None:
    assert Glob(pattern).match(path) is fits


def test_globs_cost_little_whatever_they_are() -> None:
    assert not Glob("*a" * 40 + "b").match("a" * 250)
    assert not Glob("**/" * 40 + "b").match("a/" * 500 + "a")
    with pytest.raises(ValueError, match="more than 256"):
        Glob("{a,b}" * 12)


def test_titles_are_one_line(bench: Bench) -> None:
    assert bench.preview(GrepTool(), pattern="a\nb", path="src", glob="*.py").title == "a ↵ b in src (*.py)"
    assert bench.preview(FindTool(), pattern="*.py").title == "*.py"
    assert bench.preview(GrepTool(), pattern="x").outside == ()
