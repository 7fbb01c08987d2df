"""What import-linter does not see: a module named `_so` is used only inside its own package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import handrail_tui

ROOT = Path(handrail_tui.__file__).parent


def imports(file: Path) -> Iterator[str]:
    """Each module that `file` imports, and each name that it imports from a module, with dots."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module)):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Import():
                yield from (alias.name for alias in node.names)


def test_private_modules_stay_inside_their_package() -> None:
    private = {
        ".".join(("handrail_tui", *file.relative_to(ROOT).with_suffix("").parts))
        for file in ROOT.rglob("_*.py")
        if not file.stem.startswith("__")
    }
    assert private
    wrong = []
    for file in ROOT.rglob("*.py"):
        package = ".".join(("handrail_tui", *file.relative_to(ROOT).parent.parts))
        for name in imports(file):
            for module in private:
                owner = module.rpartition(".")[0]
                used = name == module or name.startswith(module + ".")
                if used and not (package == owner or package.startswith(owner + ".")):
                    wrong.append(f"{file.relative_to(ROOT)} imports {module}")
    assert wrong == []


def test_the_root_holds_few_loose_files() -> None:
    assert len(list(ROOT.glob("*.py"))) <= 8
