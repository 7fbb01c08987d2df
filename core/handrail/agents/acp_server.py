"""Sessions of ours for an editor: the agent's side of the Agent Client Protocol.

An editor sends prompts; what happens comes back as updates, approvals as requests for permission, a question as an
elicitation where the editor has that, else as words that the next prompt answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from handrail import events as ev
from handrail._version import __version__
from handrail.agents._rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Id,
    Params,
    Peer,
    PeerGone,
    Reads,
    RpcError,
    Writes,
)
from handrail.agents._tell import Teller, diff_content
from handrail.agents.acp_client import PROTOCOL
from handrail.errors import ConfigError
from handrail.messages import clean
from handrail.policy import Approve
from handrail.session.protocol import SessionProtocol

MODES: Final[dict[Approve, str]] = {
    "ask": "Ask before anything changes or runs",
    "edits": "Edit files without asking",
    "all": "Do everything without asking",
}


class OpenSession(Protocol):
    """A session as the server needs it. `past` is what happened in it before."""

    @property
    def id(self) -> str: ...

    @property
    def session(self) -> SessionProtocol: ...

    @property
    def past(self) -> Sequence[ev.Event]: ...

    @property
    def mode(self) -> Approve: ...

    def close(self) -> None: ...


Opens = Callable[[Path, str | None], OpenSession]
"""A new session in a folder, or the stored one of that id. Raises ConfigError."""


@dataclass(slots=True)
class _Held:
    """A session under way. `over` is set when its run ended, or holds for words of a person."""

    opened: OpenSession
    running: asyncio.Task[ev.RunEnded] | None = None
    turned: asyncio.Event = field(default_factory=asyncio.Event)
    question: ev.HumanRequested | None = None


class AcpServer:
    """Answers one editor. `open_session` makes sessions, `serve` returns when the editor goes away."""

    def __init__(self, reader: Reads, writer: Writes, open_session: Opens) -> None:
        self._peer = Peer(reader, writer, self._asked)
        self._open = open_session
        self._sessions: dict[str, _Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._elicits = False

    async def serve(self) -> None:
        """Until the editor goes away; then every run is suspended (rule J7)."""
        sender = asyncio.create_task(self._send_updates())
        try:
            await self._peer.run()
        finally:
            await self.close()
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def close(self) -> None:
        """Suspend what runs and close every session."""
        for held in self._sessions.values():
            held.opened.session.suspend("SIGHUP")
        running = [held.running for held in self._sessions.values() if held.running is not None]
        await asyncio.gather(*running, return_exceptions=True)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for held in self._sessions.values():
            held.opened.close()
        self._sessions.clear()

    # -- requests

    def _asked(self, method: str, params: Params, id: Id | None) -> None:
        if method == "session/cancel":
            if (held := self._sessions.get(str(params.get("sessionId")))) is not None:
                held.opened.session.stop()
            return
        if id is not None:
            self._later(self._respond(method, params, id))

    async def _respond(self, method: str, params: Params, id: Id) -> None:
        handlers = {
            "initialize": self._initialize,
            "authenticate": self._nothing,
            "session/new": self._new,
            "session/load": self._load,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
        }
        handler = handlers.get(method)
        if handler is None:
            await self._peer.refuse(id, METHOD_NOT_FOUND, f"there is no {method} here")
            return
        try:
            result = await handler(params)
        except RpcError as error:
            await self._peer.refuse(id, error.code, error.message)
        except ConfigError as error:
            await self._peer.refuse(id, INTERNAL_ERROR, str(error))
        else:
            await self._updates_sent()
            await self._peer.respond(id, result)

    async def _initialize(self, params: Params) -> Params:
        capabilities = params.get("clientCapabilities")
        elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
        self._elicits = isinstance(elicitation, dict) and elicitation.get("form") is not None
        return {
            "protocolVersion": PROTOCOL,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"embeddedContext": True, "image": False, "audio": False},
            },
            "agentInfo": {"name": "handrail", "title": "Handrail", "version": __version__},
            "authMethods": [],
        }

    async def _nothing(self, params: Params) -> Params:
        return {}

    async def _new(self, params: Params) -> Params:
        opened = self._open(_folder(params), None)
        self._hold(opened)
        return {"sessionId": opened.id, "modes": _modes(opened.mode)}

    async def _load(self, params: Params) -> Params:
        id = str(params.get("sessionId") or "")
        if id in self._sessions:
            raise RpcError(INVALID_PARAMS, f"session {id} is open here already")
        opened = self._open(_folder(params), id)
        held = self._hold(opened)
        teller = Teller(lambda update: self._update(opened.id, update), replay=True)
        for event in opened.past:
            teller(event)
        held.question = _open_question(opened.past)
        return {"modes": _modes(opened.mode)}

    async def _set_mode(self, params: Params) -> Params:
        mode = params.get("modeId")
        if mode not in MODES:
            raise RpcError(INVALID_PARAMS, f"there is no mode {mode!r}; it may be {', '.join(MODES)}")
        self._held(params).opened.session.set_approve(mode)
        return {}

    async def _prompt(self, params: Params) -> Params:
        """A prompt begins a run, answers the question that holds one, or is said to the one under way."""
        held, text = self._held(params), _text_of(params.get("prompt"))
        if not text.strip():
            raise RpcError(INVALID_PARAMS, "the prompt is empty")
        session, question = held.opened.session, held.question
        held.question = None
        held.turned.clear()
        if held.running is not None and question is not None:
            session.answer(question.id, "answered", text)
        elif held.running is not None:
            session.steer(text)
        else:
            starting = session.resume(answer=text) if question is not None else session.run(text)
            held.running = asyncio.create_task(starting)
            held.running.add_done_callback(lambda task: held.turned.set())
        await held.turned.wait()
        if held.question is not None:
            return {"stopReason": "end_turn"}
        task, held.running = held.running, None
        if task is None:
            return {"stopReason": "end_turn"}  # another prompt of the same run has told its end
        return {"stopReason": self._stop(await task, held)}

    def _stop(self, last: ev.RunEnded, held: _Held) -> str:
        """The protocol's word for the end of a run; what it has no word for is said."""
        if last.type == "run_interrupted" or last.outcome == "cancelled":
            return "cancelled"
        if last.outcome in ("completed", "submitted"):
            return "end_turn"
        if last.outcome == "human-required":
            held.question = last.question
            return "end_turn"
        if last.outcome in ("turn-limit", "budget"):
            words = f"\n\nHandrail: {last.error or last.bound}.\n"
            self._update(held.opened.id, _words(words))
            return "max_turn_requests"
        if last.class_ == "content_filter":
            return "refusal"
        if last.class_ == "output_truncated":
            return "max_tokens"
        raise RpcError(INTERNAL_ERROR, clean(last.error or last.outcome)[:2000])

    # -- what a session asks

    def _hold(self, opened: OpenSession) -> _Held:
        held = self._sessions[opened.id] = _Held(opened)
        opened.session.listen(Teller(lambda update: self._update(opened.id, update)))
        opened.session.listen(lambda event: self._asks(held, event))
        return held

    def _held(self, params: Params) -> _Held:
        held = self._sessions.get(str(params.get("sessionId")))
        if held is None:
            raise RpcError(INVALID_PARAMS, f"there is no session {params.get('sessionId')!r} here")
        return held

    def _asks(self, held: _Held, event: ev.Event) -> None:
        if isinstance(event, ev.ApprovalRequested):
            self._later(self._permission(held, event))
        elif isinstance(event, ev.HumanRequested):
            if self._elicits:
                self._later(self._elicit(held, event))
            else:
                where = f"\nWhere: {event.where}" if event.where else ""
                words = (
                    f"\n\nNeeds you ({event.kind}): {event.needed}{where}\nAnswer with your next message.\n"
                )
                self._update(held.opened.id, _words(words))
                held.question = event
                held.turned.set()

    async def _permission(self, held: _Held, asked: ev.ApprovalRequested) -> None:
        """An approval as a request for permission: our pattern in the option's name (rule H5)."""
        options = [{"optionId": "once", "name": "Allow once", "kind": "allow_once"}]
        if asked.pattern is not None:
            name = f"Always allow in this session: {asked.pattern}"
            options.append({"optionId": "session", "name": name, "kind": "allow_always"})
        options.append({"optionId": "deny", "name": "Deny", "kind": "reject_once"})
        call: Params = {
            "toolCallId": asked.call_id,
            "title": asked.title or asked.tool,
            "status": "pending",
            "rawInput": asked.arguments,
        }
        if asked.diff:
            call["content"] = diff_content(asked.diff)
        elif asked.detail:
            call["content"] = [{"type": "content", "content": {"type": "text", "text": asked.detail}}]
        await self._updates_sent()
        params = {"sessionId": held.opened.id, "toolCall": call, "options": options}
        chosen = "deny"
        try:
            answer = await self._peer.request("session/request_permission", params)
            outcome = answer.get("outcome") if isinstance(answer, dict) else None
            if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
                chosen = str(outcome.get("optionId"))
        except (RpcError, PeerGone):
            chosen = "deny"
        session = held.opened.session
        if chosen == "once":
            session.approve(asked.id, "once")
        elif chosen == "session":
            session.approve(asked.id, "session")
        else:
            session.approve(asked.id, "deny")

    async def _elicit(self, held: _Held, asked: ev.HumanRequested) -> None:
        """A question as a form with one field (rules H1 to H3)."""
        where = f"\n{asked.where}" if asked.where else ""
        schema = {
            "type": "object",
            "properties": {"answer": {"type": "string", "title": "Your answer, if there is anything to say"}},
        }
        params = {
            "sessionId": held.opened.id,
            "mode": "form",
            "message": f"{asked.kind}: {asked.needed}{where}",
            "requestedSchema": schema,
        }
        await self._updates_sent()
        session = held.opened.session
        try:
            answer = await self._peer.request("elicitation/create", params)
        except (RpcError, PeerGone):
            session.answer(asked.id, "declined")
            return
        said = answer if isinstance(answer, dict) else {}
        content = said.get("content")
        text = str(content.get("answer") or "") if isinstance(content, dict) else ""
        if said.get("action") == "accept":
            session.answer(asked.id, "answered" if text.strip() else "resolved", text, secret=asked.secret)
        else:
            session.answer(asked.id, "declined", text)

    # -- sending

    def _update(self, id: str, update: dict[str, Any]) -> None:
        self._sending.put_nowait((id, update))

    async def _send_updates(self) -> None:
        """One after the other, in the order in which they happened."""
        while True:
            id, update = await self._sending.get()
            try:
                await self._peer.notify("session/update", {"sessionId": id, "update": update})
            except PeerGone:
                pass
            finally:
                self._sending.task_done()

    async def _updates_sent(self) -> None:
        await self._sending.join()

    def _later(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _words(text: str) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def _open_question(past: Sequence[ev.Event]) -> ev.HumanRequested | None:
    """The question that a stored run holds for."""
    asked: ev.HumanRequested | None = None
    for event in past:
        if isinstance(event, ev.HumanRequested):
            asked = event
        elif isinstance(event, ev.HumanAnswered) or (isinstance(event, ev.RunStarted) and not event.resumed):
            asked = None
        elif isinstance(event, ev.RunFinished):
            asked = event.question
    return asked


def _modes(current: Approve) -> Params:
    modes = [{"id": mode, "name": mode, "description": words} for mode, words in MODES.items()]
    return {"currentModeId": current, "availableModes": modes}


def _folder(params: Params) -> Path:
    folder = Path(str(params.get("cwd") or ""))
    if not folder.is_absolute() or not folder.is_dir():
        raise RpcError(INVALID_PARAMS, f"cwd: '{folder}' is no folder with a whole path")
    return folder


def _text_of(blocks: object) -> str:
    """The words of a prompt. What a client embeds or links stands behind them, named by its address."""
    said: list[str] = []
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict):
            continue
        resource = block.get("resource")
        if isinstance(text := block.get("text"), str):
            said.append(text)
        elif isinstance(resource, dict):
            said.append(f"\n\n{resource.get('uri')}:\n{resource.get('text') or ''}")
        elif isinstance(uri := block.get("uri"), str):
            said.append(f" {uri} ")
    return clean("".join(said))
