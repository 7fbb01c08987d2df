"""What «always this session» would allow for a shell command (rule H5).

By default exactly this command. A pattern that lets operands vary is given only to commands of the table below: they
read, test the project, or add to its repository, and whatever their operands are, nothing is lost, sent or named to be
run. Their flags never vary, and a flag that the table does not know makes the command exact: it may write a file, run a
program or force something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from handrail.tools._shell import simple_command

_DIFF: Final = (
    r"--stat --shortstat --numstat --name-only --name-status --summary --check -p -u --patch --no-patch -s "
    r"-w -b --ignore-all-space --ignore-space-change --word-diff --color=never --no-color -M -C -U\d{1,3} "
    r"--unified=\d{1,3} --no-ext-diff --no-textconv --minimal --patience --histogram"
)
_LOG: Final = (
    rf"{_DIFF} --oneline --graph --decorate --all --follow --reverse --merges --no-merges --first-parent "
    r"-n -\d{1,5} -n\d{1,5} --max-count=\d{1,5} --abbrev-commit"
)
_GREP: Final = (
    r"-r -n -i -l -w -c -v -F -E -o -h -H -A\d+ -B\d+ -C\d+ -A -B -C -rn -nr -rl -in -ni -rni -rin -rnE"
)

_FLAGS: Final = {
    "cargo test": "--release --lib --bins --all --workspace --all-targets --all-features --no-default-features "
    "-q --quiet -v --verbose --locked --offline --no-run --no-fail-fast",
    "cat": "-n",
    "git add": "-v",
    "git blame": "-w -s -e -M -C",
    "git branch": "-a -r -v -vv --all --remotes --list --show-current",
    "git commit": "-m -a -am -q",
    "git diff": f"{_DIFF} --cached --staged",
    "git fetch": "-q -v --all",
    "git log": _LOG,
    "git ls-files": "-m -o -c -d -s --modified --others --cached --deleted --stage --exclude-standard",
    "git show": _LOG,
    "git tag": "-l --list",
    "git status": "-s -b -sb --short --branch --porcelain --ignored --long",
    "go doc": "-all -short -src -u",
    "go vet": "-v",
    "grep": _GREP,
    "head": r"-n -c -n\d+ -\d+ -q",
    "ls": "-l -a -A -h -t -r -S -1 -d -F -R -la -al -lh -lah -lt -ltr",
    "npm ls": r"--all --json --depth=\d+ --omit=dev",
    "pip show": "-f --files -q --quiet",
    "rg": r"-n -i -l -w -c -v -F -s -S -A\d+ -B\d+ -C\d+ -A -B -C --files --hidden --no-heading",
    "stat": "-t",
    "tail": r"-n -c -n\d+ -\d+ -q",
    "wc": "-l -w -c -m",
}
"""The commands with operands that may vary, each with the flags that may be approved with it. A flag is here only if it
neither writes, runs, sends nor forces anything, whatever stands behind it."""

_REFUSED: Final = {
    "git add": "--force",
    "git branch": "-D",
    "git commit": "--amend",
    "git fetch": "--upload-pack=other.sh",
    "git tag": "-d",
    "cat": "-A",
    "grep": "-f other.txt",
    "ls": "--hyperlink",
    "rg": "--pre=other.sh",
}
"""A flag that a pattern does not cover, as the example; otherwise `--output=other.txt`."""

_OPERAND: Final = re.compile(r"[^\x00-\x1f]+")
_NAME: Final = re.compile(r"\.|\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)
_NAMES_ONLY: Final = ("git branch", "git fetch", "git tag")
"""Commands whose operands must be plain names: an address may name a program (`ext::`), and `+a:b` forces."""


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """What would be allowed, with a command that it would cover and one that would ask again. Both are empty for a
    pattern that covers only this very command."""

    text: str
    covers: str = ""
    asks_again: str = ""


def pattern_of(command: str, inside: Callable[[str], bool]) -> CommandPattern:
    """`bash: git diff --stat *` for a command of the table, otherwise `bash exactly: …`.

    `inside(operand)` says whether an operand, read as a path, lies in the working folder. The two forms begin
    differently, so that no command can look like a pattern.
    """
    words = simple_command(command) or ()
    name = next((name for name in _names(words) if name in _FLAGS), None)
    if name is None:
        return CommandPattern(f"bash exactly: {command}")
    flags, operands = _sorted(words[len(name.split()) :])
    known = [re.compile(flag) for flag in _FLAGS[name].split()]
    if not all(any(each.fullmatch(flag) for each in known) for flag in flags):
        return CommandPattern(f"bash exactly: {command}")
    fits = _NAME if name in _NAMES_ONLY else _OPERAND
    if not all(fits.fullmatch(each) and inside(each) for each in operands):
        return CommandPattern(f"bash exactly: {command}")
    start = " ".join([name, *flags])
    refused = _REFUSED.get(name, "--output=other.txt")
    return CommandPattern(f"bash: {start} *", f"{start} other.txt", f"{start} {refused} other.txt")


def _names(words: Sequence[str]) -> Iterator[str]:
    """The command's name with its subcommand, and by itself."""
    if len(words) > 1:
        yield " ".join(words[:2])
    if words:
        yield words[0]


def _sorted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Flags and operands. Behind `--` there are only operands, for some programs; for others they are flags again, so
    one that looks like a flag stays a flag."""
    flags = [word for word in words if word.startswith("-") and word != "--"]
    return flags, [word for word in words if not word.startswith("-")]
