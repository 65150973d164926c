"""Write what is generated in the package: the stubs for type checkers, and the list of the tools."""

import json
import subprocess
import sys
import types
from collections import defaultdict
from collections.abc import Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import surehold
from surehold.front.cli.command import COMMAND_MODULES, load_command
from surehold.library.families import FAMILIES, FAMILY_TOOLS, NAMESPACES, load_tool, tools_of
from surehold.library.session import AgentSession
from surehold.library.tool_methods import method_signature
from surehold.library.workspace import AgentWorkspace
from surehold.tools.listing import listing_data
from surehold.tools.spec import AnyTool
from surehold.workspace.session import Session

OWN_METHODS = ("read", "page", "create", "write", "edit", "delete", "move", "apply", "restore", "undo", "redo")
"""Methods of a session that are no tools."""
SOURCE = Path(__file__).parents[1] / "src/surehold"


class StubWriter:
    """Spells types, and collects what must be imported for them."""

    def __init__(self) -> None:
        self.imports = defaultdict[str, set[str]](set)

    def type_source(self, one: Any) -> str:
        origin, inner = get_origin(one), get_args(one)
        if one in (None, type(None)):
            return "None"
        if origin in (Union, types.UnionType):
            return " | ".join(map(self.type_source, inner))
        if origin is Literal:
            self.imports["typing"].add("Literal")
            return f"Literal[{', '.join(map(repr, inner))}]"
        if origin is not None:
            return f"{self.type_source(origin)}[{', '.join(map(self.type_source, inner))}]"
        if one.__module__ != "builtins":
            self.imports[one.__module__].add(one.__name__)
        return one.__name__

    def method_source(self, tool: AnyTool, name: str, *, awaited: bool = False) -> str:
        sentence = " ".join(tool.description.partition("\n\n")[0].split())
        return self._function_source(method_signature(tool), name, sentence, awaited=awaited)

    def own_method_source(self, method: FunctionType) -> str:
        """Return a method that is written by hand, awaited."""
        hints, plain = get_type_hints(method), signature(method)
        rows = [row.replace(annotation=hints.get(row.name, Any)) for row in plain.parameters.values()]
        typed = plain.replace(parameters=rows, return_annotation=hints["return"])
        return self._function_source(typed, method.__name__, str(method.__doc__).partition("\n")[0], awaited=True)

    def _function_source(self, signature: Signature, name: str, sentence: str, *, awaited: bool) -> str:
        words, marked = ["self"], False
        for row in list(signature.parameters.values())[1:]:
            if row.kind is Parameter.KEYWORD_ONLY and not marked:
                words, marked = [*words, "*"], True
            default = "" if row.default is Parameter.empty else f" = {row.default!r}"
            star = "*" if row.kind is Parameter.VAR_POSITIONAL else ""
            marked |= bool(star)
            words.append(f"{star}{row.name}: {self.type_source(row.annotation)}{default}")
        result = self.type_source(signature.return_annotation)
        return (
            f'    {"async " if awaited else ""}def {name}({", ".join(words)}) -> {result}:\n        """{sentence}"""\n'
        )


def methods_stub() -> str:
    """Return the stub of a session's methods, before it is formatted."""
    writer, others = StubWriter(), list[str]()
    direct = {tool.method: tool for family in FAMILIES if family not in NAMESPACES for tool in tools_of(family)}
    body = ["class ToolMethods:", *(writer.method_source(direct[name], name) for name in sorted(direct))]
    for family, name in NAMESPACES.items():
        body += ["    @property", f"    def {family}(self) -> {name}: ..."]
    body += ["class AsyncToolMethods:", "    id: str", "    agent: str", "    turn_id: str"]
    body += [f"    workspace: {writer.type_source(AgentWorkspace)}"]
    body += [writer.method_source(direct[name], name, awaited=True) for name in sorted(direct)]
    body += [writer.own_method_source(getattr(Session, name)) for name in OWN_METHODS]
    body += [writer.own_method_source(AgentSession.notify_compaction)]
    for family, name in NAMESPACES.items():
        body += ["    @property", f"    def {family}(self) -> Async{name}: ..."]
        tools = [writer.method_source(tool, tool.name, awaited=True) for tool in tools_of(family)]
        others += [f"class Async{name}:", *tools]
    body += others
    for family, name in NAMESPACES.items():
        body += [f"class {name}:", *(writer.method_source(tool, tool.name) for tool in tools_of(family))]
    head = '"""The methods of a session, one for each tool. Written by scripts/write_stubs.py; do not edit."""'
    writer.imports["collections.abc"].add("Callable")
    writer.imports["contextvars"].add("ContextVar")
    body += [
        "class ToolNamespace: ...",
        "CANCELLED: ContextVar[Callable[[], bool]]",
        "SESSION_METHODS: tuple[str, ...]",
    ]
    return "\n".join([head, "", *import_lines(writer.imports), "", *body])


def public_stub() -> str:
    """Return the stub of the public names, before it is formatted."""
    homes, classes = vars(surehold)["_HOMES"], vars(surehold)["_CLASSES"]
    spelled = {name: f"{classes[name]} as {name}" if name in classes else name for name in homes}
    imports = {f"surehold.{home}": {spelled[name] for name in homes if homes[name] == home} for home in homes.values()}
    modules = [f"from surehold import {name} as {name}" for name in vars(surehold)["_MODULES"]]
    head = '"""The public names. Written by scripts/write_stubs.py; do not edit."""'
    return "\n".join(
        [head, "", *modules, *import_lines(imports), "", f"__all__ = {surehold.__all__}", "", "__version__: str"]
    )


def import_lines(imports: Mapping[str, set[str]]) -> list[str]:
    return [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(imports.items())]


STUBS = {SOURCE / "__init__.pyi": public_stub, SOURCE / "library/tool_methods.pyi": methods_stub}


def tool_listings() -> str:
    """Return what is known of every tool without loading it."""
    homes = dict.fromkeys(home for family in FAMILIES for home in FAMILY_TOOLS[family])
    rows = {home: listing_data(load_tool(home)) for home in homes}
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


LISTINGS = SOURCE / "library/tools.json"


def command_sentences() -> str:
    """Return what each command of the command line does, for the overview, which loads none of them."""
    rows = {name: load_command(name).help for name in COMMAND_MODULES}
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


COMMANDS = SOURCE / "front/cli/commands.json"


if __name__ == "__main__":
    LISTINGS.write_text(tool_listings(), encoding="utf-8")
    COMMANDS.write_text(command_sentences(), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    for stub, source in STUBS.items():
        stub.write_text(source(), encoding="utf-8")
        subprocess.run([*ruff, "check", "--quiet", "--select", "I", "--fix", str(stub)], check=True)
        subprocess.run([*ruff, "format", "--quiet", str(stub)], check=True)
