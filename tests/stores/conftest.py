from collections.abc import Iterator
from pathlib import Path

import pytest

from doubles.memory_store import MemoryStore
from stores.scenes import Author, Clock
from surehold.stores.base import Store
from surehold.stores.sqlite.store import SqliteStore


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sqlite(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "state", clock=clock, durability="none")
    yield store
    store.close()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, clock: Clock) -> Store:
    return MemoryStore(clock=clock) if request.param == "memory" else request.getfixturevalue("sqlite")


@pytest.fixture
def author(store: Store) -> Author:
    return Author(store)
