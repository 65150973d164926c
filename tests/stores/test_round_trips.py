"""How often a call waits for the database, and what it says when the answer is lost."""

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from databases.counting_proxy import CountingProxy
from databases.schemas import PostgresSchema
from spec.marks import requirement
from surehold.disk.local import LocalDisk
from surehold.errors import RecoveryRequired, SureholdError
from surehold.library.workspace import AgentWorkspace
from surehold.stores.base import Call, LedgerQuery
from surehold.stores.owner import current_owner
from surehold.stores.postgres.address import parse_address
from surehold.stores.postgres.database import PostgresDatabase
from surehold.stores.postgres.store import open_postgres_store
from surehold.text.anchored.operations import InsertAfter
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteText
from surehold.workspace.proposal import Absent, Exact, Proposal


@pytest.fixture
def proxy(postgres_schema: PostgresSchema) -> Iterator[CountingProxy]:
    proxy = CountingProxy(postgres_schema.url)
    yield proxy
    proxy.close()


@contextmanager
def open_agent(root: Path, url: str, *, patience: float = 8) -> Generator[AgentWorkspace]:
    root.mkdir(exist_ok=True)
    address = parse_address(url)
    store = open_postgres_store(
        address, workspace=address.workspace or "w", root=str(root), host="here", patience=patience
    )
    workspace = AgentWorkspace(disk=LocalDisk([str(root)]), store=store, owner=current_owner)
    with workspace:
        yield workspace


