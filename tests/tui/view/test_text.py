"""Foreign text on a terminal (rule L11)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.clock import EPOCH
from handrail_tui.view.text import (
    Cleaner,
    Tail,
    clean_for_terminal,
    count,
    countdown,
    cut,
    cut_lines,
    local_time,
    one_line,
    remaining,
    reveal,
    seconds,
)

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;aGk=\x1b\\after", "after"),
        ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x1b_Gi=1;AAAA\x1b\\after", "after"),
        ("\x9b31mred", "red"),
        ("\x9d0;t\x9cafter", "after"),
        ("\x1b(Bx\x1bc", "x"),
        ("10%\r50%\r100%\ndone", "10%\n50%\n100%\ndone"),
        ("50%\r", "50%\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("N\x08NA\x08A", "NA"),
        ("bell\x07 nul\x00", "bell nul\ufffd"),
        ("\ud83d alone", "\ufffd alone"),
        ("if \u202e) nimda\u2066", "if ‹RLO›) nimda‹LRI›"),
        ("a\u2028b", "a\nb"),
        ("hid\U000e0041\U000e0042den", "hidden"),
        ("[/foo] [bold]", "[/foo] [bold]"),
        ("žluťoučký 漢字 👩‍👩‍👧 é", "žluťoučký 漢字 👩‍👩‍👧 é"),
    ],
)
def test_L11_what_a_terminal_would_obey_is_removed(raw: str, shown: str) -> None:
    assert clean_for_terminal(raw) == shown


def test_L11_an_unterminated_string_hides_no_line() -> None:
    assert clean_for_terminal("\x1b]0;rm -rf\nnext\x07") == "0;rm -rf\nnext"


def test_L11_marks_without_width_are_capped() -> None:
    assert len(clean_for_terminal("a" + "\u0301" * 500)) == 7


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=80))
def test_L11_nothing_obeyed_is_left(raw: str) -> None:
    assert OBEYED.search(clean_for_terminal(raw)) is None
    assert OBEYED.search(reveal(raw)) is None
    assert OBEYED.search(one_line(raw)) is None


PIECES = st.lists(
    st.sampled_from(
        ["\x1b", "[", "31", "m", "]", "0;t", "\x07", "\\", "\x9b", "a", "é", "\u0301", "\n", "\r"]
    )
)


@given(PIECES)
def test_L11_pieces_give_nothing_obeyed_either(pieces: list[str]) -> None:
    cleaner = Cleaner()
    shown = "".join([*(cleaner.feed(piece) for piece in pieces), cleaner.close()])
    assert OBEYED.search(shown) is None


def test_L11_a_sequence_torn_between_pieces_goes_whole() -> None:
    cleaner = Cleaner()
    assert [cleaner.feed(p) for p in ("a\x1b", "[3", "1mb", "\x1b]0;t", "itle\x07c")] == [
        "a",
        "",
        "b",
        "",
        "c",
    ]


def test_L11_a_stream_that_never_ends_its_sequence_is_not_held_for_ever() -> None:
    cleaner = Cleaner()
    shown = cleaner.feed("\x1b]0;") + "".join(cleaner.feed("x" * 100) for _ in range(100)) + cleaner.close()
    assert shown.count("x") == 10_000


def test_what_is_allowed_shows_its_control_characters() -> None:
    assert reveal("echo \x1b]0;$(rm x)\x07 \x9b") == "echo ␛]0;$(rm x)␇ ‹U+009B›"


def test_the_tail_keeps_the_newest_lines_and_counts_all() -> None:
    tail = Tail()
    for n in range(1000):
        tail.feed(f"line {n}\n")
    tail.feed("10%\r20%")
    assert tail.last(3) == ["line 998", "line 999", "20%"]
    assert tail.total == 1000
    assert len(tail.lines) == Tail.KEEP


def test_the_tail_of_one_huge_piece_costs_its_end_only() -> None:
    tail = Tail()
    tail.feed("x" * 20_000_000)
    tail.feed("\nend")
    assert tail.last(1) == ["end"]
    assert max(map(len, tail.lines)) <= 2_000


def test_cutting_never_parts_a_character_from_its_marks() -> None:
    assert cut("abce\u0301f", 5) == "abc…"
    assert cut("ab👩\u200d👧x", 5) == "ab…"
    assert cut_lines("x" * 50 + "\nshort", 20) == "x" * 19 + "… 31 more characters\nshort"


def test_numbers_read_well() -> None:
    assert [count(n) for n in (0, 812, 1_200, 18_400, 200_000, 999_999, 1_300_000)] == [
        "0",
        "812",
        "1.2k",
        "18.4k",
        "200k",
        "1M",
        "1.3M",
    ]
    assert [seconds(s) for s in (0.02, 1.94, 38.2, 151, 3751)] == [
        "0.02 s",
        "1.9 s",
        "38 s",
        "2:31",
        "1:02:31",
    ]
    assert [countdown(s) for s in (-3, 41, 725)] == ["0:00", "0:41", "12:05"]


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (EPOCH + 60, "12:01:00"),
        (EPOCH + 11 * 3600, "23:00:00"),
        (EPOCH + 25 * 3600, "06 Jan 13:00:00"),
        (EPOCH + 10 * 86400, "15 Jan 12:00:00"),
    ],
)
def test_a_moment_says_its_day_where_it_is_not_today(moment: float, words: str) -> None:
    assert local_time(moment, EPOCH) == words


def test_long_countdowns_keep_their_hours() -> None:
    assert [remaining(s) for s in (0, 0.2, 59.9, 2287, 93_600, -3)] == [
        "0:00:00",
        "0:00:01",
        "0:01:00",
        "0:38:07",
        "26:00:00",
        "0:00:00",
    ]


@pytest.mark.parametrize(
    "char",
    [
        chr(c)
        for c in (
            0xAD,
            0x115F,
            0x200B,
            0x200C,
            0x200D,
            0x200F,
            0x2028,
            0x2060,
            0x3164,
            0xFEFF,
            0xE0041,
            0xE0100,
        )
    ],
)
def test_L11_an_approval_shows_every_invisible_character_by_its_number(char: str) -> None:
    assert reveal(f"rm{char} x") == f"rm‹U+{ord(char):04X}› x"


def test_L11_a_carriage_return_hides_nothing() -> None:
    assert clean_for_terminal("rm -rf /\rls") == "rm -rf /\nls"
    assert reveal("rm -rf /\rls") == "rm -rf /␍ls"
