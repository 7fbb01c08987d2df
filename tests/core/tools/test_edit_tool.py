from __future__ import annotations

import asyncio
import os
import stat
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toolbench import Bench, words

from handrail.mask import MASK
from handrail.tools._nearest import nearest
from handrail.tools._replace import Replacement, replace
from handrail.tools.base import InvalidArguments, ToolError
from handrail.tools.diff import unified
from handrail.tools.edit import EditTool
from handrail.tools.read import ReadTool

CART = """\
def total(items):
    return sum(i.price for i in items)


def count(items):
    return len(items)
"""


async def test_one_exact_replacement(bench: Bench) -> None:
    file = bench.write("src/cart.py", CART)
    file.chmod(0o755)
    result = await bench.run(EditTool(), path="src/cart.py", old="return len(items)", new="return 1")
    assert file.read_text() == CART.replace("len(items)", "1")
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    assert words(result) == "edited src/cart.py: 1 replacement, +1 -1"
    assert result.summary == "+1 -1"
    assert result.diff is not None
    assert result.diff.startswith("--- a/src/cart.py\n+++ b/src/cart.py\n@@ -3,4 +3,4 @@\n")
    assert "-    return len(items)\n+    return 1\n" in result.diff


async def test_several_edits_are_found_in_the_original_and_made_together(bench: Bench) -> None:
    file = bench.write("a", "one two three\n")
    edits = [{"old": "one", "new": "two"}, {"old": "two", "new": "three"}]
    result = await bench.run(EditTool(), path="a", edits=edits)
    assert file.read_text() == "two three three\n"
    assert words(result).startswith("edited a: 2 replacements")


async def test_all_or_none(bench: Bench) -> None:
    file = bench.write("a", "one\n")
    edits = [{"old": "one", "new": "1"}, {"old": "zzz", "new": "2"}]
    with pytest.raises(ToolError, match=r"^edit 2 of 2: old was not found in a\. Nothing was changed\."):
        await bench.run(EditTool(), path="a", edits=edits)
    assert file.read_text() == "one\n"


async def test_an_ambiguous_edit_tells_the_lines(bench: Bench) -> None:
    file = bench.write("a", "x = 1\ny = 2\nx = 1\n")
    with pytest.raises(ToolError, match=r"old stands 2 times in a \(lines 1, 3\)\. .*replace_all"):
        await bench.run(EditTool(), path="a", old="x = 1", new="x = 2")
    result = await bench.run(EditTool(), path="a", old="x = 1", new="x = 2", replace_all=True)
    assert file.read_text() == "x = 2\ny = 2\nx = 2\n"
    assert words(result) == "edited a: 2 replacements, +2 -2"


async def test_overlapping_edits_are_refused(bench: Bench) -> None:
    bench.write("a", "abcdef\n")
    with pytest.raises(ToolError, match="edit 2 of 2: it overlaps edit 1"):
        await bench.run(
            EditTool(), path="a", edits=[{"old": "abcd", "new": "1"}, {"old": "cdef", "new": "2"}]
        )


async def test_the_nearest_match_shows_what_differs(bench: Bench) -> None:
    bench.write("src/cart.py", CART)
    with pytest.raises(ToolError) as caught:
        await bench.run(
            EditTool(),
            path="src/cart.py",
            old="def total(items):\n  return sum(i.price for i in items)",
            new="",
        )
    assert str(caught.value) == (
        "old was not found in src/cart.py. Nothing was changed. "
        "Nearest: lines 1 to 2, only white space differs\n"
        "          def total(items):\n"
        "- (yours)   return sum(i.price for i in items)\n"
        "+ (file)      return sum(i.price for i in items)"
    )
    with pytest.raises(ToolError, match=r"Nearest: line 6\n- \(yours\) return len\(item\)\n\+ \(file\)  "):
        await bench.run(EditTool(), path="src/cart.py", old="return len(item)", new="")


def test_nearest_lines_up_with_the_line_that_is_equal() -> None:
    text = "".join(f"filler {n}\n" for n in range(500)) + "alpha\nbeta\ngamma\n"
    assert nearest("alpha!\nbeta\ngamma?", text).startswith("Nearest: lines 501 to 503\n")
    assert nearest("qqqq\nwwww", text) == "Nothing in it is similar: read it again"
    assert nearest("x", "") == "Nothing in it is similar: read it again"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_windows_line_ends_stay_though_the_model_sends_line_feeds(bench: Bench, mark: bytes) -> None:
    file = bench.write("dos.txt", mark + b"one\r\ntwo\r\nthree\r\n")
    await bench.run(EditTool(), path="dos.txt", old="one\ntwo\n", new="1\n2\n2b\n")
    assert file.read_bytes() == mark + b"1\r\n2\r\n2b\r\nthree\r\n"


async def test_mixed_line_ends_and_bytes_that_are_no_utf8_stay_where_nothing_changed(bench: Bench) -> None:
    file = bench.write("mixed", b"a\r\nb\nc\xe9\r\nd\r\ne\n")
    result = await bench.run(EditTool(), path="mixed", old="b\n", new="B\n")
    assert file.read_bytes() == b"a\r\nB\r\nc\xe9\r\nd\r\ne\n"
    assert result.diff is not None and "c�" in result.diff


