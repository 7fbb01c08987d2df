"""Stands in for the package of this name in a child process: a server that is healthy at once and says little.

The name of the model file says how it behaves: `broken` does not start, `slow` takes long to, `stubborn` ignores the
polite end of a process.
"""

from __future__ import annotations

import http.server
import json
import signal
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any


def CommonParams() -> Any:
    return SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )


class Server:
    def __init__(self, params: Any) -> None:
        if "broken" in params.model.path:
            sys.stderr.write("0.00.001 W some warning\n0.00.002 E ")
            sys.stderr.flush()
            time.sleep(0.05)
            sys.stderr.write(
                "llama_model_load: error loading model: it is \x1b[31mcut\n0.00.003 E init: more\n"
            )
            raise RuntimeError("Failed to init server, please check the input params.")
        if "slow" in params.model.path:
            time.sleep(0.4)
        if "stubborn" in params.model.path:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", params.port), _handler(params))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def listening_address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


def _handler(params: Any) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(200, b"{}")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.headers["authorization"] != f"Bearer {params.api_keys[0]}":
                self._say(401, b"{}")
                return
            template = getattr(params, "chat_template", "its own")
            told = {
                "choice": body.get("tool_choice"),
                "tools": [tool["function"]["name"] for tool in body.get("tools", [])],
                "window": params.n_ctx,
                "forced": "must be a call" in template,
                "own": template == "its own",
            }
            delta = {"choices": [{"delta": {"content": json.dumps(told)}, "finish_reason": "stop"}]}
            self._say(200, f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n".encode())

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    return Handler
