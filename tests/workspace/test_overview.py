"""A workspace at a glance: what sessions did, servers that run, and files that other programs changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.errors import NotFound
from surehold.stores.base import LedgerQuery
from surehold.stores.conversations import SessionRow
from surehold.stores.owner import Owner, current_owner
from surehold.stores.server_runs import ServerRun
from surehold.text.plan import Delete, Keep
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Meta, Version, sha256_hex
from surehold.workspace.past.overview import (
    SessionSummary,
    SessionTallies,
    outside_edits,
    summarize_entries,
    tally_sessions,
    working_agents,
)
from surehold.workspace.proposal import EntrySwitch, Exact, Proposal, Unproven
from workspaces import Bench, call, make_bench

DEAD = Owner(host=current_owner().host, boot="another boot", pid=1, started="0")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path)
    yield made
    made.workspace.close()


def write(bench: Bench, path: str, text: str, *, session: str, turn: str = "") -> None:
    bench.store.open_session(SessionRow(id=session, agent=f"agent of {session}", opened=bench.clock().isoformat()))
    proposal = Proposal(path=path, edit=WriteText(text), proof=Unproven())
    bench.workspace.write(proposal, call=call("create", session=session, turn=turn))


def run(bench: Bench, key: str, *, session: str = "") -> None:
    """Let a command make a directory."""
    made = bench.root / key
    made.mkdir()
    entry = bench.workspace.read_entry(key)
    assert entry
    made.rmdir()
    whole = EntrySwitch(old_key="", old=None, new_key=key, new=entry.version)
    proposal = Proposal(path=key, edit=Keep(), proof=Unproven(), whole=whole)
    bench.workspace.write(proposal, call=call("run", session=session))


def facts(one: SessionSummary | None) -> tuple[object, ...] | None:
    return one and (one.session, one.agent, one.turns, one.changes, one.files, one.added, one.removed)


def test_what_each_session_did_is_summed_up_and_the_one_that_did_something_last_comes_first(bench: Bench) -> None:
    write(bench, "a", "1\n2\n", session="s1", turn="t1")
    write(bench, "b", "1\n", session="s2")
    write(bench, "a", "1\nx\ny\n", session="s1", turn="t1")
    write(bench, "b", "1\n2\n", session="s1", turn="t2")
    run(bench, "d", session="s1")
    with pytest.raises(NotFound):
        bench.workspace.write(Proposal(path="c", edit=Delete(), proof=Exact()), call=call("delete", session="s1"))
    bench.store.begin_turn("s2", title="Do it.", turn_id="t9")
    bench.store.open_session(SessionRow(id="idle", agent="no one", opened=bench.clock().isoformat()))

    tallies = tally_sessions(bench.workspace)

    assert [facts(one) for one in tallies.summarize()] == [
        ("s1", "agent of s1", 2, 4, 2, 5, 1),
        ("s2", "agent of s2", 1, 1, 1, 1, 0),
    ]
    assert [(one.id, one.title) for one in tallies.list_turns("s2")] == [("t9", "Do it.")]
    assert (facts(tallies.find("s2")), tallies.find("idle"), tallies.find("unknown")) == (
        ("s2", "agent of s2", 1, 1, 1, 1, 0),
        None,
        None,
    )


def test_a_second_look_adds_what_was_done_since_and_a_new_look_comes_to_the_same(bench: Bench) -> None:
    write(bench, "a", "1\n", session="s1")
    tallies = SessionTallies(bench.store)
    first = tallies.find("s1")
    assert first
    write(bench, "b", "1\n2\n", session="s1", turn="t1")
    write(bench, "b", "1\n2\n3\n", session="other")

    second = tallies.find("s1")

    assert (facts(first), facts(second)) == (("s1", "agent of s1", 1, 1, 1, 1, 0), ("s1", "agent of s1", 1, 2, 2, 3, 0))
    assert second == SessionTallies(bench.store).find("s1") == tallies.find("s1")
    stamps = [one.timestamp for one in bench.store.list_entries(LedgerQuery(session="s1"))]
    assert second
    assert (second.ended, first.ended) == tuple(stamps)
    assert first.started == second.started < stamps[-1]


def test_a_session_that_was_opened_after_its_first_change_began_with_that(bench: Bench) -> None:
    for text in ("1", "2"):
        bench.workspace.write(Proposal(path="a", edit=WriteText(text), proof=Unproven()), call=call(session="s1"))
    bench.store.open_session(SessionRow(id="s1", agent="ada", opened="9999-01-01T00:00:00+00:00"))

    (summary,) = SessionTallies(bench.store).summarize()

    assert (summary.ended, summary.started) == tuple(one.timestamp for one in bench.store.list_entries(LedgerQuery()))


def test_some_entries_are_summed_up_by_session_and_those_of_no_session_are_left_out(bench: Bench) -> None:
    write(bench, "a", "1\n", session="s1", turn="t1")
    write(bench, "b", "1\n", session="s2")
    write(bench, "c", "1\n2\n", session="s1", turn="t2")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Unproven()), call=call("delete"))
    newest_first = bench.store.list_entries(LedgerQuery())

    assert [facts(one) for one in summarize_entries(bench.store, newest_first)] == [
        ("s1", "agent of s1", 2, 2, 2, 3, 0),
        ("s2", "agent of s2", 1, 1, 1, 1, 0),
    ]
    (some,) = summarize_entries(bench.store, newest_first[3:])
    assert (facts(some), some.ended) == (("s1", "agent of s1", 1, 1, 1, 1, 0), newest_first[3].timestamp)


def test_a_server_that_was_called_and_runs_is_a_working_agent(bench: Bench) -> None:
    here = current_owner()
    for name, server in (("runs", here), ("ended", here), ("died", DEAD), ("other", here)):
        served = ServerRun(id=name, server=server, parent=here, roots=(name,), began="2026-01-01T00:00:00+00:00")
        bench.store.claim_session(served, fresh=f"session of {name}")
        if name == "ended":
            bench.store.end_server(served)

    assert sorted(one.session for one in working_agents(bench.workspace)) == ["session of other", "session of runs"]


def test_files_that_are_not_what_the_history_knows_are_listed_by_name(bench: Bench) -> None:
    for name in ("z", "same", "gone", "back", "below", "deleted"):
        write(bench, name, "1\n", session="s1")
    for name in ("deleted", "back"):
        bench.workspace.write(Proposal(path=name, edit=Delete(), proof=Unproven()), call=call("delete"))
    run(bench, "d")
    for name in ("link", "turned", "lost"):
        whole = EntrySwitch(old_key="", old=None, new_key=name, new=link_version(b"same"), data=b"same")
        bench.workspace.write(Proposal(path=name, edit=Keep(), proof=Unproven(), whole=whole), call=call("run"))
    assert outside_edits(bench.workspace) == []

    bench.put("z", b"2\n")
    bench.put("back", b"1\n")
    bench.put("new", b"1\n")
    for name in ("gone", "turned", "lost"):
        (bench.root / name).unlink()
    (bench.root / "turned").symlink_to("elsewhere")
    (bench.root / "below").unlink()
    (bench.root / "below").mkdir()
    (bench.root / "d").rmdir()

    assert outside_edits(bench.workspace) == ["back", "gone", "lost", "turned", "z"]


def link_version(to: bytes) -> Version:
    return Version(sha256=sha256_hex(to), size=len(to), meta=Meta(mode=0o777, mtime_ns=1), kind="link")