async def test_J5_a_mask_in_old_or_new_is_refused(bench: Bench) -> None:
    bench.write(".env", "KEY=abc\n")
    for old, new in [(f"KEY={MASK}", "KEY=x"), ("KEY=abc", f"KEY={MASK}")]:
        with pytest.raises(ToolError, match="replaces a secret"):
            await bench.run(EditTool(), path=".env", old=old, new=new)


async def test_a_file_changed_since_it_was_read_is_refused(bench: Bench) -> None:
    file = bench.write("a", "one\n")
    await bench.run(ReadTool(), path="a")
    os.utime(file, ns=(5, 5))
    with pytest.raises(ToolError, match="read it again first"):
        await bench.run(EditTool(), path="a", old="one", new="two")
    await bench.run(ReadTool(), path="a")
    await bench.run(EditTool(), path="a", old="one", new="two")
    await bench.run(EditTool(), path="a", old="two", new="three")
    assert file.read_text() == "three\n"


async def test_L6_edits_of_one_file_in_one_batch_are_all_kept(bench: Bench) -> None:
    file = bench.write("a", "".join(f"<{n}>\n" for n in range(20)))
    await asyncio.gather(*(bench.run(EditTool(), path="a", old=f"<{n}>", new=f"[{n}]") for n in range(20)))
    assert file.read_text() == "".join(f"[{n}]\n" for n in range(20))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"path": "a"}, "give either old and new, or edits"),
        ({"path": "a", "old": "x", "new": "y", "edits": [{"old": "x", "new": "y"}]}, "give either"),
        ({"path": "a", "old": "", "new": "y"}, "old is empty"),
        ({"path": "a", "edits": [{"old": "", "new": "y"}]}, r"edits\.0\.old: String should have at least 1"),
        ({"path": "a", "edits": "not json"}, "edits: Input should be a valid"),
    ],
)
def test_L6_bad_arguments_say_what_is_wrong(bench: Bench, arguments: Any, reason: str) -> None:
    with pytest.raises(InvalidArguments, match=reason):
        bench.parse(EditTool(), arguments)


async def test_a_list_that_comes_as_its_json_text_is_understood(bench: Bench) -> None:
    file = bench.write("a", "one\n")
    await bench.run(EditTool(), path="a", edits='[{"old": "one", "new": "two"}]', old=None)
    assert file.read_text() == "two\n"


async def test_nothing_to_change_and_nothing_to_edit(bench: Bench) -> None:
    bench.write("cart.py", "one\n")
    with pytest.raises(ToolError, match="old and new are the same"):
        await bench.run(EditTool(), path="cart.py", old="one", new="one")
    with pytest.raises(ToolError, match=r"Near it: cart\.py"):
        await bench.run(EditTool(), path="card.py", old="one", new="one")


def test_H5_the_preview_shows_the_diff_or_why_it_will_fail(bench: Bench) -> None:
    file = bench.write("a", "one\n")
    preview = bench.preview(EditTool(), path="a", old="one", new="two")
    assert preview.diff == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"
    assert (preview.title, preview.detail, preview.pattern) == ("a", "", "edit or write a")
    doomed = bench.preview(EditTool(), path="a", old="[/b]", new="two")
    assert doomed.diff is None
    assert doomed.detail.startswith("this will fail: old was not found in a.")
    assert doomed.detail.endswith("replace:\n[/b]\nby:\ntwo")
    assert file.read_text() == "one\n"


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d"]), max_size=12).map("\n".join)


@given(before=LINES, after=LINES)
def test_a_diff_leads_from_one_text_to_the_other(before: str, after: str) -> None:
    diff = unified(before, after, "f")
    assert (diff.text == "") == (before == after)
    assert patched(before, diff.text) == after
    body = diff.text.split("\n")[2:]
    assert diff.added == sum(line.startswith("+") for line in body)
    assert diff.removed == sum(line.startswith("-") for line in body)


def patched(text: str, diff: str) -> str:
    """What `patch` makes of `text`: each hunk is put where its head says."""
    left, made, at = text.splitlines(keepends=True), "", 0
    lines = [line + "\n" for line in diff.split("\n")[2:-1]]
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            begin = int(start) - (length != "0")
            made += "".join(left[at:begin])
            at = begin
            continue
        if line.startswith("\\"):
            continue
        content = line[1:-1] if following.startswith("\\") else line[1:]
        if not line.startswith("+"):
            assert left[at] == content
            at += 1
        made += "" if line.startswith("-") else content
    return made + "".join(left[at:])


@given(
    text=st.lists(st.sampled_from(["a\r\n", "b\n", "cc\r\n", "d", "\n", "\r\n"]), max_size=10).map("".join),
    old=st.sampled_from(["a\n", "b", "c", "\n", "d\n", "cc\nd"]),
)
def test_replacing_text_by_itself_changes_no_untouched_byte(text: str, old: str) -> None:
    plain = text.replace("\r\n", "\n")
    if old not in plain:
        return
    after, count = replace(text, [Replacement(old, "<>", every=True)], "\n")
    assert after.replace("\r\n", "\n") == plain.replace(old, "<>")
    assert count == plain.count(old)
    assert after.count("\r\n") <= text.count("\r\n")


def test_a_diff_of_many_lines_is_capped_and_quick() -> None:
    before = "".join(f"{n % 7}\n" for n in range(30_000))
    after = "".join(f"{n % 5}\n" for n in range(30_000))
    diff = unified(before, after, "f")
    assert (diff.added, diff.removed) == (29_996, 29_996)
    assert len(diff.text) < 101_000
    assert diff.text.rstrip("\n").endswith("more lines of diff")
