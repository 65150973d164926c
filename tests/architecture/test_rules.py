"""The rules of the house, checked on the source itself. What they do not hold for is in exceptions.py, with its reason."""

import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from architecture.exceptions import LONG_FILES, PATH_STRINGS, PATH_TEXT, SMALL_MODULES
from architecture.prose import idiom_in_source
from architecture.source import FILES, SOURCE, classes, functions, importers, layer, line_count, nodes, short, tree_of
from spec.marks import requirement

EDGE = ("adapters", "dialects", "front", "library", "tools", "workspace/paths.py", "app.py")
"""Where a path may be text: whoever calls writes text. Inside it is a Target, which was resolved and checked once."""

UNITLESS = re.compile(r"_?(SHOWN|MOST|LARGEST|PATIENCE|FEW|LISTED|ENOUGH|LONGEST|SHORTEST)")
MESSAGES = {"message", "why", "action", "reason", "sentence", "note", "headline"}


def above(found: Mapping[str, int], allowed: Mapping[str, int]) -> dict[str, str]:
    """Return what is more than allowed."""
    return {
        name: f"{count}, allowed {allowed.get(name, 0)}"
        for name, count in found.items()
        if count > allowed.get(name, 0)
    }


@requirement("promise:words:one_meaning")
def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for file, node in classes():
        homes.setdefault(node.name.lstrip("_"), []).append(short(file))

    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_a_folder_has_at_most_fifteen_modules() -> None:
    rooms = Counter(file.parent.relative_to(SOURCE).as_posix() for file in FILES if file.name != "__init__.py")

    assert {room: count for room, count in rooms.items() if count > 15} == {}


def test_every_folder_and_every_module_says_what_it_is() -> None:
    assert [short(file) for file in FILES if not ast.get_docstring(tree_of(file))] == []
    folders = {file.parent for file in FILES} - {SOURCE / "stores" / "sqlite" / "migrations"}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_a_small_module_with_one_importer_is_part_of_it() -> None:
    alone = {
        short(file): next(short(one) for one in importers()[file])
        for file in FILES
        if file.name != "__init__.py" and line_count(file) < 60 and len(importers()[file]) == 1
    }

    assert {file: used_by for file, used_by in alone.items() if file not in SMALL_MODULES} == {}
    assert set(SMALL_MODULES) - set(alone) == set(), "These need no exception any more."


def test_a_file_has_at_most_400_lines() -> None:
    long = {short(file): line_count(file) for file in FILES if line_count(file) > 400}

    assert set(long) == set(LONG_FILES), long


def test_functions_are_short_and_named_by_more_than_one_word() -> None:
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for _, node in functions()]
    names = [node.name for _, node in functions() if not node.name.startswith("__")]
    one_word = [name for name in names if "_" not in name.strip("_")]

    assert statistics.quantiles(lengths, n=20)[-1] <= 25
    assert len(one_word) / len(names) <= 0.4


def test_a_limit_says_its_unit() -> None:
    names = {
        f"{short(file)}: {name.id}"
        for file in FILES
        for node in tree_of(file).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and UNITLESS.fullmatch(name.id)
    }

    assert names == set()


def text_paths() -> Iterator[str]:
    for file, node in nodes(ast.arg, ast.AnnAssign):
        match node:
            case ast.arg(arg="path" | "to_path", annotation=ast.expr() as annotation):
                pass
            case ast.AnnAssign(target=ast.Name(id="path" | "to_path"), annotation=annotation):
                pass
            case _:
                continue
        if not short(file).startswith((*EDGE, *PATH_TEXT)) and re.fullmatch(r"str( \| None)?", ast.unparse(annotation)):
            yield short(file)


def test_a_path_is_text_only_at_the_edge() -> None:
    assert above(Counter(text_paths()), PATH_STRINGS) == {}


def test_dialects_and_front_ends_do_not_reach_around_the_workspace() -> None:
    uses = Counter(
        short(file)
        for file, node in nodes(ast.Attribute)
        if layer(file) in {"adapters", "dialects", "front"}
        and isinstance(node, ast.Attribute)
        and node.attr in {"store", "disk"}
    )

    assert uses == {}


def is_surgery(node: ast.AST) -> bool:
    """Tell whether a message is cut, or joined in the middle of a word."""
    match node:
        case ast.JoinedStr(values=values):
            return any(
                isinstance(one, ast.FormattedValue) and isinstance(after, ast.Constant) and _continues(after.value)
                for one, after in pairwise(values)
            )
        case ast.Subscript(value=ast.Attribute(attr=name) | ast.Name(id=name), slice=ast.Slice()):
            return name in MESSAGES
        case ast.Call(func=ast.Attribute(attr="rstrip" | "removesuffix"), args=[ast.Constant(value=".")]):
            return True
        case _:
            return False


def _continues(text: object) -> bool:
    return isinstance(text, str) and re.match(r"[a-z]{2,} ", text) is not None


def test_a_message_is_one_whole_literal() -> None:
    cuts = [short(file) for file, node in nodes(ast.JoinedStr, ast.Subscript, ast.Call) if is_surgery(node)]

    assert cuts == []


def test_our_own_text_is_not_parsed_back() -> None:
    """Rows such as `118#5da3f1|text` and `12→text` are for models; a refusal carries what it showed as data."""
    found = Counter(
        short(file)
        for file, node in nodes(ast.Call)
        if layer(file) in {"dialects", "front", "library", "workspace"} and _parses_rows(node)
    )

    assert found == {}


def _parses_rows(node: ast.AST) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="row" | "text" | "line"), attr="partition" | "split" | "rpartition"),
            args=[ast.Constant(value="#" | "→" | "|" | "\n@@" | "@@")],
        ):
            return True
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="text"), attr="partition" | "split" | "rpartition"),
            args=[ast.Constant(value="\n@@" | "@@" | "#" | "→")],
        ):
            return True
        case _:
            return False


@pytest.mark.parametrize("folder", sorted({layer(file) for file in FILES}))
def test_the_source_is_written_in_plain_english(folder: str) -> None:
    found = [use for file in FILES if layer(file) == folder for use in idiom_in_source(file)]

    assert found == []


def test_every_exception_names_a_file_that_exists() -> None:
    lists = (SMALL_MODULES, LONG_FILES, PATH_STRINGS, PATH_TEXT)
    named: set[str] = {name for one in lists for name in one}

    assert {name for name in named if not Path(SOURCE, name).exists()} == set()
