import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

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
