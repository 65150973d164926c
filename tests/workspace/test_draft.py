"""What a proposal comes to: the change that is recorded, the bytes that are kept, and the steps on the disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from surehold.disk.base import Create, Remove, Rename, Replace, Step, Target
from surehold.errors import AlreadyExists, InvalidArgument, OldTextNotFound, StaleFile
from surehold.stores.base import Change, PathRecord, Sighting
from surehold.text.plan import Delete, EditPlan, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, LineRanges, Meta, Snapshot, Version, sha256_hex
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.draft import (
    Draft,
    PlannedEdit,
    ResolvedProposal,
    check_same_targets,
    collect_changes,
    disk_steps,
    make_draft,
    make_receipt,
    sightings_after,
    written_targets,
)
from surehold.workspace.proposal import Absent, Exact, Proposal, Sha256, Unproven
from workspaces import call, make_bench

META = Meta(mode=0o640, uid=7, mtime_ns=5)
OLD, THERE = Snapshot(b"one\ntwo\n", meta=META), Snapshot(b"there\n", meta=META)
NEW = b"one\n2\n"
WRITE = WriteBytes(NEW)


def target(key: str) -> Target:
    return Target(root="/r", parts=(key,), key=key)


def draft_of(
    edit: Any, current: Snapshot = OLD, displaced: Snapshot = ABSENT, *, in_place: bool = False, **more: Any
) -> Draft:
    facts: dict[str, Any] = {"proof": Unproven(), "to_proof": Unproven(), **more}
    proposal = Proposal(path="a", edit=edit, **facts)
    to = target(str(proposal.to_path)) if proposal.to_path else None
    known = KnownFile(PathRecord(key="a"), current)
    place = ResolvedProposal(proposal=proposal, target=target("a"), to=to)
    return make_draft(place, known, displaced, in_place=in_place, new_id=lambda: "trash")


def version(data: bytes, meta: Meta | None = META) -> Version:
    return Version(sha256=sha256_hex(data), size=len(data), meta=meta)


REPLACE = Replace(target=target("a"), data=NEW, expected=OLD.sha256, old=OLD.data)
VACATE = Remove(target=target("b"), expected=THERE.sha256)
LEAVE = Remove(target=target("a"), expected=OLD.sha256)
ARRIVE = Create(target=target("b"), data=NEW, meta=replace(META, mtime_ns=0))


@dataclass(frozen=True, kw_only=True)
class Work:
    """A draft, its steps, and what is recorded beside both versions."""

    make: Callable[[], Draft]
    steps: tuple[Step, ...]
    change: Change
    changes_anything: bool = True
    kept: tuple[bytes, ...] = (OLD.data,)
    writes: Sequence[str] = field(default=("a",))


EDITED = Change(path="a", before=version(OLD.data), after=version(NEW))
MADE = Change(path="a", before=None, after=version(NEW, None))
GONE = Change(path="a", before=version(OLD.data), after=None)
MOVED = replace(EDITED, to_path="b", after=version(OLD.data))
OVER = replace(MOVED, displaced=version(THERE.data), trash_id="trash")
WORKS = {
    "an edit": Work(make=lambda: draft_of(WRITE), steps=(REPLACE,), change=EDITED, kept=(OLD.data, NEW)),
    "an edit in place": Work(
        make=lambda: draft_of(WRITE, in_place=True),
        steps=(REPLACE,),
        change=replace(EDITED, in_place=True),
        kept=(OLD.data, NEW),
    ),
    "nothing": Work(
        make=lambda: draft_of(Keep()),
        steps=(replace(REPLACE, data=OLD.data),),
        change=replace(EDITED, after=version(OLD.data)),
        changes_anything=False,
    ),
    "the mode alone": Work(
        make=lambda: draft_of(Keep(), mode=0o600),
        steps=(replace(REPLACE, data=OLD.data, mode=0o600),),
        change=replace(EDITED, after=version(OLD.data, replace(META, mode=0o600))),
    ),
    "a new file": Work(
        make=lambda: draft_of(WRITE, ABSENT, in_place=True),
        steps=(Create(target=target("a"), data=NEW),),
        change=MADE,
        kept=(NEW,),
    ),
    "a new file with a mode in a directory that must be there": Work(
        make=lambda: draft_of(WRITE, ABSENT, mode=0o600, parents=False),
        steps=(Create(target=target("a"), data=NEW, mode=0o600, parents=False),),
        change=MADE,
        kept=(NEW,),
    ),
    "a file that comes back": Work(
        make=lambda: draft_of(WRITE, ABSENT, restore=Snapshot(NEW, meta=META), undoes=("x#0",)),
        steps=(Create(target=target("a"), data=NEW, meta=META),),
        change=replace(MADE, after=version(NEW), undoes=("x#0",)),
        kept=(NEW,),
    ),
    "a deletion": Work(
        make=lambda: draft_of(Delete(), in_place=True),
        steps=(LEAVE,),
        change=replace(GONE, trash_id="trash"),
        writes=(),
    ),
    "a deletion for good": Work(
        make=lambda: draft_of(Delete(), permanent=True), steps=(LEAVE,), change=GONE, writes=()
    ),
    "a move": Work(
        make=lambda: draft_of(Keep(), to_path="b", in_place=True),
        steps=(Rename(source=target("a"), target=target("b"), expected=OLD.sha256),),
        change=MOVED,
        writes=("b",),
    ),
    "a move over a file": Work(
        make=lambda: draft_of(Keep(), OLD, THERE, to_path="b"),
        steps=(VACATE, Rename(source=target("a"), target=target("b"), expected=OLD.sha256)),
        change=OVER,
        kept=(OLD.data, THERE.data),
        writes=("b",),
    ),
    "a move with an edit": Work(
        make=lambda: draft_of(WRITE, to_path="b"),
        steps=(ARRIVE, LEAVE),
        change=replace(MOVED, after=version(NEW)),
        kept=(OLD.data, NEW),
        writes=("b",),
    ),
    "a move with an edit over a file": Work(
        make=lambda: draft_of(WRITE, OLD, THERE, to_path="b"),
        steps=(VACATE, ARRIVE, LEAVE),
        change=replace(OVER, after=version(NEW)),
        kept=(OLD.data, THERE.data, NEW),
        writes=("b",),
    ),
    "a move with another mode keeps the time": Work(
        make=lambda: draft_of(Keep(), to_path="b", mode=0o600),
        steps=(replace(ARRIVE, data=OLD.data, meta=META, mode=0o600), LEAVE),
        change=replace(MOVED, after=version(OLD.data, replace(META, mode=0o600))),
        writes=("b",),
    ),
    "a move of a file without facts": Work(
        make=lambda: draft_of(WRITE, Snapshot(OLD.data), to_path="b"),
        steps=(replace(ARRIVE, meta=None), LEAVE),
        change=replace(MOVED, before=version(OLD.data, None), after=version(NEW, None)),
        kept=(OLD.data, NEW),
        writes=("b",),
    ),
    "what a person wrote instead": Work(
        make=lambda: draft_of(WRITE, instead_of=THERE),
        steps=(REPLACE,),
        change=replace(EDITED, proposal_sha256=THERE.sha256),
        kept=(OLD.data, NEW, THERE.data),
    ),
}


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
def test_a_proposal_becomes_steps_a_change_and_the_bytes_to_keep(work: Work) -> None:
    draft = work.make()

    assert disk_steps(draft) == work.steps
    assert replace(draft.change, diff="") == work.change
    assert draft.changes_anything is work.changes_anything
    assert tuple(one.data for one in draft.blobs) == work.kept
    assert all(one.sha256 == sha256_hex(one.data) for one in draft.blobs)
    assert [one.key for one in written_targets([draft.place])] == list(work.writes)


def test_what_both_versions_share_is_told_to_who_keeps_them() -> None:
    old, new = draft_of(StyledEdit(old="two", new="2")).blobs

    assert (old.base, old.shared) == ("", (0, 0))
    assert (new.data, new.base, new.shared) == (NEW, OLD.sha256, (4, 1))


def test_the_diff_names_both_places_and_counts_lines_only_where_it_is_cut() -> None:
    short = draft_of(WRITE, to_path="b").change
    assert short.diff.startswith("--- a\n+++ b\n")
    assert (short.diff_truncated, short.added, short.removed) == (False, 0, 0)

    long = draft_of(WriteBytes(b"x" * 99 + b"\n" + b"y\n" * 40_000)).change
    assert (long.diff_truncated, long.added, long.removed) == (True, 40_001, 2)


def test_a_call_that_finds_its_own_result_is_no_conflict() -> None:
    applied = Snapshot(NEW)
    draft = draft_of(WRITE, applied, proof=Sha256(OLD.sha256))
    assert (draft.already_applied, draft.changes_anything, draft.plan) == (
        True,
        False,
        EditPlan(before=applied, after=applied),
    )
    assert make_receipt([draft_of(WRITE), draft]).already_applied
    assert not make_receipt([draft_of(WRITE)]).already_applied

    with pytest.raises(StaleFile) as moved:  # where it went is not known
        draft_of(WRITE, applied, proof=Sha256(OLD.sha256), to_path="b")
    assert moved.value.details["edits_still_apply"] is False
    with pytest.raises(StaleFile) as other:
        draft_of(StyledEdit(old="there", new="here"), THERE, proof=Sha256(OLD.sha256))
    assert (other.value.details["edits_still_apply"], other.value.details["retry_with_sha256"]) == (True, THERE.sha256)
    assert "changes_since" not in other.value.details  # its caller was shown nothing


def test_other_refusals_of_a_proof_are_raised_as_they_are() -> None:
    with pytest.raises(AlreadyExists, match="`a` exists already"):
        draft_of(WRITE, OLD, proof=Absent())
    with pytest.raises(AlreadyExists, match="`b` exists already"):
        draft_of(Keep(), OLD, THERE, to_path="b", to_proof=Absent())


def test_a_refusal_of_an_edit_names_the_file_that_it_looked_at() -> None:
    with pytest.raises(OldTextNotFound) as refused:
        draft_of(StyledEdit(old="three", new="3"))
    assert refused.value.path == "a"


def test_every_check_sees_the_plan_and_adds_its_warnings() -> None:
    seen = list[EditPlan]()

    def check(plan: EditPlan) -> tuple[str, ...]:
        seen.append(plan)
        return ("careful",)

    draft = draft_of(WRITE, checks=(check, check), proof=Exact())

    assert seen == [draft.plan] * 2
    assert draft.warnings == (*draft.plan.warnings, "careful", "careful")


def test_what_stays_the_same_is_noted_with_the_first_change() -> None:
    same, edit, move = (
        draft_of(Keep(), undoes=("x#2",)),
        draft_of(WRITE, undoes=("x#1",)),
        draft_of(Keep(), to_path="b", undoes=("x#3",)),
    )

    def find_missing(target: Target) -> tuple[str, ...]:
        return (f"above {target}",)

    assert [(one.undoes, one.makes) for one in collect_changes([same, edit, move], find_missing)] == [
        (("x#1", "x#2"), ()),
        (("x#3",), ("above b",)),
    ]
    made, gone = draft_of(WRITE, ABSENT), draft_of(Delete())
    over = draft_of(Keep(), OLD, THERE, to_path="b")
    assert [one.makes for one in collect_changes([made, gone, over], find_missing)] == [("above a",), (), ()]


def test_a_path_that_leads_elsewhere_by_now_is_refused() -> None:
    one, other = draft_of(Keep(), to_path="b").place, draft_of(Keep(), to_path="c").place

    check_same_targets([one, other], [one, other])
    with pytest.raises(StaleFile) as refused:
        check_same_targets([one, one], [one, other])
    assert refused.value.reason == "changed_while_asked"


def test_a_session_has_seen_what_it_wrote_and_what_the_answer_shows() -> None:
    asked = call(session="s")

    def spans_after(draft: Draft) -> list[Sighting]:
        return sightings_after(asked, [draft])

    def first_line(_: EditPlan) -> LineRanges:
        return ((1, 1),)

    whole = Sighting(session="s", path="a", sha256=sha256_hex(NEW), spans=((1, 2),), whole=True)
    assert sightings_after(call(), [draft_of(WRITE, ABSENT)]) == []
    assert spans_after(draft_of(Delete())) == []
    assert spans_after(draft_of(WRITE, ABSENT)) == [whole]
    edit = StyledEdit(old="two", new="2")
    part = replace(whole, spans=((2, 2),), whole=False)
    assert spans_after(draft_of(edit)) == [part]
    assert spans_after(draft_of(edit, to_path="b")) == [replace(part, path="b")]
    assert spans_after(draft_of(edit, shows=first_line)) == [replace(part, spans=((1, 2),))]
    assert spans_after(draft_of(edit, shows=first_line, shows_anchors=True)) == [
        replace(part, spans=((1, 2),), anchored=((1, 1),))
    ]
    assert spans_after(draft_of(edit, instead_of=THERE)) == []  # it is the text of a person
    assert spans_after(draft_of(edit, instead_of=THERE, shows=first_line)) == [replace(part, spans=((1, 1),))]


@pytest.mark.parametrize(("mode", "is_valid"), [(0, True), (0o7777, True), (0o10000, False), (-1, False)])
def test_a_mode_is_a_set_of_permission_bits(mode: int, is_valid: bool) -> None:
    if is_valid:
        assert draft_of(Keep(), mode=mode).place.proposal.mode == mode
    else:
        with pytest.raises(InvalidArgument, match="is not a set of permission bits"):
            draft_of(Keep(), mode=mode)


@pytest.mark.parametrize(
    ("found", "is_kept"),
    [
        (Snapshot(b"one one\n", meta=META), True),
        (Snapshot(b"one\n", meta=META), False),
        (Snapshot(b"one one\n", meta=replace(META, mode=0o600)), False),
        (Snapshot(b"one one\n", meta=META, encoding="latin-1"), False),
    ],
)
def test_what_was_planned_ahead_counts_for_the_very_same_file_alone(found: Snapshot, is_kept: bool) -> None:
    edit = SnapshotEdits((StringEdit(old="one", new="two", replace_all=True),))
    ahead = edit.plan(Snapshot(b"one one\n", meta=META))

    plan = PlannedEdit(edit, ahead).plan(found)

    assert (plan is ahead, plan.before) == (is_kept, found)
    assert plan.after.data == found.data.replace(b"one", b"two")


@pytest.mark.parametrize("was_shown", [True, False])
def test_what_changed_since_is_told_to_a_session_that_was_shown_the_earlier_version(
    tmp_path: Path, was_shown: bool
) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    for text in ("one\n", "two\n"):
        bench.workspace.write(Proposal(path="a", edit=WriteBytes(text.encode()), proof=Unproven()), call=call())
    earlier = sha256_hex(b"one\n")
    if was_shown:
        bench.store.record_sightings([Sighting(session="s", path="a", sha256=earlier, spans=((1, 1),))], [])
    edit = SnapshotEdits((StringEdit(old="absent", new="x"),))

    with pytest.raises(StaleFile) as refused:
        bench.workspace.write(Proposal(path="a", edit=edit, proof=Sha256(earlier)), call=call(session="s"))

    assert refused.value.details["edits_still_apply"] is False
    told = "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n"
    assert refused.value.details.get("changes_since") == (told if was_shown else None)
    bench.workspace.close()
