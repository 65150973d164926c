"""Write the stub of a session's methods from the definitions of the tools."""

import subprocess
import sys
import types
from collections import defaultdict
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from surehold.library.families import FAMILIES, tools_of
from surehold.tools.signature import method_signature
from surehold.tools.spec import AnyTool

STUB = Path(__file__).parents[1] / "src/surehold/library/tool_methods.pyi"
_HEAD = '''"""The methods of a session, one for each tool. Written by scripts/write_stubs.py; do not edit."""'''


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

    def method_source(self, tool: AnyTool) -> str:
        signature = method_signature(tool)
        words, marked = ["self"], False
        for row in list(signature.parameters.values())[1:]:
            if row.kind is Parameter.KEYWORD_ONLY and not marked:
                words, marked = [*words, "*"], True
            default = "" if row.default is Parameter.empty else f" = {row.default!r}"
            words.append(f"{row.name}: {self.type_source(row.annotation)}{default}")
        sentence = " ".join(tool.description.partition("\n\n")[0].split())
        result = self.type_source(signature.return_annotation)
        return f'    def {tool.method}({", ".join(words)}) -> {result}:\n        """{sentence}"""\n'


def stub_source() -> str:
    """Return the whole stub, before it is formatted."""
    writer = StubWriter()
    by_method = {tool.method: tool for family in FAMILIES for tool in tools_of(family)}
    methods = [writer.method_source(by_method[name]) for name in sorted(by_method)]
    imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(writer.imports.items())]
    return "\n".join([_HEAD, "", *imports, "", "class ToolMethods:", *methods])


if __name__ == "__main__":
    STUB.write_text(stub_source(), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--quiet", "--select", "I", "--fix", str(STUB)], check=True)
    subprocess.run([*ruff, "format", "--quiet", str(STUB)], check=True)
