"""Models by name: which wire, which address, which key, and what is said when one is missing."""

from __future__ import annotations

import sys
import tomllib
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from mock_server import MockServer
from replay import ask

from handrail.errors import ConfigError
from handrail.providers.base import Price, Provider, ProviderNotice
from handrail.providers.catalog import (
    LOCAL,
    ProviderEntry,
    built_in,
    default_model,
    known_models,
    list_local,
    make_provider,
    model_info,
    resolve,
)
from handrail.settings import ModelSettings, PriceSettings, ProviderSettings

NAMED = "openai anthropic openrouter groq mistral deepseek moonshot zai xai together ollama lmstudio llama.cpp vllm"


def test_the_providers_that_are_promised_are_built_in() -> None:
    assert set(NAMED.split()) <= set(built_in())


@pytest.mark.parametrize("name", NAMED.split())
def test_each_provider_can_be_made(name: str) -> None:
    entry = built_in()[name]
    resolved = resolve(f"{name}/some-model", environ=dict.fromkeys(entry.keys, "key-1"))
    provider = make_provider(resolved)
    assert isinstance(provider, Provider) and provider.model.name == f"{name}/some-model"
    assert resolved.local is (name in {"ollama", "lmstudio", "llama.cpp", "vllm"})
    assert resolved.base_url.startswith("http://127.0.0.1" if resolved.local else "https://")


@pytest.mark.parametrize("name", [n for n in built_in() if not built_in()[n].local])
def test_a_missing_key_says_which_variable_to_set(name: str) -> None:
    with pytest.raises(ConfigError, match=f"no key for {name}: set {built_in()[name].keys[0]}"):
        resolve(f"{name}/some-model", environ={})


def test_a_local_server_needs_no_key_and_gets_none_of_others() -> None:
    resolved = resolve("ollama/qwen3", environ={"OPENAI_API_KEY": "key-1"})
    assert (resolved.api_key, resolved.key_source) == (None, None)


@pytest.mark.parametrize(
    ("environ", "key", "source"),
    [
        ({"HANDRAIL_API_KEY": "h", "GROQ_API_KEY": "g", "OPENAI_API_KEY": "o"}, "h", "HANDRAIL_API_KEY"),
        ({"GROQ_API_KEY": " g\n", "OPENAI_API_KEY": "o"}, "g", "GROQ_API_KEY"),
        ({"HANDRAIL_API_KEY": "  ", "OPENAI_API_KEY": "o"}, "o", "OPENAI_API_KEY"),
        ({"ANTHROPIC_API_KEY": "a"}, None, None),
    ],
)
def test_the_key_with_a_base_url(environ: dict[str, str], key: str | None, source: str | None) -> None:
    resolved = resolve("groq/x", base_url="http://127.0.0.1:1/v1", environ=environ)
    assert (resolved.api_key, resolved.key_source) == (key, source)


def test_a_base_url_goes_with_any_name_and_speaks_chat() -> None:
    for name in ("x/y", "openai/gpt-5", "anthropic/claude-sonnet-4-6"):
        resolved = resolve(name, base_url="http://127.0.0.1:1/v1", environ={})
        assert (resolved.api, resolved.base_url) == ("openai-chat", "http://127.0.0.1:1/v1")
        assert resolved.model.name == name and resolved.api_key is None


def test_the_protocol_can_be_chosen() -> None:
    other = resolve("x/y", api="anthropic", base_url="http://h", environ={"ANTHROPIC_API_KEY": "a"})
    assert (other.api, other.api_key) == ("anthropic", "a")
    assert resolve("deepseek/x", api="anthropic", environ={"DEEPSEEK_API_KEY": "d"}).base_url.endswith(
        "/anthropic"
    )
    assert resolve("openai/x", environ={"OPENAI_API_KEY": "o"}).api == "openai-responses"
    with pytest.raises(
        ConfigError, match=r"groq has no known address for the protocol anthropic.*--base-url"
    ):
        resolve("groq/x", api="anthropic", environ={"GROQ_API_KEY": "g"})
    with pytest.raises(ConfigError, match="Did you mean 'openai-chat'"):
        resolve("x/y", api="openai-cat", base_url="http://h", environ={})  # type: ignore[arg-type]


