"""Small wrong changes of a module, and a fixed sample of them: `make mutate` asks whether a test notices each one."""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

WEIGHTS = {"workspace": 3, "disk": 3, "stores": 3, "text": 1}
"""The packages that are mutated; a mutant of a package with weight 3 is drawn three times as often."""

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_EMPTY_VALUES = {"str": '""', "bytes": 'b""', "tuple": "()", "list": "[]", "dict": "{}"}
_NO_CONTEXT = '__import__("contextlib").nullcontext()'


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One wrong change of one module."""

    path: str
    """Relative to the package."""
    scope: str
    """The function or class it is in; empty at the top of the module."""
    line: int
    last_line: int
    statement_line: int
    """Where the statement begins that it is a part of."""
    start: int
    end: int
    """Its place, in bytes."""
    original: str
    mutated: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {_one_line(self.original)}  ->  {_one_line(self.mutated)}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is, wherever in its function it is."""
        return self.path, self.scope, _one_line(self.original), _one_line(self.mutated)

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.mutated.encode() + source[self.end :]


def find_mutants(path: str, source: bytes) -> list[Mutant]:
    finder = _MutantFinder(path, source)
    finder.visit(ast.parse(source))
    return finder.found


def all_mutants(package: Path) -> Iterator[Mutant]:
    for name in WEIGHTS:
        for file in sorted((package / name).rglob("*.py")):
            yield from find_mutants(str(file.relative_to(package)), file.read_bytes())


def draw_sample(mutants: Sequence[Mutant], *, seed: int, count: int) -> list[Mutant]:
    """Draw mutants by lot. A larger sample contains the smaller one, and a change of one file leaves the others' lots."""
    seen: dict[tuple[str, str, str, str], int] = {}
    lots = list[tuple[float, int]]()
    for index, one in enumerate(mutants):
        seen[one.key] = seen.get(one.key, 0) + 1
        digest = hashlib.sha256(repr((seed, one.key, seen[one.key])).encode()).digest()
        lot = int.from_bytes(digest[:8]) / (1 << 64)
        lots.append((-(lot ** (1 / WEIGHTS[one.path.split("/")[0]])), index))
    return [mutants[index] for _, index in sorted(lots)[:count]]


class _MutantFinder(ast.NodeVisitor):
    """Walks through a module; docstrings, messages, annotations, decorators and assertions are left alone.

    So are protocols, of which nothing runs, and constants with a name in capitals: the value of a limit is a choice, which no test should repeat.
    """

    def __init__(self, path: str, source: bytes) -> None:
        self.found = list[Mutant]()
        self._path, self._source = path, source
        starts = [0]
        for row in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(row))
        self._line_starts = starts
        self._scope = list[str]()
        self._returns: ast.expr | None = None
        self._statement_line = 0

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self._statement_line = node.lineno
        super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # the name that ast calls
        outer, self._returns = self._returns, node.returns
        self._scope.append(node.name)
        for child in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if child is not None:
                self.visit(child)
        self._scope.pop()
        self._returns = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(self._text(base) == "Protocol" for base in node.bases):
            return
        self._scope.append(node.name)
        for child in node.body:
            self.visit(child)
        self._scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not _is_limit(node.target):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(_is_limit(target) for target in node.targets):
            return
        if all(isinstance(target, ast.Attribute) for target in node.targets) and self._scope[-1:] != ["__init__"]:
            self._add(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and self._text(node.value.func) != "assert_never":
            self._add(node, "pass")
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # an assertion about what is zipped
            self.visit(node.value)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if isinstance(item.context_expr, ast.Call) and item.optional_vars is None:
                self._add(item.context_expr, _NO_CONTEXT)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if self._text(node.test) != "TYPE_CHECKING":
            self._force(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._force(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._add(node.test, "False")
            self.visit(node.test)
        for child in (*node.body, *node.orelse):
            self.visit(child)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._force(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._add(node.value, self._other_value(node.value))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [self._operand(one) for one in (node.left, *node.comparators)]
        for changed in range(len(node.ops)):
            row = operands[0]
            for index, (operator, operand) in enumerate(zip(node.ops, operands[1:], strict=True)):
                row += f" {_COMPARISONS[type(operator)][index == changed]} {operand}"
            self._add(node, f"({row})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        operands = [f"({self._text(one)})" for one in node.values]
        joined, other = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
        self._add(node, f"({other.join(operands)})")
        for index in range(len(operands)):
            self._add(node, f"({joined.join(operands[:index] + operands[index + 1 :])})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, str(node.value + 1))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave a message alone: its parts have no exact place in the source."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave an assertion alone: nothing depends on it."""

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard is not None:
            self._force(node.guard)
            self.visit(node.guard)
        for child in node.body:
            self.visit(child)

    def _force(self, test: ast.expr) -> None:
        named = any(isinstance(one, ast.NamedExpr) for one in ast.walk(test))
        for value in ("True", "False"):
            self._add(test, f"(({self._text(test)}), {value})[1]" if named else value)

    def _other_value(self, value: ast.expr) -> str:
        text = self._text(value)
        match ast.unparse(self._returns).split("[")[0] if self._returns else "":
            case "bool":
                return f"(not ({text}))"
            case "int":
                return f"(({text}) + 1)"
            case name:
                return _EMPTY_VALUES.get(name, "None")

    def _operand(self, node: ast.expr) -> str:
        """Return the text of one side of a comparison, in the parentheses that it needs and that are not a part of it."""
        bare = isinstance(node, ast.Compare | ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr)
        return f"({self._text(node)})" if bare else self._text(node)

    def _text(self, node: ast.expr) -> str:
        start, end = self._place(node)
        return self._source[start:end].decode()

    def _place(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._line_starts[node.lineno - 1] + node.col_offset, self._line_starts[last - 1] + column

    def _add(self, node: ast.stmt | ast.expr, mutated: str) -> None:
        start, end = self._place(node)
        original = self._source[start:end].decode()
        if original == mutated:
            return
        self.found.append(
            Mutant(
                path=self._path,
                scope=".".join(self._scope),
                line=node.lineno,
                last_line=node.end_lineno or node.lineno,
                statement_line=self._statement_line,
                start=start,
                end=end,
                original=original,
                mutated=mutated,
            )
        )


def _is_limit(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(_is_limit(one) for one in target.elts)
    return isinstance(target, ast.Name) and target.id.isupper()


def _one_line(text: str) -> str:
    return " ".join(text.split())
