"""How often a call waits for the database, and what it says when the answer is lost."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from databases.counting_proxy import CountingProxy
from databases.schemas import PostgresSchema
from spec.marks import requirement
from surehold.disk.local import LocalDisk
from surehold.errors import RecoveryRequired
from surehold.library.workspace import AgentWorkspace
from surehold.stores.base import Call, LedgerQuery
from surehold.stores.owner import current_owner
from surehold.stores.postgres.address import parse_address
from surehold.stores.postgres.store import open_postgres_store
from surehold.text.rewrite import WriteText
from surehold.workspace.proposal import Absent, Proposal


@pytest.fixture
def proxy(postgres_schema: PostgresSchema) -> Iterator[CountingProxy]:
    proxy = CountingProxy(postgres_schema.url)
    yield proxy
    proxy.close()


@contextmanager
def open_agent(root: Path, url: str, *, patience: float = 8) -> Generator[AgentWorkspace]:
    root.mkdir(exist_ok=True)
    address = parse_address(url)
    store = open_postgres_store(address, workspace="w", root=str(root), host="here", patience=patience)
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

    assert counted == {"read": 1, "edit": 3, "create": 3, "claude Edit": 3}


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
