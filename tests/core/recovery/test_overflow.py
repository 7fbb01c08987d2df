"""What does not fit the window is an overflow in whatever words; what only looks like it is none (rules K1, U6)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.messages import Failure
from handrail.recovery.classify import Classification, classify

NOW = datetime(2026, 7, 14, 10, tzinfo=UTC).timestamp()


def look(text: str, status: int | None = 400, provider: str | None = None) -> Classification:
    return classify(Failure(text, provider=provider, status=status), now=NOW, local_zone=UTC)


OVERFLOWS = [
    "Cannot cut the prompt: n_keep (20480) >= n_ctx (8192)",
    "n_keep 8192 >= n_ctx 8192",
    "The request (70123 tokens) is larger than the context (65536 tokens).",
    "your prompt has 140,000 tokens but this model takes at most 131,072",
    "Maximum context is 8192 tokens; 9123 tokens were sent.",
    "max context 32k, got 41k tokens",
    "sequence length 5000 > 4096",
    "Input of 200001 tokens does not fit: 200000 allowed",
    "4096 is the limit for input tokens, yours is 5000",
    "8192 < 9001 tokens in the prompt",
    "Der Prompt hat 9001 Token, erlaubt sind 8192.",
    "Le contexte contient 140000 jetons, la limite est de 131072 jetons.",
    "La entrada tiene 9001 tokens y el límite es 8192.",
    "O prompt excede o limite: 9001 tokens, máximo 8192",
    "Длина запроса 9001 токенов, максимум 8192 токенов",
    "输入共 140000 个 token,模型最多支持 131072 个 token",
    "プロンプトは 9001 トークンです。最大 8192 トークンまでです。",
    "프롬프트 9001 토큰, 최대 8192 토큰",
    '{"error": {"code": 400, "message": "no", "n_prompt_tokens": 9001, "n_ctx": 8192}}',
    '{"detail": "1.2M tokens of input, the window holds 1M"}',
    "max_tokens must be positive, got -512 (the prompt has 33280 tokens)",
    '{"error": "Invalid max_completion_tokens: -14999"}',
    "Total tokens of text and pictures exceed max message tokens",
    "prompt tokens exceed the maximum",
    "Requested 9123 tokens (8123 in the messages, 1000 in the answer); the model's window is 8192.",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_K1_two_token_counts_say_overflow_in_any_words(text: str) -> None:
    found = look(text)
    assert found.class_ == "context_overflow", found.why


@pytest.mark.parametrize("status", [413, 422, 500, None])
def test_K1_the_counts_say_more_than_the_status(status: int | None) -> None:
    assert look(OVERFLOWS[0], status).class_ == "context_overflow"


NO_OVERFLOWS = [
    ("max_tokens (200000) exceeds the maximum output tokens (64000)", 400, "invalid_request"),
    ("max_completion_tokens: 9000 > 8192", 400, "invalid_request"),
    ("thinking.budget_tokens (16000) must be less than max_tokens (8192)", 400, "invalid_request"),
    ("top_k must be at least 1, got -14999", 400, "invalid_request"),
    ("max_tokens must be at least 1, got -1", 400, "invalid_request"),
    ("picture of 9000 x 8000 pixels; the maximum is 8000 pixels", 400, "invalid_request"),
    ("a message of 300000 characters, 262144 allowed in the field name", 400, "invalid_request"),
    ("Limit 30000, Used 29000, Requested 2000 tokens", 429, "transient"),
    ("Rate limit for tokens per min (TPM): Limit 30000, Used 29000, Requested 2000", 429, "transient"),
    ("1200000 of 1000000 tokens used today", 429, "usage_limit"),
    ("tokens: 30001, limit: 30000", 429, "transient"),
    ("Prompt tokens limit: 36163 > 29652. Upgrade to a paid account.", 402, "billing"),
    ("prompt of 2000 tokens, context of 8192 tokens, model busy", 503, "transient"),
    ("input 9000 tokens, output 500 tokens, then the connection was lost", None, "transient"),
]


@pytest.mark.parametrize(("text", "status", "expected"), NO_OVERFLOWS)
def test_K1_counts_of_other_things_are_no_overflow(text: str, status: int | None, expected: str) -> None:
    found = look(text, status)
    assert found.class_ == expected, found.why


@given(
    st.integers(1100, 2_000_000),
    st.integers(1, 1_000_000),
    st.sampled_from(
        ["{m} tokens in the prompt, {l} allowed", "context limit {l}, prompt {m}", "{m} > {l} tokens"]
    ),
)
def test_K1_only_the_larger_beside_the_smaller_limit_overflows(limit: int, more: int, words: str) -> None:
    assert look(words.format(m=limit + more, l=limit)).class_ == "context_overflow"
    if "context" not in words:
        assert look(words.format(m=limit - 1, l=limit)).class_ != "context_overflow"


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("Upstream request failed", 401, "auth"),
        ("upstream request failed", 402, "billing"),
        ("Upstream request failed, please try again", 402, "billing"),
        ("Upstream request failed", 403, "auth"),
        ('{"error": {"message": "Upstream request failed", "type": "upstream_error"}}', 403, "auth"),
        ('{"error": {"message": "no", "type": "api_error"}}', 401, "auth"),
        ("Upstream request failed", 502, "transient"),
        ("Upstream request failed", None, "transient"),
        ("The downstream was closed for you", 403, "auth"),
        ("rate limit exceeded", 403, "transient"),
        ("overloaded, try again", 403, "transient"),
        ("hosted models failed the check", 403, "auth"),
    ],
)
def test_K1_a_status_that_refuses_says_more_than_words_of_the_wire(
    text: str, status: int | None, expected: str
) -> None:
    found = look(text, status)
    assert found.class_ == expected, found.why


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Free usage exceeded, subscribe to continue", "usage_limit"),
        ("Free usage exceeded, add credits at the console", "usage_limit"),
        ("You have used all your free messages. Upgrade your plan.", "usage_limit"),
        ("Your free requests are used up.", "usage_limit"),
        ("You are out of free credits. Add credits.", "billing"),
        ("Your free trial has ended.", "billing"),
    ],
)
def test_U6_free_usage_comes_back_and_free_money_does_not(text: str, expected: str) -> None:
    found = look(text, 429)
    assert found.class_ == expected, found.why
