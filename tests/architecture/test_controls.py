"""Each rule of the house finds a module that breaks it: a rule that cannot fail checks nothing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from architecture import source
from architecture import test_layers as layers
from architecture import test_rules as rules
from architecture.source import PROJECT

Sources = Mapping[str, str]

_LONG = "".join(f"VALUE_{n} = {n}\n" for n in range(60))

INNOCENT: Sources = {
    "__init__.py": '"""A package."""\n',
    "workspace/__init__.py": '"""A folder."""\n',
    "workspace/one.py": f'"""A module."""\n\n\nclass OneThing:\n    """A class."""\n\n\ndef do_this() -> None:\n    pass\n\n\ndef do_that() -> None:\n    pass\n\n\n{_LONG}',
    "text/__init__.py": '"""A folder."""\n',
    "text/pure.py": '"""A pure module."""\n\nimport re\n\nWORD = re.compile("x")\n',
}

BREACHES: Mapping[str, tuple[Callable[..., None], Sources]] = {
    "a class name twice": (
        rules.test_no_two_classes_share_a_name,
        {"workspace/two.py": '"""A module."""\n\n\nclass _OneThing:\n    pass\n'},
    ),
    "sixteen modules in a folder": (
        rules.test_a_folder_has_at_most_fifteen_modules,
        {f"workspace/more_{n}.py": '"""A module."""\n' for n in range(15)},
    ),
    "a module that does not say what it is": (
        rules.test_every_folder_and_every_module_says_what_it_is,
        {"workspace/silent.py": "VALUE = 1\n"},
    ),
    "a folder that does not say what it is": (
        rules.test_every_folder_and_every_module_says_what_it_is,
        {"search/one_module.py": '"""A module."""\n'},
    ),
    "a small module with one importer": (
        rules.test_a_small_module_with_one_importer_is_part_of_it,
        {
            "workspace/small.py": '"""A module."""\n\nVALUE = 1\n',
            "workspace/user.py": '"""A module."""\n\nfrom surehold.workspace.small import VALUE\n',
        },
    ),
    "a file above 400 lines": (
        rules.test_a_file_has_at_most_400_lines,
        {"workspace/long.py": '"""A module."""\n' + _LONG * 7},
    ),
    "names of one word": (
        rules.test_functions_are_short_and_named_by_more_than_one_word,
        {
            "workspace/short_names.py": '"""A module."""\n'
            + "".join(f"\n\ndef {c}() -> None:\n    pass\n" for c in "abc")
        },
    ),
    "long functions": (
        rules.test_functions_are_short_and_named_by_more_than_one_word,
        {"workspace/slow.py": '"""A module."""\n\n\ndef do_much() -> None:\n' + "    print()\n" * 600},
    ),
    "a limit without its unit": (
        rules.test_a_limit_says_its_unit,
        {"workspace/limits.py": '"""A module."""\n\n_MOST = 5\n'},
    ),
    "a path that is text inside": (
        rules.test_a_path_is_text_only_at_the_edge,
        {"workspace/inner.py": '"""A module."""\n\n\ndef read_it(path: str) -> None:\n    pass\n'},
    ),
    "a tool family that reaches for the store": (
        rules.test_dialects_and_front_ends_do_not_reach_around_the_workspace,
        {
            "dialects/reach.py": '"""A module."""\n\n\ndef reach_it(session: object) -> None:\n    session.workspace.store.look()\n'
        },
    ),
    "a front end that reaches for the disk": (
        rules.test_dialects_and_front_ends_do_not_reach_around_the_workspace,
        {
            "front/reach.py": '"""A module."""\n\n\ndef reach_it(workspace: object) -> None:\n    workspace.disk.read()\n'
        },
    ),
    "a message that is joined inside of a word": (
        rules.test_a_message_is_one_whole_literal,
        {
            "workspace/words.py": '"""A module."""\n\n\ndef say_it(name: str) -> str:\n    return f"{name}his text is gone"\n'
        },
    ),
    "a message that is cut": (
        rules.test_a_message_is_one_whole_literal,
        {
            "workspace/cuts.py": '"""A module."""\n\n\ndef say_it(error: object) -> str:\n    return error.message[:-1]\n'
        },
    ),
    "our own text parsed back": (
        rules.test_our_own_text_is_not_parsed_back,
        {
            "workspace/parse.py": '"""A module."""\n\n\ndef parse_it(row: str) -> str:\n    return row.partition("#")[0]\n'
        },
    ),
    "a private idiom": (
        lambda: rules.test_the_source_is_written_in_plain_english("workspace"),
        {"workspace/prose.py": '"""A module in which the value stands."""\n'},
    ),
    "a name that says nothing": (
        layers.test_names_that_say_nothing_are_not_used,
        {"workspace/string_utils.py": '"""A module."""\n'},
    ),
    "a word of the glossary for two classes": (
        layers.test_no_word_of_the_glossary_names_two_classes,
        {
            "workspace/first.py": '"""A module."""\n\n\nclass Workspace:\n    pass\n',
            "workspace/second.py": '"""A module."""\n\n\nclass Workspace:\n    pass\n',
        },
    ),
}
"""What breaks a rule, and the test that must say so."""


def put_package(folder: Path, files: Sources, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    """Make a package of these files, and let the rules look at it; nothing of it is excused."""
    root = folder / "surehold"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    found = tuple(sorted(root.rglob("*.py")))
    for module in (source, rules, layers):
        monkeypatch.setattr(module, "SOURCE", root)
        monkeypatch.setattr(module, "FILES", found)
    for name in ("LONG_FILES", "PATH_STRINGS", "PATH_TEXT", "SMALL_MODULES"):
        monkeypatch.setattr(rules, name, {})
    source.importers.cache_clear()
    return found


@pytest.fixture(autouse=True)
def _forget_importers() -> object:
    yield
    source.importers.cache_clear()


@pytest.mark.parametrize("breach", BREACHES)
def test_a_rule_finds_what_breaks_it(breach: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check, added = BREACHES[breach]
    put_package(tmp_path, {**INNOCENT, **added}, monkeypatch)

    with pytest.raises(AssertionError):
        check()


def test_a_package_that_breaks_no_rule_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_package(tmp_path, INNOCENT, monkeypatch)

    for check, _ in BREACHES.values():
        if check not in (
            layers.test_no_word_of_the_glossary_names_two_classes,  # these two know the real package
            layers.test_names_that_say_nothing_are_not_used,
        ):
            check()


@pytest.mark.parametrize(
    "line", ["import os", "from surehold.stores.base import Store", "from time import time", "open('x')"]
)
def test_a_module_of_the_text_core_may_do_nothing_but_calculate(line: str, tmp_path: Path) -> None:
    module = tmp_path / "impure.py"
    module.write_text(f'"""A module."""\n\n{line}\n', encoding="utf-8")

    with pytest.raises(AssertionError):
        layers.test_a_pure_module_imports_only_what_calculates(module)


FORBIDDEN_IMPORTS = {
    "Layers point down": ("text/upward.py", "surehold.workspace.workspace"),
    "Front ends and tools never reach the disk themselves": ("tools/reach.py", "surehold.disk.steps.replace"),
    "Tool families do not know each other": ("dialects/claude/peek.py", "surehold.dialects.files.glob"),
    "Front ends are independent": ("front/acp/peek.py", "surehold.front.mcp.adapter"),
    "Only the wiring picks a store or a disk": ("workspace/pick.py", "surehold.stores.sqlite.store"),
    "Adapters use the public library alone": ("adapters/peek.py", "surehold.workspace.workspace"),
    "The text core is pure": ("text/impure.py", "threading"),
    "Protocol libraries stay at the edge": ("library/protocol.py", "mcp"),
}
"""Of each import contract: a module that breaks it, and what that module imports."""


def test_each_import_contract_finds_what_breaks_it(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.pyi", "*.json"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    for name, wanted in FORBIDDEN_IMPORTS.values():
        (tmp_path / "src" / "surehold" / name).write_text(f'"""A module."""\n\nimport {wanted}\n', encoding="utf-8")

    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert set(re.findall(r"^(.+) BROKEN$", done.stdout, re.MULTILINE)) == set(FORBIDDEN_IMPORTS), done.stdout
