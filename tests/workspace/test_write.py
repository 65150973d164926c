import os
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    OldTextNotFound,
    OutsideWorkspace,
    StaleFile,
    StateUnavailable,
    SureholdError,
)
from surehold.stores.base import LedgerQuery
from surehold.text.plan import Delete, EditPlan, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteBytes, WriteText
from surehold.text.snapshot import Meta, sha256_hex
from surehold.workspace.proposal import Absent, Exact, Proof, Proposal, Sha256, Unproven
from workspaces import Bench, call, make_bench


def edit(path: str, old: str, new: str, proof: Proof | None = None) -> Proposal:
    return Proposal(path=path, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=proof or Exact())


@requirement("engine:verify:clean")
def test_a_file_is_created_edited_moved_and_deleted(bench: Bench) -> None:
    write = bench.workspace.write

    write(Proposal(path="a/b.txt", edit=WriteText("one\n"), proof=Absent()), call=call("create"))
    write(edit("a/b.txt", "one", "two"), call=call())
    write(Proposal(path="a/b.txt", to_path="c.txt", edit=Keep(), proof=Exact()), call=call("move"))
    assert (bench.get("a/b.txt"), bench.get("c.txt")) == (None, b"two\n")
    write(Proposal(path="c.txt", edit=Delete(), proof=Exact()), call=call("delete"))

    assert bench.get("c.txt") is None
    assert [(e.call.operation, e.change.path, e.change.to_path) for e in bench.workspace.history.log()] == [
        ("delete", "c.txt", ""),
        ("move", "a/b.txt", "c.txt"),
        ("edit", "a/b.txt", ""),
        ("create", "a/b.txt", ""),
    ]
    assert bench.workspace.history.verify().ok


@requirement("engine:write:receipt", "engine:proof:exact", "session:proof:in_the_call")
def test_a_receipt_says_what_changed(bench: Bench) -> None:
    bench.put("a.txt", b"one\ntwo\n")

    receipt = bench.workspace.write(edit("a.txt", "two", "2"), call=call())

    assert receipt.diff == "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (receipt.files[0].before_sha256, receipt.files[0].after_sha256) == (
        sha256_hex(b"one\ntwo\n"),
        sha256_hex(b"one\n2\n"),
    )
    assert receipt.change_id == receipt.entries[0].change_id


@requirement(
    "engine:proof:sha256", "engine:proof:still_applies", "promise:unseen:stale", "promise:refusal:carries_data"
)
def test_a_wrong_sha256_is_refused_with_a_verdict(bench: Bench) -> None:
    bench.put("a.txt", b"new one\n")

    with pytest.raises(StaleFile) as refused:
        bench.workspace.write(edit("a.txt", "one", "two", Sha256("0" * 64)), call=call())

    assert bench.get("a.txt") == b"new one\n"
    assert refused.value.details == {
        "expected_sha256": "0" * 64,
        "actual_sha256": sha256_hex(b"new one\n"),
        "edits_still_apply": True,
        "retry_with_sha256": sha256_hex(b"new one\n"),
    }


@requirement("engine:proof:still_applies")
def test_the_verdict_says_when_the_edits_would_not_apply(bench: Bench) -> None:
    bench.put("a.txt", b"other\n")

    with pytest.raises(StaleFile) as refused:
        bench.workspace.write(edit("a.txt", "one", "two", Sha256("0" * 64)), call=call())

    assert refused.value.details["edits_still_apply"] is False


@requirement("engine:proof:already_applied", "session:proof:in_the_call")
def test_a_repeated_call_whose_result_is_already_there_succeeds(bench: Bench) -> None:
    bench.put("a.txt", b"one\n")
    proposal = edit("a.txt", "one", "two", Sha256(sha256_hex(b"one\n")))
    bench.workspace.write(proposal, call=call())

    again = bench.workspace.write(proposal, call=call())

    assert (again.already_applied, again.change_id, bench.get("a.txt")) == (True, "", b"two\n")


