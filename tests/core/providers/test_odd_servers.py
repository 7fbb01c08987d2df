"""Known replies, made odd by chance: whatever a server does to one, no part of it is lost without being noticed.

By chance: chunks, the order of fields, letter case, extra fields, noise, missing marks, repeated arguments, wrong
types, other line ends, a reply that is cut or breaks, errors in odd places. A failure names its seed.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import httpx
import pytest
from bytes_in import ByteServer, JumpingLoop
from oddities import class_of, provider_for
from replay import HELLO

from handrail.messages import AssistantMessage
from handrail.providers.base import Finished

QUICK, MANY = 1500, 50_000
Event: TypeAlias = dict[str, Any]
ARGUMENTS = ({"path": "."}, {"q": "é 世界", "deep": {"list": [1, 2, {"x": None}]}}, {})
PIECES = ("The tide ", "turns at", " six.\n", "Höhe: 3 m 🌊 ", "{", "</", "data: no")


class Truth:
    """What a reply says, before a server makes it odd."""

    def __init__(self, chance: random.Random) -> None:
        self.pieces = chance.choices(PIECES, k=chance.randint(0, 4))
        self.thoughts = chance.choices(("hm, ", "so "), k=chance.randint(0, 2))
        count = 0 if self.pieces and chance.random() < 0.6 else chance.randint(1, 3)
        self.calls = [(f"tool{n}", chance.choice(ARGUMENTS)) for n in range(count)]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def lost_in(self, message: AssistantMessage) -> str:
        """What of it is not in `message`; empty when nothing is."""
        if self.text.strip() not in message.text:
            return f"text: {message.text!r} instead of {self.text!r}"
        got = [(call.name, call.arguments) for call in message.calls if not call.error]
        broken = sum(call.error is not None for call in message.calls)
        missing = [call for call in self.calls if call not in got]
        return f"calls: {missing}" if len(missing) > broken else ""


def cased(chance: random.Random, word: str) -> str:
    return chance.choice((word, word.upper(), word.title(), word.replace("_", "-")))


def halves(chance: random.Random, text: str) -> list[str]:
    at = chance.randint(0, len(text))
    return [text[:at], text[at:]]


def chat_events(truth: Truth, chance: random.Random) -> list[Event]:
    def chunk(delta: Event, finish: Any = None, index: int = 0) -> Event:
        return {"id": "c", "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}

    every = cased(chance, "stop") if chance.random() < 0.15 else None
    place = chance.choice((0, 0, 0, 1))
    thinking = chance.choice(("reasoning", "reasoning_content", "thinking", "reasoning_text"))
    events = [chunk({thinking: thought}, every) for thought in truth.thoughts]
    events += [chunk({"content": piece}, every) for piece in truth.pieces]
    for n, (name, arguments) in enumerate(truth.calls):
        raw = json.dumps(arguments)
        head: Event = {"index": n, "id": chance.choice((f"k{n}", n)), "function": {"name": name}}
        how = chance.randrange(5)
        if how == 0:
            head["function"]["arguments"] = arguments
            events.append(chunk({"tool_calls": [head]}, every, place))
            continue
        events.append(chunk({"tool_calls": [head]}, every, place))
        pieces = [raw] if how == 1 else [raw, raw] if how == 2 else halves(chance, raw)
        if how == 3:
            pieces.append(json.dumps(raw))
        for piece in pieces:
            more = {"index": chance.choice((n, str(n))), "function": {"arguments": piece}}
            events.append(chunk({"tool_calls": [more]}, every, place))
    word = cased(chance, "tool_calls" if truth.calls else chance.choice(("stop", "end_turn", "eos")))
    for index in sorted({0, place if truth.calls else 0}):
        events.append(chunk({}, word, index))
    if chance.random() < 0.7:
        count = chance.choice((3, "3", 3.0, -3, None, {"n": 3}))
        events.append({"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": count}})
    return events


def messages_events(truth: Truth, chance: random.Random) -> list[Event]:
    blocks: list[tuple[Event, list[Event]]] = []
    if truth.thoughts:
        deltas = [{"type": "thinking_delta", "thinking": thought} for thought in truth.thoughts]
        blocks.append(({"type": "thinking", "thinking": ""}, deltas))
    if truth.pieces:
        deltas = [{"type": "text_delta", "text": piece} for piece in truth.pieces]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for n, (name, arguments) in enumerate(truth.calls):
        raw, how = json.dumps(arguments), chance.randrange(4)
        given = [arguments, raw, {}, {}][how]
        pieces = [[], [raw], [raw, raw], halves(chance, raw)][how]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(({"type": "tool_use", "id": f"k{n}", "name": name, "input": given}, deltas))
    events: list[Event] = [{"type": "message_start", "message": {"usage": {"input_tokens": "7"}}}]
    for n, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": n, "content_block": start})
        events += [{"type": "content_block_delta", "index": n, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": n})
    word = cased(chance, "tool_use" if truth.calls else chance.choice(("end_turn", "stop")))
    usage = {"usage": {"output_tokens": chance.choice((9, "9", None))}} if chance.random() < 0.7 else {}
    return [
        *events,
        {"type": "message_delta", "delta": {"stop_reason": word}, **usage},
        {"type": "message_stop"},
    ]


def responses_events(truth: Truth, chance: random.Random) -> list[Event]:
    events: list[Event] = []
    items: list[Event] = []
    for n, (name, arguments) in enumerate([("", {})] * bool(truth.pieces) + truth.calls):
        place = {"output_index": n, "item_id": f"i{n}"}
        if not name:
            item: Event = {"type": "message", "id": f"i{n}", "content": []}
            deltas = [
                {"type": "response.output_text.delta", "content_index": 0, "delta": piece, **place}
                for piece in truth.pieces
            ]
            done = {**item, "status": "completed", "content": [{"type": "output_text", "text": truth.text}]}
        else:
            raw = json.dumps(arguments)
            item = {"type": "function_call", "id": f"i{n}", "call_id": f"k{n}", "name": name, "arguments": ""}
            pieces = chance.choice(([raw], [raw, raw], halves(chance, raw)))
            deltas = [
                {"type": "response.function_call_arguments.delta", "delta": piece, **place}
                for piece in pieces
            ]
            done = {**item, "arguments": chance.choice((raw, raw + raw, arguments))}
        events += [{"type": "response.output_item.added", "output_index": n, "item": item}, *deltas]
        events.append({"type": "response.output_item.done", "output_index": n, "item": done})
        items.append(done)
    last = {"status": cased(chance, "completed"), "output": chance.choice(([], items))}
    kind = chance.choice(("response.completed", "response.done"))
    return [*events, {"type": kind, "response": {**last, "usage": {"input_tokens": 3, "output_tokens": "5"}}}]


WIRES: dict[str, Callable[[Truth, random.Random], list[Event]]] = {
    "openai-chat": chat_events,
    "anthropic": messages_events,
    "openai-responses": responses_events,
}


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same with its fields in another order, and now and then one more."""
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    chance.shuffle(keys)
    return {
        key: value[key] if key in ("arguments", "input") else shuffled(value[key], chance) for key in keys
    }


