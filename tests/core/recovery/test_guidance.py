"""When to ask again: where a moment is looked for, and which one binds (rules U1, U2)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from handrail.messages import Failure
from handrail.recovery.classify import classify
from handrail.recovery.moments.guidance import Guidance
from handrail.recovery.moments.wallclock import Precision

NOW = datetime(2026, 7, 14, 10, tzinfo=UTC).timestamp()
STAMP = int(NOW)


def guide(
    text: str = "",
    headers: dict[str, str] | None = None,
    status: int | None = 429,
    provider: str | None = None,
) -> Guidance | None:
    failure = Failure(text, provider=provider, status=status, headers=headers or {})
    return classify(failure, now=NOW, local_zone=ZoneInfo("America/New_York")).guidance


def wait(*args: object, **kwargs: object) -> float | None:
    guidance = guide(*args, **kwargs)  # type: ignore[arg-type]
    return None if guidance is None else round(guidance.wait_s, 3)


@pytest.mark.parametrize(
    ("wait_s", "precision", "due"),
    [
        (2520.0, "rounded", 2550.0),
        (0.0, "rounded", 30.0),
        (0.0, "second", 5.0),
        (60.0, "second", 65.0),
        (60.0, "minute", 125.0),
    ],
)
def test_U1_margins(wait_s: float, precision: Precision, due: float) -> None:
    assert Guidance(NOW + wait_s, wait_s, precision, "").due() == NOW + due


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "120"}, 120),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": " 30 "}, 30),
        ({"retry-after": "30s"}, 30),
        ({"retry-after": "Tue, 14 Jul 2026 10:02:00 GMT"}, 120),
        ({"retry-after": str(STAMP + 90)}, 90),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "120"}, 1.5),
        ({"x-ms-retry-after-ms": "2000"}, 2),
        ({"retry-after-ms": "junk", "retry-after": "120"}, 120),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "99999999999999999999"}, None),
        ({"retry-after": "Tue, 14 Jul 2026 08:00:00 GMT"}, None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360),
        ({"x-ratelimit-reset-tokens": "6m0s", "retry-after": "1"}, 1),
        ({"anthropic-ratelimit-tokens-reset": "2026-07-14T10:01:00Z", "retry-after": "7"}, 7),
        ({"x-ratelimit-reset-requests-day": "600", "retry-after": "7"}, 600),
        ({"x-ratelimit-reset": str(STAMP + 100)}, 100),
        ({"x-ratelimit-reset": str((STAMP + 100) * 1000)}, 100),
        ({"x-ratelimit-reset": "2026-07-14T10:00:45Z"}, 45),
        ({"x-ratelimit-reset-tokens-minute": "33.4"}, 33.4),
        ({"x-rate-limit-reset": "17"}, 17),
        ({"ratelimit-reset": "12"}, 12),
        ({"ratelimit": "limit=100, remaining=0, reset=50"}, 50),
        ({"ratelimit": '"default";r=0;t=40'}, 40),
        ({"ratelimit": "limit=100, remaining=3, reset=50"}, None),
        ({"anthropic-ratelimit-requests-reset": "2026-07-14T10:01:00Z"}, 60),
        ({"x-codex-primary-used-percent": "100.0", "x-codex-primary-reset-after-seconds": "700"}, 700),
        ({"x-unrelated-reset": "77", "x-reset": "78"}, None),
    ],
)
def test_U1_headers_in_their_forms(headers: dict[str, str], expected: float | None) -> None:
    assert wait("", headers) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (  # only the exhausted window
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "20s",
                "x-ratelimit-remaining-tokens": "5000",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            20,
        ),
        (  # the counter says that something is left: the window does not bind
            {"x-ratelimit-remaining": "7", "x-ratelimit-reset": str(STAMP + 100), "retry-after": "3"},
            3,
        ),
        (
            {
                "x-codex-primary-used-percent": "12",
                "x-codex-primary-reset-at": str(STAMP + 1000),
                "x-codex-secondary-used-percent": "100",
                "x-codex-secondary-reset-at": str(STAMP + 9000),
            },
            9000,
        ),
        (
            {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-reset": str(STAMP + 500),
                "anthropic-ratelimit-unified-5h-status": "rejected",
                "anthropic-ratelimit-unified-5h-reset": str(STAMP + 500),
                "anthropic-ratelimit-unified-7d-status": "allowed_warning",
                "anthropic-ratelimit-unified-7d-reset": str(STAMP + 90_000),
                "anthropic-ratelimit-unified-overage-reset": str(STAMP + 900_000),
            },
            500,
        ),
        (
            {
                "anthropic-ratelimit-unified-status": "allowed",
                "anthropic-ratelimit-unified-reset": str(STAMP + 5000),
                "retry-after": "9",
            },
            9,
        ),
    ],
)
def test_U2_only_a_window_that_is_used_up_binds(headers: dict[str, str], expected: float) -> None:
    assert wait("", headers) == expected


def test_U2_of_several_that_bind_the_latest_holds() -> None:
    assert wait("Please try again in 20s.", {"retry-after": "300"}) == 300
    assert wait("Please try again in 400s.", {"retry-after": "300"}) == 400


def test_U2_resets_of_windows_mean_nothing_where_no_limit_was_hit() -> None:
    assert wait("", {"x-ratelimit-reset-tokens": "6m0s"}, status=500) is None
    assert wait("", {"retry-after": "7"}, status=500) == 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"error":{"message":"Rate limited","retry_after":12}}', 12),
        ('{"error":{"message":"Rate limited","retry_after":"12.5"}}', 12.5),
        ('{"error":{"message":"Rate limited","retry_after_ms":2500}}', 2.5),
        ('{"error":{"message":"Rate limited","retryAfter":"30s"}}', 30),
        (
            '{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}',
            37,
        ),
        ('{"error":{"type":"usage_limit_reached","resets_in_seconds":900}}', 900),
        (f'{{"error":{{"type":"usage_limit_reached","resets_at":{STAMP + 77}}}}}', 77),
        (f'{{"error":{{"type":"usage_limit_reached","resets_at":{(STAMP + 77) * 1000}}}}}', 77),
        ('{"error":{"type":"usage_limit_reached","resets_at":"2026-07-14T10:10:00Z"}}', 600),
        ('{"error":{"type":"usage_limit_reached","resets_at":null}}', None),
        (
            '{"error":{"type":"usage_limit_reached","resets_at":9223372036854775807,"resets_in_seconds":50}}',
            50,
        ),
        ('{"error":{"type":"usage_limit_reached","resets_at":1e400}}', None),
        (
            '{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"55"}}}}',
            55,
        ),
        ('429 {"error":{"message":"Slow down","retry_after":4}} (cut', 4),
        ("Error code: 429 - {'error': {'message': 'Slow down', 'retry_after': 6}}", 6),
        ('{"error":{"message":"usage limit","retry_after": 8, "hint":"cut he', 8),
        (
            f'{{"error":{{"type":"usage_limit_reached"}},"rate_limits":{{"primary":{{"used_percent":100,'
            f'"resets_at":{STAMP + 50}}},"secondary":{{"used_percent":40,"resets_at":{STAMP + 5000}}}}}}}',
            50,
        ),
    ],
)
def test_U1_fields_of_the_body(text: str, expected: float | None) -> None:
    assert wait(text) == expected


@pytest.mark.parametrize(
    ("words", "expected", "rounded"),
    [
        ("Try again in ~42 min.", 2520, True),
        ("Please try again in 1m30s", 90, False),
        ("please retry after 20 seconds", 20, False),
        ("Please wait 36 seconds before trying again", 36, False),
        ("wait 3 hours 43 minutes for your limit to reset", 13_380, False),
        ("wait at least 20s", 20, False),
        ("Your quota will reset after 18h31m10s.", 66_670, False),
        ("Resets in 16 days.", 1_382_400, False),
        ("resets in about 2 hours", 7200, True),
        ("Limit resets: 2h 5m", 7500, False),
        ("try again in 5-10 minutes", 600, True),
        ("available again in 42 minutes", 2520, False),
        ("cooldown: 90 seconds", 90, False),
        ("retry after 30", 30, False),
        ("Retry-After: 30", 30, False),
        (f"limit reached|{STAMP + 60}", 60, False),
        (f"limit reached|{(STAMP + 60) * 1000}", 60, False),
        (f"resets at {STAMP + 60}", 60, False),
        ("try again at 3:45 PM", 35_100, False),
        ("resets 3pm", 32_400, False),
        ("resets around 3pm", 32_400, True),
        ("resets 3pm (Etc/GMT+5)", 36_000, False),
        ("available until 12:30pm (UTC)", 9000, False),
        ("resets Jul 15 at 12am (Australia/Melbourne)", 14_400, False),
        ("regain access on 2026-08-01 at 00:00 UTC", 1_519_200, False),
        ("resets at 2026-07-14T10:05:00Z", 300, False),
        ("请在 5 分钟后重试", 300, False),
        ("约 3 小时后恢复", 10_800, True),
        ("您的限额将在 2026-07-14 20:41:44 重置", 9704, False),
        ("限额将于 2026年7月14日 20:41 刷新", 9660, False),
        ("额度将在 明天 8:00 重置", 50_400, False),
    ],
)
def test_U1_words(words: str, expected: float, rounded: bool) -> None:
    guidance = guide(f"usage limit: {words}")
    assert guidance is not None
    assert guidance.wait_s == pytest.approx(expected)
    assert guidance.rounded is rounded
    assert guidance.source.startswith("text: ") or "Retry-After" in words


@pytest.mark.parametrize(
    "words",
    [
        "5-hour limit reached",
        "Limit 100000, Used 97050, Requested 100",
        "Rate limit of 50 per 86400s exceeded",
        "request timed out after 600 seconds",
        "gave up after waiting 30s",
        "limits reset every 5 hours",
        "try again in a few minutes",
        "try again later",
        "try again tomorrow",
        "wait a moment",
        "retry 3 of 5",
        "reached max retries: 4",
        "resets soon",
        "resets at 25:99",
        "resets 3pm (Nowhere/Land)",
        "try again in 99999999 days",
        "limit reached|12345",
        "limit reached|9999999999999",
        "available balance 10 USD",
    ],
)
def test_U1_nothing_is_invented(words: str) -> None:
    assert guide(f"usage limit: {words}") is None


def test_U2_wall_times_of_a_chinese_vendor_are_beijings_in_english_too() -> None:
    text = "Usage limit reached. Your limit will reset at 2026-07-14 21:00:00"
    assert wait(text, provider="zai") == 3 * 3600
    assert wait(text) == 15 * 3600  # elsewhere it is the machine's, here New York


def test_U6_what_is_not_waited_for_carries_no_guidance() -> None:
    assert guide("Insufficient credits. Try again in 5 minutes.", status=402) is None
    assert guide("Invalid API key", {"retry-after": "60"}, status=401) is None