@requirement("engine:proof:already_applied")
def test_a_whole_write_whose_result_is_already_there_succeeds(bench: Bench) -> None:
    bench.put("a.txt", b"two\n")

    receipt = bench.workspace.write(
        Proposal(path="a.txt", edit=WriteText("two\n"), proof=Sha256("1" * 64)), call=call("write")
    )

    assert receipt.already_applied is True


@requirement("engine:proof:sha256")
@pytest.mark.parametrize("bad", ["", "abc", "g" * 64, "A" * 64, "0" * 63])
def test_a_malformed_sha256_is_refused_before_anything_is_looked_at(bad: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Sha256(bad)

    assert refused.value.reason == "malformed_sha256"


@requirement("engine:write:no_change")
def test_writing_what_is_there_already_writes_nothing(bench: Bench) -> None:
    bench.put("a.txt", b"same\n")

    receipt = bench.workspace.write(Proposal(path="a.txt", edit=WriteText("same\n"), proof=Exact()), call=call("write"))

    assert (receipt.change_id, receipt.files[0].changed) == ("", False)
    assert bench.workspace.history.log() == ()


@requirement("engine:proof:absent")
def test_creating_over_an_existing_file_is_refused(bench: Bench) -> None:
    bench.put("a.txt", b"mine")

    with pytest.raises(AlreadyExists):
        bench.workspace.write(Proposal(path="a.txt", edit=WriteText("x"), proof=Absent()), call=call("create"))

    assert bench.get("a.txt") == b"mine"


@requirement("engine:trash:list")
def test_moving_over_an_existing_file_is_refused_unless_its_sha256_is_named(bench: Bench) -> None:
    bench.put("a.txt", b"a")
    bench.put("b.txt", b"b")
    plain = Proposal(path="a.txt", to_path="b.txt", edit=Keep(), proof=Exact())
    with pytest.raises(AlreadyExists):
        bench.workspace.write(plain, call=call("move"))
    assert (bench.get("a.txt"), bench.get("b.txt")) == (b"a", b"b")

    named = Proposal(path="a.txt", to_path="b.txt", edit=Keep(), proof=Exact(), to_proof=Sha256(sha256_hex(b"b")))
    bench.workspace.write(named, call=call("move"))

    assert (bench.get("a.txt"), bench.get("b.txt")) == (None, b"a")
    assert [item.path for item in bench.workspace.history.trash()] == ["b.txt"]


def test_a_move_may_edit_on_the_way(bench: Bench) -> None:
    bench.put("a.txt", b"one\n")
    proposal = Proposal(
        path="a.txt", to_path="d/b.txt", edit=SnapshotEdits((StringEdit(old="one", new="two"),)), proof=Exact()
    )

    bench.workspace.write(proposal, call=call("move"))

    assert (bench.get("a.txt"), bench.get("d/b.txt")) == (None, b"two\n")


@requirement("engine:write:many", "promise:half_done:refusal")
def test_many_files_change_together_or_not_at_all(bench: Bench) -> None:
    for name in "abc":
        bench.put(name, name.encode())

    with pytest.raises(OldTextNotFound):
        bench.workspace.write(edit("a", "a", "1"), edit("b", "b", "2"), edit("c", "x", "3"), call=call("patch"))
    assert [bench.get(name) for name in "abc"] == [b"a", b"b", b"c"]

    receipt = bench.workspace.write(edit("a", "a", "1"), edit("b", "b", "2"), edit("c", "c", "3"), call=call("patch"))
    assert [bench.get(name) for name in "abc"] == [b"1", b"2", b"3"]
    assert [(entry.change_id, entry.change.path) for entry in receipt.entries] == [
        (receipt.change_id, n) for n in "abc"
    ]


@requirement("engine:write:twice")
def test_a_path_named_twice_in_one_call_is_refused(bench: Bench) -> None:
    bench.put("a", b"a")

    with pytest.raises(InvalidArgument) as refused:
        bench.workspace.write(edit("a", "a", "b"), edit("./a", "a", "c"), call=call("patch"))

    assert refused.value.reason == "duplicate_path"


def test_a_call_without_changes_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgument):
        bench.workspace.write(call=call())


