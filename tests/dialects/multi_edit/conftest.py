import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialects.multi_edit.ways import ByContract, Desk, Library, Served, Way
from front.mcp.client import StdioClient, surehold
from surehold import Settings, open_workspace

WAYS = ("library", "server", "contract")
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Way, Path]]]:
    """Three ways in, each to a workspace of its own."""
    bases = {name: tmp_path_factory.mktemp(name) for name in WAYS}
    roots = {name: base / "root" for name, base in bases.items()}
    for root in roots.values():
        root.mkdir()
    commands = {
        name: surehold("mcp", roots[name], "--state-dir", bases[name] / "state", "--tools", "multi_edit", *more)
        for name, more in (("server", ()), ("contract", ("--contract-errors",)))
    }
    settings = Settings(state_dir=bases["library"] / "state")
    with (
        open_workspace(roots["library"], settings=settings) as workspace,
        StdioClient(commands["server"]) as plain,
        StdioClient(commands["contract"]) as strict,
    ):
        found = {
            "library": Library(workspace, workspace.session(agent="test")),
            "server": Served(plain),
            "contract": ByContract(strict),
        }
        yield {name: (way, roots[name]) for name, way in found.items()}


@pytest.fixture(params=WAYS)
def desk(request: pytest.FixtureRequest, ways: dict[str, tuple[Way, Path]]) -> Desk:
    way, root = ways[request.param]
    folder = root / f"desk{next(_NUMBERS)}"
    folder.mkdir()
    return Desk(way, folder)


@pytest.fixture
def served(ways: dict[str, tuple[Way, Path]]) -> Desk:
    """The server as a model meets it."""
    way, root = ways["server"]
    folder = root / f"desk{next(_NUMBERS)}"
    folder.mkdir()
    return Desk(way, folder)
