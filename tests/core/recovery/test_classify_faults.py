"""Faults of networks and streams, ends by people, cut and empty replies: nothing here has a vendor (rules K1 to K4)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from handrail.messages import Failure, Phase
from handrail.recovery.classify import classify

NOW = datetime(2026, 7, 14, 10, tzinfo=UTC).timestamp()

TRANSIENT = """
fetch failed
TypeError: fetch failed
TypeError: Failed to fetch
socket hang up
Error: socket hang up (ECONNRESET)
write EPIPE
connect ETIMEDOUT 203.0.113.9:443
connect ECONNREFUSED 127.0.0.1:11434
getaddrinfo EAI_AGAIN api.example.org
[Errno -2] Name or service not known
[Errno -3] Temporary failure in name resolution
nodename nor servname provided, or not known
All connection attempts failed
Server disconnected without sending a response.
Connection error.
Connection aborted.
('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))
[Errno 104] Connection reset by peer
[Errno 32] Broken pipe
Cannot connect to host api.example.org:443 ssl:default [Connect call failed]
Connection timeout to host https://api.example.org/v1
Request timed out.
The read operation timed out
The operation was aborted due to timeout
TimeoutError: signal timed out
Headers Timeout Error
UND_ERR_BODY_TIMEOUT
Body Timeout Error
other side closed
Premature close
IncompleteRead(1024 bytes read)
Response payload is not completed: <ContentLengthError: 400, message='Not enough data'>
unexpected EOF while reading
unexpected end of JSON input
upstream prematurely closed connection
stream error: stream ID 17; INTERNAL_ERROR; received from peer
http2: server sent GOAWAY and closed the connection; LastStreamID=1999
Stream reset with RST_STREAM
HTTP/2 stream 3 was not closed cleanly: INTERNAL_ERROR (err 2)
curl: (56) Recv failure: Connection reset by peer
curl: (18) transfer closed with outstanding read data remaining
curl: (52) Empty reply from server
Could not resolve host: api.example.org
[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred in violation of protocol
SSL handshake failed
_ssl.c:1011: The handshake operation timed out
net::ERR_NETWORK_CHANGED
WebSocket closed 1006
websocket connection closed before response.completed
Stream ended without a stop reason
Anthropic stream ended before message_stop
Model stream ended without a finish reason.
stream interrupted
Incomplete chunked response
error decoding response body
error sending request for url (https://api.example.org/v1/responses)
dial tcp 203.0.113.9:443: i/o timeout
dial tcp: lookup api.example.org: no such host
no route to host
Network is unreachable
The network connection was lost.
The Internet connection appears to be offline.
Provider finish_reason: network_error
Upstream idle timeout exceeded
Unable to connect. Is the computer able to access the url?
Was there a typo in the url or port?
No response received from the model
503 service unavailable
429 rate limit exceeded
HTTP 502
timed out: no event from the stream for 180 s
the stream ended before any event came
the stream was silent for 180 s
Something went wrong. Please try again.
""".strip().splitlines()

OTHERS = [
    ("certificate verify failed: unable to get local issuer certificate", "invalid_request"),
    ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate", "invalid_request"),
    ("unable to verify the first certificate", "invalid_request"),
    ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "invalid_request"),
    ("Request URL is missing an 'http://' or 'https://' protocol.", "invalid_request"),
    ("UnsupportedProtocol: odd", "invalid_request"),
    ("The operation was aborted", "cancelled"),
    ("AbortError: The user aborted a request.", "cancelled"),
    ("APIUserAbortError: Request was aborted.", "cancelled"),
    ("asyncio.exceptions.CancelledError", "cancelled"),
    ("CancelledError()", "cancelled"),
    ("context canceled", "cancelled"),
    ("Request cancelled by user", "cancelled"),
    ("Operation aborted", "cancelled"),
    ("KeyboardInterrupt", "cancelled"),
    ("max_completion_tokens reached", "output_truncated"),
    ("stop_reason: max_tokens", "output_truncated"),
    ("finishReason: MAX_TOKENS", "output_truncated"),
    ("The response was cut off because it hit the output token limit", "output_truncated"),
    ("Token limit: IncompleteDetails(reason='max_output_tokens')", "output_truncated"),
    ("Model output was truncated at max_tokens", "output_truncated"),
    ("The model returned an empty response", "empty"),
    ("empty response", "empty"),
    ("Empty completion received from provider", "empty"),
    ("No content in response", "empty"),
    ("No output generated. Check the stream for errors.", "empty"),
    ("The model did not return any content", "empty"),
    ("Response contained no choices", "empty"),
    ("Assistant message was empty", "empty"),
    ("Provider returned no candidates", "empty"),
    ("Stream completed without producing any output", "empty"),
    ("billing exhausted", "billing"),
    ("401 authentication failed", "auth"),
    ("403 forbidden", "auth"),
    ("quota exceeded", "usage_limit"),
    ("monthly usage limit reached", "usage_limit"),
    ("subscription_sharing_usage_limit_exceeded", "usage_limit"),
    ("content_filter", "content_filter"),
    ("prompt is too long", "context_overflow"),
    ("context_length_exceeded after response truncated", "context_overflow"),
    ("model not found", "invalid_request"),
    ("Unknown deterministic failure", "unknown"),
    ("the flux capacitor is misaligned", "unknown"),
    ("", "unknown"),
    ("503", "transient"),
    ("wrote 503 bytes", "unknown"),
    ("job 429a failed", "unknown"),
    ("req_500_502 gave up", "unknown"),
    ("build 1.502 gave up", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize("text", TRANSIENT)
@pytest.mark.parametrize("phase", ["response", "stream"])
def test_K2_faults_of_a_network_are_transient(text: str, phase: Phase) -> None:
    verdict = classify(Failure(text, phase=phase), now=NOW, local_zone=UTC)
    assert verdict.class_ == "transient", verdict.why
    assert verdict.guidance is None


@pytest.mark.parametrize(("text", "expected"), OTHERS)
def test_K2_K3_words_without_a_vendor(text: str, expected: str) -> None:
    verdict = classify(Failure(text), now=NOW, local_zone=UTC)
    assert verdict.class_ == expected, verdict.why


def test_K2_a_connection_that_never_came_about_is_transient() -> None:
    assert classify(Failure("odd words", phase="connect"), now=NOW).class_ == "transient"
    assert classify(Failure("", phase="stream"), now=NOW).class_ == "transient"
