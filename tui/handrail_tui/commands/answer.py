"""`handrail answer`: answer the question of a run in another terminal."""

from __future__ import annotations

import sys

import click

from handrail_tui.view import wording
from handrail_tui.view.text import one_line, reveal

_IF_NOT_RUNNING = 'Resume it with the answer: handrail resume {id} --answer "…"'


@click.command()
@click.argument("words", nargs=-1, metavar="[ID] [TEXT]")
@click.option("--cannot", is_flag=True, help="Say that you cannot do it; TEXT may say why.")
@click.option("--cancel", is_flag=True, help="Put the question away without a decision.")
@click.option("--which", metavar="Q", help="The id of the question, when several are open.")
@click.option("--json", "as_json", is_flag=True, help="Print the answered question as JSON.")
def answer(words: tuple[str, ...], cannot: bool, cancel: bool, which: str | None, as_json: bool) -> int:
    """Answer the question of a run in another terminal. Without TEXT: say that it is done.

    ID may be left out when one run is active; the beginning of an ID is enough.

    A secret is never given on the command line, where others could read it: you are prompted, or it is read from stdin.

    \b
    handrail answer                           done, where one run is active
    handrail answer 1kq0z                     done: the captcha is solved
    handrail answer 1kq0z "use the old API"
    handrail answer 1kq0z "name=Ada age=36"   a form: name=value, or JSON
    handrail answer 1kq0z --cannot "no access"
    pass show site | handrail answer 1kq0z
    """
    from handrail_tui.lines.json_lines import safe_json
    from handrail_tui.sessions.remote import RemoteRun

    id, text = _id_and_text(words)
    run = RemoteRun(id, _IF_NOT_RUNNING)
    question = run.open_one("question", which)
    if question["secret"] and not cannot:
        if text is not None:
            raise click.UsageError("This question asks for a secret. Leave out TEXT: you will be prompted.")
        text = _secret(str(question["needed"]))
    how = "cancelled" if cancel else "declined" if cannot else "resolved" if text is None else "answered"
    run.send("answer", id=question["id"], how=how, text=text or "")
    if as_json:
        click.echo(safe_json({**question, "how": how}))
    else:
        click.echo(f"{wording.answer(how)}: {one_line(reveal(str(question['needed'])), 500)}")
    return 0


def _id_and_text(words: tuple[str, ...]) -> tuple[str, str | None]:
    """What was said to whom. One word alone is the id of a running session, else the text for the only one."""
    from handrail_tui.sessions.remote import is_running

    if len(words) > 2:
        raise click.UsageError("Put the text in quotes.")
    if len(words) == 2:
        return words
    if not words or is_running(words[0]):
        return (words[0] if words else "", None)
    return ("", words[0]) if " " in words[0].strip() else (words[0], None)


def _secret(needed: str) -> str:
    if sys.stdin.isatty():
        words = one_line(reveal(needed), 500)
        return str(click.prompt(words, hide_input=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")
