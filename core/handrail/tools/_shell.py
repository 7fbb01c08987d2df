"""What a shell line does, read by a real parser: the words of one simple command, or nothing.

A line that does more than start one program with fixed words has no words here: an operator, a redirection, an
expansion, a glob, an assignment, a comment, a second line, or anything that the parser is not sure about.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_LONGEST: Final = 4_096
"""Bytes of a line that is looked at; a longer one is never a simple command."""

_BARE: Final = re.compile(rb"[\w./:@%+,^=-][\w./:@%+,^~=-]*", re.ASCII)
"""An unquoted word that the shell passes on as it is: no glob, brace, tilde, backslash or dollar sign."""

_DOUBLE: Final = re.compile(rb'"[^"$`\\!\x00-\x1f]*"')
_SINGLE: Final = re.compile(rb"'[^'\x00-\x1f]*'")


def simple_command(line: str) -> tuple[str, ...] | None:
    """The words of `line` without their quotes, if it is one program with fixed words; otherwise None."""
    data = line.strip(" \t\n").encode("utf-8", "surrogatepass")
    if not data or len(data) > _LONGEST:
        return None
    root = _parser().parse(data).root_node
    if root.has_error or root.child_count != 1 or root.children[0].type != "command":
        return None
    command, words, end = root.children[0], [], 0
    for node in command.children:
        word = _fixed(node)
        if word is None or data[end : node.start_byte].strip(b" \t"):
            return None
        words.append(word)
        end = node.end_byte
    return tuple(words) if end == len(data) and "=" not in words[0] else None


@cache
def _parser() -> Parser:
    from tree_sitter import Language, Parser  # late: a run without a shell command does not need it
    from tree_sitter_bash import language

    return Parser(Language(language()))


def _fixed(node: Node) -> str | None:
    """The text that the shell makes of a word, if it is the same whatever the variables and files are."""
    text = node.text or b""
    match node.type:
        case "command_name":
            return _fixed(node.children[0]) if node.child_count == 1 else None
        case "word" | "number":
            return text.decode() if _BARE.fullmatch(text) else None
        case "raw_string":
            return _unquoted(text) if _SINGLE.fullmatch(text) else None
        case "string":
            return _unquoted(text) if _DOUBLE.fullmatch(text) else None
        case "concatenation":
            parts = [_fixed(part) for part in node.children]
            return None if None in parts else "".join(part for part in parts if part is not None)
        case _:
            return None


def _unquoted(text: bytes) -> str | None:
    try:
        return text[1:-1].decode()
    except UnicodeDecodeError:
        return None
