"""H5: what «always this session» allows for a shell command."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolbench import Bench

from handrail.scenario import check, load
from handrail.tools.bash import BashTool

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "scenarios"


def pattern(bench: Bench, command: str) -> str | None:
    return bench.preview(BashTool(), command=command).pattern


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("git diff", "bash: git diff *"),
        ("git diff src/a.py", "bash: git diff *"),
        ("git diff --stat HEAD~1", "bash: git diff --stat *"),
        ("git diff HEAD~1 --stat", "bash: git diff --stat *"),
        ("git  diff\t-- 'a b'", "bash: git diff *"),
        ('git log --oneline -n 5 "main..dev"', "bash: git log --oneline -n *"),
        ("git fetch origin main", "bash: git fetch *"),
        ("git branch next", "bash: git branch *"),
        ("git commit -m 'a; b'", "bash: git commit -m *"),
        ("git add src/a.py", "bash: git add *"),
        ("git status --short", "bash: git status --short *"),
        ("grep -rn 'a|b' src", "bash: grep -rn *"),
        ("cargo test parser", "bash: cargo test *"),
        ("ls -la src", "bash: ls -la *"),
        ("git diff\n", "bash: git diff *"),
    ],
)
def test_H5_operands_of_a_command_that_only_reads_may_vary(bench: Bench, command: str, wanted: str) -> None:
    assert pattern(bench, command) == wanted


@pytest.mark.attack
@pytest.mark.parametrize(
    "command",
    [
        "git diff --output=x", "git diff --output x", "git diff --outp=x", "git diff --ext-diff",
        "git diff -O x", "git log --output=x", "git show --textconv x",
        "git grep --open-files-in-pager=sh x", "git grep -Osh x", "git fetch --upload-pack='touch x' .",
        "git fetch ext::sh", "git fetch origin +a:b", "git fetch https://evil/x", "git fetch -p",
        "git fetch --prune origin", "git branch -f a b", "git branch --force a", "git commit --amend",
        "git commit -F x", "git commit --no-verify -m x", "git add -f x", "git add ../x",
        "git tag --delete x", "git pull ext::'sh -c x'", "git push", "git push --force", "git push -f",
        "git push origin +main", "git push origin :main", "git push --mirror",
        "git push --force-with-lease", "git push -d origin x", "git push --receive-pack=x",
        "git branch -D next", "git branch -d x", "git branch -m a b", "git branch --edit-description",
        "git tag -d v1", "git tag -f v1", "git stash clear", "git stash drop", "git stash pop",
        "git restore .", "git clean -fdx", "git reset --hard", "git checkout -- .", "git checkout .",
        "git rm x", "git switch --discard-changes x", "git merge x", "git rebase --exec sh x",
        "git -c core.pager=x diff", "git -C / diff", "git --git-dir=/x log", "git --exec-path=. diff",
        "git config x y", "git bisect run sh x", "git submodule update", "git worktree remove x",
        "git gc --prune=now", "git archive -o x", "git diff ../other/secret",
        "git diff --no-index /etc/passwd x", "cat /etc/passwd", "cat ~/.ssh/id", "ls ..",
        "go vet -vettool=./x", "go vet -vettool ./x", "go build -toolexec x", "go build -o x",
        "go test -exec x", "go run x", "go generate", "go test ./x", "cargo test --config x",
        "cargo --config x test", "cargo build --target-dir x", "cargo test -- --nocapture",
        "cargo test +nightly --manifest-path=x", "cargo run", "cargo install x",
        "npm test --script-shell=x", "npm run build", "npm run build -- --watch", "npm install x",
        "npm ls --prefix=x", "pip install x", "pip --index-url=x install y",
        "pip install --index-url x y", "pip show --log=x", "uv sync", "pytest", "pytest -q x",
        "pytest -p x", "make", "make -f x", "docker run -v /:/x alpine", "kubectl get secrets", "rm x",
        "rm -rf .", "mv a b", "cp a b", "dd if=a of=b", "truncate -s 0 x", "tee x", "ln -s a b",
        "chmod 777 x", "sudo git diff", "env git diff", "xargs git diff", "nohup git diff",
        "time git diff", "exec git diff", "command git diff", "builtin ls", "eval ls", "coproc ls",
        "! ls", "watch ls", "timeout 5 ls", "ssh host ls", "find . -exec rm {} +", "find . -delete",
        "find . -fprint x", "sed -i s/a/b/ x", "sed -n 'w x' y", "sed 1e x", "tar --to-command=x -xf y",
        "tar -xf x --checkpoint-action=exec=x", 'awk \'BEGIN{system("x")}\'', "perl -e x", "python -c x",
        "python x.py", "node -e x", "sh x", "bash -c x", "./git diff", "/tmp/git diff", "ruby -e x",
        "sort -o x y", "sort --compress-program=x y", "rg --pre=x y", "rg --pre x y", "grep -f x y",
        "tail -f x", "curl x", "wget x", "nc x 1", "less x", "man x", "vim x", "zip -T -TT x y",
        "rsync -e x a b", "ls --hyperlink", "A=1 git diff", "PATH=. git diff",
        "GIT_EXTERNAL_DIFF=x git diff", "git diff A=1; ls", "a=(1) ls",
    ],
)  # fmt: skip
def test_H5_what_deletes_forces_writes_or_names_a_program_is_exact(bench: Bench, command: str) -> None:
    preview = bench.preview(BashTool(), command=command)
    assert (preview.pattern, preview.covers) == (f"bash exactly: {command}", "")


@pytest.mark.attack
@pytest.mark.parametrize(
    "tail",
    [
        *("; rm x", "&& rm x", "|| rm x", "| sh", "|& sh", "> x", ">> x", ">| x", "2> x", "&> x", "< x", "<> x"),
        *("$(rm x)", "`rm x`", '"$(rm x)"', "\nrm x", "& rm x", "&", "\\\nrm", "'a'\"`x`\"", "<(rm x)", ">(rm x)"),
        *("$HOME", "${x:=y}", "$((x=1))", "*", "a?", "[ab]", "{a,--output=x}", "~", "~/x", "$'--output=x'", '$"x"'),
        *("# x", "\r", "\x00", "a\\ b", "!x", "<<E\nrm x\nE", "<<< x", "'unclosed", '"unclosed', "\u00a0x", "a\x0bb"),
        *('"a\\\nb"', "'a\nb'", "\u202e", "é", "(x)", "a(b)", "'-'-output=x", '"--output=x"', "-'-output=x'"),
    ],
)  # fmt: skip
def test_H5_a_line_that_does_more_than_one_thing_is_exact(bench: Bench, tail: str) -> None:
    command = f"git diff {tail}"
    assert (pattern(bench, command) or "").startswith("bash exactly: git diff")


@pytest.mark.attack
def test_H5_an_operand_that_leads_out_of_the_folder_is_exact(bench: Bench, tmp_path: Path) -> None:
    (bench.cwd / "out").symlink_to("/etc")
    assert pattern(bench, "cat out/passwd") == "bash exactly: cat out/passwd"
    assert pattern(bench, "cat passwd") == "bash: cat *"


def test_H5_the_examples_show_what_a_pattern_covers_and_what_not(bench: Bench) -> None:
    preview = bench.preview(BashTool(), command="git diff --stat a.py")
    assert preview.covers == "git diff --stat other.txt"
    assert preview.asks_again == "git diff --stat --output=other.txt other.txt"
    assert pattern(bench, preview.covers) == preview.pattern
    assert pattern(bench, preview.asks_again) == f"bash exactly: {preview.asks_again}"


@pytest.mark.parametrize("file", sorted(CORPUS.glob("always-*.toml")), ids=lambda file: file.stem)
async def test_H5_the_recorded_cases_ask_again(file: Path) -> None:
    report = await check(load(file))
    assert report.failures == ()
