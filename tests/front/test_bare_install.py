"""The package without extras: no protocol library, no decoder, no grammar, and still a server, a command and a library."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement

PROJECT = Path(__file__).parents[2]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
LIBRARY = """
import sys
from surehold import open_workspace
agent = open_workspace(".").session(agent="bare")
agent.create_file("lib.txt", "one\\n")
print(agent.read_file("lib.txt").content.strip(), *sorted({"mcp", "PIL", "tree_sitter"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it requires, and nothing else; the packages are linked, not fetched."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("bare")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(PROJECT))
    subprocess.run([*pip, *build], check=True, capture_output=True, cwd=folder)
    venv.create(folder / "env", symlinks=True)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(next(folder.glob("surehold-*.whl"))) as wheel:
        wheel.extractall(packages)
    for name in _required_by(next(packages.glob("surehold-*.dist-info")) / "METADATA"):
        _link_package(name, packages)
    return folder


def _required_by(metadata: Path) -> Iterator[str]:
    """Yield what the wheel requires without extras, and what that requires."""
    rows = re.findall(r"^Requires-Dist: (.*)$", metadata.read_text(encoding="utf-8"), re.MULTILINE)
    waiting, seen = [row for row in rows if "extra ==" not in row], set[str]()
    while waiting:
        found = re.match(r"[\w.-]+", waiting.pop())
        if found and found[0] not in seen:
            seen.add(found[0])
            yield found[0]
            waiting += [row for row in importlib.metadata.requires(found[0]) or () if ";" not in row]


def _link_package(name: str, packages: Path) -> None:
    for file in importlib.metadata.files(name) or ():
        top = file.parts[0]
        if top == "..":  # a program, such as rg
            continue
        with_top = (
            Path(str(file.locate())).parents[len(file.parts) - 2] if len(file.parts) > 1 else Path(str(file.locate()))
        )
        if not (packages / top).exists():
            (packages / top).symlink_to(with_top)


def run_bare(
    bare: Path, *words: str, stdin: str = "", variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    root = bare / "root"
    root.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    command = [bare / "env/bin/python", *words]
    environment = {**kept, "XDG_STATE_HOME": str(bare / "state"), **(variables or {})}
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, cwd=root, env=environment)


@requirement("front:install:small")
def test_the_bare_package_serves_stdio_with_a_tool_call(bare: Path) -> None:
    (bare / "root").mkdir(exist_ok=True)
    (bare / "root/a.rs").write_text("fn a() {}\n", encoding="utf-8")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("initialize", HELLO),
        ("tools/list", {}),
        ("tools/call", {"name": "create_file", "arguments": {"path": "b.rs", "content": "fn b() {}\n"}}),
    ]
    rows = [{"jsonrpc": "2.0", "id": n, "method": method, "params": params} for n, (method, params) in enumerate(calls)]
    done = run_bare(bare, "-m", "surehold", "mcp", ".", stdin="\n".join(map(json.dumps, rows)))
    answers = {row["id"]: row["result"] for row in map(json.loads, done.stdout.splitlines())}

    assert answers[0]["serverInfo"]["name"] == "surehold"
    assert len(answers[1]["tools"]) == 12
    assert answers[2]["isError"] is False
    assert (bare / "root/b.rs").read_text(encoding="utf-8") == "fn b() {}\n"


@requirement("front:install:small")
def test_the_bare_package_has_the_commands_and_the_library(bare: Path) -> None:
    library = run_bare(bare, "-c", LIBRARY)
    log = run_bare(bare, "-m", "surehold", "log", "--json")

    assert (library.stdout.split(), library.stderr) == (["one"], "")
    assert "lib.txt" in log.stdout


@requirement("front:install:extras")
@pytest.mark.parametrize(
    ("command", "extra"), [(("serve", "."), "serve"), (("mcp", ".", "--http", "0"), "serve"), (("acp",), "acp")]
)
def test_what_is_missing_says_which_extra_brings_it(bare: Path, command: tuple[str, ...], extra: str) -> None:
    done = run_bare(bare, "-m", "surehold", *command)

    assert done.returncode == 1
    assert f'pip install "surehold[{extra}]"' in done.stderr
    assert "Traceback" not in done.stderr


@requirement("front:install:extras")
def test_an_image_without_decoders_names_the_extra(bare: Path) -> None:
    (bare / "root").mkdir(exist_ok=True)
    (bare / "root/a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    done = run_bare(bare, "-m", "surehold", "tool", "Read", "--text", "--json", '{"file_path": "a.png"}')

    assert 'pip install "surehold[media]"' in done.stdout


@requirement("front:install:brackets")
def test_without_grammars_brackets_are_compared_and_that_is_said_once(bare: Path) -> None:
    script = """
from surehold.syntax.languages import parsers_for
from surehold.text.sanity.subject import UnparsedText
source = b"fn c() {}\\n"
(parser,) = parsers_for("c.rs", source)
print([parser.find_flaw(source) for _ in range(2)])
"""
    done = run_bare(bare, "-c", script)

    assert done.stdout.count("surehold[syntax]") == 1
    assert done.stdout.count("by_brackets=True") == 2


EDIT_PYTHON = """
from surehold import open_workspace
from surehold.errors import SureholdError
agent = open_workspace(".").session(agent="bare")
for number, new in enumerate(["f((1)", "a = = 1", "if a:\\nb", "type B = int"]):
    agent.create_file(f"{number}.py", "f(1)\\n")
    line = agent.read_file(f"{number}.py", hashes=True).content.split("|")[0].split("#")
    step = {"op": "replace_line", "line": 1, "hash": line[1], "content": new}
    try:
        print("written", *agent.edit_lines(f"{number}.py", [step]).safety_warnings)
    except SureholdError as error:
        print(error.reason)
"""


@requirement("front:install:brackets")
def test_without_grammars_python_that_cannot_be_compiled_is_refused(bare: Path) -> None:
    done = run_bare(bare, "-c", EDIT_PYTHON)
    *refused, newer = done.stdout.splitlines()

    assert (refused, done.stderr) == (["parse_error"] * 3, "")
    assert newer.startswith("written")
    assert "surehold[syntax]" in newer or sys.version_info >= (3, 12)


@requirement("front:install:extras")
def test_the_protocols_own_library_on_standard_input_names_its_extra(bare: Path) -> None:
    done = run_bare(bare, "-m", "surehold", "mcp", ".", variables={"SUREHOLD_STDIO": "sdk"})

    assert done.returncode == 1
    assert 'pip install "surehold[serve]"' in done.stderr
    assert "Bug" not in done.stderr