def test_the_variables_of_the_makers_move_their_address() -> None:
    moved = resolve("openai/x", environ={"OPENAI_BASE_URL": "https://gate/v1", "OPENAI_API_KEY": "o"})
    assert (moved.base_url, moved.api, moved.api_key) == ("https://gate/v1", "openai-chat", "o")
    moved = resolve("anthropic/x", environ={"ANTHROPIC_BASE_URL": "https://gate"})
    assert (moved.base_url, moved.api, moved.api_key) == ("https://gate", "anthropic", None)
    flag = resolve("openai/x", base_url="http://flag/v1", environ={"OPENAI_BASE_URL": "https://gate/v1"})
    assert flag.base_url == "http://flag/v1"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("opnai/gpt-5", "no provider 'opnai'. Did you mean 'openai'"),
        ("gpt-5", "names no provider: write PROVIDER/NAME. For instance openai/gpt-5."),
        ("openai/", "names no provider"),
        ("/x", "names no provider"),
        ("", "names no provider"),
    ],
)
def test_a_name_that_leads_nowhere_says_what_to_write(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(name, environ={"OPENAI_API_KEY": "o"})
    assert words in str(caught.value)


def test_the_key_is_in_no_repr() -> None:
    settings = {"x": ProviderSettings(base_url="http://h/v1", key="secret-1", headers={"x-key": "secret-2"})}
    resolved = resolve("x/y", environ={}, provider_settings=settings)
    assert resolved.api_key == "secret-1" and resolved.headers == {"x-key": "secret-2"}
    assert "secret" not in repr(resolved)


def test_an_address_or_a_key_of_no_use_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="base URL 'localhost:8080' of x cannot be used"):
        make_provider(resolve("x/y", base_url="localhost:8080", environ={}))
    with pytest.raises(ConfigError, match="copy the key again") as caught:
        make_provider(resolve("x/y", base_url="http://h", environ={"HANDRAIL_API_KEY": "schlüssel"}))
    assert "schlüssel" not in str(caught.value)


def test_mistral_models_keep_their_order_wherever_they_are_served() -> None:
    for name in ("vllm/Devstral-Small-2", "x/mistral-7b"):
        assert resolve(name, base_url="http://h/v1", environ={}).quirks.bridge
    assert not resolve("x/qwen3", base_url="http://h/v1", environ={}).quirks.bridge


class TestModels:
    def test_what_is_known(self) -> None:
        info = model_info("anthropic/claude-haiku-4-5-20251001")
        assert (info.window, info.max_output, info.images) == (200_000, 64_000, True)
        assert info.price == Price(1.0, 5.0, 0.1, 1.25)

    def test_what_is_unknown_is_none_and_never_zero(self) -> None:
        info = model_info("x/y")
        assert (info.window, info.max_output, info.price, info.images) == (None, None, None, False)

    def test_another_server_has_another_price(self) -> None:
        resolved = resolve("openai/gpt-5", base_url="http://h/v1", environ={})
        assert (resolved.model.price, resolved.model.window) == (None, 400_000)

    def test_settings_win(self) -> None:
        said = {"x/y": ModelSettings(window=1000, price=PriceSettings(input=1.0, output=2.0), images=True)}
        resolved = resolve("x/y", base_url="http://h/v1", environ={}, model_settings=said)
        assert (resolved.model.window, resolved.model.max_output) == (1000, None)
        assert resolved.model.price == Price(1.0, 2.0) and resolved.model.images

    def test_every_row_is_well_formed(self) -> None:
        for name, row in tomllib.loads(files("handrail.providers").joinpath("catalog.toml").read_text())[
            "models"
        ].items():
            info = model_info(name)
            assert info.provider in (*built_in(), LOCAL), name
            assert set(row) <= {"window", "max_output", "price", "images"}, name
            assert info.window is None or (info.max_output or 0) < info.window, name
            assert info.price is None or 0 < info.price.input <= info.price.output, name

    def test_known_models_of_a_provider(self) -> None:
        assert "openai/gpt-5" in known_models("openai")
        assert all(name.startswith("groq/") for name in known_models("groq"))


class TestDefault:
    def test_the_first_provider_whose_key_is_there(self) -> None:
        both = {"GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": "a"}
        assert default_model(both) == "anthropic/claude-sonnet-4-6"
        assert default_model({"GROQ_API_KEY": "g", "OPENAI_API_KEY": " "}) == "groq/openai/gpt-oss-120b"

    def test_none_without_keys(self) -> None:
        assert default_model({"PATH": "/bin"}) is None

    def test_a_provider_of_the_settings_counts(self) -> None:
        own = {"mine": ProviderSettings(base_url="http://h/v1", key="k", default_model="m")}
        assert default_model({}, own) == "mine/m"

    @pytest.mark.parametrize("name", [n for n in built_in() if not built_in()[n].local])
    def test_each_default_resolves(self, name: str) -> None:
        environ = {built_in()[name].keys[0]: "k"}
        found = default_model(environ)
        assert found is not None and resolve(found, environ=environ).model.provider == name


