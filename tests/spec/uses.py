"""Finds `requirement(...)` in test sources without importing them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MARK = "requirement"
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One id named by one test."""

    id: str
    where: str
    """file:line"""


def uses_below(tests: Path) -> tuple[Use, ...]:
    """List every use in every test file and suite, in order."""
    return tuple(
        use for file in sorted(tests.rglob("*.py")) for use in uses_in(file.read_text(encoding="utf-8"), file, tests)
    )


def uses_in(source: str, file: Path, tests: Path) -> Iterator[Use]:
    """Yield the ids of decorators, of `pytestmark`, and of `marks=` in `pytest.param`; they must be plain strings."""
    for call in _marks(ast.parse(source, filename=str(file))):
        where = f"{file.relative_to(tests.parent)}:{call.lineno}"
        for argument in call.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise TypeError(f"{where}: name requirements as plain strings, so that they can be found.")
            yield Use(id=argument.value, where=where)


def _marks(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if _is_collected(node):
                yield from filter(_is_mark, _calls(node.decorator_list))
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield from filter(_is_mark, _calls([value]))
            case ast.keyword(arg="marks", value=value):
                yield from filter(_is_mark, _calls([value]))
            case _:
                pass


def _is_collected(node: _Definition) -> bool:
    return node.name.startswith(("test", "Test")) or isinstance(node, ast.ClassDef)


def _calls(nodes: list[ast.expr]) -> Iterator[ast.Call]:
    for node in nodes:
        elements = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        yield from (element for element in elements if isinstance(element, ast.Call))


def _is_mark(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == _MARK
