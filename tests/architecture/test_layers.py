"""The layers that ARCHITECTURE.md describes, checked on the source itself."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from spec.marks import requirement

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "src" / "surehold"
FILES = tuple(sorted(SOURCE.rglob("*.py")))
PURE = tuple(file for file in FILES if "text" in file.relative_to(SOURCE).parts or file == SOURCE / "errors.py")

CALCULATES = {
    "bisect",
    "codecs",
    "collections",
    "dataclasses",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "struct",
    "typing",
    "unicodedata",
    "xxhash",
}
"""What a pure module may import: nothing of it knows a clock, a thread, chance, a file or a terminal."""

GLOSSARY = [
    "Workspace",
    "Target",
    "Snapshot",
    "Line",
    "Anchor",
    "Quality",
    "Resolution",
    "Edit",
    "EditPlan",
    "Check",
    "Correction",
    "Proof",
    "Proposal",
    "Change",
    "Changeset",
    "Checkpoint",
    "Receipt",
    "Horizon",
    "Ledger",
    "Entry",
    "Trash",
    "Blob",
    "Session",
    "Sighting",
    "Writer",
    "Dialect",
    "Wire",
    "Guide",
    "Front",
]
RULED_OUT = re.compile(r"util|helper|common|manager|handler|service|process|impl", re.IGNORECASE)


def short(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom():
                yield "."
            case _:
                pass


def class_names() -> Iterator[str]:
    for file in FILES:
        yield from (node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef))


@requirement("engine:layers:contracts")
def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [5-9] kept, 0 broken", done.stdout), done.stdout


@requirement("text:purity:no_io")
@pytest.mark.parametrize("file", PURE, ids=short)
def test_a_pure_module_imports_only_what_calculates(file: Path) -> None:
    tree = ast.parse(file.read_text())
    ours = ("surehold.text.", "surehold.errors")
    foreign = {
        name for name in imported(tree) if not name.startswith(ours) and name.partition(".")[0] not in CALCULATES
    }
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}

    assert foreign == set()
    assert calls & {"open", "print", "input", "exec", "eval", "__import__"} == set()


@requirement("promise:words:one_meaning")
def test_no_word_of_the_glossary_names_two_classes() -> None:
    count = Counter(class_names())

    assert {word: count[word] for word in GLOSSARY if count[word] > 1} == {}


@requirement("promise:words:one_meaning")
def test_names_that_say_nothing_are_not_used() -> None:
    modules = {part for file in FILES for part in file.relative_to(SOURCE).with_suffix("").parts}

    assert {name for name in (*modules, *class_names()) if RULED_OUT.search(name)} == {"CheckpointManager"}
