"""`handrail classify`: for people and for scripts (rule K5)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handrail_tui.commands.classify import classify

CORPUS = Path(__file__).parents[3] / "../shared/corpus/provider_errors.jsonl"
AT = ("--now", "2026-07-14T10:00:00Z", "--zone", "Europe/Berlin")


def run(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(classify, args, input=stdin, catch_exceptions=False)


def said(*args: str, stdin: str | None = None) -> dict[str, str]:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return dict(line.split(None, 1) for line in result.stdout.splitlines())


def answers(*rows: object) -> list[dict[str, object]]:
    result = run("--json", stdin="\n".join(json.dumps(row) for row in rows))
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_K5_a_limit_with_guidance_says_when_and_what_recovery_would_do() -> None:
    rows = said("You have hit your usage limit. Try again in ~42 min.", *AT)
    assert rows["class"] == "usage_limit"
    assert "usage limit" in rows["why"]
    assert rows["guidance"].startswith(
        "about 42 min from now, Tue 14 Jul 2026 12:42:00 CEST (text: Try again in ~42 min)"
    )
    assert "until Tue 14 Jul 2026 12:42:30 CEST" in rows["recovery"]  # the margin of rule U1
    assert "advice" not in rows


@pytest.mark.parametrize(
    ("args", "plan"),
    [
        (["usage limit reached"], "retries every 15 min, at most 20 times within 5 h"),
        (["usage limit, try again in 40 hours"], "the wait is longer than 6 h"),
        (["socket hang up"], "retries in 2 s; at most 3 retries"),
        (["--status", "429", "--header", "Retry-After: 120", ""], "waits 2 min"),
        (["prompt is too long"], "summarises older messages"),
        (["stop_reason: max_tokens"], "asks for the rest at once"),
        (["empty response"], "retries in 5 s; at most 6 resumes"),
        (["Invalid API key"], "ends the run: the provider refused the key"),
        (["Request was aborted"], "ends the run: cancelled"),
    ],
)
def test_K5_what_recovery_would_do_by_default(args: list[str], plan: str) -> None:
    assert plan in said(*args, *AT)["recovery"]


def test_K5_a_permanent_failure_comes_with_advice() -> None:
    assert "Check the key" in said("Invalid API key")["advice"]


def test_K5_provider_status_headers_and_phase_count() -> None:
    quota = "You exceeded your current quota"
    assert said("--provider", "google", quota)["class"] == "usage_limit"
    assert said("--status", "404", "odd")["class"] == "invalid_request"
    assert said("--phase", "connect", "odd")["class"] == "transient"
    headers = ["--header", "retry-after: 7", "--header", "x-other: 1"]
    assert said("--status", "503", *headers, "")["guidance"].startswith("7 s from now")


def test_K5_a_failure_is_read_from_a_pipe() -> None:
    assert said(stdin="Insufficient credits\n")["class"] == "billing"


def test_L11_nothing_of_a_failure_reaches_the_terminal_as_a_command() -> None:
    result = run("usage limit \x1b[2Jreached, retry in \x1b]0;x\x07 5 min", *AT)
    assert result.exit_code == 0
    assert "\x1b" not in result.output and "\x07" not in result.output


def test_K5_rows_are_answered_in_order_one_a_line() -> None:
    rows = [
        {
            "id": "a",
            "text": "usage limit, resets 3pm",
            "now": "2026-07-14T10:00:00Z",
            "local_zone": "Asia/Tokyo",
        },
        {
            "id": 2,
            "text": "",
            "status": 429,
            "headers": {"Retry-After": 1.25},
            "provider": None,
            "phase": "response",
        },
        {"text": "odd", "note": "other keys are let be", "now": 1784023200},
    ]
    assert answers(*rows) == [
        {"id": "a", "class": "usage_limit", "wait_s": 72_000.0},
        {"id": 2, "class": "transient", "wait_s": 1.25},
        {"id": None, "class": "unknown", "wait_s": None},
    ]


def test_K5_a_text_with_json_is_answered_by_one_line() -> None:
    result = run("--json", "Insufficient credits")
    assert json.loads(result.stdout) == {"id": None, "class": "billing", "wait_s": None}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "a row is a JSON object, not list"),
        ("[" * 100_000, "not JSON"),
        ("{}", "text: Field required"),
        ('{"text": 5}', "text: Input should be a valid string"),
        ('{"text": "x", "status": "429"}', "status: Input should be a valid integer"),
        ('{"text": "x", "phase": "later"}', "phase: Input should be 'connect', 'response' or 'stream'"),
        ('{"text": "x", "now": "yesterday"}', "now: 'yesterday' is not an RFC 3339 time"),
        ('{"text": "x", "now": "2026-07-14T10:00:00"}', "has no time zone"),
        ('{"text": "x", "local_zone": "Mars/Olympus"}', "local_zone: unknown time zone 'Mars/Olympus'"),
        ('{"text": "x", "headers": [1]}', "headers: Input should be a valid dictionary"),
    ],
)
def test_K5_a_bad_row_is_named_and_the_others_are_answered(line: str, wrong: str) -> None:
    result = run("--json", stdin=f'{{"text":"odd"}}\n\n{line}\n{{"id":"last","text":"Overloaded"}}\n')
    assert result.exit_code == 2
    assert [json.loads(answer)["class"] for answer in result.stdout.splitlines()] == ["unknown", "transient"]
    assert f"line 3: {wrong}" in result.stderr or ("line 3: " in result.stderr and wrong in result.stderr)
    assert len(result.stderr.splitlines()) == 1


def test_K5_bytes_that_are_no_text_do_not_stop_it() -> None:
    result = run(
        "--json", stdin=b'{"id":"x","text":"overloaded \xff\xfe"}\n{"id":"\\ud800","text":"\\ud800"}\n'
    )
    assert result.exit_code == 0
    assert [json.loads(line)["class"] for line in result.stdout.splitlines()] == ["transient", "unknown"]


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        (["--header", "nocolon", "x"], "is not a header; write NAME:VALUE"),
        (["--zone", "Nowhere", "x"], "unknown time zone 'Nowhere'"),
        (["--status", "9999", "x"], "9999 is not in the range"),
        (["--now", "soon", "x"], "soon"),
    ],
)
def test_K5_a_wrong_option_says_what_is_right(args: list[str], wrong: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert wrong in result.output


def test_K5_the_command_stands_alone_and_its_exit_code_tells() -> None:
    code = "from handrail_tui.commands.classify import classify; classify()"
    command = [sys.executable, "-c", code, "--json"]
    good = subprocess.run(command, input=b'{"text":"Overloaded"}\n', capture_output=True, check=False)
    assert (good.returncode, json.loads(good.stdout)["class"]) == (0, "transient")
    bad = subprocess.run(command, input=b"{\n", capture_output=True, check=False)
    assert (bad.returncode, bad.stdout) == (2, b"")


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of failures from the field is not here")
def test_K5_the_corpus_through_the_command() -> None:
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    for row, answer in zip(rows, answers(*rows), strict=True):
        expected = row["expect"]
        assert (answer["id"], answer["class"]) == (row["id"], expected["class"])
        if expected["wait_s"] is None:
            assert answer["wait_s"] is None
        else:
            assert answer["wait_s"] == pytest.approx(expected["wait_s"], abs=expected["tolerance_s"])


@pytest.mark.parametrize(
    ("args", "stdin", "told"),
    [
        ((), "", "Nothing came in. Pipe in the failure's text, or give --status or --header."),
        ((), " \n", "Nothing came in."),
        (("--json",), "", "No rows came in. Each line of stdin is a JSON object with at least `text`."),
        (("--json",), "\n\n", "No rows came in."),
    ],
)
def test_K5_nothing_to_classify_is_said(args: tuple[str, ...], stdin: str, told: str) -> None:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", " ").split())


def test_K5_an_empty_body_with_a_status_is_a_failure() -> None:
    assert said("--status", "503", stdin="")["class"] == "transient"


@pytest.mark.skipif(not CORPUS.parent.exists(), reason="the corpus of the field is not there")
@pytest.mark.parametrize("name", ["provider_errors.jsonl", "provider_errors_field.jsonl"])
def test_K5_every_row_of_the_field_is_explained_in_plain_words(name: str) -> None:
    from handrail.messages import FAILURE_WORDS
    from handrail.recovery.classify import classify as explain
    from handrail_tui.commands._failure_row import read_row

    for line in (CORPUS.parent / name).read_text("utf-8").splitlines():
        row = read_row(line)
        found = explain(row.failure(), now=row.now or 0.0, local_zone=row.zone)
        assert len(found.why.split()) >= 3, (row.id, found.why)
        jargon = {word for word in FAILURE_WORDS if "_" in word and word not in row.text}
        assert not any(word in found.why for word in jargon), (row.id, found.why)
