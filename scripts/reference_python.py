"""The Python names of the reference, read from the source: what a reader would see there, without running it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from reference_text import cell, code, line, signature_block

import surehold
from surehold.library.families import FAMILY_TOOLS, NAMESPACES, load_tool
from surehold.library.tool_methods import SESSION_METHODS

SOURCE = Path(__file__).parents[1] / "src/surehold"
_SESSION_TOOLS = SOURCE / "library/tool_methods.pyi"
_TOOL_METHODS = {
    load_tool(home).method: load_tool(home).name
    for family, homes in FAMILY_TOOLS.items()
    if family not in NAMESPACES
    for home in homes
}
"""The methods of a session that are tools, and what a model calls each."""
_EVERYDAY = {
    "Session": (*_TOOL_METHODS, *SESSION_METHODS),
    "Workspace": ("session", "run", "changes", "undo", "redo", "recover", "close"),
}
"""What programs use; the other public methods are listed below them."""
_PARTS = {
    "Session": (
        ("library/session.py", "AgentSession"),
        ("library/tool_methods.pyi", "ToolMethods"),
        ("workspace/session.py", "Session"),
    ),
    "Workspace": (("library/workspace.py", "AgentWorkspace"), ("workspace/workspace.py", "Workspace")),
}
"""Public classes that `open_workspace` and `session` return in a fuller form: its parts, the nearest first."""
_ADAPTERS = ("openai_agents", "anthropic", "langchain", "deepagents", "pydantic_ai", "google_adk", "functions")
_RETURNED = (
    ("workspace/proposal.py", "FileReceipt"),
    *(("stores/base.py", name) for name in ("Entry", "Call", "Change")),
)
"""What public values hold and no one makes; results of tools are on the page of wire shapes."""
_FIRST = (
    *("open_workspace", "Workspace", "Session", "tools_for", "dispatch", "Settings", "Limits", "SureholdError"),
    *("ChangeView", "RunReceipt", "Receipt"),
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.ClassDef | Function


def python_page() -> str:
    """Return the page of every public Python name."""
    names = (*_FIRST, *(name for name in surehold.__all__ if name not in _FIRST))
    parts = [_HEAD, *(_name_section(name) for name in names), *_aio_sections(), *_namespace_sections()]
    parts += [_adapters_section(), _INSIDE]
    for file, name in _RETURNED:
        parts += _section(_class(SOURCE / file, name), name, level="###")
    return "\n".join(parts)


_HEAD = """\
# Python

Everything here is importable from `surehold`, is typed (`py.typed`), and is kept ([stability](../stability.md)). [The start
page](../start/python.md) shows it at work; [the adapters](../frameworks.md) put it into frameworks. Errors are on
[their own page](errors.md).

What a tool returns is on the page of [wire shapes](wire.md), in snake_case here. Every result of a change has `sha256`, the proof for
the next change of that file, and `change_id`, which undoes it; of a patch `sha256` is a mapping, by path.
"""
_INSIDE = """\
## Inside of these