@requirement("fleet:state:trips")
def test_an_edit_waits_three_times_and_a_read_once(proxy: CountingProxy, tmp_path: Path) -> None:
    with open_agent(tmp_path / "w", proxy.url) as workspace:
        (tmp_path / "w" / "a.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
        session = workspace.session(agent="ada")

        def trips(work: Callable[[], object]) -> int:
            workspace.store.flush_sightings()
            proxy.trips = 0
            work()
            return proxy.trips

        def read() -> str:
            return session.read_file("a.py").sha256

        def edit(old: str, new: str) -> object:
            return session.edit_file("a.py", [(old, new)], expected_sha256=read_sha)

        read_sha = read()
        edit("one = 1", "one = 11")
        counted = {"read": trips(read)}
        read_sha = read()
        counted["edit"] = trips(lambda: edit("two = 2", "two = 22"))
        counted["create"] = trips(lambda: session.create_file("b.py", "x = 1\n"))
        counted["claude Edit"] = trips(lambda: session.claude.Edit("a.py", "three", "drei"))
        session.read_file("a.py", hashes=True)
        added = [InsertAfter(hash="EOF", content="four = 4")]
        counted["anchored edit"] = trips(lambda: session.edit_lines("a.py", added))
        (tmp_path / "w" / "b.py").write_text("x = 2\n")
        session.read_file("b.py")
        (tmp_path / "w" / "b.py").write_text("x = 3\n")
        session.read_file("b.py")
        counted["read of anchors that must not be lost"] = trips(lambda: session.read_file("b.py", hashes=True))

    edits = dict.fromkeys(("edit", "create", "claude Edit", "anchored edit"), 3)
    assert counted == {"read": 1, **edits, "read of anchors that must not be lost": 2}


@requirement("session:store:at_once")
def test_the_end_of_a_change_takes_what_waits_of_its_path_in_the_same_trip(
    postgres_schema: PostgresSchema, tmp_path: Path
) -> None:
    written = list[object]()
    with (
        open_agent(tmp_path / "w", postgres_schema.url) as workspace,
        open_agent(tmp_path / "w", postgres_schema.url) as other,
    ):
        buffer = getattr(workspace.store, "_buffer")  # noqa: B009 - nothing else must write
        write, buffer._write = buffer._write, written.append
        buffer._has_thread = lambda: True
        session = workspace.session(agent="ada")
        session.create_file("a.py", "one = 1\n")
        session.create_file("b.py", "one = 1\n")
        session.read_file("a.py", hashes=True)
        session.read_file("b.py", hashes=True)

        session.edit_lines("a.py", [InsertAfter(hash="EOF", content="two = 2")])

        assert written == []
        assert other.store.list_sightings(session.id, "a.py") == workspace.store.list_sightings(session.id, "a.py")
        assert [one.sha256 for one in buffer.sightings_of(session.id, "a.py")] == []
        assert len(buffer.sightings_of(session.id, "b.py")) == 1
        buffer._write = write


@requirement("session:store:at_once")
def test_another_replica_knows_the_anchors_of_a_change_at_once(postgres_schema: PostgresSchema, tmp_path: Path) -> None:
    url = postgres_schema.url
    with open_agent(tmp_path / "w", url) as workspace, open_agent(tmp_path / "w", url) as other:
        session = workspace.session(agent="ada")
        session.create_file("a.py", "one = 1\n")
        session.read_file("a.py", hashes=True)
        session.edit_lines("a.py", [InsertAfter(hash="EOF", content="two = 2")])

        shown = workspace.store.list_sightings(session.id, "a.py")
        assert shown[0].anchored
        assert other.store.list_sightings(session.id, "a.py") == shown


@requirement("fleet:state:refusal")
def test_a_refused_edit_waits_once(proxy: CountingProxy, tmp_path: Path) -> None:
    with open_agent(tmp_path / "w", proxy.url) as workspace:
        (tmp_path / "w" / "a.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
        ada, bob = workspace.session(agent="ada"), workspace.session(agent="bob")
        old = ada.read_file("a.py").sha256
        new = bob.edit_file("a.py", [("one = 1", "one = 11")], expected_sha256=old).sha256

        def trips(work: Callable[[], object]) -> int:
            workspace.store.flush_sightings()
            workspace.store.list_entries(LedgerQuery(limit=1))  # nothing of the call before is still on its way
            refusals = getattr(workspace.store, "_refusals")  # noqa: B009 - nothing must be counted that is not waited for
            write, refusals._write = refusals._write, written.append
            buffer = getattr(workspace.store, "_buffer")  # noqa: B009
            flush, buffer._write = buffer._write, lambda sightings, blobs: written.append((sightings, blobs))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] - a double
            proxy.trips = 0
            with pytest.raises(SureholdError):
                work()
            counted = proxy.trips
            refusals._write, buffer._write = write, flush
            return counted

        written = list[object]()
        counted = {
            "stale": trips(lambda: ada.edit_file("a.py", [("two = 2", "two = 22")], expected_sha256=old)),
            "text not found": trips(lambda: ada.edit_file("a.py", [("four", "vier")], expected_sha256=new)),
            "file is there": trips(lambda: ada.create_file("a.py", "x")),
            "no such file": trips(lambda: ada.edit_file("b.py", [("four", "vier")], expected_sha256=new)),
            "bad arguments": trips(lambda: ada.edit_file("a.py", [("", "x")], expected_sha256=new)),
        }

    assert counted == dict.fromkeys(counted, 1) | {"bad arguments": counted["bad arguments"]}
    assert counted["bad arguments"] <= 1


@requirement("fleet:state:refusal")
def test_a_refusal_is_in_the_ledger_for_whoever_looks(proxy: CountingProxy, tmp_path: Path) -> None:
    with open_agent(tmp_path / "w", proxy.url) as workspace:
        session = workspace.session(agent="ada")
        session.create_file("a.txt", "one\n")
        for _ in range(3):
            with pytest.raises(SureholdError):
                session.create_file("a.txt", "two\n")

        listed = [entry.ok for entry in workspace.store.list_entries(LedgerQuery())]

        assert listed == [False, False, False, True]
        assert workspace.store.verify().ok


@requirement("fleet:state:refusal")
def test_a_refusal_while_the_database_is_away_is_recorded_when_it_is_back(proxy: CountingProxy, tmp_path: Path) -> None:
    with open_agent(tmp_path / "w", proxy.url, patience=0.2) as workspace:
        session = workspace.session(agent="ada")
        proxy.is_down = True
        proxy.cut_all()
        with pytest.raises(SureholdError):
            session.create_file("a.txt", "two\n")
        proxy.is_down = False

        (entry,) = workspace.store.list_entries(LedgerQuery())

        assert (entry.ok, entry.error_kind, entry.change.path) == (False, "command_failed", "a.txt")


@requirement("fleet:state:patience")
@pytest.mark.parametrize("words", [b"look_at", b"begin_intent", b"finish_intent"])
def test_a_call_waits_for_a_database_that_is_away_once(
    proxy: CountingProxy, tmp_path: Path, words: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[float]()
    attempt = PostgresDatabase._attempt  # pyright: ignore[reportPrivateUsage] - each of these is one wait

    def count(self: PostgresDatabase, work: Any, *, twice: bool, patience: float | None = None) -> Any:
        try:
            return attempt(self, work, twice=twice, patience=patience)
        except SureholdError:
            if threading.current_thread() is threading.main_thread():
                waited.append(self.patience if patience is None else patience)
            raise

    with open_agent(tmp_path / "w", proxy.url, patience=0.2) as workspace:
        session = workspace.session(agent="ada")
        monkeypatch.setattr(PostgresDatabase, "_attempt", count)
        proxy.cut_answers_to = words

        with pytest.raises(SureholdError):
            session.create_file("a.txt", "one\n")

        assert waited == [0.2]
        proxy.cut_answers_to, proxy.is_down = b"", False


@requirement("fleet:state:unknown")
def test_an_answer_that_is_lost_says_so_and_the_key_settles_it(proxy: CountingProxy, tmp_path: Path) -> None:
    with open_agent(tmp_path / "w", proxy.url, patience=0.2) as workspace:
        wanted = Proposal(path="a.txt", edit=WriteText("once\n"), proof=Absent())
        asked = Call(tool="test", operation="create", writer="files", idempotency_key="the-key")
        proxy.cut_answers_to = b"finish_intent"

        with pytest.raises(RecoveryRequired) as caught:
            workspace.write(wanted, call=asked)
        proxy.cut_answers_to, proxy.is_down = b"", False
        receipt = workspace.write(wanted, call=asked)

        assert "unknown" in caught.value.message
        assert "`the-key`" in caught.value.action
        assert caught.value.details["idempotency_key"] == "the-key"
        assert receipt.replayed
        assert receipt.change_id == caught.value.details["change_id"]
        assert (tmp_path / "w" / "a.txt").read_text() == "once\n"
        assert [entry.ok for entry in workspace.store.list_entries(LedgerQuery())] == [True]
        assert workspace.store.verify().ok


@pytest.mark.parametrize("words", [b"look_at", b"begin_intent", b"finish_intent"])
def test_a_line_that_breaks_once_costs_nothing(proxy: CountingProxy, tmp_path: Path, words: bytes) -> None:
    with open_agent(tmp_path / "w", proxy.url) as workspace:
        session = workspace.session(agent="ada")
        session.create_file("a.txt", "one\n")
        proxy.cut_answers_to, proxy.stays_up = words, True

        session.create_file("b.txt", "two\n")

        assert proxy.cut_answers_to == b""  # it did break
        paths = [entry.change.path for entry in workspace.store.list_entries(LedgerQuery())]
        assert paths == ["b.txt", "a.txt"]
        assert workspace.store.open_intents() == ()
        assert workspace.store.verify().ok


@requirement("fleet:state:cut")
@pytest.mark.parametrize("is_sent", [True, False], ids=["answer lost", "question lost"])
@pytest.mark.parametrize("words", [b"look_at", b"begin_intent", b"finish_intent"])
def test_a_line_that_is_cut_at_any_statement_leaves_a_change_that_the_same_call_makes_once(
    proxy: CountingProxy, tmp_path: Path, words: bytes, is_sent: bool
) -> None:
    with open_agent(tmp_path / "w", proxy.url, patience=0.2) as workspace:
        file = tmp_path / "w" / "a.txt"
        file.write_text("one\n")
        wanted = Proposal(path="a.txt", edit=SnapshotEdits((StringEdit(old="one", new="one, two"),)), proof=Exact())
        asked = Call(tool="test", operation="edit", writer="files", idempotency_key="the-key")
        proxy.cut_answers_to, proxy.cut_questions = words, not is_sent

        with pytest.raises(SureholdError):
            workspace.write(wanted, call=asked)
        was_written = file.read_text()
        proxy.cut_answers_to, proxy.is_down = b"", False
        workspace.write(wanted, call=asked)

        assert was_written == ("one, two\n" if words == b"finish_intent" else "one\n")
        assert file.read_text() == "one, two\n"
        assert [entry.ok for entry in workspace.store.list_entries(LedgerQuery(ok_only=True))] == [True]
        assert workspace.store.open_intents() == ()
        assert workspace.store.verify().ok
