from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
from pathlib import Path

import pytest
from toolbench import Bench, words

from handrail.messages import Image
from handrail.tools.base import ToolError
from handrail.tools.read import MAX_PICTURE, ReadTool

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


async def test_text_comes_as_it_is_without_numbers(bench: Bench) -> None:
    bench.write("src/a.py", "one\n\n  [/] two\x1b[31m\n")
    result = await bench.run(ReadTool(), path="src/a.py")
    assert words(result) == "one\n\n  [/] two\x1b[31m"
    assert (result.summary, result.is_error) == ("3 lines", False)


async def test_a_part_says_which_and_gives_the_call_for_more(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"line {n}\n" for n in range(1, 31)))
    result = await bench.run(ReadTool(), path="a.txt", offset=10, limit=3)
    call = 'read {"path": "a.txt", "offset": 13, "limit": 3}'
    assert words(result) == f"line 10\nline 11\nline 12\n\n[lines 10 to 12 of 30; more: {call}]"
    following = json.loads(call.removeprefix("read "))
    assert words(await bench.run(ReadTool(), **following)).startswith("line 13\n")
    assert words(await bench.run(ReadTool(), path="a.txt", offset=30)) == "line 30"


async def test_the_calls_in_the_notes_lead_through_the_whole_file(bench: Bench) -> None:
    lines = [f"{n} " + "x" * (n % 97) for n in range(1, 5_313)]
    bench.write("big.txt", "\n".join(lines))
    arguments, seen = {"path": "big.txt"}, []
    for _ in range(20):
        body, _, note = words(await bench.run(ReadTool(), **arguments)).partition("\n\n[")
        assert len(body.encode()) <= 50_000
        assert body.count("\n") < 2_000
        seen += body.split("\n")
        if not note:
            break
        assert "of 5,312; more: read " in note
        arguments = json.loads(note[note.index("{") : -1])
    assert seen == lines


async def test_L11_long_lines_are_cut_between_characters_and_said_so(bench: Bench) -> None:
    bench.write("min.js", "short\n" + "ü" * 2_500 + "\nend\n")
    text = words(await bench.run(ReadTool(), path="min.js"))
    assert text.split("\n")[1] == "ü" * 2_000 + " [… 500 more characters]"
    assert (
        "[1 line over 2,000 characters cut, the first is line 2; its rest, in the shell: sed -n 2p " in text
    )
    assert text.split("\n")[2] == "end"


async def test_one_endless_line_is_counted_not_kept(bench: Bench) -> None:
    bench.write("one.json", "é" * 200_000)
    result = await bench.run(ReadTool(), path="one.json")
    assert words(result).startswith("é" * 2_000 + " [… 198,000 more characters]\n\n[1 line over")
    assert result.summary == "1 line"


async def test_L11_invalid_utf8_and_nul_are_replaced(bench: Bench) -> None:
    bench.write("latin.txt", b"caf\xe9\nna\xefve\n" + b"x" * 9_000 + b"\n\0end\n")
    lines = words(await bench.run(ReadTool(), path="latin.txt")).split("\n")
    assert (lines[0], lines[1], lines[3]) == ("caf�", "na�ve", "�end")


async def test_windows_text_is_read_as_plain_lines(bench: Bench) -> None:
    bench.write("dos.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert words(await bench.run(ReadTool(), path="dos.txt")) == "one\ntwo"


async def test_an_empty_file_and_an_offset_past_the_end(bench: Bench) -> None:
    bench.write("empty", "")
    bench.write("two", "a\nb")
    assert words(await bench.run(ReadTool(), path="empty")) == "[the file is empty]"
    with pytest.raises(ToolError, match="two has 2 lines: line 900 is past its end"):
        await bench.run(ReadTool(), path="two", offset=900)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.bin", b"ab\0cd", "a.bin: no text but application/octet-stream, 5 B"),
        ("core", b"ab\0cd", "core: no text but binary data, 5 B"),
        ("prog", b"\x7fELF\x02\x01", "prog: no text but ELF binary, 6 B"),
        ("a.pdf", b"%PDF-1.7 text", "a.pdf: no text but application/pdf, 13 B"),
        (
            "w.txt",
            "hi".encode("utf-32"),
            "w.txt: no text but UTF-32 text, 12 B",
        ),
    ],
)
async def test_binary_files_are_named_not_shown(bench: Bench, name: str, data: bytes, said: str) -> None:
    bench.write(name, data)
    with pytest.raises(ToolError) as caught:
        await bench.run(ReadTool(), path=name)
    assert str(caught.value).startswith(said)


