import ast
import inspect
import json
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import surehold
from spec.marks import requirement


@requirement("engine:api:all")
def test_the_public_names_are_sorted_and_all_of_them_exist() -> None:
    assert surehold.__all__ == sorted(surehold.__all__)
    called = {"Session": "AgentSession", "Workspace": "AgentWorkspace"}
    named = {name: getattr(surehold, name).__name__ for name in surehold.__all__}
    assert named == {name: called.get(name, name) for name in surehold.__all__}
    assert {*surehold.__all__, "adapters", "aio"} == typed_names()


def typed_names() -> set[str]:
    """List what type checkers see: the imports of the stub."""
    stub = Path(surehold.__file__).with_suffix(".pyi")
    assert (stub.parent / "py.typed").is_file()
    return {
        alias.asname or alias.name
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@requirement("engine:api:all")
@pytest.mark.parametrize("name", surehold.__all__)
def test_every_public_name_and_method_is_documented(name: str) -> None:
    thing = getattr(surehold, name)
    assert inspect.getdoc(thing)
    for method, value in vars(thing).items() if inspect.isclass(thing) else ():
        if not method.startswith("_") and callable(value):
            assert inspect.getdoc(value), f"{name}.{method}"


TYPED_PROGRAM = """\
import surehold
from surehold import aio


def first_line(session: surehold.Session) -> str:
    page = session.read_file("a.txt")
    return (page.content or "").partition("\\n")[0]


def formatted(workspace: surehold.Workspace) -> str:
    workspace.changes(agent="ada")
    return workspace.run(["make", "format"]).change_id


def lines_of(change: surehold.ChangeView, receipt: surehold.RunReceipt) -> int:
    return change.added + change.removed + receipt.exit_code


def with_anchor(session: surehold.Session, anchor: str) -> str:
    operation = surehold.ReplaceLine(hash=anchor, content="one")
    return session.edit_lines("a.txt", [operation]).sha256


async def first_line_awaited(workspace: aio.AsyncWorkspace) -> str:
    session = workspace.session(agent="ada")
    page = await session.read_file("a.txt")
    async with session.turn("Look") as turn:
        print(turn.id, surehold.aio.open_workspace, surehold.adapters)
    await session.notify_compaction()
    return page.content or ""


with surehold.open_workspace("my-project") as opened:
    print(first_line(opened.session(agent="ada")), formatted(opened))
"""


WRONG_PROGRAM = """\
from surehold import Session, aio, tools_for


async def wrong(session: Session, awaited: aio.AsyncSession, workspace: aio.AsyncWorkspace) -> None:
    session.reed_file("a.txt")
    await awaited.reed_file("a.txt")
    await awaited.claude.Reed("a.txt")
    (await awaited.read_file("a.txt")).sha265
    workspace.session(mode="Plan")
    tools_for("gemini")
"""


@requirement("front:library:public_types")
def test_type_checkers_notice_every_wrong_name_and_value(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WRONG_PROGRAM)
    words = ["-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    said = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)

    found = [row for row in json.loads(said.stdout)["generalDiagnostics"] if row["severity"] == "error"]
    assert [row["range"]["start"]["line"] + 1 for row in found] == [5, 6, 7, 8, 9, 10]


@requirement("front:library:public_types")
def test_the_public_classes_are_those_that_a_program_is_given_and_type_checkers_know_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TYPED_PROGRAM)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    words = ["-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    said = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)

    assert json.loads(said.stdout)["generalDiagnostics"] == []


@requirement("front:library:public_types", "front:library:names")
def test_help_lists_the_methods_that_programs_use_and_no_others() -> None:
    text = pydoc.plain(pydoc.render_doc(surehold.Session))

    assert "read_file(self, path: str, *, start_line" in text
    assert "turn(self, title" in text
    assert "record_shown_lines" not in text
    assert "run(self, argv" in pydoc.plain(pydoc.render_doc(surehold.Workspace))
    assert "session.read_file(" in (surehold.__doc__ or "")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = surehold.nonsense  # type: ignore[attr-defined]


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(' '.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@requirement("engine:api:light_import")
def test_importing_the_package_loads_nothing_but_itself() -> None:
    assert {name for name in loaded_by("import surehold") if name.startswith("surehold")} == {"surehold"}


@requirement("engine:api:light_import")
def test_using_the_library_loads_no_protocol_image_or_pdf_library() -> None:
    loaded = loaded_by("from surehold import open_workspace, Session, Workspace")

    unwanted = {
        "mcp",
        "acp",
        "pydantic",
        "PIL",
        "pypdfium2",
        "starlette",
        "click",
        "rich",
        "asyncio",
        "zstandard",
        "pathspec",
    }
    assert loaded & unwanted == set()
