"""Clocks: what is due comes in order, waits can be cancelled at once, a virtual clock stands still for what is real."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from handrail.clock import EPOCH, ManualClock, RealClock, ScaledClock, VirtualClock


async def test_a_five_hour_wait_on_the_virtual_clock_takes_no_time():
    clock = VirtualClock()
    loop = asyncio.get_running_loop()
    began = loop.time()
    await clock.sleep(5 * 3600)
    assert clock.now() == EPOCH + 5 * 3600
    assert loop.time() - began < 1


async def test_sleeps_end_in_the_order_of_their_moments():
    clock, order = VirtualClock(), []

    async def sleeper(seconds):
        await clock.sleep(seconds)
        order.append((seconds, clock.now() - EPOCH))

    await asyncio.gather(*(sleeper(s) for s in (30, 10, 20, 10)))
    assert order == [(10, 10), (10, 10), (20, 20), (30, 30)]


async def test_the_virtual_clock_stands_still_while_something_real_is_pending():
    clock, go, seen = VirtualClock(), threading.Event(), []

    async def real():
        await clock.in_thread(go.wait)
        seen.append(clock.now())

    alarm = asyncio.ensure_future(clock.sleep(10))
    work = asyncio.ensure_future(real())
    for _ in range(50):
        await asyncio.sleep(0)
    assert clock.now() == EPOCH and not alarm.done()
    go.set()
    await work
    await alarm
    assert (seen, clock.now()) == ([EPOCH], EPOCH + 10)


async def test_a_cancelled_sleep_ends_at_once_and_leaves_no_timer():
    clock = VirtualClock()
    task = asyncio.ensure_future(clock.sleep(3600))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert clock.next_due is None
    assert clock.now() == EPOCH


def test_a_manual_clock_moves_only_when_it_is_turned():
    clock, rung = ManualClock(), []
    clock.call_later(5, lambda: rung.append(clock.now()))
    clock.advance(4)
    assert rung == []
    clock.advance(4)
    assert (rung, clock.now()) == ([EPOCH + 5], EPOCH + 8)


async def test_a_long_wait_of_a_scaled_clock_is_short_and_its_countdown_is_seen():
    clock = ScaledClock(speed=1.0, longest=0.05)
    half: list[float] = []
    asyncio.get_running_loop().call_later(0.025, lambda: half.append(clock.now() - EPOCH))
    await clock.sleep(3600)
    assert clock.now() - EPOCH == pytest.approx(3600, rel=0.05)
    assert 100 < half[0] < 3500


async def test_an_alarm_does_not_make_a_scaled_clock_hurry():
    clock = ScaledClock(speed=1.0, longest=0.05)
    alarm = clock.call_later(180, lambda: None)
    await clock.sleep(0.02)
    assert clock.now() - EPOCH < 10
    alarm.cancel()


async def test_the_real_clock_wakes_up():
    clock = RealClock()
    began = clock.now()
    await clock.sleep(0.01)
    assert clock.now() - began >= 0.009
