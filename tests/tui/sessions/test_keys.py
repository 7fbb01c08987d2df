"""Keys reach no child of the program, no record and no file about a fault (rule J5)."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from runs import call, says
from scripted_cli import ScriptedProgram

from handrail.mask import MASK, Masker
from handrail.providers.catalog import key_variables
from handrail.settings import user_file

pytestmark = [pytest.mark.attack, pytest.mark.skipif(os.name != "posix", reason="needs a shell")]
OWN = "MY_COMPANY_LLM"


def test_J5_no_key_reaches_a_command_or_a_hook(
    program: ScriptedProgram, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sorted({*key_variables(), OWN})
    for name in names:
        monkeypatch.setenv(name, f"planted-{name}-key")
    user_file().parent.mkdir(parents=True)
    user_file().write_text(
        f'[providers.mine]\nkey_env = "{OWN}"\nbase_url = "http://127.0.0.1:9/v1"\n'
        f'[hooks]\non_finish = "env > {home}/hook.txt"\n'
    )
    command = f"env > {home}/bash.txt; cat /proc/$PPID/environ >> {home}/bash.txt"
    replies = [says("", call("bash", command=command)), says("Done.")]
    ended = program("run", "--plain", "--model", "mine/m", "--approve", "all", "Go.", replies=replies)
    assert (ended.code, program.resolved[0].api_key) == (0, "planted-HANDRAIL_API_KEY-key")
    for hook in [each for each in threading.enumerate() if each.name.startswith("hook ")]:
        hook.join(30)  # a hook may outlast its run
    for file in ("bash.txt", "hook.txt"):
        text = (home / file).read_text()
        assert "HOME=" in text and [name for name in names if f"planted-{name}-key" in text] == [], file


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_J5_a_key_is_not_in_the_environment_that_the_system_shows() -> None:
    program = (
        "import os; from handrail.providers.keys import environment, withhold; withhold({'PLANTED'});"
        "shown = open('/proc/self/environ').read(); child = os.popen('env').read();"
        "print('sk-secret-value' in shown, 'sk-secret-value' in child, environment()['PLANTED'],"
        " 'OTHER=stays' in child)"
    )
    env = {**os.environ, "PLANTED": "sk-secret-value", "OTHER": "stays"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.split() == ["False", "False", "sk-secret-value", "True"], done.stderr


KEY = 'sk-"Zürich"/+key~value?42'


@pytest.mark.parametrize("before", ["", "a", "ab", "key: "])
@pytest.mark.parametrize("after", ["", "\n", "zz"])
def test_J5_the_usual_encodings_of_a_key_are_masked_also_across_pieces(before: str, after: str) -> None:
    raw = (before + KEY + after).encode()
    encoded = [
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        raw.hex(),
        raw.hex().upper(),
        quote(raw, safe=""),
        re.sub("%..", lambda found: found[0].lower(), quote(raw)),
        json.dumps(raw.decode()),
        json.dumps(base64.b64encode(raw).decode()).replace("/", "\\/"),
    ]
    masker = Masker([KEY])
    for text in encoded:
        assert MASK in masker.mask(text), text
        stream = masker.stream()
        assert "".join(map(stream.feed, text)) + stream.flush() == masker.mask(text)


def test_J5_a_short_key_does_not_mask_ordinary_words() -> None:
    masker = Masker(["password"])
    assert masker.mask("pass the word, the cGFz and 70617373") == "pass the word, the cGFz and 70617373"
