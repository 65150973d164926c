from collections.abc import Iterator
from pathlib import Path

import pytest

from databases.schemas import PostgresSchema
from doubles.memory_store import MemoryStore
from stores.scenes import Author, Clock
from surehold.stores.base import Store
from surehold.stores.postgres.store import PostgresStore, open_postgres_store
from surehold.stores.sqlite.store import SqliteStore


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sqlite(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "state", clock=clock, durability="none")
    yield store
    store.close()


@pytest.fixture
def postgres(postgres_schema: PostgresSchema, clock: Clock) -> Iterator[PostgresStore]:
    store = open_postgres_store(postgres_schema.address, workspace="w", root="/w", host="here", clock=clock)
    yield store
    store.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, clock: Clock) -> Store:
    return MemoryStore(clock=clock) if request.param == "memory" else request.getfixturevalue(request.param)


@pytest.fixture
def author(store: Store) -> Author:
    return Author(store)
