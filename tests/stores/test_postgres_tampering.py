"""Whoever changes the ledger in the database behind our back is found out by `verify`."""

from collections.abc import Iterator

import psycopg
import pytest

from databases.schemas import PostgresSchema
from spec.marks import requirement
from stores.scenes import Author, Clock, call, change
from surehold.stores.postgres.store import PostgresStore, open_postgres_store

_LAST_OF_A = "(SELECT max(seq) FROM entries WHERE path = 'a')"
PLANTED = {
    "a changed body": "UPDATE entries SET body = replace(body, 'write_file', 'other_file') WHERE seq = 2",
    "a changed hash": "UPDATE entries SET hash = sha256(hash) WHERE seq = 2",
    "another path": "UPDATE entries SET path = 'x' WHERE seq = 2",
    "another agent": "UPDATE entries SET agent = 'eve' WHERE seq = 2",
    "another writer": "UPDATE entries SET writer = 'eve' WHERE seq = 2",
    "another version": "UPDATE entries SET after = sha256(after) WHERE seq = 2",
    "another moment": "UPDATE entries SET timestamp = '2020' WHERE seq = 2",
    "made a success": "UPDATE entries SET ok = true WHERE NOT ok",
    "one removed in the middle": "DELETE FROM entries WHERE seq = 2",
    "the last of a path removed": f"DELETE FROM entries WHERE seq = {_LAST_OF_A}",
    "the same, and the end of its chain moved": (
        f"UPDATE paths SET tip = (SELECT previous FROM entries WHERE seq = {_LAST_OF_A}) WHERE path = 'a';"
        f" DELETE FROM entries WHERE seq = {_LAST_OF_A}"
    ),
    "a whole path removed": "DELETE FROM entries WHERE path = 'b'; DELETE FROM paths WHERE path = 'b'",
    "an end of a chain removed": "DELETE FROM paths WHERE path = 'b'",
    "a seal removed": "DELETE FROM seals WHERE number = (SELECT max(number) FROM seals)",
    "a root changed": "UPDATE seals SET root = sha256(root)",
    "a seal of another form": "UPDATE seals SET form = 3 - form",
    "a root of another form": (
        "UPDATE seals SET form = 1, root = (SELECT sha256(string_agg(entries.hash, '' ORDER BY seq)) FROM entries"
        " WHERE entries.ws = seals.ws AND seq = ANY(seqs))"
    ),
    "two exchanged": (
        "UPDATE entries SET seq = 1000 WHERE seq = 1; UPDATE entries SET seq = 1 WHERE seq = 3;"
        " UPDATE entries SET seq = 3 WHERE seq = 1000"
    ),
    "one added": (
        "INSERT INTO entries SELECT ws, 900, change_id, 'new', to_path, session, agent, operation, undoes, ok, timestamp,"
        " '', sha256(convert_to(chr(10) || body, 'UTF8')), writer, before, after, displaced, proposal, body FROM entries"
        " WHERE seq = 1"
    ),
}


@pytest.fixture
def store(postgres_schema: PostgresSchema, clock: Clock) -> Iterator[PostgresStore]:
    store = open_postgres_store(postgres_schema.address, workspace="w", root="/w", host="here", clock=clock)
    author = Author(store)
    for number in range(3):
        for path in "ab":
            author.write(path, b"%d" % number)
    store.record(call(), change("a", None, None), change_id="r", ok=False, error_kind="stale_file")
    assert store.verify().ok
    yield store
    store.close()


@requirement("fleet:state:chain")
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
def test_every_planted_change_is_found(store: PostgresStore, postgres_schema: PostgresSchema, planted: str) -> None:
    with postgres_schema.connect() as connection:
        connection.execute(planted.encode())

    verdict = store.verify(blobs=False)

    assert not verdict.ok
    assert verdict.problem
    assert verdict.broken_seq > 0


@requirement("fleet:state:chain")
def test_the_ledger_refuses_to_be_changed(store: PostgresStore, postgres_schema: PostgresSchema) -> None:
    with psycopg.connect(postgres_schema.address.conninfo, autocommit=True) as connection:
        for statement in (
            "UPDATE entries SET ok = false",
            "DELETE FROM entries",
            "TRUNCATE entries",
            "DELETE FROM seals",
        ):
            with pytest.raises(psycopg.Error, match="only grows"):
                connection.execute(statement)

    assert store.verify().ok


def test_a_damaged_version_is_noticed(store: PostgresStore, postgres_schema: PostgresSchema) -> None:
    with postgres_schema.connect() as connection:
        connection.execute(
            "UPDATE blobs SET data = set_byte(data, octet_length(data) - 1, 255 - get_byte(data, octet_length(data) - 1))"
        )

    verdict = store.verify()

    assert len(verdict.broken_blobs) >= 1
    assert not verdict.ok
    assert verdict.problem == f"{len(verdict.broken_blobs)} blobs are damaged."
    assert store.verify(blobs=False).ok
