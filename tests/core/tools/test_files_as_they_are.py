"""Files come out as they went in but for the change: encodings, links, mounts, attributes, names."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from toolbench import Bench, words

from handrail.tools.base import ShownChanged, ToolError
from handrail.tools.bash import BashTool
from handrail.tools.edit import EditTool
from handrail.tools.find import FindTool
from handrail.tools.grep import GrepTool
from handrail.tools.ls import LsTool
from handrail.tools.paths import locate
from handrail.tools.read import ReadTool
from handrail.tools.saving import delete, save
from handrail.tools.textfile import load
from handrail.tools.write import WriteTool

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, mounts and modes")


def rest(folder: Path) -> list[str]:
    """What is in a folder besides the file of the test."""
    return [p.name for p in folder.iterdir() if p.name.startswith(".handrail")]


@pytest.fixture
def mounted(bench: Bench) -> Iterator[Path]:
    """A file that is a mount of its own, as in a dev container."""
    source = bench.write("../source.txt", "old\n")
    target = bench.write("mounted.txt", "")
    done = subprocess.run(["mount", "--bind", source, target], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield target
    subprocess.run(["umount", target], check=True)


async def test_H7_a_file_that_is_a_mount_is_written_in_place(bench: Bench, mounted: Path) -> None:
    result = await bench.run(EditTool(), path="mounted.txt", old="old", new="newer")
    assert bench.read("mounted.txt") == b"newer\n"
    assert "written in place" in words(result)
    assert rest(bench.cwd) == []


async def test_a_write_in_place_that_fails_leaves_the_file_as_it_was(
    bench: Bench, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truncate, failed = os.ftruncate, []

    def full(descriptor: int, length: int) -> None:
        if not failed:
            failed.append(length)
            raise OSError(28, "No space left on device")
        truncate(descriptor, length)

    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(ToolError, match=r"No space left on device\. It is unchanged"):
        await bench.run(WriteTool(), path="mounted.txt", content="something longer\n")
    assert bench.read("mounted.txt") == b"old\n"
    assert rest(bench.cwd) == []


async def test_hard_links_stay_together_and_the_result_says_so(bench: Bench) -> None:
    first = bench.write("a.txt", "old\n")
    os.link(first, bench.cwd / "b.txt")
    assert "2 hard links" in bench.preview(WriteTool(), path="a.txt", content="new\n").detail
    result = await bench.run(WriteTool(), path="a.txt", content="new\n")
    assert (bench.cwd / "b.txt").read_text() == "new\n"
    assert "2 hard links" in words(result)


async def test_extended_attributes_and_permissions_stay(bench: Bench) -> None:
    file = bench.write("a.txt", "old\n")
    file.chmod(0o640)
    try:
        os.setxattr(file, "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes here")
    await bench.run(EditTool(), path="a.txt", old="old", new="new")
    assert os.getxattr(file, "user.note") == b"mine"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


async def test_bytes_that_are_not_utf8_survive_an_edit(bench: Bench) -> None:
    bench.write("a.txt", "é\n".encode("latin-1") + b"one\n")
    await bench.run(EditTool(), path="a.txt", old="one", new="two")
    assert (bench.cwd / "a.txt").read_bytes() == b"\xe9\ntwo\n"


@pytest.mark.parametrize("encoding", ["latin-1", "shift-jis", "gbk", "koi8-r"])
async def test_text_that_would_mix_encodings_is_refused(bench: Bench, encoding: str) -> None:
    text = {"latin-1": "naïve", "shift-jis": "日本", "gbk": "中文", "koi8-r": "да"}[encoding]
    data = f"{text}\none\n".encode(encoding)
    bench.write("a.txt", data)
    with pytest.raises(ToolError, match=r"is not UTF-8 .* mix encodings"):
        await bench.run(EditTool(), path="a.txt", old="one", new="日本")
    with pytest.raises(ToolError, match=r"is not UTF-8 .* mix encodings"):
        await bench.run(WriteTool(), path="a.txt", content="\ufffd\ufffd\none\n")
    assert (bench.cwd / "a.txt").read_bytes() == data
    await bench.run(EditTool(), path="a.txt", old="one", new="two")
    assert (bench.cwd / "a.txt").read_bytes() == f"{text}\ntwo\n".encode(encoding)


async def test_the_second_byte_of_a_character_is_not_taken_for_a_letter(bench: Bench) -> None:
    data = "表\n".encode("shift-jis")  # ends with the byte of a backslash
    bench.write("a.txt", data)
    with pytest.raises(ToolError, match="may belong to the same character"):
        await bench.run(EditTool(), path="a.txt", old="\\", new="/")
    assert (bench.cwd / "a.txt").read_bytes() == data


@pytest.mark.parametrize(("encoding", "mark"), [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")])
async def test_utf16_is_read_and_edited_as_utf16(bench: Bench, encoding: str, mark: bytes) -> None:
    bench.write("a.txt", mark + "één\r\ntwo\r\n".encode(encoding))
    assert words(await bench.run(ReadTool(), path="a.txt")).startswith("één\ntwo")
    await bench.run(EditTool(), path="a.txt", old="two", new="twee 日")
    assert (bench.cwd / "a.txt").read_bytes() == mark + "één\r\ntwee 日\r\n".encode(encoding)
    await bench.run(WriteTool(), path="a.txt", content="x\ny\n")
    assert (bench.cwd / "a.txt").read_bytes() == mark + "x\r\ny\r\n".encode(encoding)


@pytest.mark.parametrize(
    ("disk", "wanted"),
    [
        (unicodedata.normalize("NFD", "café.txt"), "café.txt"),
        ("café.txt", unicodedata.normalize("NFD", "café.txt")),
        ("Screenshot at 10.00\u202fAM.txt", "Screenshot at 10.00 AM.txt"),
        ("a\u00a0b.txt", "a b.txt"),
        (unicodedata.normalize("NFD", "é") + "/a.txt", "é/a.txt"),
    ],
)
async def test_a_name_with_other_unicode_forms_or_spaces_is_found(
    bench: Bench, disk: str, wanted: str
) -> None:
    bench.write(disk, "one\n")
    result = words(await bench.run(ReadTool(), path=wanted))
    assert result.startswith("one\n") and f"found as {disk!a}" in result
    result = words(await bench.run(EditTool(), path=wanted, old="one", new="two"))
    assert "found as" in result
    assert (bench.cwd / disk).read_text() == "two\n"


async def test_a_name_that_two_files_could_mean_is_neither(bench: Bench) -> None:
    bench.write("a\u00a0b.txt", "one\n")
    bench.write("a\u202fb.txt", "two\n")
    with pytest.raises(ToolError, match="no such file"):
        await bench.run(ReadTool(), path="a b.txt")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (ReadTool, {"path": "a"}),
        (WriteTool, {"path": "a", "content": "x"}),
        (EditTool, {"path": "a", "old": "x", "new": "y"}),
        (LsTool, {}),
        (FindTool, {"pattern": "*"}),
        (GrepTool, {"pattern": "x"}),
        (BashTool, {"command": "true"}),
    ],
)
async def test_a_working_folder_that_was_deleted_is_named(
    bench: Bench, tool: type, arguments: dict[str, str]
) -> None:
    shutil.rmtree(bench.cwd)
    with pytest.raises(ToolError, match=r"the working folder .* no longer exists"):
        await bench.run(tool(), **arguments)
    assert not bench.cwd.exists()


@pytest.mark.attack
def test_H7_a_save_refuses_a_file_that_changed_since_it_was_read(bench: Bench) -> None:
    file = bench.write("a.txt", "old\n")
    place = locate("a.txt", bench.ctx)
    old = load(place)
    file.write_text("the person's\n")
    with pytest.raises(ShownChanged):
        save(place, b"new\n", old)
    with pytest.raises(ShownChanged):
        delete(place, old)
    with pytest.raises(ShownChanged):
        save(place, b"new\n", None)
    assert file.read_text() == "the person's\n"
    assert rest(bench.cwd) == []