def odd_bytes(
    api: str, events: list[Event], chance: random.Random, longest_s: float
) -> tuple[list[bytes | float], bool]:
    """The events as an odd server sends them, with pauses, and whether its connection breaks."""
    end = chance.choice(("\n", "\r\n", "\r"))
    blank = "" if chance.random() < 0.1 else end
    noise = ["", f": keep-alive{end}{end}", f"retry: 10{end}{end}", f"event: ping{end}data: {{}}{end}{end}"]
    named = api != "openai-chat" and chance.random() < 0.7
    text = "\ufeff" if chance.random() < 0.1 else ""
    for event in events:
        event = shuffled(event, chance)
        if chance.random() < 0.2:
            event[chance.choice(("obfuscation", "x_extra", "trace"))] = chance.choice(
                ("x", 1, {"a": None}, [])
            )
        name = f"event: {event['type']}{end}" if named and "type" in event else ""
        text += f"{name}data:{chance.choice((' ', ''))}{json.dumps(event)}{end}{blank}"
        text += chance.choice(noise) if blank else ""
    if chance.random() < 0.6:
        text += f"data: [DONE]{end}{end}"
    body = text.encode()
    if chance.random() < 0.4:
        body = body[: chance.randrange(len(body) + 1)]
    chunks: list[bytes | float] = []
    at = 0
    while at < len(body):
        size = chance.choice((1, 2, 7, 40, 300, 5000, 5000))
        chunks.append(body[at : at + size])
        at += size
        if chance.random() < 0.05:
            chunks.append(min(longest_s, chance.choice((0.2, 4.0, 7.0))))
    return chunks, chance.random() < 0.3


