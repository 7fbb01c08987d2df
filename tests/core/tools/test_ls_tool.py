from __future__ import annotations

import os
from pathlib import Path

import pytest
from toolbench import Bench, words

from handrail.tools.base import ToolError
from handrail.tools.ls import LsTool


async def test_folders_come_first_and_files_have_a_size(bench: Bench) -> None:
    bench.write("Zoo/x", "")
    bench.write("app/x", "")
    bench.write("b.txt", "x" * 1_234)
    bench.write("A.txt", "")
    bench.write(".hidden", "x")
    (bench.cwd / "link").symlink_to("b.txt")
    (bench.cwd / "dangling").symlink_to("nowhere")
    result = await bench.run(LsTool())
    assert words(result).splitlines() == [
        "app/",
        "Zoo/",
        ".hidden  1 B",
        "A.txt  0 B",
        "b.txt  1.2 kB",
        "dangling -> nowhere",
        "link -> b.txt",
    ]
    assert result.summary == "7 entries"


async def test_a_long_list_is_cut_and_gives_the_call_for_all(bench: Bench) -> None:
    for number in range(12):
        bench.write(f"d/{number:02}", "")
    text = words(await bench.run(LsTool(), path="d", limit=10))
    assert text.endswith('09  0 B\n\n[10 of 12 entries; all of them: ls {"path": "d", "limit": 12}]')


async def test_L11_names_stay_on_their_line(bench: Bench) -> None:
    bench.write("two\nlines", "")
    bench.write(os.fsdecode(b"caf\xe9"), "")
    bench.write("[b]", "")
    assert words(await bench.run(LsTool())).splitlines() == ["[b]  0 B", "caf�  0 B", "two\\nlines  0 B"]


async def test_what_is_no_folder_says_so(bench: Bench) -> None:
    bench.write("src/a", "")
    assert words(await bench.run(LsTool(), path="src")) == "a  0 B"
    with pytest.raises(ToolError, match="src/a is not a folder: use read"):
        await bench.run(LsTool(), path="src/a")
    with pytest.raises(ToolError, match=r"srd: no such file or folder\. Near it: src/"):
        await bench.run(LsTool(), path="srd")
    (bench.cwd / "empty").mkdir()
    assert words(await bench.run(LsTool(), path="empty")) == "[the folder is empty]"


def test_H5_a_folder_outside_is_named(bench: Bench, tmp_path: Path) -> None:
    preview = bench.preview(LsTool(), path="..")
    assert (preview.outside, preview.pattern) == ((str(tmp_path),), f"ls {tmp_path}")
    assert bench.preview(LsTool()).title == "."