async def test_pictures_are_shown_by_what_they_are_not_by_their_name(bench: Bench) -> None:
    bench.write("shot.dat", PNG)
    result = await bench.run(ReadTool(), path="shot.dat")
    assert words(result) == "shot.dat: image/png, 16 B"
    assert result.blocks[1] == Image(base64.b64encode(PNG).decode(), "image/png")


async def test_a_picture_that_no_provider_takes_is_refused(bench: Bench) -> None:
    bench.write("huge.png", PNG + bytes(MAX_PICTURE))
    with pytest.raises(ToolError, match=r"huge.png: image/png, 3.8 MB: too large to show, at most 3.8 MB"):
        await bench.run(ReadTool(), path="huge.png")


async def test_a_missing_file_brings_near_names(bench: Bench) -> None:
    bench.write("src/cart.py", "")
    (bench.cwd / "docs").mkdir()
    with pytest.raises(ToolError, match=r"^src/card.py: no such file or folder. Near it: src/cart.py$"):
        await bench.run(ReadTool(), path="src/card.py")
    with pytest.raises(ToolError, match=r"Near it: docs/$"):
        await bench.run(ReadTool(), path="doc/deep/index.md")
    with pytest.raises(ToolError, match=r"^zzz: no such file or folder$"):
        await bench.run(ReadTool(), path="zzz")


async def test_what_is_no_file_is_refused_at_once(bench: Bench) -> None:
    os.mkfifo(bench.cwd / "pipe")
    with pytest.raises(ToolError, match="pipe is not a regular file but a device, a pipe or a socket"):
        await bench.run(ReadTool(), path="pipe")
    with pytest.raises(ToolError, match="is a folder: use ls"):
        await bench.run(ReadTool(), path=".")


async def test_a_name_that_is_no_utf8_is_found_under_its_shown_form(bench: Bench) -> None:
    bench.write(os.fsdecode(b"caf\xe9.txt"), "found\n")
    assert words(await bench.run(ReadTool(), path="caf�.txt")) == "found"


async def test_mentions_and_home_are_understood(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("notes.md", "mentioned\n")
    bench.write("@types/index.d.ts", "a real folder\n")
    monkeypatch.setenv("HOME", str(bench.cwd))
    assert words(await bench.run(ReadTool(), path="@notes.md")) == "mentioned"
    assert words(await bench.run(ReadTool(), path="~/notes.md")) == "mentioned"
    assert words(await bench.run(ReadTool(), path="@types/index.d.ts")) == "a real folder"


def test_the_title_is_one_line_with_the_range(bench: Bench) -> None:
    assert bench.preview(ReadTool(), path="src/a.py").title == "src/a.py"
    assert bench.preview(ReadTool(), path="src/a.py", offset=1, limit=200).title == "src/a.py:1-200"
    assert bench.preview(ReadTool(), path="src/a.py", offset=7).title == "src/a.py:7-"
    assert bench.preview(ReadTool(), path="a\nb").title == "a\\nb"


def test_H5_paths_outside_the_working_folder_are_named(bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("x")
    (bench.cwd / "link").symlink_to(secret)
    (bench.cwd / "up").symlink_to(tmp_path)
    (bench.cwd / "loop").symlink_to("loop")
    for path in ("../secret.txt", str(secret), "link", "up/secret.txt", "sub/../../secret.txt"):
        preview = bench.preview(ReadTool(), path=path)
        assert preview.outside == (str(secret),), path
        assert preview.pattern == f"read {secret}"
    for path in ("a.txt", str(bench.cwd / "a.txt"), "sub/../a.txt", "../work/a.txt", "..a"):
        assert bench.preview(ReadTool(), path=path).outside == (), path
    assert bench.preview(ReadTool(), path="x" * 5_000).outside == ()
    assert bench.preview(ReadTool(), path="loop").outside == ()


@pytest.mark.attack
async def test_L9_reading_a_sparse_file_without_end_can_be_stopped(bench: Bench) -> None:
    file = bench.write("sparse", "first\n")
    os.truncate(file, 400_000_000_000)
    bench.write("nul-free", "x" * 9_000 + "\n")
    os.truncate(bench.cwd / "nul-free", 400_000_000_000)
    before = threading.active_count()
    task = asyncio.ensure_future(bench.run(ReadTool(), path="nul-free"))
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        while threading.active_count() == before and not task.done():  # noqa: ASYNC110 - a real thread
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().shutdown_default_executor()  # waits for the thread


async def test_a_file_that_is_too_long_to_count_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.tools.read.MAX_SCAN", 10_000)
    bench.write("long", "x\n" * 20_000)
    with pytest.raises(ToolError, match="more than 10 kB would have to be read"):
        await bench.run(ReadTool(), path="long", offset=15_000)
