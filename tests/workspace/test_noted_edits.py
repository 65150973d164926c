"""Edits that a host makes with its own tools: noted before, recorded after."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.disk.local import LocalDisk
from surehold.errors import LockTimeout
from surehold.stores.base import Blob, Change, Intent, LedgerQuery
from surehold.stores.owner import current_owner
from surehold.text.plan import Delete
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import sha256_hex
from surehold.workspace.foreign import noted_edits
from surehold.workspace.foreign.noted_edits import note_after, note_before
from surehold.workspace.proposal import Proposal, Unproven
from workspaces import Bench, call, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path)
    yield made
    made.workspace.close()


def write(bench: Bench, path: str, text: str | None) -> None:
    edit = Delete() if text is None else WriteText(text)
    bench.workspace.write(Proposal(path=path, edit=edit, proof=Unproven()), call=call("edit", agent="ours"))


@pytest.mark.parametrize(
    ("before", "after", "operation", "signs"),
    [("old\n", "new\nmore\n", "edit", "-++"), (None, "new\n", "create", "+"), ("old\n", None, "delete", "-")],
)
def test_what_became_of_a_noted_file_is_one_change(
    bench: Bench, before: str | None, after: str | None, operation: str, signs: str
) -> None:
    if before is not None:
        bench.put("a", before.encode())
    noted = note_before(bench.workspace.reader, ["a"])
    if before is not None or after is not None:
        bench.put("a", after.encode() if after is not None else None)

    (entry,) = note_after(bench.workspace.reader, noted, call("edit", agent="host"))

    assert (noted[0].key, noted[0].seq) == ("a", 0)
    assert (entry.call.operation, entry.call.agent, entry.change.path) == (operation, "host", "a")
    assert (entry.change.before is None, entry.change.after is None) == (before is None, after is None)
    assert "".join(row[0] for row in entry.change.diff.splitlines()[3:]) == signs
    assert (entry.change.diff_truncated, entry.change.added, entry.change.removed) == (False, 0, 0)
    assert bool(entry.change.trash_id) is (after is None)
    assert all(bench.store.has_blob(one.sha256) for one in (entry.change.before, entry.change.after) if one)
    bench.workspace.history.undo(entry.change_id)
    assert bench.get("a") == (before.encode() if before is not None else None)
    bench.workspace.history.redo(entry.change_id)
    assert bench.get("a") == (after.encode() if after is not None else None)
    assert bench.workspace.history.verify().ok


def test_files_that_are_what_they_were_are_not_recorded(bench: Bench) -> None:
    bench.put("a", b"old\n")
    noted = note_before(bench.workspace.reader, ["a", "absent"])
    bench.put("a", b"old\n")

    assert note_after(bench.workspace.reader, noted, call()) == ()
    (bench.root / "a").chmod(0o700)
    (entry,) = note_after(bench.workspace.reader, noted, call())
    assert entry.change.before
    assert entry.change.after
    assert entry.change.before.mode != entry.change.after.mode
    assert entry.change.diff == ""
    assert len(bench.workspace.history.log()) == 1


def test_several_files_are_one_change(bench: Bench) -> None:
    bench.put("a", b"old\n")
    noted = note_before(bench.workspace.reader, ["a", "same", "b"])
    for name in ("a", "b"):
        bench.put(name, b"new\n")

    entries = note_after(bench.workspace.reader, noted, call("edit"))

    assert [(one.call.operation, one.change.path) for one in entries] == [("patch", "a"), ("patch", "b")]
    assert len({one.change_id for one in entries}) == 1


def test_what_the_history_has_learned_in_between_is_not_counted_twice(bench: Bench) -> None:
    write(bench, "a", "one\n")
    noted = note_before(bench.workspace.reader, ["a"])
    assert noted[0].seq == bench.workspace.history.log()[0].seq > 0
    write(bench, "a", "two\n")
    bench.put("a", b"three\n")

    (entry,) = note_after(bench.workspace.reader, noted, call("edit", agent="host"))

    assert entry.change.before
    assert entry.change.before.sha256 == sha256_hex(b"two\n")
    assert note_after(bench.workspace.reader, noted, call()) == ()
    assert [one.call.agent for one in bench.workspace.history.log()] == ["host", "ours", "ours"]


def test_a_version_that_the_history_did_not_know_begins_the_change(bench: Bench) -> None:
    write(bench, "a", "one\n")
    bench.put("a", b"by another program\n")
    noted = note_before(bench.workspace.reader, ["a"])
    bench.put("a", b"by the host\n")

    (entry,) = note_after(bench.workspace.reader, noted, call("edit", agent="host"))

    assert entry.change.before
    assert entry.change.before.sha256 == sha256_hex(b"by another program\n")
    agents = [one.call.agent or one.call.operation for one in bench.workspace.history.log()]
    assert agents == ["host", "external", "ours"]


@requirement("engine:ledger:bounded_diff")
def test_a_long_difference_is_cut_and_its_lines_are_counted(bench: Bench) -> None:
    bench.put("a", b"one\ntwo\n")
    noted = note_before(bench.workspace.reader, ["a"])
    bench.put("a", b"".join(b"row number %d\n" % number for number in range(50_000)))

    (entry,) = note_after(bench.workspace.reader, noted, call())

    assert (entry.change.diff_truncated, entry.change.added, entry.change.removed) == (True, 50_000, 2)


def begin_other(bench: Bench) -> None:
    """Let another change of `a` be under way."""
    version = bench.workspace.read("a").version
    change = Change(path="a", before=version, after=version)
    began = bench.clock().isoformat()
    intent = Intent(id="other", call=call(), changes=(change,), owner=current_owner(), began=began)
    bench.store.begin(intent, [Blob(data=b"new\n", sha256=sha256_hex(b"new\n"))], lease=60, fence=0)


def test_a_change_that_is_under_way_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = note_before(bench.workspace.reader, ["a"])
    bench.put("a", b"new\n")
    begin_other(bench)

    def end_other(seconds: float) -> None:
        assert seconds > 0
        bench.store.withdraw("other")

    monkeypatch.setattr("time.sleep", end_other)

    (entry,) = note_after(bench.workspace.reader, noted, call("create", agent="host"))

    assert (entry.call.agent, bench.store.open_intents()) == ("host", ())


def test_a_change_that_does_not_end_in_time_is_not_waited_for_any_longer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_edits, "_WAIT_SECONDS", 0)
    noted = note_before(bench.workspace.reader, ["a"])
    bench.put("a", b"new\n")
    begin_other(bench)

    with pytest.raises(LockTimeout) as refused:
        note_after(bench.workspace.reader, noted, call())

    assert refused.value.reason == "busy"
    bench.store.withdraw("other")
    other = LocalDisk([str(bench.root)], durability="none")
    with pytest.raises(LockTimeout), other.lock([other.resolve("a")], timeout=0):
        note_after(bench.workspace.reader, noted, call())
    assert len(note_after(bench.workspace.reader, noted, call())) == 1
    assert len(bench.workspace.history.log(LedgerQuery(operation="create"))) == 1
