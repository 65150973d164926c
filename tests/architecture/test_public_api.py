import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import surehold
from spec.marks import requirement


@requirement("engine:api:all")
def test_the_public_names_are_sorted_and_all_of_them_exist() -> None:
    assert surehold.__all__ == sorted(surehold.__all__)
    assert {name: getattr(surehold, name).__name__ for name in surehold.__all__} == {n: n for n in surehold.__all__}
    assert set(surehold.__all__) == typed_names()


def typed_names() -> set[str]:
    """List what type checkers see: the imports of the stub."""
    stub = Path(surehold.__file__).with_suffix(".pyi")
    assert (stub.parent / "py.typed").is_file()
    return {
        alias.name
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
