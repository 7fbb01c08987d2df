"""The rules of classification, each with the smallest failure that shows it (rules K1 to K4, R1, R15, U6)."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.messages import Failure, FailureClass, Phase
from handrail.recovery.classify import Classification, classify

NOW = datetime(2026, 7, 14, 10, tzinfo=UTC).timestamp()
CORPUS = Path(__file__).parents[3] / "../shared/corpus"


def look(
    text: str,
    status: int | None = None,
    provider: str | None = None,
    headers: dict[str, str] | None = None,
    phase: Phase = "response",
) -> Classification:
    failure = Failure(text, provider=provider, phase=phase, status=status, headers=headers or {})
    return classify(failure, now=NOW, local_zone=UTC)


def error(message: str, **fields: object) -> str:
    return json.dumps({"error": {"message": message, **fields}})


def test_K1_fields_beat_words() -> None:
    assert look(error("Please retry", code="invalid_api_key")).class_ == "auth"
    assert look(error("Your usage limit is reached", code="insufficient_quota")).class_ == "billing"


def test_K1_the_bodys_meaning_beats_the_status() -> None:
    assert look(error("Invalid API key provided"), status=500).class_ == "auth"
    assert look(error("Overloaded", type="overloaded_error"), status=200).class_ == "transient"
    assert look(error("nothing that tells", code=401), status=502).class_ == "auth"


def test_K1_a_weak_name_gives_way_to_words() -> None:
    assert look(error("Your credit balance is too low", type="invalid_request_error")).class_ == "billing"
    assert look(error("odd", type="invalid_request_error")).class_ == "invalid_request"


@pytest.mark.parametrize(
    "text",
    [
        error("odd", code="context_length_exceeded"),
        "429 " + error("odd", code="context_length_exceeded"),
        "event: error\ndata: " + error("odd", code="context_length_exceeded") + "\n\n",
        json.dumps(
            {
                "error": {
                    "message": "wrapped",
                    "metadata": {"raw": error("odd", code="context_length_exceeded")},
                }
            }
        ),
        "Error code: 400 - {'error': {'message': 'odd', 'code': 'context_length_exceeded'}}",
        '{"error":{"code":"context_length_exceeded","message":"cut in the mid',
        "context_length_exceeded",
        "ContextLengthExceeded: odd",
        json.dumps([{"error": {"code": "CONTEXT-LENGTH-EXCEEDED"}}]),
    ],
)
def test_K1_a_name_is_found_wherever_it_stands(text: str) -> None:
    assert look(text).class_ == "context_overflow"


def test_K1_what_a_provider_echoes_of_the_request_does_not_count() -> None:
    body = json.dumps(
        {"error": {"message": "odd", "code": "tool_use_failed", "failed_generation": "invalid api key"}}
    )
    assert look(body, status=400).class_ == "transient"
    body = json.dumps({"detail": [{"msg": "Field required", "input": "usage limit reached, billing"}]})
    assert look(body, status=422).class_ == "invalid_request"


def test_K1_addresses_do_not_count_as_words() -> None:
    assert look("odd, see https://example.org/billing-hard-limit/rate-limit/forbidden").class_ == "unknown"


def test_R1_overflow_wins_over_permanent_and_permanent_over_transient() -> None:
    assert look("Invalid request: prompt is too long; please retry").class_ == "context_overflow"
    assert look("Invalid API key. Please try again later.").class_ == "auth"
    assert look("400 bad request; connection closed").class_ == "invalid_request"
    assert look("usage limit reached, service unavailable").class_ == "usage_limit"


@pytest.mark.parametrize(
    ("text", "class_"),
    [
        ("503", "transient"),
        ("HTTP 503: odd", "transient"),
        ("Error: 401 odd", "auth"),
        ("odd (402)", "billing"),
        ("status code: 404", "invalid_request"),
        ("odd req_500abc", "unknown"),
        ("odd 5030", "unknown"),
        ("odd 503 bytes", "unknown"),
        ("500 tokens were odd", "unknown"),
        ("version 4.503 is odd", "unknown"),
        ("C6FD:429:500", "unknown"),
    ],
)
def test_K3_digits_are_a_status_only_where_they_stand_alone(text: str, class_: str) -> None:
    assert look(text).class_ == class_


def test_K4_the_vendors_name_decides_what_a_sentence_means() -> None:
    quota = error("You exceeded your current quota, please check your plan and billing details.")
    assert look(quota, 429, "openai").class_ == "billing"
    assert look(quota, 429, "gemini").class_ == "usage_limit"
    assert look(quota, 429, "dashscope").class_ == "transient"
    assert look("Allocated quota exceeded", 429, "qwen").class_ == "transient"
    assert look("Allocated quota exceeded", 429).class_ == "usage_limit"
    assert look(error("odd", code="1113"), 429, "zhipuai").class_ == "billing"
    assert look(error("odd", code="1113"), 429, "openai").class_ == "transient"


def test_K4_a_hint_over_an_hour_is_a_usage_limit_where_no_words_tell() -> None:
    assert look("", 429, headers={"retry-after": "3600"}).class_ == "transient"
    assert look("", 429, headers={"retry-after": "3601"}).class_ == "usage_limit"
    assert look("Rate limit exceeded", 429, headers={"retry-after": "7200"}).class_ == "usage_limit"
    assert look("The model is overloaded", 503, headers={"retry-after": "7200"}).class_ == "transient"


def test_K4_the_models_own_mistake_is_transient() -> None:
    assert look("The model produced an invalid tool call", 400).class_ == "transient"
    assert look("messages.3: tool_use ids must be unique", 400).class_ == "invalid_request"


def test_K1_a_header_that_says_whether_to_retry_beats_the_status_but_not_words() -> None:
    assert look("", 400, headers={"x-should-retry": "true"}).class_ == "transient"
    assert look("", 503, headers={"x-should-retry": "false"}).class_ == "unknown"
    assert look("", 429, headers={"x-should-retry": "false"}).class_ == "usage_limit"
    assert look("Invalid API key", 401, headers={"x-should-retry": "true"}).class_ == "auth"


def test_U6_money_is_never_a_limit_that_clears() -> None:
    headers = {"anthropic-ratelimit-unified-status": "rejected", "retry-after": "60"}
    verdict = look("Usage credits are required for this model.", 429, headers=headers)
    assert (verdict.class_, verdict.guidance) == ("billing", None)


def test_K2_a_subscriptions_window_that_is_used_up_is_a_usage_limit() -> None:
    body = error("This request would exceed your account's rate limit.", type="rate_limit_error")
    assert look(body, 429).class_ == "transient"
    assert look(body, 429, headers={"anthropic-ratelimit-unified-status": "rejected"}).class_ == "usage_limit"
    assert look(body, 429, headers={"anthropic-ratelimit-unified-status": "allowed"}).class_ == "transient"
    assert look("", 429, headers={"x-ratelimit-remaining-requests-day": "0"}).class_ == "usage_limit"
    assert look("", 429, headers={"x-codex-primary-used-percent": "100"}).class_ == "usage_limit"


def test_K2_token_limit_reached_is_the_outputs_in_a_stream_and_the_inputs_before_it() -> None:
    assert look(error("Token limit reached", code=400), phase="stream").class_ == "output_truncated"
    assert look(error("Token limit reached", code=400), phase="response").class_ == "context_overflow"


def test_K2_a_body_that_holds_nothing_is_empty() -> None:
    assert look("", status=200).class_ == "empty"
    assert look("", status=200, phase="stream").class_ == "empty"
    assert look('{"id":"x","choices":[]}', status=200).class_ == "empty"
    assert look('{"type":"message","content":[],"stop_reason":"end_turn"}', status=200).class_ == "empty"
    assert look('{"choices":[],"error":{"message":"Overloaded"}}', status=200).class_ == "transient"


def test_K2_our_own_end_is_cancelled_and_a_providers_abort_is_a_fault() -> None:
    assert look("The operation was aborted").class_ == "cancelled"
    assert look("The operation was aborted", status=500).class_ == "transient"
    assert look("The operation was aborted due to timeout").class_ == "transient"


def test_R15_permanent_classes_say_what_a_person_can_do_and_others_do_not() -> None:
    for text, class_ in [
        ("Invalid API key", "auth"),
        ("Insufficient credits", "billing"),
        ("content_filter", "content_filter"),
        ("model not found", "invalid_request"),
        ("odd", "unknown"),
    ]:
        verdict = look(text)
        assert verdict.class_ == class_ and verdict.advice
    for text in (
        "Overloaded",
        "usage limit reached",
        "prompt is too long",
        "stop_reason: max_tokens",
        "empty response",
    ):
        assert look(text).advice == ""


def test_R15_advice_fits_the_case() -> None:
    assert "handrail models" in look("The model `x` does not exist").advice
    assert "SSL_CERT_FILE" in look("certificate verify failed").advice


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of failures from the field is not here")
@pytest.mark.parametrize("name", ["provider_errors.jsonl", "provider_errors_field.jsonl"])
def test_K4_the_corpus_of_the_field_is_classified_without_a_mistake(name: str) -> None:
    wrong = []
    for line in (CORPUS / name).read_text("utf-8").splitlines():
        row = json.loads(line)
        failure = Failure(row["text"], row["provider"], row["phase"], row["status"], row["headers"])
        now = datetime.fromisoformat(row["now"]).timestamp()
        verdict = classify(failure, now=now, local_zone=ZoneInfo(row["local_zone"]))
        wait, expected = verdict.guidance and verdict.guidance.wait_s, row["expect"]
        close = wait == expected["wait_s"] or (
            wait is not None
            and expected["wait_s"] is not None
            and abs(wait - expected["wait_s"]) <= expected["tolerance_s"]
        )
        if verdict.class_ != expected["class"] or not close or not verdict.why:
            wrong.append((row["id"], verdict))
    assert not wrong


_PIECES = st.sampled_from(
    [
        *"{}[]\"':,\\|~ \n\0\ud800",
        *(
            "\\u",
            "data: ",
            "event: ",
            "<html>",
            "</",
            "null",
            "NaN",
            '"type"',
            '"code"',
            '"message"',
            '"error"',
        ),
        *(
            "retry ",
            "in ",
            "resets ",
            "at ",
            "3pm ",
            "(Etc/GMT+99)",
            "min ",
            "约",
            "重置",
            "usage limit ",
            "429 ",
        ),
        *("0000-00-00", "2026-02-31", "9e999", "1784030400"),
    ]
)
_TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(_PIECES, max_size=60).map("".join),
    st.lists(_PIECES, max_size=60).map(" ".join),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=20), _PIECES),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_PIECES, inner, max_size=4),
        max_leaves=20,
    ).map(json.dumps),
)
_HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "retry-after",
            "retry-after-ms",
            "x-ratelimit-reset",
            "ratelimit",
            "x-codex-primary-reset-at",
            "x-should-retry",
        ]
    ),
    _TEXTS,
    max_size=4,
)


@given(
    text=_TEXTS,
    headers=_HEADERS,
    status=st.none() | st.integers(-1, 10**6),
    provider=st.none() | st.text(max_size=12),
    phase=st.sampled_from(["connect", "response", "stream"]),
    now=st.floats(0, 4e9),
)
def test_K2_any_failure_has_a_verdict(
    text: str, headers: dict[str, str], status: int | None, provider: str | None, phase: Phase, now: float
) -> None:
    verdict = classify(Failure(text, provider, phase, status, headers), now=now, local_zone=UTC)
    assert verdict.class_ in get_args(FailureClass)
    assert verdict.why
    if verdict.guidance is not None:
        assert verdict.guidance.wait_s >= 0
        assert verdict.guidance.at >= now - 120
        assert verdict.class_ in ("transient", "usage_limit")


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        '{"a":',
        '"a":"',
        "<script>",
        "1",
        "a_",
        "Aa",
        "[",
        "retry in ",
        "model ",
        "tool call ",
        "1 a a ",
        "2026-",
        "约1 ",
        " ",
    ],
)
def test_K2_a_hostile_body_is_judged_quickly(unit: str) -> None:
    failure = Failure(unit * (2_000_000 // len(unit)))
    start = time.process_time()
    classify(failure, now=NOW, local_zone=UTC)
    assert time.process_time() - start < 10  # against backtracking, not against a slow machine


def test_K1_an_error_behind_many_frames_of_a_stream_is_found() -> None:
    frames = 'data: {"choices":[{"delta":{"content":"auth failed"}}]}\n\n' * 200
    assert look(frames + 'data: {"error":{"code":"insufficient_quota"}}\n\n').class_ == "billing"


def test_K2_what_decides_may_stand_at_the_end_of_a_huge_body() -> None:
    assert look("x" * 500_000 + " invalid api key").class_ == "auth"
    assert look("invalid api key " + "x" * 500_000).class_ == "auth"
