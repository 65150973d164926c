"""The layers that ARCHITECTURE.md describes, checked on the source itself."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from architecture.source import FILES, PROJECT, SOURCE, classes, imported, short
from spec.marks import requirement

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
    "tomllib",
    "typing",
    "unicodedata",
    "xxhash",
}
"""What a pure module may import: nothing of it knows a clock, a thread, chance, a file or a terminal."""

RULED_OUT = re.compile(r"util|helper|common|manager|handler|service|process|impl", re.IGNORECASE)


def class_names() -> list[str]:
    return [node.name for _, node in classes()]


def glossary() -> dict[str, bool]:
    """Read the words of ARCHITECTURE.md; those in backticks are classes."""
    page = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("\n## Words\n")[2].partition("\n## ")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| ")][1:]
    words = [word.strip() for cell in cells for word in cell.split(",")]
    return {word.strip("`"): word.startswith("`") for word in words}


@requirement("engine:layers:contracts")
def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: \d+ kept, 0 broken", done.stdout), done.stdout


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

    assert len(glossary()) > 40
    assert {word: count[word] for word in glossary() if count[word] > 1} == {}
    assert {word for word, is_class in glossary().items() if is_class and not count[word]} == set()


@requirement("promise:words:one_meaning")
def test_names_that_say_nothing_are_not_used() -> None:
    modules = {part for file in FILES for part in file.relative_to(SOURCE).with_suffix("").parts}

    assert {name for name in (*modules, *class_names()) if RULED_OUT.search(name)} == {"CheckpointManager"}
