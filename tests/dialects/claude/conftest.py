import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialects.claude.desk import Desk
from dialects.place import Place
from front.mcp.client import StdioClient, surehold

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StdioClient, Path, Path]]:
    base = tmp_path_factory.mktemp("served")
    root, state = base / "root", base / "state"
    root.mkdir()
    with StdioClient(surehold("mcp", str(root), "--state-dir", str(state), "--tools", "all")) as client:
        yield client, root, state


@pytest.fixture
def desk(server: tuple[StdioClient, Path, Path]) -> Desk:
    client, root, state = server
    name = f"desk{next(_NUMBERS)}"
    (root / name).mkdir()
    return Desk(Place(client, root, state, name))
