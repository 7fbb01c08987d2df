"""Markdown of a model, as lines of content. Calm: weight and indentation before colour, nothing boxed.

Only what CommonMark and tables need; HTML stands as it was written. A link shows where it leads.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode as Node
from textual.content import Content
from textual.highlight import HighlightTheme, highlight

_HIGHLIGHT_LIMIT: Final = 20_000
_STYLES: Final = {"strong": "bold", "em": "italic", "s": "strike"}
_GAP: Final = "  "


class _CodeTheme(HighlightTheme):
    """Code in few colours: words of the language, texts and numbers, comments."""

    STYLES = {  # noqa: RUF012 - as in the base class
        ("Comment",): "$faint italic",
        ("Keyword",): "$decision",
        ("Literal", "Number"): "$waiting",
        ("Literal", "String"): "$accepted",
        ("Name", "Class"): "bold",
        ("Name", "Decorator"): "$dim",
        ("Name", "Function"): "$person",
        ("Name", "Tag"): "$person",
        ("Operator", "Word"): "$decision",
        ("Generic", "Deleted"): "$rejected",
        ("Generic", "Inserted"): "$accepted",
        ("Generic", "Subheading"): "$faint",
    }


Part: TypeAlias = "tuple[str, str]"


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown_lines(text: str, width: int) -> list[Content]:
    """`text`, which was cleaned before, laid out in `width` cells."""
    return _blocks(Node(_parser().parse(text)).children, max(8, width))


def _blocks(nodes: list[Node], width: int, *, tight: bool = False) -> list[Content]:
    """Blocks one below the other, with air between them unless they belong to a tight list."""
    lines: list[Content] = []
    for node in nodes:
        block = _block(node, width)
        if lines and block and not tight:
            lines.append(Content(""))
        lines += block
    return lines


def _block(node: Node, width: int) -> list[Content]:
    match node.type:
        case "paragraph":
            return _inline(node).wrap(width)
        case "heading":
            return _inline(node, "bold underline" if node.tag == "h1" else "bold").wrap(width)
        case "bullet_list":
            return _list(node, ["• "] * len(node.children), width)
        case "ordered_list":
            first = int(node.attrs.get("start", 1))
            marks = [f"{n}. " for n in range(first, first + len(node.children))]
            return _list(node, [mark.rjust(len(marks[-1])) for mark in marks], width)
        case "blockquote":
            quoted = _blocks(node.children, width - 2)
            return [Content.assemble(("▎ ", "$faint"), line.stylize_before("$dim")) for line in quoted]
        case "fence" | "code_block":
            return _code(node.content.rstrip("\n"), node.info.split()[0] if node.info.split() else "", width)
        case "hr":
            return [Content.styled("─" * min(width, 24), "$faint")]
        case "table":
            return _table(node, width)
        case _:
            return (
                _blocks(node.children, width) if node.children else Content(node.content.rstrip()).wrap(width)
            )


def _list(node: Node, marks: list[str], width: int) -> list[Content]:
    lines: list[Content] = []
    loose = any(
        child.type == "paragraph" and not child.hidden for item in node.children for child in item.children
    )
    for mark, item in zip(marks, node.children, strict=True):
        body = _blocks(item.children, max(8, width - len(mark)), tight=not loose) or [Content("")]
        if loose and lines:
            lines.append(Content(""))
        for n, line in enumerate(body):
            lines.append(Content.assemble((" " * len(mark) if n else mark, "$dim"), line))
    return lines


def _code(code: str, language: str, width: int) -> list[Content]:
    """Code keeps its own lines; one that is too long continues below."""
    code = code.expandtabs(4)
    room = width - 2
    content = Content(code)
    if language and len(code) <= _HIGHLIGHT_LIMIT:
        content = highlight(code, language=language, theme=_CodeTheme)
    lines: list[Content] = []
    for line in content.split("\n", allow_blank=True):
        lines += line.fold(room) if line.plain else [line]
    return [_on_panel(line, width) for line in lines]


def _on_panel(line: Content, width: int) -> Content:
    return (" " + line.pad_right(max(0, width - 1 - line.cell_length))).stylize_before("on $panel")


def _table(node: Node, width: int) -> list[Content]:
    """Columns as wide as they need, the widest ones narrowed until the table fits; cells wrap."""
    rows = [
        [_inline(cell, "bold" if cell.type == "th" else "") for cell in row.children]
        for part in node.children
        for row in part.children
    ]
    columns = max(map(len, rows))
    rows = [row + [Content("")] * (columns - len(row)) for row in rows]
    widths = [max(3, *(row[n].cell_length for row in rows)) for n in range(columns)]
    room = max(columns * 3, width - len(_GAP) * (columns - 1))
    while sum(widths) > room:
        widest = widths.index(max(widths))
        if widths[widest] <= 3:
            break
        widths[widest] -= max(1, min(sum(widths) - room, widths[widest] // 8))
    lines: list[Content] = []
    for n, row in enumerate(rows):
        cells = [cell.wrap(size) for cell, size in zip(row, widths, strict=True)]
        for y in range(max(map(len, cells))):
            parts = [(cell[y] if y < len(cell) else Content("")) for cell in cells]
            padded = [
                part.pad_right(max(0, size - part.cell_length))
                for part, size in zip(parts, widths, strict=True)
            ]
            lines.append(Content(_GAP).join(padded).truncate(width, ellipsis=True))
        if n == 0:
            lines.append(Content.styled("─" * min(width, sum(widths) + len(_GAP) * (columns - 1)), "$line"))
    return lines


def _inline(node: Node, style: str = "") -> Content:
    parts: list[Part] = []
    for child in node.children:
        _spans(child, style, parts)
    return Content.assemble(*parts)


def _spans(node: Node, style: str, parts: list[Part]) -> None:
    match node.type:
        case "inline":
            for child in node.children:
                _spans(child, style, parts)
        case "softbreak":
            parts.append((" ", style))
        case "hardbreak":
            parts.append(("\n", style))
        case "code_inline":
            parts.append((node.content, f"{style} $tool".strip()))
        case "strong" | "em" | "s":
            for child in node.children:
                _spans(child, f"{style} {_STYLES[node.type]}".strip(), parts)
        case "link" | "image":
            _link(node, style, parts)
        case _:
            parts.append((node.content, style))


def _link(node: Node, style: str, parts: list[Part]) -> None:
    """The words of a link and, unless they are the same, where it leads."""
    where = str(node.attrs.get("href") or node.attrs.get("src") or "")
    words: list[Part] = []
    for child in node.children:
        _spans(child, f"{style} underline".strip(), words)
    said = "".join(text for text, _ in words) or node.content
    parts.extend(words or [(said, style)])
    if where and where.removeprefix("mailto:") != said:
        parts.append((f" ({where})", f"{style} $dim".strip()))
