import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialects.every_tool import EveryTool
from dialects.place import Place
from front.mcp.client import StdioClient, surehold


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StdioClient, Path, Path]]:
    base = tmp_path_factory.mktemp("served")
    root, state = base / "root", base / "state"
    root.mkdir()
    with StdioClient(surehold("mcp", str(root), "--state-dir", str(state))) as client:
        yield client, root, state


_NUMBERS = itertools.count(1)


@pytest.fixture
def place(server: tuple[StdioClient, Path, Path]) -> Place:
    client, root, state = server
    name = f"place{next(_NUMBERS)}"
    (root / name).mkdir()
    return Place(client, root, state, name)


@pytest.fixture(scope="module")
def server_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StdioClient, Path]]:
    base = tmp_path_factory.mktemp("all")
    root = base / "root"
    root.mkdir()
    with StdioClient(surehold("mcp", str(root), "--tools", "all", "--state-dir", str(base / "state"))) as client:
        yield client, root


@pytest.fixture
def every_tool(server_of_all: tuple[StdioClient, Path]) -> EveryTool:
    client, root = server_of_all
    folder = root / f"place{next(_NUMBERS)}"
    folder.mkdir()
    return EveryTool(client, folder)