What the values above hold. Programs read their fields; they are not made, and not imported from `surehold`.
"""


def _name_section(name: str) -> str:
    home = vars(surehold)["_HOMES"][name]
    if name in _PARTS:
        return _parted_section(name)
    file = SOURCE / f"{home.replace('.', '/')}.py"
    return "\n".join(_section(_find(file, name), name, file=file))


def _section(node: Node, name: str, *, level: str = "##", file: Path | None = None) -> Iterator[str]:
    yield f"{level} {name}\n"
    if not isinstance(node, ast.ClassDef):
        yield signature_block(_signature(node, name))
    yield _doc(node) + "\n"
    if isinstance(node, ast.ClassDef):
        yield from _field_table(node, file)
        yield from (_method(method, name) for method in _methods(node).values())


def _parted_section(name: str) -> str:
    methods = dict[str, Function]()
    for file, part in reversed(_PARTS[name]):
        methods |= _methods(_class(SOURCE / file, part))
    everyday = _EVERYDAY[name]
    rows = [f"## {name}\n", _doc(_class(SOURCE / _PARTS[name][0][0], _PARTS[name][0][1])) + "\n"]
    rows += [_method(methods[one], name) for one in everyday]
    rows += [
        f"### {name}: for front ends and adapters\n",
        "What the tools and front ends are built on. These may change in a minor version.\n",
    ]
    others = sorted(set(methods) - set(everyday) - set(NAMESPACES))
    rows += [f"- `{_signature(methods[one], one)}`\\\n  {line(_doc(methods[one]))}" for one in others]
    return "\n".join([*rows, ""])


def _aio_sections() -> Iterator[str]:
    page = SOURCE / "aio.py"
    text = ast.get_docstring(_tree(page)) or ""
    yield "## surehold.aio\n"
    yield text + "\n"
    yield f"Names: {', '.join(f'`{name}`' for name in _listed_names(page))}. An `AsyncSession` has every method of a session, awaitable; a turn is `async with session.turn(…)`, and an approver may be a coroutine function.\n"


def _adapters_section() -> str:
    """Return what the module of each framework offers; what they share is their own business."""
    rows = ["## surehold.adapters\n", _doc(_tree(SOURCE / "adapters/__init__.py")) + "\n"]
    for name in _ADAPTERS:
        tree = _tree(SOURCE / f"adapters/{name}.py")
        rows += [f"### surehold.adapters.{name}\n", _doc(tree) + "\n"]
        for node in (one for one in tree.body if isinstance(one, Node) and not one.name.startswith("_")):
            made = node if not isinstance(node, ast.ClassDef) else _constructor(node)
            shown = _signature(made, node.name).removesuffix(" -> None") if made else node.name
            rows.append(f"- `{shown}`\\\n  {line(_doc(node))}")
        rows.append("")
    return "\n".join(rows)


def _constructor(node: ast.ClassDef) -> Function | None:
    return next((one for one in node.body if isinstance(one, Function) and one.name == "__init__"), None)


def _namespace_sections() -> Iterator[str]:
    for family, name in NAMESPACES.items():
        yield f"## session.{family}\n"
        yield f"The tools of the family `{family}`, for a session.\n"
        yield from (_method(method, f"session.{family}") for method in _methods(_class(_SESSION_TOOLS, name)).values())


def _method(node: Function, owner: str) -> str:
    text = f"### {owner}.{node.name}\n\n{signature_block(_signature(node, node.name))}\n{_doc(node)}\n"
    tool = _TOOL_METHODS.get(node.name, "") if owner == "Session" else node.name if owner.startswith("session.") else ""
    if not tool:
        return text
    anchor = f"{tool.lower()}-claude" if owner == "session.claude" else tool.lower()
    link = f"[What its arguments mean](tools.md#{anchor}), [what it returns](wire.md#result-of-{anchor})"
    return f"{text}\n{link}; names are in snake_case here.\n"


def _field_table(node: ast.ClassDef, file: Path | None = None) -> Iterator[str]:
    rows = [row for part in _with_bases(node, file) for row in _fields(part)]
    if rows:
        yield "| field | type | default | |"
        yield "|---|---|---|---|"
        yield from (
            f"| `{name}` | {code(kind)} | {code(default)} | {cell(text)} |" for name, kind, default, text in rows
        )
        yield ""


def _with_bases(node: ast.ClassDef, file: Path | None) -> Iterator[ast.ClassDef]:
    """Yield the classes of the same file that a class is made of, the farthest first, and the class."""
    for base in node.bases if file else ():
        if isinstance(base, ast.Name) and file and base.id.startswith("_"):
            yield from _with_bases(_class(file, base.id), file)
    yield node


def field_texts(cls: type) -> dict[str, str]:
    """Return what the source says below each field of a class, and of those that it is made of."""
    found = dict[str, str]()
    for one in reversed(cls.__mro__):
        if one.__module__.startswith("surehold."):
            file = SOURCE / f"{one.__module__.removeprefix('surehold.').replace('.', '/')}.py"
            found |= {name: text for name, _, _, text in _fields(_class(file, one.__name__)) if text}
    return found


def entry_fields() -> list[str]:
    """Return the names of what the log says of an entry as JSON."""
    node = _find(SOURCE / "front/shared/ledger_json.py", "entry_record")
    made = next(one.value for one in node.body if isinstance(one, ast.Return))
    assert isinstance(made, ast.Dict)
    return [str(ast.literal_eval(key)) for key in made.keys if key is not None]


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, str, str]]:
    for one, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and not one.target.id.startswith("_"):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield one.target.id, _type(one.annotation), ast.unparse(one.value) if one.value else "", str(text)


def _methods(node: ast.ClassDef) -> dict[str, Function]:
    return {one.name: one for one in node.body if isinstance(one, Function) and not one.name.startswith("_")}


def _signature(node: Function, name: str) -> str:
    if any(isinstance(one, ast.Name) and one.id in {"property", "cached_property"} for one in node.decorator_list):
        return f"{name}: {_type(node.returns)}"
    words, spec = list[str](), node.args
    plain = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(plain) - len(spec.defaults)) + list(spec.defaults)
    words += [
        _parameter(one, default) for one, default in zip(plain, defaults, strict=True) if one.arg not in {"self", "cls"}
    ]
    if spec.vararg:
        words.append(f"*{_parameter(spec.vararg, None)}")
    elif spec.kwonlyargs:
        words.append("*")
    words += [_parameter(one, default) for one, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
    if spec.kwarg:
        words.append(f"**{_parameter(spec.kwarg, None)}")
    return f"{name}({', '.join(words)}) -> {_type(node.returns)}"


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_type(one.annotation)}" if one.annotation else ""
    return f"{one.arg}{kind}{f' = {ast.unparse(default)}' if default else ''}"


def _type(node: ast.expr | None) -> str:
    """Return a type as it is written, without the quotes that only the interpreter needs."""
    if node is None:
        return "None"
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    for name, defined_as in vars(surehold)["_CLASSES"].items():
        text = re.sub(rf"\b{defined_as}\b", name, text)
    return re.sub(r"(?<!\[)'([A-Z]\w+(?: \| \w+)*)'(?!\])", r"\1", text)


def _doc(node: Node | ast.Module) -> str:
    return ast.get_docstring(node) or ""


def _listed_names(file: Path) -> list[str]:
    for node in _tree(file).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    return []


def _class(file: Path, name: str) -> ast.ClassDef:
    node = _find(file, name)
    assert isinstance(node, ast.ClassDef)
    return node


def _find(file: Path, name: str) -> Node:
    return next(node for node in _tree(file).body if isinstance(node, Node) and node.name == name)


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