ERRORS: tuple[Event, ...] = (
    {"error": {"message": "Overloaded"}},
    {"error": "Overloaded"},
    {"errors": [{"message": "Overloaded"}]},
    {"detail": "Overloaded"},
    {"code": 503, "message": "Overloaded"},
    {"base_resp": {"status_code": 1000, "status_msg": "Overloaded"}},
    {"success": False, "msg": "Overloaded"},
    {"error_msg": "Overloaded", "error_code": 18},
    {"status": 503, "title": "Overloaded"},
    {"data": {"error": {"message": "Overloaded"}}},
)


def error_came(body: bytes) -> bool:
    """Whether the line with the error came whole."""
    for line in body.decode("utf-8", "ignore").replace("\r", "\n").split("\n"):
        with suppress(ValueError):
            if "Overloaded" in line and json.loads(line.removeprefix("data:")):
                return True
    return False


class Bench:
    """One client whose server says what each try needs."""

    def __init__(self) -> None:
        self.server = ByteServer([])
        self.client = httpx.AsyncClient(transport=self.server)
        self.models = {api: provider_for({"api": api}, "http://127.0.0.1:9", self.client) for api in WIRES}

    async def ask(self, api: str, chunks: list[bytes | float], broken: bool) -> AssistantMessage:
        self.server.say(chunks, broken=broken)
        async with asyncio.timeout(3600):
            async for part in self.models[api].stream(HELLO):
                if isinstance(part, Finished):
                    return part.message
        raise AssertionError("the stream had no end")


async def attempt(bench: Bench, seed: int) -> bool:
    """One odd reply; whether it was read as a good one."""
    chance = random.Random(seed)
    api = chance.choice(list(WIRES))
    truth = Truth(chance)
    events = WIRES[api](truth, chance)
    told = chance.random() < 0.15
    if told:
        events.insert(chance.randint(0, len(events)), chance.choice(ERRORS))
    elif chance.random() < 0.2:
        events.pop()
    # An error long after the end mark is not waited for.
    chunks, broken = odd_bytes(api, events, chance, longest_s=0.2 if told else 7.0)
    if api == "openai-chat" and events[0].get("choices", [{}])[0].get("finish_reason"):
        broken = True  # a word with the first piece: whether more was to come, only the connection can tell
    message = await bench.ask(api, chunks, broken)
    good = class_of(message) is None
    body = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
    if good:
        assert truth.lost_in(message) == "", f"seed {seed}: {api} {body!r}"
        assert not (told and error_came(body)), f"seed {seed}: an error was passed over: {api} {body!r}"
    return good


async def attempts(seeds: range) -> int:
    bench = Bench()
    good = 0
    for seed in seeds:
        good += await attempt(bench, seed)
    await bench.client.aclose()
    return good


@pytest.mark.parametrize(
    "count",
    [
        QUICK,
        pytest.param(MANY, marks=pytest.mark.slow),
    ],
)
def test_W1_W2_W3_no_odd_server_makes_a_false_success(count: int) -> None:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        good = runner.run(attempts(range(count)))
    assert good > count // 4, "the replies are so odd that next to none is read"