@requirement("engine:write:dry_run")
def test_a_dry_run_says_everything_and_does_nothing(bench: Bench) -> None:
    bench.put("a", b"a")

    receipt = bench.workspace.write(edit("a", "a", "b"), call=call(), dry_run=True)

    assert (receipt.dry_run, receipt.change_id, bench.get("a")) == (True, "", b"a")
    assert "+b" in receipt.diff
    assert bench.workspace.history.log() == ()


@requirement("engine:write:dry_run")
def test_a_dry_run_is_refused_like_the_call_itself_and_leaves_no_entry(bench: Bench) -> None:
    bench.put("a", b"a")
    wrong = edit("a", "missing", "b", Sha256(sha256_hex(b"a")))

    with pytest.raises(OldTextNotFound) as tried:
        bench.workspace.write(wrong, call=call(), dry_run=True)
    assert bench.workspace.history.log() == ()
    with pytest.raises(OldTextNotFound) as done:
        bench.workspace.write(wrong, call=call())

    assert tried.value.as_dict() == done.value.as_dict()


@requirement("engine:write:no_record_no_write", "engine:store:intent")
@pytest.mark.parametrize("table", ["intents", "entries", "heads"])
def test_a_change_that_cannot_be_recorded_is_not_made(tmp_path: Path, table: str) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    bench.put("a", b"one\n")
    bench.workspace.write(edit("a", "one", "two"), call=call())
    head = bench.store.head_of("a")
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        for event in ("INSERT", "UPDATE"):
            database.execute(
                f"CREATE TRIGGER no_{event} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
    database.close()

    with pytest.raises(StateUnavailable):
        bench.workspace.write(edit("a", "two", "three"), call=call())

    assert (bench.get("a"), bench.store.head_of("a")) == (b"two\n", head)
    assert [entry.ok for entry in bench.workspace.history.log()][-1:] == [True]
    assert list(bench.root.iterdir()) == [bench.root / "a"]
    bench.workspace.close()


@requirement("engine:write:mode", "promise:nothing_lost:undo")
def test_new_permission_bits_alone_are_a_change_that_can_be_undone(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    bench.put("a", b"#!/bin/sh\n")
    (bench.root / "a").chmod(0o644)

    receipt = bench.workspace.write(Proposal(path="a", edit=Keep(), proof=Exact(), mode=0o755), call=call())
    made = stat.S_IMODE((bench.root / "a").stat().st_mode)
    bench.workspace.history.undo(receipt.change_id)
    undone = stat.S_IMODE((bench.root / "a").stat().st_mode)

    assert (made, undone, bench.get("a")) == (0o755, 0o644, b"#!/bin/sh\n")
    (entry,) = receipt.entries
    assert [v.meta.mode for v in (entry.change.before, entry.change.after) if v and v.meta] == [0o644, 0o755]
    bench.workspace.close()


@requirement("engine:write:refusal_recorded")
def test_a_refused_call_is_in_the_ledger(bench: Bench) -> None:
    with pytest.raises(NotFound):
        bench.workspace.write(edit("missing", "a", "b"), call=call(agent="me"))

    (entry,) = bench.workspace.history.log()
    assert (entry.ok, entry.error_kind, entry.change.path, entry.call.agent) == (False, "not_found", "missing", "me")


@requirement("engine:write:refusal_recorded")
@pytest.mark.parametrize("spelled", ["{root}/d/a", "./d/../d/a", "d/a"])
def test_a_refused_call_is_found_by_the_name_of_the_file(bench: Bench, spelled: str) -> None:
    bench.put("d/a", b"one\n")
    with pytest.raises(SureholdError):
        bench.workspace.write(edit(spelled.format(root=bench.workspace.roots[0]), "missing", "b"), call=call())

    (entry,) = bench.workspace.history.log(LedgerQuery(path="d/a"))
    assert not entry.ok


@requirement("engine:write:refusal_recorded")
def test_a_path_that_leads_out_is_refused_and_recorded(bench: Bench) -> None:
    with pytest.raises(OutsideWorkspace):
        bench.workspace.write(Proposal(path="../x", edit=WriteBytes(b""), proof=Unproven()), call=call())

    assert bench.workspace.history.log()[0].error_kind == "outside_workspace"


@requirement("engine:write:checks")
def test_a_check_can_refuse_a_plan(bench: Bench) -> None:
    bench.put("a", b"a")

    def never(plan: EditPlan) -> tuple[str, ...]:
        raise SureholdError("No.")

    proposal = Proposal(path="a", edit=WriteText("b"), proof=Exact(), checks=(never,))
    with pytest.raises(SureholdError):
        bench.workspace.write(proposal, call=call())

    assert bench.get("a") == b"a"


@requirement("engine:write:checks", "engine:write:receipt")
def test_a_check_can_warn(bench: Bench) -> None:
    bench.put("a", b"a")

    def careful(plan: EditPlan) -> tuple[str, ...]:
        return ("careful",)

    proposal = Proposal(path="a", edit=WriteText("b"), proof=Exact(), checks=(careful,))

    assert bench.workspace.write(proposal, call=call()).warnings == ("careful",)


@requirement("engine:store:retry")
def test_the_same_idempotency_key_returns_the_first_answer(bench: Bench) -> None:
    bench.put("a", b"x\n")
    add = Proposal(path="a", edit=SnapshotEdits((StringEdit(old="x", new="x\nx2", replace_all=True),)), proof=Exact())

    first = bench.workspace.write(add, call=call(idempotency_key="k"))
    second = bench.workspace.write(add, call=call(idempotency_key="k"))

    assert (second.replayed, second.change_id) == (True, first.change_id)
    assert bench.get("a") == b"x\nx2\n"


@requirement("engine:store:retry")
def test_a_repeated_call_answers_for_a_file_as_well_in_which_it_had_nothing_to_do(bench: Bench) -> None:
    bench.put("a", b"one\n")
    bench.put("b", b"as it is\n")
    both = edit("a", "one", "two"), Proposal(path="b", edit=WriteText("as it is\n"), proof=Unproven())
    asked = call(idempotency_key="k")
    first = bench.workspace.write(*both, call=asked)
    bench.put("b", b"by another program\n")

    again = bench.workspace.write(*both, call=asked)

    assert [(one.path, one.plan.after.data, one.changed, len(one.warnings)) for one in again.files] == [
        ("a", b"two\n", True, 1),
        ("b", b"by another program\n", False, 0),
    ]
    assert (again.replayed, again.change_id, again.entries) == (True, first.change_id, first.entries)
    with pytest.raises(InvalidArgument) as caught:
        bench.workspace.write(edit("b", "by", "from"), call=asked)
    assert (caught.value.reason, caught.value.path) == ("key_of_another_call", "a")
    assert caught.value.details == {"change_id": first.change_id}


@requirement("engine:store:external")
def test_an_outside_edit_between_two_of_ours_gets_an_entry_of_its_own(bench: Bench) -> None:
    bench.put("a", b"one\n")
    bench.workspace.write(edit("a", "one", "two"), call=call())
    bench.put("a", b"two\noutside\n")

    bench.workspace.write(edit("a", "two", "three"), call=call())

    rows = [(e.call.operation, e.call.writer) for e in bench.workspace.history.log(LedgerQuery(path="a"))]
    assert rows == [("edit", "edit"), ("external", "external"), ("edit", "edit")]
    assert bench.get("a") == b"three\noutside\n"


@requirement("engine:store:fence_local")
def test_a_file_put_back_to_an_older_version_by_somebody_else_can_still_be_edited(bench: Bench) -> None:
    bench.put("a", b"one\n")
    bench.workspace.write(edit("a", "one", "two"), call=call())
    bench.put("a", b"one\n")  # as `git checkout` does

    bench.workspace.write(edit("a", "one", "three"), call=call())

    assert bench.get("a") == b"three\n"


@requirement("promise:untouched:bytes")
def test_line_endings_encoding_and_damage_survive_an_edit(bench: Bench) -> None:
    data = b"\xef\xbb\xbfcaf\xc3\xa9\r\nold\nlast\r\n\xff no newline"
    bench.put("a", data)

    bench.workspace.write(edit("a", "old", "new"), call=call())

    assert bench.get("a") == data.replace(b"old", b"new")


def meta_of(bench: Bench, path: str) -> Meta:
    stored = bench.disk.read(bench.disk.resolve(path), limit=1000)
    assert stored is not None
    return stored.meta


@requirement("promise:untouched:bytes")
def test_a_file_that_is_moved_and_edited_is_as_new_as_its_bytes_and_keeps_its_mode(bench: Bench) -> None:
    bench.put("a", b"one\n")
    if (bench.root / "a").exists():
        (bench.root / "a").chmod(0o751)
        os.utime(bench.root / "a", ns=(1, 1_000_000_007))
    before = meta_of(bench, "a")

    bench.workspace.write(replace(edit("a", "one", "two"), to_path="b"), call=call("move"))

    after = meta_of(bench, "b")
    assert after.mtime_ns > before.mtime_ns
    assert replace(after, mtime_ns=before.mtime_ns) == before


@requirement("promise:untouched:bytes")
def test_a_file_that_is_moved_with_another_mode_keeps_its_time(bench: Bench) -> None:
    bench.put("a", b"one\n")
    before = meta_of(bench, "a")

    bench.workspace.write(Proposal(path="a", to_path="b", edit=Keep(), proof=Exact(), mode=0o700), call=call("move"))

    assert meta_of(bench, "b") == replace(before, mode=0o700)


@pytest.mark.parametrize("proof", [Exact(), Sha256(sha256_hex(b"one\n"))])
def test_an_edit_that_cannot_be_made_names_the_file(bench: Bench, proof: Proof) -> None:
    bench.put("d/a", b"one\n")

    with pytest.raises(OldTextNotFound) as caught:
        bench.workspace.write(edit("d/a", "two", "three", proof), call=call())

    assert caught.value.path == "d/a"


@pytest.mark.parametrize(
    ("proposal", "summary"),
    [
        (Proposal(path="new", edit=WriteText("x"), proof=Absent()), "create new"),
        (Proposal(path="new", edit=WriteText("x"), proof=Absent(), mode=0o600), "create new, with mode 0600"),
        (edit("a", "one", "two"), "change a"),
        (Proposal(path="a", edit=Delete(), proof=Exact()), "delete a"),
        (Proposal(path="a", edit=Delete(), proof=Exact(), permanent=True), "delete a, not into the trash"),
        (Proposal(path="a", to_path="c", edit=Keep(), proof=Exact()), "move a to c"),
        (
            Proposal(path="a", to_path="b", edit=Keep(), proof=Exact(), to_proof=Exact()),
            "move a to b, over the file that is there",
        ),
    ],
)
def test_what_happens_to_a_path_is_said_in_words(bench: Bench, proposal: Proposal, summary: str) -> None:
    bench.put("a", b"one\n")
    bench.put("b", b"two\n")

    receipt = bench.workspace.write(proposal, call=call(), dry_run=True)

    assert [one.summary for one in receipt.files] == [summary]
