"""ARCHITECTURE.md says what is there: its tree, and every file, class and method that it names."""

import re
import subprocess
import sys
from pathlib import Path

from architecture.prose import idiom_in_page
from architecture.source import PROJECT, SOURCE, classes, functions

PAGE = PROJECT / "ARCHITECTURE.md"
TREE = re.compile(r"<!-- tree: generated.*?<!-- tree: end -->", re.DOTALL)
WRITTEN = TREE.sub("", PAGE.read_text(encoding="utf-8"))


def named(pattern: str) -> set[str]:
    return {name for name in re.findall(r"`([^`\n]+)`", WRITTEN) if re.fullmatch(pattern, name)}


def test_the_tree_is_generated_from_the_modules() -> None:
    command = [sys.executable, str(PROJECT / "scripts" / "tree.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_it_is_short_beside_the_tree() -> None:
    assert len(WRITTEN.encode()) < 20_000


def test_every_file_and_folder_it_names_exists() -> None:
    files = named(r"[\w/]+\.py") | named(r"[a-z_]+/[\w/]*")

    assert len(files) > 30
    assert {name for name in files if not any((base / name).exists() for base in (SOURCE, PROJECT))} - {
        "blobs/"
    } == set()


def test_every_class_method_and_function_it_names_exists() -> None:
    members = {f"{node.name}.{child}" for _, node in classes() for child in _members(node)}
    names = members | {node.name for _, node in classes()} | {node.name for _, node in functions()}
    dotted, snake = named(r"[A-Z]\w+\.\w+"), named(r"[a-z]+_[a-z_]+")

    assert len(dotted) >= 8
    assert dotted - names == set()
    assert snake - names - {"multi_edit", "read_file"} == set()


def _members(node: object) -> list[str]:
    body = getattr(node, "body", [])
    found = [getattr(child, "name", None) or getattr(getattr(child, "target", None), "id", None) for child in body]
    return [name for name in found if isinstance(name, str)]


def test_what_a_new_reader_looks_for_is_named() -> None:
    for place in ("workspace/proposal.py", "workspace/file_source.py", "disk/steps/replace.py"):
        assert f"`{place}`" in WRITTEN
    assert Path(SOURCE, "front/shared/approval_queue.py").is_file()
    assert "`front/shared/approval_queue.py`" in WRITTEN


def test_it_is_written_in_plain_english() -> None:
    assert list(idiom_in_page(PAGE)) == []
