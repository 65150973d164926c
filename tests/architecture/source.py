"""The source of the package, parsed once, for the rules."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "src" / "surehold"
FILES = tuple(sorted(SOURCE.rglob("*.py")))

Function = ast.FunctionDef | ast.AsyncFunctionDef


def short(file: Path) -> str:
    """Name a file as the exceptions do: `workspace/writer.py`."""
    return str(file.relative_to(SOURCE))


def layer(file: Path) -> str:
    """Name the folder of the package that holds a file: `workspace`."""
    return file.relative_to(SOURCE).parts[0]


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def line_count(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    """Yield every node of these kinds with its file."""
    for file in FILES:
        yield from ((file, node) for node in ast.walk(tree_of(file)) if isinstance(node, kinds))


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for file, node in nodes(ast.ClassDef):
        assert isinstance(node, ast.ClassDef)
        yield file, node


def functions() -> Iterator[tuple[Path, Function]]:
    for file, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield file, node


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield every module that a module imports, and everything that it takes from one, by its full name."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                pass


@cache
def importers() -> Mapping[Path, frozenset[Path]]:
    """Map each module to the modules that import it."""
    found: dict[str, set[Path]] = defaultdict(set)
    for file in FILES:
        for name in imported(tree_of(file)):
            found[name].add(file)
    return {file: frozenset(found[_dotted(file)] - {file}) for file in FILES}


def _dotted(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
