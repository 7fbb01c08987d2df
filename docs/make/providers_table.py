"""Makes the two tables of docs/providers.md: `python docs/make/providers_table.py`.

The table of providers comes from the catalog. The table of proofs comes from a run of the tests that it names: what
passed here and now is counted, what was skipped says so. `--providers` makes the first one only, without any test.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from handrail import __version__
from handrail.providers.catalog import ProviderEntry, built_in

DOCS: Final = Path(__file__).parents[1]
PAGE: Final = DOCS / "providers.md"
SUPPORT: Final = DOCS.parent / "tests/support"
WIRES: Final = ("openai-chat", "openai-responses", "anthropic")
UNIT: Final = "tests.core.providers."


@dataclass(frozen=True, slots=True)
class Proof:
    """One row: what was proven, on what, and by which tests (module and pattern of their names) for each wire."""

    what: str
    on: str
    tests: Mapping[str, tuple[str, str]]


def _each(chat: str, responses: str, anthropic: str, name: str) -> dict[str, tuple[str, str]]:
    """The same pattern in a module of each wire; an empty module: not there."""
    modules = dict(zip(WIRES, (chat, responses, anthropic), strict=True))
    return {wire: (UNIT + module, name) for wire, module in modules.items() if module}


def _params(module: str, name: str, words: Sequence[str] = WIRES) -> dict[str, tuple[str, str]]:
    """One module whose tests are parametrized by wire; an empty word: not there."""
    return {
        wire: (module, rf"{name}.*\[{word}[\]-]") for wire, word in zip(WIRES, words, strict=True) if word
    }


def _whole(chat: str, responses: str, anthropic: str) -> dict[str, tuple[str, str]]:
    modules = (f"{UNIT}test_chat_recordings", f"{UNIT}test_responses", f"{UNIT}test_anthropic")
    return dict(zip(WIRES, zip(modules, (chat, responses, anthropic), strict=True), strict=True))


def _package(file: str) -> str:
    """The package, with its version, that a helper of the tests starts."""
    found = re.search(r'^PACKAGE = "(.+)"$', (SUPPORT / file).read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def proofs() -> list[Proof]:
    """The rows, in order."""
    recorded = "recorded streams, most of them from real providers"
    sdks = f"the official SDKs: {_installed('openai')}, {_installed('anthropic')}"
    holds, cut, split = "a_recording_holds", "a_cut_is_never", "chunks_line_ends"
    histories = "test_every_history_is_one"
    aimock = f"{_package('aimock.py')}, a scripted server"
    chat = _each("test_chat_aimock", "", "", "test_")
    return [
        Proof("text, thinking, calls, stop, usage", recorded, _whole("a_recording_is_read", holds, holds)),
        Proof("a cut is a failure that keeps what came", recorded, _whole("a_cut_before_the_end", cut, cut)),
        Proof("split anywhere, CRLF, pings", recorded, _whole("chunk_borders", split, split)),
        Proof(
            "both read the same reply",
            sdks,
            {
                "openai-chat": (f"{UNIT}test_openai_sdk", "test_the_official"),
                "openai-responses": (f"{UNIT}test_responses", "test_the_official_sdk"),
                "anthropic": (f"{UNIT}test_anthropic", "test_the_official_sdk"),
            },
        ),
        Proof(
            "their types accept what we send",
            sdks,
            {
                **_each("", "test_responses_request", "test_anthropic_request", histories),
                **_each("test_chat_request", "", "", "test_a_request_is_what_a_provider_accepts"),
            },
        ),
        Proof(
            "turns, faults, limits through the client",
            aimock,
            chat | _params(f"{UNIT}test_responses_aimock", "test_", ("", "responses", "anthropic")),
        ),
        Proof(
            "the program: a batch and an edit, a limit, a cut",
            aimock,
            _params("tests.core.test_third_party", "test_"),
        ),
        Proof(
            "turns through the client",
            f"{_package('fakellm.py')}, a sloppier server",
            _params(f"{UNIT}test_fakellm", "test_", ("chat", "", "anthropic")),
        ),
        Proof(
            "a step comes to a valid value",
            f"llama.cpp ({_installed('xllamacpp')}) with SmolLM2-135M-Instruct, a real model",
            _params(f"{UNIT}test_local_real", "test_S1"),
        ),
    ]


def run_tests(rows: Sequence[Proof]) -> list[tuple[str, str, str]]:
    """Module, name and outcome (passed, failed, skipped) of each test in the files that `rows` name."""
    modules = sorted({module for proof in rows for module, _ in proof.tests.values()})
    files = [f"{module.replace('.', '/')}.py" for module in modules]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *files]
        subprocess.run(command, cwd=DOCS.parent, check=False, stdout=sys.stderr)
        return [
            (case.get("classname", ""), case.get("name", ""), _outcome(case))
            for case in ElementTree.parse(report).iter("testcase")
        ]


def _outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def proof_table(rows: Sequence[Proof], results: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The lines of the table: tests that passed, for each row and wire."""
    yield f"| what | on what | {' | '.join(WIRES)} |"
    yield f"| --- | --- |{' --- |' * len(WIRES)}"
    for proof in rows:
        cells = []
        for wire in WIRES:
            module, pattern = proof.tests.get(wire, ("", ""))
            found = Counter(
                how for where, name, how in results if module == where and re.search(pattern, name)
            )
            cells.append(", ".join(f"{n} {how}" for how, n in sorted(found.items())) if module else "–")
        yield f"| {proof.what} | {proof.on} | {' | '.join(cells)} |"


def provider_table() -> Iterator[str]:
    """The lines of the table of built-in providers."""
    yield "| provider | key | protocol | with `--api anthropic` too |"
    yield "| --- | --- | --- | --- |"
    for entry in built_in().values():
        key = "none needed" if entry.local else ", ".join(f"`{name}`" for name in entry.keys)
        yield f"| `{entry.name}`{_where(entry)} | {key} | {entry.api} | {_messages_too(entry)} |"


def _where(entry: ProviderEntry) -> str:
    return f" ({entry.base_url})" if entry.local else ""


def _messages_too(entry: ProviderEntry) -> str:
    if entry.api == "anthropic":
        return ""
    return "yes" if entry.anthropic_base_url else ""


def with_region(page: str, name: str, lines: Sequence[str]) -> str:
    """`page` with these lines between the marks of the region `name`."""
    begin, end = (
        f"<!-- {name}: made by `python docs/make/providers_table.py` -->",
        f"<!-- end of {name} -->",
    )
    head, rest = page.split(begin)
    tail = rest.split(end)[1]
    body = "\n".join(lines)
    return f"{head}{begin}\n\n{body}\n\n{end}{tail}"


def main(args: Sequence[str]) -> int:
    """Write the page. The exit code is 1 when a proof failed."""
    page = with_region(PAGE.read_text("utf-8"), "providers", list(provider_table()))
    failed = False
    if "--providers" not in args:
        rows = proofs()
        results = run_tests(rows)
        failed = any(how == "failed" for _, _, how in results)
        when = f"{datetime.now(UTC):%d %B %Y}, Handrail {__version__}, Python {sys.version.split()[0]}. Tests counted:"
        page = with_region(page, "proofs", [when, "", *proof_table(rows, results)])
    PAGE.write_text(page, "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
