"""A database that is stopped, not dead: it takes what is sent, and says nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from databases.postgres_server import PostgresServer
from databases.schemas import set_up_schema
from spec.marks import requirement
from stores.test_round_trips import open_agent
from surehold.errors import RecoveryRequired, StateUnavailable
from surehold.stores.base import Call, LedgerQuery
from surehold.stores.postgres import database
from surehold.stores.postgres.address import parse_address
from surehold.stores.postgres.database import PostgresDatabase
from surehold.text.rewrite import WriteText
from surehold.workspace.proposal import Absent, Proposal

PATIENCE = 1.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer.create()
    try:
        server.start()
        set_up_schema(f"{server.url}/postgres")
        yield server
    finally:
        server.remove()


@requirement("fleet:state:silent")
def test_a_stopped_database_is_waited_for_once_and_then_refused(server: PostgresServer, tmp_path: Path) -> None:
    with open_agent(tmp_path / "w", f"{server.url}/postgres?workspace=a", patience=PATIENCE) as workspace:
        session = workspace.session(agent="ada")
        session.create_file("a.txt", "one\n")
        workspace.store.flush_sightings()

        with server.stopped():
            with pytest.raises(StateUnavailable) as caught:
                session.create_file("b.txt", "two\n")
            assert caught.value.message == "The database of the history does not answer."
            assert caught.value.action.startswith("Nothing was written.")
            with pytest.raises(StateUnavailable) as new:
                session.create_file("c.txt", "two\n")  # by a new connection
            assert new.value.reason == "state_unreachable"

        assert not (tmp_path / "w" / "b.txt").exists()
        session.create_file("b.txt", "two\n")
        assert workspace.store.open_intents() == ()
        assert workspace.store.verify().ok


@requirement("fleet:state:silent", "fleet:state:unknown")
def test_a_database_that_stops_while_a_change_is_recorded_leaves_an_unknown_that_its_key_settles(
    server: PostgresServer, tmp_path: Path
) -> None:
    with open_agent(tmp_path / "w", f"{server.url}/postgres?workspace=b", patience=PATIENCE) as workspace:
        wanted = Proposal(path="a.txt", edit=WriteText("once\n"), proof=Absent())
        asked = Call(tool="test", operation="create", writer="files", idempotency_key="the-key")
        finish = workspace.store.finish

        def finish_stopped(*words: object, **options: object) -> object:
            with server.stopped():
                return finish(*words, **options)  # pyright: ignore[reportArgumentType] - passed on

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workspace.store, "finish", finish_stopped)
            with pytest.raises(RecoveryRequired) as caught:
                workspace.write(wanted, call=asked)

        assert "unknown" in caught.value.message
        assert caught.value.details["idempotency_key"] == "the-key"
        assert workspace.write(wanted, call=asked).change_id
        assert (tmp_path / "w" / "a.txt").read_text() == "once\n"
        assert [entry.ok for entry in workspace.store.list_entries(LedgerQuery(ok_only=True))] == [True]
        assert workspace.store.open_intents() == ()
        assert workspace.store.verify().ok


@requirement("fleet:state:silent")
def test_a_slow_statement_of_a_database_that_answers_others_is_waited_for(server: PostgresServer) -> None:
    pool = PostgresDatabase(parse_address(f"{server.url}/postgres"), patience=0)

    assert pool.call("SELECT 1 FROM pg_sleep(2.5)") == (1,)

    pool.close()


@requirement("fleet:state:silent")
def test_a_statement_without_an_answer_has_an_end_though_the_database_answers_others(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = PostgresDatabase(parse_address(f"{server.url}/postgres"), patience=0)
    monkeypatch.setattr(database, "_LONGEST_STATEMENT_SECONDS", 0.3)

    with pytest.raises(StateUnavailable, match="does not answer"):
        pool.transact(lambda connection: connection.execute("SELECT 1 FROM pg_sleep(30)"))

    monkeypatch.undo()
    assert pool.call("SELECT 1") == (1,)
    pool.close()


def test_killing_the_server_of_a_test_ends_all_of_it_and_it_starts_again(server: PostgresServer) -> None:
    pool = PostgresDatabase(parse_address(f"{server.url}/postgres"))
    assert pool.call("SELECT 1") == (1,)
    before = server.pids()

    server.kill()

    assert [pid for pid in before if Path(f"/proc/{pid}/cmdline").exists() and _is_postgres(pid)] == []
    server.start()
    assert pool.call("SELECT 1") == (1,)
    assert not {*before} & {*server.pids()}
    pool.close()


def _is_postgres(pid: int) -> bool:
    try:
        return b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
