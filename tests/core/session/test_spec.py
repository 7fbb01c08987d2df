"""What a session's header keeps, and what it never keeps (rule J5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail.errors import ConfigError
from handrail.output.types import OutputError
from handrail.session.spec import OutputSpec, SessionSpec, made, secrets_in, without_credentials
from handrail.settings import ProviderSettings, Settings

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def test_what_was_made_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    chosen = Settings(tools=("read",), approve="all", max_output=100, effort="low", system="~/sys.md")
    kept = SessionSpec.by(chosen, "my/model", tmp_path, OutputSpec.named("s.json", tmp_path))
    again = made(json.loads(json.dumps(kept.meta())), "s")
    assert again == kept
    assert again.settings["model"] == "my/model" and again.settings["system"] == str(Path.home() / "sys.md")
    assert Settings.model_validate(again.settings).tools == ("read",)
    assert again.shape is not None and again.shape.output().parameters == SCHEMA


def test_J5_no_key_is_in_a_header(tmp_path: Path) -> None:
    chosen = Settings(
        base_url="https://me:sesame@example.org:8443/v1?version=2",
        providers={"my": ProviderSettings(key="sk-secret", headers={"X-Api-Key": "sk-header"})},
    )
    text = json.dumps(SessionSpec.by(chosen, "my/model", tmp_path, None).meta())
    assert "sesame" not in text and "sk-" not in text
    assert "https://example.org:8443/v1?version=2" in text


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "https://[::1]:80/", "not a url"])
def test_an_address_without_credentials_stays_as_it_is(url: str) -> None:
    assert without_credentials(url) == url


def test_J5_what_authorizes_is_a_secret() -> None:
    headers = {
        "Authorization": "Bearer abc",
        "x-api-key": "def",
        "X-Session-Token": "ghi",
        "Accept": "text/plain",
    }
    assert set(secrets_in(headers, "http://me:p%40ss@host/")) == {"abc", "def", "ghi", "p%40ss", "p@ss"}
    assert list(secrets_in({}, "http://host/")) == []


def test_a_type_that_is_gone_is_said(tmp_path: Path) -> None:
    shape = OutputSpec.named("no_such_module_of_ours:V", tmp_path)
    with pytest.raises(OutputError, match="no_such_module_of_ours"):
        shape.output()


@pytest.mark.parametrize("meta", [{"cwd": 7}, {"settings": []}, {"shape": "x"}])
def test_a_header_that_says_something_else_is_refused(meta: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="session s: its header does not say how it was made"):
        made(meta, "s")


def test_what_a_later_version_says_besides_is_left_alone() -> None:
    assert made({"cwd": "/x", "colour": "red", "parent": "p"}, "s").cwd == "/x"