class TestSettings:
    def test_a_provider_of_ones_own(self) -> None:
        own = {"mine": ProviderSettings(base_url="http://h/v1", key_env="MINE_KEY", headers={"x-team": "a"})}
        resolved = resolve("mine/m", environ={"MINE_KEY": "k"}, provider_settings=own)
        assert (resolved.api, resolved.base_url, resolved.api_key) == ("openai-chat", "http://h/v1", "k")
        assert resolved.headers == {"x-team": "a"}

    def test_a_built_in_one_moved(self) -> None:
        moved = {
            "anthropic": ProviderSettings(base_url="http://h"),
            "openai": ProviderSettings(base_url="http://o/v1"),
        }
        resolved = resolve("anthropic/claude-haiku-4-5", environ={}, provider_settings=moved)
        assert (resolved.api, resolved.base_url, resolved.model.price) == ("anthropic", "http://h", None)
        assert resolve("openai/gpt-5", environ={}, provider_settings=moved).api == "openai-chat"

    def test_a_command_prints_the_key(self) -> None:
        own = {"mine": ProviderSettings(base_url="http://h/v1", key="!printf 'secret-1\\nmore'")}
        resolved = resolve("mine/m", environ={"MINE_KEY": "k"}, provider_settings=own)
        assert (resolved.api_key, resolved.key_source) == ("secret-1", "settings: providers.mine.key")
        assert resolve("mine/m", environ={"HANDRAIL_API_KEY": "h"}, provider_settings=own).api_key == "h"

    @pytest.mark.parametrize("command", ["!echo secret-1 >&2; false", "!true", "!no-such-command-here"])
    def test_a_command_that_gives_no_key_says_so_and_shows_nothing(self, command: str) -> None:
        own = {"mine": ProviderSettings(base_url="http://h/v1", key=command)}
        with pytest.raises(ConfigError, match=r"providers\.mine\.key: the command .* gave no key") as caught:
            resolve("mine/m", environ={}, provider_settings=own)
        assert "secret-1\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("key", "asked"), [("keyring:mine", ("mine", "handrail")), ("keyring:work/me", ("work", "me"))]
    )
    def test_the_keyring_holds_the_key(
        self, key: str, asked: tuple[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = {asked: "secret-1"}
        ring = SimpleNamespace(get_password=lambda service, user: kept.get((service, user)))
        monkeypatch.setitem(sys.modules, "keyring", ring)
        own = {"mine": ProviderSettings(base_url="http://h/v1", key=key)}
        assert resolve("mine/m", environ={}, provider_settings=own).api_key == "secret-1"
        kept.clear()
        with pytest.raises(
            ConfigError, match=rf"no such entry\. Make it with: keyring set {' '.join(asked)}"
        ):
            resolve("mine/m", environ={}, provider_settings=own)

    def test_a_keyring_that_cannot_be_read_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        own = {"mine": ProviderSettings(base_url="http://h/v1", key="keyring:mine")}
        monkeypatch.setitem(sys.modules, "keyring", None)
        with pytest.raises(ConfigError, match=r"pip install 'handrail\[keyring\]'"):
            resolve("mine/m", environ={}, provider_settings=own)

        def locked(service: str, user: str) -> str:
            raise OSError("secret-1")

        monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=locked))
        with pytest.raises(ConfigError, match=r"cannot be read \(OSError\)\. Is it unlocked\?$"):
            resolve("mine/m", environ={}, provider_settings=own)


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic"])
async def test_headers_of_the_settings_are_sent_through_each_wire(server: MockServer, api: Any) -> None:
    own = {"mine": ProviderSettings(base_url=f"{server.url}/v1", api=api, headers={"x-team": "a"})}
    server.answer("{}", 500)
    provider = make_provider(resolve("mine/m", environ={}, provider_settings=own))
    await ask(provider)
    await provider.aclose()  # type: ignore[attr-defined]
    assert server.requests[0].headers["x-team"] == "a"


class TestLocalServers:
    @staticmethod
    def answering(request: httpx.Request) -> httpx.Response:
        answers: dict[int, Any] = {
            1: httpx.Response(200, json={"data": [{"id": "qwen3"}, {"id": "llama"}]}),
            2: httpx.Response(200, text="<html>"),
            3: httpx.Response(200, json={"data": 7}),
            4: httpx.Response(404),
        }
        assert request.url.path == "/v1/models"
        return answers[request.url.port or 0]  # type: ignore[no-any-return]

    async def test_models_and_problems(self) -> None:
        entries = [
            ProviderEntry(f"p{n}", base_url=f"http://127.0.0.1:{n}/v1", local=True) for n in (1, 2, 3, 4)
        ]
        far = ProviderEntry("far", base_url="https://far/v1")
        async with httpx.AsyncClient(transport=httpx.MockTransport(self.answering)) as client:
            good, *bad = await list_local([*entries, far], client=client)
        assert (good.models, good.problem) == (("p1/qwen3", "p1/llama"), None)
        assert [s.provider for s in bad] == ["p2", "p3", "p4"]
        assert all(s.problem and "lists no models" in s.problem and not s.models for s in bad)

    async def test_nobody_there(self, server: MockServer) -> None:
        port = server.port
        await server.stop()
        (found,) = await list_local([ProviderEntry("p", base_url=f"http://127.0.0.1:{port}/v1", local=True)])
        assert found.problem == "no server answers here"


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic"])
async def test_plain_http_to_another_machine_warns_once_through_each_wire(
    server: MockServer, api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    server.answer("{}", 500)
    far = {"base_url": "http://api.example.test/v1", "api": api}
    provider = make_provider(resolve("mine/m", environ={}, **far))
    first, _ = await ask(provider)
    second, _ = await ask(provider)
    await provider.aclose()  # type: ignore[attr-defined]
    (note,) = first
    assert (
        isinstance(note, ProviderNotice)
        and note.level == "warning"
        and "api.example.test is reached" in note.text
    )
    assert second == [] and len(server.requests) == 2
