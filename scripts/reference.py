"""Compare the generated pages of docs with the definitions that they are made of; with `--write`, generate them.

Tools, commands, settings, errors, Python names and shapes on the wire are defined once, in the source. These pages are made of
those definitions, so that a reader finds every one of them.
"""

import json
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from reference_python import entry_fields, field_texts, python_page
from reference_text import cell, code, line, table

from surehold import errors
from surehold.errors import SureholdError
from surehold.front.cli.command import COMMAND_GROUPS, GLOBAL_OPTIONS, Argument, Command, load_command
from surehold.front.cli.config.configuration import SETTINGS
from surehold.library.families import DEFAULT_FAMILIES, FAMILIES, FAMILY_TOOLS, NAMESPACES, load_tool
from surehold.tools.spec import AnyTool

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = DOCS.parent / "examples"
FAMILY_SENTENCES = {
    "anchored": "Lines are named by anchors, `N#HASH`, which survive edits elsewhere in the file.",
    "files": "A change names the version that was seen by its sha256.",
    "multi_edit": "Several edits of one file in order; paths are absolute. Served with `--tools multi_edit`.",
    "claude": "The tools that Claude models know; what was read in this session counts. Served with `--tools claude`.",
}
VARIABLES = {
    "SUREHOLD_STATE": "where the history is kept, as `--state` says it; the programs that Surehold starts do not get it",
    "SUREHOLD_TOKEN": "the token of `serve` and `mcp --http`, instead of `--token-file`",
    "SUREHOLD_SESSION": "the session that `mcp` over stdio goes on with, and that commands of a host's shell belong to",
    "SUREHOLD_TURN": "the turn that commands of a host's shell belong to; hooks set it",
    "SUREHOLD_CALL": "the tool call that commands of a host's shell belong to; hooks set it",
    "SUREHOLD_AGENT": "the agent that commands of a host's shell are signed with; hooks set it",
    "SUREHOLD_PAGER": "the pager of the command line; `cat` or empty for none",
    "SUREHOLD_RIPGREP": "the ripgrep to search with; `off` for none",
    "SUREHOLD_STDIO": "`sdk`: serve stdio through the protocol's SDK, for comparison",
    "SUREHOLD_ENTERED": "set inside of the shell of a Claude Code session that the plugin records, so that it is recorded once; do not set it",
    "SUREHOLD_RUN": "set inside of `surehold run`, so that a run inside of it joins it; do not set it",
}
"""What the environment can choose."""


def tools_page() -> str:
    rows = [
        "# Tools\n",
        f"What a model can call. By default `{DEFAULT_FAMILIES}` are served; others with `--tools`.\n",
        "`surehold schema` prints the same as JSON; [wire shapes](wire.md) says what comes back.\n",
    ]
    seen = set[str]()
    for family in FAMILIES:
        rows += [f"## Family {family}\n", FAMILY_SENTENCES[family] + "\n"]
        for home in FAMILY_TOOLS[family]:
            tool = load_tool(home)
            if tool.name in seen:
                rows.append(f"`{tool.name}` is listed by this family too: [it is one tool](#{tool.name}).\n")
                continue
            seen.add(tool.name)
            rows += _tool_rows(tool, family, heading=_tool_heading(tool, family))
    return "\n".join(rows)


def _tool_heading(tool: AnyTool, family: str) -> str:
    return f"{tool.name} (claude)" if family == "claude" else tool.name


def _tool_rows(tool: AnyTool, family: str, *, heading: str) -> Iterator[str]:
    yield f"### {heading}\n"
    yield _without_headings(tool.description) + "\n"
    hints = tool.hints
    facts = [
        word
        for word, is_so in (
            ("only reads", hints.read_only),
            ("may destroy", hints.destructive),
            ("idempotent", hints.idempotent),
        )
        if is_so
    ]
    method = f"session.{family}.{tool.name}" if family in NAMESPACES else f"session.{tool.method}"
    yield f"In Python: `{method}(…)`.{' Hints: ' + ', '.join(facts) + '.' if facts else ''}\n"
    schema = tool.input_schema
    needed = set(schema.get("required", ()))
    rows = [
        (
            f"`{name}`",
            _schema_type(row),
            "required" if name in needed else code(json.dumps(row["default"]) if "default" in row else ""),
            cell(row.get("description", "")),
        )
        for name, row in schema["properties"].items()
    ]
    yield table(("argument", "type", "default", ""), rows)
    for name, row in schema["properties"].items():
        yield from _nested_rows(name, row, schema)


