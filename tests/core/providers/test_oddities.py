"""What servers really send, against what a wire promises: each oddity whole, split, cut and with noise between."""

from __future__ import annotations

import random

import pytest
from bytes_in import paused, reply_of
from oddities import OWN, SHARED, Oddity, class_of, differences, oddities

ALL = [*oddities(OWN), *oddities(SHARED)]
EACH = pytest.mark.parametrize("oddity", [pytest.param(oddity, id=oddity.name) for oddity in ALL])
NOISE = b': noise\n\nevent: ping\ndata: {"type": "ping"}\n\nretry: 3000\n\n'


@EACH
def test_W1_W2_W3_W5_an_oddity_is_read_as_it_is_meant(oddity: Oddity) -> None:
    message = reply_of(oddity.row, paused(oddity.row, oddity.body), broken=oddity.row.get("cut", False))
    assert differences(oddity.row, message) == []


@EACH
def test_L11_chunks_do_not_matter(oddity: Oddity) -> None:
    if "pause_s" in oddity.row:
        return
    broken = oddity.row.get("cut", False)
    chance = random.Random(oddity.name)
    single = [oddity.body[at : at + 1] for at in range(len(oddity.body))]
    places = sorted(chance.sample(range(1, len(oddity.body)), min(40, len(oddity.body) - 1)))
    parts = [oddity.body[a:b] for a, b in zip([0, *places], [*places, None], strict=True)]
    for chunks in (single, parts):
        assert differences(oddity.row, reply_of(oddity.row, chunks, broken=broken)) == []


@EACH
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_L11_line_ends_and_noise_do_not_matter(oddity: Oddity, end: str) -> None:
    body = oddity.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if "pause_s" in oddity.row or body.decode().strip()[:1] == "{":
        return
    broken = oddity.row.get("cut", False)
    noisy = NOISE + body.replace(b"\n\n", b"\n\n" + NOISE)
    for made in (body, noisy):
        chunks = [made.replace(b"\n", end.encode())]
        assert differences(oddity.row, reply_of(oddity.row, chunks, broken=broken)) == []


@EACH
@pytest.mark.parametrize("cuts", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_W2_a_cut_reply_is_no_success_with_less_than_the_whole(oddity: Oddity, cuts: int) -> None:
    chance = random.Random(oddity.name)
    borders = [at + 2 for at in range(len(oddity.body)) if oddity.body.startswith(b"\n\n", at)]
    places = {*borders, *(chance.randrange(len(oddity.body)) for _ in range(cuts))}
    whole = reply_of(oddity.row, [oddity.body])
    for place in sorted(places):
        message = reply_of(oddity.row, [oddity.body[:place]], broken=True)
        if class_of(message) is None:
            assert (message.text, message.calls) == (whole.text, whole.calls), f"cut at {place}"
