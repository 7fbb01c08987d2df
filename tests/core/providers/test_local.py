"""The provider `local`: a server as a child that starts when it is asked, and never outlives the run.

The server is a stand-in here (support/fake_llama); test_local_real.py runs the real one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from histories import TOOL, user

from handrail.messages import AssistantMessage
from handrail.providers import local as local_module
from handrail.providers.base import Finished, ModelInfo, Provider, ProviderNotice, Request, ToolSpec
from handrail.providers.chat import OpenAIChat
from handrail.providers.local import Local
from handrail.providers.local_models import LocalModel
from handrail.recovery.classify import classify

FAKE = Path(__file__).parents[2] / "support/fake_llama"
SUBMIT = ToolSpec("submit", "", {"type": "object"})
ASK = ToolSpec("ask_human", "", {"type": "object"})


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.pathsep.join(filter(None, [str(FAKE), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)


def make(name: str = "small.gguf", *, chatml: bool = True, window: int | None = None) -> Local:
    def wire(url: str, key: str) -> Provider:
        return OpenAIChat(ModelInfo("local/small"), base_url=f"{url}/v1", api_key=key)

    return Local(ModelInfo("local/small", window), LocalModel("small", Path("/models") / name, chatml), wire)


@pytest.fixture
async def local() -> AsyncIterator[Local]:
    provider = make()
    yield provider
    await provider.aclose()


async def ask(provider: Local, *tools: ToolSpec, choice: Any = "auto") -> tuple[list[str], AssistantMessage]:
    """The notes, and the message."""
    request = Request([user("Hello")], tools=tools, tool_choice=choice)
    *parts, last = [part async for part in provider.stream(request)]
    assert isinstance(last, Finished)
    return [part.text for part in parts if isinstance(part, ProviderNotice)], last.message


async def told(provider: Local, *tools: ToolSpec, choice: Any = "auto") -> dict[str, Any]:
    """What the server saw of the request."""
    _, message = await ask(provider, *tools, choice=choice)
    assert message.failure is None
    found = json.loads(message.text)
    assert isinstance(found, dict)
    return found


def pids(provider: Local) -> list[int]:
    return [server.pid for server in provider._servers.values() if server.pid is not None]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(pid: int) -> bool:
    for _ in range(500):
        if not alive(pid):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_the_server_starts_on_the_first_request_says_so_and_serves_the_next(local: Local) -> None:
    assert pids(local) == []
    notes, message = await ask(local)
    assert notes == ["starting small.gguf on this machine"] and message.stop_reason == "stop"
    assert (await ask(local))[0] == [] and len(pids(local)) == 1


async def test_the_server_ends_with_the_run_and_can_be_started_again(local: Local) -> None:
    await ask(local)
    (pid,) = pids(local)
    await local.aclose()
    assert not alive(pid)
    assert (await ask(local))[1].failure is None
    assert pids(local) != [pid]


async def test_a_server_that_died_is_started_again(local: Local) -> None:
    await ask(local)
    (pid,) = pids(local)
    os.kill(pid, signal.SIGKILL)
    for _ in range(500):
        if not pids(local):
            break
        await asyncio.sleep(0.01)  # the news of its end comes from a thread
    notes, message = await ask(local)
    assert notes == ["starting small.gguf on this machine"] and message.failure is None


async def test_a_server_that_ignores_the_polite_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_module, "END_S", 0.1)
    provider = make("stubborn.gguf")
    await ask(provider)
    (pid,) = pids(provider)
    await provider.aclose()
    assert not alive(pid)


async def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """It watches its stdin, so that no signal and no handler is needed."""
    code = (
        "import asyncio, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"sys.path.insert(0, {str(FAKE.parent)!r})\n"
        "import test_local\n"
        "async def main():\n"
        "    provider = test_local.make()\n"
        "    await test_local.ask(provider)\n"
        "    print(test_local.pids(provider)[0], flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 30))
    assert alive(pid)
    parent.kill()
    await parent.wait()
    assert await gone(pid)


async def test_L9_a_stop_while_it_loads_ends_the_request_at_once() -> None:
    provider = make("slow.gguf")
    stream = provider.stream(Request([user("Hello")]))
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    async with asyncio.timeout(30):
        while not pids(provider):  # noqa: ASYNC110 - another program starts
            await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (pid,) = pids(provider)
    await provider.aclose()
    assert not alive(pid)


async def test_L10_a_long_start_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_module, "NOTE_S", 0.1)
    provider = make("slow.gguf")
    notes, message = await ask(provider)
    await provider.aclose()
    assert message.failure is None and len(notes) >= 3
    assert notes[1] == "slow.gguf is still being loaded (0.1 s)"


async def test_a_start_that_never_ends_is_a_transient_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_module, "NOTE_S", 0.05)
    monkeypatch.setattr(local_module, "START_S", 0.1)
    provider = make("slow.gguf")
    _, message = await ask(provider)
    await provider.aclose()
    assert message.failure is not None and message.failure.phase == "connect"
    assert classify(message.failure, now=0.0).class_ == "transient"


async def test_K2_a_model_that_cannot_be_loaded_says_why_and_is_not_tried_again() -> None:
    provider = make("broken.gguf")
    _, message = await ask(provider)
    await provider.aclose()
    assert message.stop_reason == "error" and message.failure is not None
    assert message.failure.text.startswith(
        "the server for broken.gguf did not start: it is \x1b[31mcut. Is the file whole"
    )
    assert classify(message.failure, now=0.0).class_ == "unknown"


async def test_S1_a_request_of_a_step_is_answered_by_a_call(local: Local) -> None:
    step = await told(local, SUBMIT, ASK)
    assert (step["choice"], step["tools"], step["forced"]) == ("required", ["submit"], True)
    work = await told(local, TOOL, ASK, SUBMIT)
    assert (work["choice"], work["tools"]) == ("required", ["look", "ask_human", "submit"])
    free = await told(local, TOOL, ASK)
    assert (free["choice"], free["forced"]) in (("auto", False), (None, False))
    assert (await told(local))["forced"] is False
    assert (await told(local, SUBMIT, choice="none"))["forced"] is False
    assert len(pids(local)) == 2  # one for each template, and no more


async def test_a_model_with_a_template_of_its_own_keeps_it() -> None:
    provider = make(chatml=False)
    assert (await told(provider, SUBMIT))["own"] is True
    assert len(pids(provider)) == 1
    await provider.aclose()


@pytest.mark.parametrize(("window", "served"), [(None, local_module.WINDOW), (4096, 4096)])
async def test_the_window_is_what_is_known_of_the_model(window: int | None, served: int) -> None:
    provider = make(window=window)
    assert provider.model.window == served
    assert (await told(provider))["window"] == served
    await provider.aclose()
