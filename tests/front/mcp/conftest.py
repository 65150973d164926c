from collections.abc import Iterator
from pathlib import Path

import pytest

from front.mcp.client import StdioClient
from front.mcp.site import Site


def make_site(folder: Path) -> Site:
    site = Site(root=folder / "root", state=folder / "state")
    site.root.mkdir()
    return site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A workspace of one test."""
    return make_site(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A workspace for all tests of a file."""
    return make_site(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def server(shared: Site) -> Iterator[StdioClient]:
    """One server for all tests of a file that leave it as it is."""
    with shared.start() as client:
        yield client


@pytest.fixture(scope="module")
def modern(shared: Site) -> Iterator[StdioClient]:
    """The same in the stateless era."""
    with shared.start(version="2026-07-28") as client:
        yield client