def _nested_rows(name: str, row: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    inner = _resolve(row.get("items", {}), schema)
    for one in inner.get("anyOf") or inner.get("oneOf") or [inner]:
        shape = _resolve(one, schema)
        if "properties" in shape:
            needed = set(shape.get("required", ()))
            rows = [
                (
                    f"`{key}`",
                    _schema_type(_resolve(field, schema)),
                    "required" if key in needed else "",
                    cell(field.get("description", "")),
                )
                for key, field in shape["properties"].items()
            ]
            yield f"One of `{name}`{': ' + cell(shape['description']) if shape.get('description') else ''}\n"
            yield table(("field", "type", "", ""), rows)


def _resolve(row: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = row.get("$ref", "").rpartition("/")[2]
    return schema.get("$defs", {}).get(name, {}) if name else row


def _schema_type(row: dict[str, Any]) -> str:
    if "enum" in row:
        return " ".join(f"`{value}`" for value in row["enum"])
    if "const" in row:
        return f"`{row['const']}`"
    kind = row.get("type", "object")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    return f"list of {row['items'].get('type', 'object')}s" if kind == "array" and "items" in row else str(kind)


def _without_headings(text: str) -> str:
    return text.replace("\n#", "\n\\#")


def commands_page() -> str:
    rows = [
        "# Commands\n",
        "`surehold COMMAND [options]`; `surehold COMMAND --help` says the same. Exit codes: 0 done, 1 refused, 2 wrong usage, 3 a bug, 130 interrupted; `run` returns the code of its command.\n",
    ]
    rows += ["## Global options\n", "Before or after any command.\n", _argument_table(GLOBAL_OPTIONS)]
    for group, names in COMMAND_GROUPS.items():
        rows.append(f"## {group}\n")
        for name in names:
            rows += _command_rows(load_command(name), "surehold")
    return "\n".join(rows)


def _command_rows(command: Command, before: str) -> Iterator[str]:
    name = f"{before} {command.name}"
    yield f"### {name}\n" if before == "surehold" else f"#### {name}\n"
    yield f"{command.help} {command.note}".strip() + "\n"
    flat = [one for given in command.arguments for one in (given if isinstance(given, tuple) else (given,))]
    if flat:
        yield _argument_table(flat)
    yield f"```sh\n{_plain_example(command.example)}\n```\n"
    for action in command.actions:
        yield from _command_rows(action, name)


def _plain_example(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def _argument_table(arguments: Iterable[Argument]) -> str:
    rows = list[tuple[str, ...]]()
    for one in arguments:
        settings = one.settings
        if settings.get("help") in (None, "==SUPPRESS=="):
            continue
        value = settings.get("metavar") or (
            "" if settings.get("action") == "store_true" else "|".join(map(str, settings.get("choices", ())))
        )
        is_option = one.names[0].startswith("-")
        shown = " ".join([", ".join(one.names), str(value)]).strip() if is_option else str(value or one.names[0])
        text = str(settings["help"]).replace("%%", "%")
        if settings.get("choices") and is_option:
            text += f" (default: {settings.get('default')})" if settings.get("default") else ""
        rows.append((code(shown), cell(text)))
    return table(("argument", ""), rows)


def settings_page() -> str:
    rows = [_SETTINGS_HEAD]
    kinds = [
        (f"`{one.name}`", code(_default_text(one.default)), "yes" if one.tighten else "no", cell(one.help))
        for one in SETTINGS
    ]
    rows.append(table(("setting", "default", "in a workspace's file", ""), kinds))
    rows += [
        "## In Python\n",
        "`open_workspace(root, settings=Settings(…))`; [every field](python.md#settings), [and the limits](python.md#limits).\n",
    ]
    rows += [
        "## In the environment\n",
        table(("variable", ""), [(f"`{name}`", cell(text)) for name, text in VARIABLES.items()]),
    ]
    rows.append(
        "`XDG_STATE_HOME`, `XDG_CONFIG_HOME`, `NO_COLOR`, `PAGER` and `CLAUDE_PROJECT_DIR` are respected as elsewhere.\n"
    )
    return "\n".join(rows)


_SETTINGS_HEAD = """\
# Settings

What agents may do is chosen by options of `surehold mcp` and `serve`, by `config.toml` in `~/.config/surehold/`, and by
`surehold.toml` in the workspace, which may only tighten ([how they go together](../history.md#settings-in-files)). `surehold
config` shows every value and where it is from. An option is called as its setting, with `--` before it.
"""


def _default_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value in ((), 0, "") else str(value)


def errors_page() -> str:
    found = [(depth, cls) for depth, cls in _error_tree(SureholdError) if cls is not SureholdError]
    rows = [
        (
            f"{'· ' * (depth - 1)}`{cls.__name__}`",
            f"`{cls.kind}`",
            str(cls.code),
            "yes" if cls.recoverable else "no",
            cell(cls.__doc__ or ""),
        )
        for depth, cls in found
    ]
    parts = [_ERRORS_HEAD, table(("class", "kind", "code", "recoverable", ""), rows), "## Each class: what to do\n"]
    for cls in (SureholdError, *(cls for _, cls in found)):
        parts.append(f"### {cls.__name__}\n\n{line(cls.__doc__ or '')} Usually: {line(cls.default_action)}\n")
        parts.append(f"Its usual reason is `{cls.default_reason}`.\n")
    return "\n".join(parts)


_ERRORS_HEAD = """\
# Errors

Every refusal has a `kind`, which programs switch on, a finer `reason`, one sentence, what to do next, and `details` with what
the next call needs. In Python each is an exception with these as attributes (`surehold.errors`); tools answer with them
([how each family spells them](wire.md#errors)); the command line prints `Refused: …` and exits with 1. `recoverable` says
whether the caller can do something about it. `code` is the one of JSON-RPC, where a client asked for such errors.
"""


def _error_tree(cls: type[SureholdError], depth: int = 0) -> Iterator[tuple[int, type[SureholdError]]]:
    yield depth, cls
    for below in cls.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _error_tree(below, depth + 1)


def wire_page() -> str:
    rows = [_WIRE_HEAD, f"{', '.join(f'`{name}`' for name in entry_fields())}; `argv` and `exit_code` of a command.\n"]
    for family in FAMILIES:
        rows.append(f"## Results of {family}\n")
        for home in FAMILY_TOOLS[family]:
            tool = load_tool(home)
            if f"\n### Result of {_tool_heading(tool, family)}\n" in "\n" + "\n".join(rows):
                continue
            texts = field_texts(tool.result)
            fields = [
                (f"`{info.alias or name}`", code(_field_type(info.annotation)), cell(texts.get(name, "")))
                for name, info in tool.result.model_fields.items()
            ]
            rows += [f"### Result of {_tool_heading(tool, family)}\n", table(("field", "type", ""), fields)]
            rows += [_part_sentence(part) for part in _parts_of(tool.result)]
    rows += ["## Errors\n", "The same refusal, as each family spells it for programs and as its model reads it:\n"]
    for family in FAMILIES:
        rows += _refusal_rows(family)
    return "\n".join(rows)


_WIRE_HEAD = """\
# Wire shapes

What programs and models get back. A tool that changes something answers with text and with the same as data
(`structuredContent` in MCP); one that only reads answers with text, and with data for clients that ask for it (`--meta`, or the
capability `surehold/result`). The family `files` wraps results as `{"ok": true, "data": …}` and errors as
`{"ok": false, "error": …}`; the others send them as they are. Fields that are empty may be left out.

`surehold … --json` prints one JSON document per command, in snake_case; an entry of `surehold log --json` has:
"""


def _field_type(one: Any) -> str:
    """Spell a type as Python does, the same in all of its versions."""
    origin, inner = get_origin(one), get_args(one)
    if one in (None, type(None)):
        return "None"
    if origin in (Union, types.UnionType):
        return " | ".join(map(_field_type, inner))
    if origin is Literal:
        return " | ".join(map(repr, inner))
    if origin is not None:
        return f"{_field_type(origin)}[{', '.join('...' if part is Ellipsis else _field_type(part) for part in inner)}]"
    return str(getattr(one, "__name__", one))


def _parts_of(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return the models that the fields of a model hold, and those of their fields."""
    found = dict[type[BaseModel], None]()
    for info in model.model_fields.values():
        for one in _types_in(info.annotation):
            if isinstance(one, type) and issubclass(one, BaseModel):
                found |= dict.fromkeys([one, *_parts_of(one)])
    return list(found)


def _types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _types_in(inner)


def _part_sentence(part: type[BaseModel]) -> str:
    fields = [f"`{info.alias or name}` (`{_field_type(info.annotation)}`)" for name, info in part.model_fields.items()]
    return f"`{part.__name__}`: {', '.join(fields)}.\n"


def _refusal_rows(family: str) -> Iterator[str]:
    tool = next(tool for tool in map(load_tool, FAMILY_TOOLS[family]) if not tool.hints.read_only)
    error = errors.StaleFile("`a.txt` is not the version you saw.", path="a.txt", retry_with_sha256="916ff327…")
    answer = tool.refusal_answer(error)
    yield f"### Errors of {family}\n"
    yield f"```json\n{json.dumps(answer.data, indent=2, ensure_ascii=False)}\n```\n"
    yield f"```text\n{answer.text}\n```\n"


def examples_page() -> str:
    rows = ["# Examples\n", "Whole programs; the tests run them. They are in `examples/` of the repository.\n"]
    for file in sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("ci/*"), *EXAMPLES.glob("frameworks/*.py")]):
        text = file.read_text(encoding="utf-8")
        if len(text.splitlines()) > _SHOWN_LINES:
            continue
        rows += [f"## {file.relative_to(EXAMPLES)}\n", f"```{_EXAMPLE_LANGUAGES[file.suffix]}\n{text.rstrip()}\n```\n"]
    return "\n".join(rows)


def comparison_page() -> str:
    """Return the comparison with the rows of the benchmarks that are about what is kept, not about time."""
    page, measured = (
        (DOCS / "comparison.md").read_text(encoding="utf-8"),
        (DOCS / "benchmarks.md").read_text(encoding="utf-8"),
    )
    lines = [line for line in measured.splitlines() if line.startswith("|")]
    rows = [*lines[:3], *(line for line in lines if line.startswith(_KEPT_ROWS))]
    head, _, rest = page.partition(_MEASURED_BEGIN)
    return "".join(
        [head, _MEASURED_BEGIN, "\n", "\n".join(rows), "\n\n", _MEASURED_END, rest.partition(_MEASURED_END)[2]]
    )


_KEPT_ROWS = ("| two writers ", "| killed while ", "| bytes kept ", "| memory ")
_MEASURED_BEGIN = "<!-- measured: generated by `make fix` from docs/benchmarks.md -->\n"
_MEASURED_END = "<!-- measured: end -->"
_EXAMPLE_LANGUAGES = {".py": "py", ".sh": "sh", ".yml": "yaml"}
_SHOWN_LINES = 120
"""Longer examples are shows, not something to copy from."""

PAGES = {
    "reference/tools": tools_page,
    "reference/commands": commands_page,
    "reference/settings": settings_page,
    "reference/errors": errors_page,
    "reference/python": python_page,
    "reference/wire": wire_page,
    "examples": examples_page,
    "comparison": comparison_page,
}
_NOTE = "<!-- Generated by `make fix` from the definitions in the source; do not edit. -->\n\n"


def generate(name: str) -> str:
    """Return a page as it belongs into docs."""
    text = PAGES[name]().rstrip() + "\n"
    return text if name == "comparison" else _NOTE + text  # most of that page is written by hand


def main() -> int:
    fresh = {DOCS / f"{name}.md": generate(name) for name in PAGES}
    old = [file for file, text in fresh.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    if "--write" in sys.argv[1:]:
        (DOCS / "reference").mkdir(exist_ok=True)
        for file in old:
            file.write_text(fresh[file], encoding="utf-8")
        return 0
    if old:
        names = ", ".join(str(file.relative_to(DOCS)) for file in old)
        print(f"What is generated in docs is not what the source defines: {names}. Run `make fix`.", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
