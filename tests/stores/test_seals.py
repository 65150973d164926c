"""Seals of the ledger in PostgreSQL: the tree of their root, and those that earlier versions made."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from databases.schemas import PostgresSchema
from spec.marks import requirement
from stores.scenes import Author
from surehold.stores.postgres import schema
from surehold.stores.postgres.address import PostgresAddress
from surehold.stores.postgres.database import PostgresDatabase
from surehold.stores.postgres.ledger_rows import merkle_root
from surehold.stores.postgres.store import PostgresStore, open_postgres_store

_BEFORE_TREES = schema.MIGRATIONS.index("0009_merkle.sql")


def root_of_tree(hashes: list[bytes]) -> bytes:
    """Return the root as RFC 6962 defines it: split at the largest power of two below the number of leaves."""
    if len(hashes) == 1:
        return hashlib.sha256(b"\x00" + hashes[0]).digest()
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return hashlib.sha256(b"\x01" + root_of_tree(hashes[:split]) + root_of_tree(hashes[split:])).digest()


@requirement("fleet:state:chain")
def test_the_root_is_that_of_a_merkle_tree_here_and_in_the_database(postgres_schema: PostgresSchema) -> None:
    leaves = [hashlib.sha256(b"%d" % number).digest() for number in range(70)]
    with postgres_schema.connect() as connection:
        for count in range(1, len(leaves) + 1):
            (root,) = connection.execute("SELECT merkle_root(%s)", (leaves[:count],)).fetchone() or (None,)
            assert root == merkle_root(leaves[:count]) == root_of_tree(leaves[:count])


@pytest.fixture
def older(postgres_schema: PostgresSchema, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresAddress]:
    """A schema as the last version without trees left it, with entries and seals."""
    name = f"older_{os.getpid()}"
    address = replace(
        postgres_schema.address,
        schema=name,
        conninfo=postgres_schema.address.conninfo.replace(postgres_schema.address.schema, name),
    )
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
        with monkeypatch.context() as patch:
            patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:_BEFORE_TREES])
            patch.setattr(schema, "LATEST", _BEFORE_TREES)
            assert bring_up(address) == (0, _BEFORE_TREES)
            store = open_store(address)
            author = Author(store)
            for number in range(3):
                author.write("a", b"%d" % number)
                author.write("b", b"%d" % number)
            author.delete("b", trash_id="t1")
            connection.execute("SELECT seal_entries(ws, true) FROM workspaces")
            store.close()
        yield address
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def bring_up(address: PostgresAddress) -> tuple[int, int]:
    database = PostgresDatabase(address)
    try:
        return schema.set_up(database)
    finally:
        database.close()


def open_store(address: PostgresAddress) -> PostgresStore:
    return open_postgres_store(address, workspace="w", root="/w", host="here")


@requirement("fleet:state:earlier_seals")
def test_seals_of_an_earlier_version_stay_valid_beside_new_ones(older: PostgresAddress) -> None:
    assert bring_up(older) == (_BEFORE_TREES, schema.LATEST)
    store = open_store(older)
    Author(store).write("c", b"later")

    assert store.verify().ok
    with psycopg.connect(older.conninfo, autocommit=True) as connection:
        assert {form for (form,) in connection.execute("SELECT form FROM seals")} == {1, 2}
        assert [item.id for item in store.list_trash()] == ["t1"]

        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE seals SET root = sha256(root) WHERE number = 1")
        assert not store.verify().ok
    store.close()
