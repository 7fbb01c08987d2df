from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from toolbench import Bench, words

from handrail.mask import MASK
from handrail.tools.base import ToolError
from handrail.tools.read import ReadTool
from handrail.tools.write import WriteTool


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_new_file_gets_its_folders_and_usual_permissions(bench: Bench) -> None:
    result = await bench.run(WriteTool(), path="a/b/new.txt", content="one\ntwo\n")
    assert (bench.cwd / "a/b/new.txt").read_bytes() == b"one\ntwo\n"
    plain = bench.write("plain", "")
    assert mode(bench.cwd / "a/b/new.txt") == mode(plain)
    assert (words(result), result.summary) == ("wrote a/b/new.txt: new, 2 lines", "+2 -0")
    assert result.diff == "--- /dev/null\n+++ b/a/b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"


async def test_an_old_file_keeps_mode_line_ends_and_mark(bench: Bench) -> None:
    file = bench.write("run.bat", b"\xef\xbb\xbfone\r\ntwo\r\n")
    file.chmod(0o754)
    result = await bench.run(WriteTool(), path="run.bat", content="one\n2\nthree\n")
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\nthree\r\n"
    assert mode(file) == 0o754
    assert result.summary == "+2 -1"
    assert result.diff is not None and "\r" not in result.diff


async def test_the_same_content_changes_nothing(bench: Bench) -> None:
    file = bench.write("a", "same\n")
    os.utime(file, ns=(1, 1))
    result = await bench.run(WriteTool(), path="a", content="same\n")
    assert words(result) == "a already had this content: nothing changed"
    assert file.stat().st_mtime_ns == 1


async def test_a_symlink_stays_one_and_its_target_is_written(bench: Bench) -> None:
    target = bench.write("real.txt", "old\n")
    (bench.cwd / "link.txt").symlink_to("real.txt")
    await bench.run(WriteTool(), path="link.txt", content="new\n")
    assert (bench.cwd / "link.txt").is_symlink()
    assert target.read_text() == "new\n"


async def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bench.write("a.txt", "old\n")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match=r"a.txt: No space left on device"):
        await bench.run(WriteTool(), path="a.txt", content="new\n")
    assert file.read_text() == "old\n"
    assert list(bench.cwd.iterdir()) == [file]


async def test_read_only_folders_binaries_and_files_as_folders_are_refused(bench: Bench) -> None:
    bench.write("locked", "x").chmod(0o444)
    bench.write("pic.png", b"\x89PNG\r\n\x1a\n")
    for path, reason in [
        ("locked", "locked is read-only"),
        ("pic.png", "pic.png is no text but image/png, 8 B"),
        (".", "is a folder"),
        ("pic.png/a", "pic.png/a: Not a directory"),
    ]:
        with pytest.raises(ToolError, match=reason):
            await bench.run(WriteTool(), path=path, content="y")


async def test_J5_text_that_holds_a_mask_is_refused(bench: Bench) -> None:
    with pytest.raises(ToolError, match="replaces a secret"):
        await bench.run(WriteTool(), path=".env", content=f"KEY={MASK}\n")
    assert not (bench.cwd / ".env").exists()
    assert "this will fail: the text holds" in bench.preview(WriteTool(), path=".env", content=MASK).detail


async def test_a_file_changed_since_it_was_read_is_not_overwritten(bench: Bench) -> None:
    file = bench.write("a", "one\n")
    await bench.run(ReadTool(), path="a")
    file.write_text("somebody else\n")
    with pytest.raises(ToolError, match="a has changed since you read it: read it again first"):
        await bench.run(WriteTool(), path="a", content="mine\n")
    await bench.run(ReadTool(), path="a")
    await bench.run(WriteTool(), path="a", content="mine\n")
    await bench.run(WriteTool(), path="a", content="mine again\n")
    assert file.read_text() == "mine again\n"


def test_H5_the_preview_shows_the_diff_and_changes_nothing(bench: Bench) -> None:
    file = bench.write("src/a.py", "old\n")
    preview = bench.preview(WriteTool(), path="./src/a.py", content="new\n")
    assert (preview.title, preview.pattern, preview.outside) == ("src/a.py", "edit or write src/a.py", ())
    assert preview.diff == "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+new\n"
    assert bench.preview(WriteTool(), path="new/b", content="x").diff is not None
    assert file.read_text() == "old\n"
    assert list(bench.cwd.iterdir()) == [bench.cwd / "src"]


def test_H5_a_file_outside_is_named_by_its_real_path(bench: Bench, tmp_path: Path) -> None:
    (bench.cwd / "out").symlink_to(tmp_path)
    preview = bench.preview(WriteTool(), path="out/new.txt", content="x")
    assert preview.outside == (f"{tmp_path}/new.txt",)
    assert preview.pattern == f"edit or write {tmp_path}/new.txt"


async def test_L9_a_stop_says_what_became_of_the_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    sync = os.fsync

    def held(descriptor: int) -> None:
        loop.call_soon_threadsafe(reached.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", held)
    task = asyncio.ensure_future(bench.run(WriteTool(), path="a", content="new\n"))
    await reached.wait()
    task.cancel()
    await asyncio.wait([task], timeout=0.05)
    assert not task.done()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (bench.cwd / "a").read_text() == "new\n"
    assert bench.ctx.left == ["a: changed before the stop"]
