"""llama.cpp's own HTTP server with one model: `python -m handrail.providers.local_server MODEL --window N`.

A process of its own, so that a crash of native code cannot take the run with it. The first line of its stdin is the
key that requests must carry, so that no web page in a browser here can use the server. It prints one line of JSON when
it is healthy (`{"url": …}`) and ends when its stdin does: it never outlives whoever started it, however that one ends.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

POLL_S = 0.05
WARNINGS = 2  # llama.cpp's level of words: warnings and errors


def main() -> None:
    """Serve until stdin ends or a signal comes."""
    said = _arguments()
    key = _read_line()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    llama = import_module("xllamacpp")  # large and native: not before the arguments are right
    try:
        server = llama.Server(_params(llama.CommonParams(), said, key))
    except Exception as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(1)  # without the end of an interpreter whose thread reads stdin
    _wait_till_healthy(server.listening_address)
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    threading.Event().wait()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="handrail.providers.local_server")
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--window", type=int, required=True, help="tokens")
    parser.add_argument("--name", default="local")
    parser.add_argument("--template", type=Path, help="a chat template that replaces the model's own")
    return parser.parse_args()


def _params(params: Any, said: argparse.Namespace, key: str) -> Any:
    params.model.path = said.model
    params.model_alias = {said.name}
    params.api_keys = [key]
    params.port = 0  # the system gives a free one; the host is loopback
    params.n_ctx = said.window
    params.n_parallel = 1
    params.use_jinja = True
    params.ui = False
    params.verbosity = WARNINGS
    # More threads than free cores make llama.cpp a hundred times slower, and the run needs a core, too.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    if said.template is not None:
        params.chat_template = said.template.read_text("utf-8")
    return params


def _wait_till_healthy(url: str) -> None:
    where, pause = urlsplit(url), threading.Event()
    while True:
        connection = http.client.HTTPConnection(where.hostname or "127.0.0.1", where.port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        pause.wait(POLL_S)


def _read_line() -> str:
    """The first line of stdin, read without a buffer: the rest of it is watched by `_end_with_parent`."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode()


def _end_with_parent() -> None:
    while os.read(0, 64):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
