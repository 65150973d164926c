"""What a caller proposes, its evidence of having seen the file, and the receipt it gets."""

from dataclasses import replace
from typing import Any

import pytest

from surehold.errors import AlreadyExists, Cancelled, InvalidArgument, NotFound, StaleFile, SureholdError
from surehold.stores.base import Change, PathRecord, Sighting
from surehold.text.plan import Delete, EditPlan, Keep
from surehold.text.snapshot import ABSENT, LineRanges, Meta, Snapshot, Version
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import (
    NO_AUTHOR,
    Absent,
    AllOf,
    CallAuthor,
    ChangeRecord,
    Exact,
    FileReceipt,
    Proof,
    Proposal,
    Receipt,
    Seen,
    Sha256,
    Unchanged,
    Unproven,
    depends_on_session,
    proof_of,
)

NOW, EARLIER = Snapshot(b"one\ntwo\n"), Snapshot(b"one\n")
PLAN = EditPlan(before=NOW, after=NOW)


def shown(version: Snapshot, spans: LineRanges = (), *, whole: bool = False) -> Sighting:
    return Sighting(session="s", path="a", sha256=version.sha256, spans=spans, whole=whole)


def outcome(proof: Proof, current: Snapshot, *sightings: Sighting) -> tuple[type[SureholdError], str] | None:
    """Return how a proof refuses a file; None if it accepts it."""
    try:
        proof.check(KnownFile(PathRecord(key="a", sightings=sightings), current))
    except SureholdError as error:
        return type(error), f"{error.path}: {error.reason}"
    return None


PART, WHOLE, OLD = shown(NOW, ((1, 1),)), shown(NOW, ((1, 2),), whole=True), shown(EARLIER, whole=True)
GONE, STALE = (NotFound, "a: no_such_file"), (StaleFile, "a: hash_mismatch")
NOT_READ, IN_PART, THERE = (StaleFile, "a: not_read"), (StaleFile, "a: partially_read"), (AlreadyExists, "a: file")


@pytest.mark.parametrize(
    ("proof", "current", "sightings", "refusal"),
    [
        (Sha256(NOW.sha256), NOW, (), None),
        (Sha256(NOW.sha256), EARLIER, (), STALE),
        (Sha256(NOW.sha256), ABSENT, (), GONE),
        (Absent(), ABSENT, (), None),
        (Absent(), NOW, (), THERE),
        (Exact(), NOW, (), None),
        (Exact(), ABSENT, (WHOLE,), GONE),
        (Seen(), NOW, (PART,), None),
        (Seen(), NOW, (OLD, PART), None),
        (Seen(), NOW, (), NOT_READ),
        (Seen(), NOW, (OLD,), STALE),
        (Seen(), ABSENT, (WHOLE,), GONE),
        (Seen(whole=True), NOW, (WHOLE,), None),
        (Seen(whole=True), NOW, (PART,), IN_PART),
        (Unchanged(), NOW, (), None),
        (Unchanged(), NOW, (PART, OLD), None),
        (Unchanged(), NOW, (OLD, PART), STALE),
        (Unchanged(), ABSENT, (), GONE),
        (Unchanged(may_be_new=True), ABSENT, (), None),
        (Unchanged(may_be_new=True), ABSENT, (OLD,), None),
        (Unchanged(may_be_new=True), NOW, (OLD,), STALE),
        (AllOf((Exact(), Seen())), NOW, (PART,), None),
        (AllOf((Exact(), Seen())), NOW, (), NOT_READ),
        (AllOf((Seen(), Absent())), NOW, (PART,), THERE),
        (Unproven(), ABSENT, (), None),
        (Unproven(), NOW, (OLD,), None),
    ],
)
def test_a_proof_accepts_what_the_caller_saw_and_refuses_what_is_another_thing(
    proof: Proof, current: Snapshot, sightings: tuple[Sighting, ...], refusal: tuple[type[SureholdError], str] | None
) -> None:
    assert outcome(proof, current, *sightings) == refusal


@pytest.mark.parametrize(
    ("proof", "details"),
    [
        (Sha256(EARLIER.sha256), {"expected_sha256": EARLIER.sha256, "actual_sha256": NOW.sha256}),
        (Seen(), {"expected_sha256": EARLIER.sha256, "actual_sha256": NOW.sha256}),
        (Unchanged(), {"expected_sha256": EARLIER.sha256, "actual_sha256": NOW.sha256}),
        (Absent(), {"actual_sha256": NOW.sha256}),
    ],
)
def test_a_refusal_names_both_versions(proof: Proof, details: dict[str, str]) -> None:
    with pytest.raises(SureholdError) as refused:
        proof.check(KnownFile(PathRecord(key="a", sightings=(OLD,)), NOW))

    assert refused.value.details == details


def test_who_read_a_part_is_told_which() -> None:
    with pytest.raises(StaleFile) as refused:
        Seen(whole=True).check(KnownFile(PathRecord(key="a", sightings=(PART,)), NOW))

    assert refused.value.details == {"seen_lines": [[1, 1]]}


@pytest.mark.parametrize("word", ["", "0" * 63, "0" * 65, "g" * 64, "A" * 64])
def test_what_cannot_be_a_sha256_is_refused_at_once(word: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Sha256(word)
    assert (refused.value.reason, refused.value.message) == ("malformed_sha256", f"`{word}` is not a sha256.")


def test_a_sha256_counts_before_any_other_evidence() -> None:
    assert proof_of(f" {'A' * 64}\n") == Sha256("a" * 64) == proof_of("a" * 64, Seen())
    assert (proof_of("", Seen()), proof_of("")) == (Seen(), Exact())


class BySession:
    def edit_for(self, file: KnownFile) -> Keep:
        return Keep()


def test_an_edit_that_depends_on_the_session_is_told_from_one_that_does_not() -> None:
    assert (depends_on_session(BySession()), depends_on_session(Keep())) == (True, False)


def test_a_call_has_its_authors_facts_and_a_reason_of_its_own_or_theirs() -> None:
    author = CallAuthor(agent="a", session="s", turn="t", call_id="c", idempotency_key="k", reason="theirs")
    made = author.make_call("edit_lines", "edit", undoes="u", restores="r")

    facts = ("tool", "operation", "writer", "agent", "session", "turn", "call_id", "idempotency_key", "reason")
    assert [getattr(made, name) for name in facts] == ["edit_lines", "edit", "edit_lines", *"astck", "theirs"]
    assert (made.undoes, made.restores) == ("u", "r")
    assert author.make_call("x", "edit", reason="own").reason == "own"
    assert NO_AUTHOR.make_call("x", "edit").session == ""


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"edit": Delete(), "to_path": "b"}, "delete_and_move"),
        ({"edit": Keep(), "mode": -1}, "bad_mode"),
        ({"edit": Keep(), "mode": 0o10000}, "bad_mode"),
    ],
)
def test_a_proposal_that_contradicts_itself_is_refused(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Proposal(path="a", proof=Unproven(), **facts)
    assert (refused.value.reason, refused.value.path) == (reason, "a")
    for mode in (0, 0o7777, None):
        assert Proposal(path="a", proof=Unproven(), edit=Delete(), mode=mode).parents
    assert not Proposal(path="a", proof=Unproven(), edit=Delete()).permanent


def version(name: str, mode: int = 0o644) -> Version:
    return Version(sha256=name, size=1, meta=Meta(mode=mode, mtime_ns=1))


A, B = version("a"), version("b")


def receipt(before: Version | None, after: Version | None, **facts: Any) -> FileReceipt:
    mode = facts.pop("mode", None)
    return FileReceipt(path="f", plan=PLAN, change=Change(path="f", before=before, after=after, **facts), mode=mode)


@pytest.mark.parametrize(
    ("one", "summary"),
    [
        (receipt(None, A), "create f"),
        (receipt(None, A, mode=0o600), "create f, with mode 0600"),
        (receipt(A, B), "change f"),
        (receipt(A, B, mode=0o644), "change f"),
        (receipt(A, B, mode=0o755), "change f, with mode 0755"),
        (receipt(replace(A, meta=None), B, mode=0o644), "change f, with mode 0644"),
        (receipt(A, None, trash_id="t"), "delete f"),
        (receipt(A, None), "delete f, not into the trash"),
        (receipt(A, A, to_path="g"), "move f to g"),
        (receipt(A, A, to_path="g", displaced=B), "move f to g, over the file that is there"),
        (receipt(A, A, to_path="g", displaced=B, mode=7), "move f to g, over the file that is there, with mode 0007"),
    ],
)
def test_what_happens_to_a_file_is_said_in_words(one: FileReceipt, summary: str) -> None:
    assert one.summary == summary
    assert one.changed


def test_a_receipt_of_one_file_has_its_sha256_and_one_of_several_has_none() -> None:
    made, gone, same = receipt(None, A, diff="+a\n"), receipt(B, None, diff="-b\n"), receipt(A, A)
    assert (made.before_sha256, made.after_sha256) == (None, "a")
    assert (gone.before_sha256, gone.after_sha256) == ("b", None)
    assert not same.changed

    def of(*files: FileReceipt) -> Receipt:
        return Receipt(change_id="c", files=files)

    assert [of(*files).sha256 for files in ((made,), (gone,), (receipt(None, None),), (made, gone), ())] == [
        "a",
        "b",
        "",
        "",
        "",
    ]
    assert of(made, gone).diff == "+a\n-b\n"


def test_a_receipt_says_nothing_special_unless_it_is_told_to() -> None:
    plain, proposal = Receipt(change_id="c", files=()), Proposal(path="a", edit=Keep(), proof=Unproven())

    assert [plain.dry_run, plain.replayed, plain.already_applied, plain.user_modified] == [False] * 4
    assert [receipt(A, B).left_out, proposal.permanent, proposal.shows_anchors, Seen().whole] == [False] * 4
    assert proposal.parents
    assert not Unchanged().may_be_new


def test_warnings_come_in_order_what_was_left_out_who_wrote_it_and_the_files() -> None:
    files = (replace(receipt(A, B), warnings=("one", "two")), replace(receipt(A, B), warnings=("three",)))
    plain = Receipt(change_id="c", files=files)
    changed = replace(plain, user_modified=True, left_out=("`x` stays.",))

    assert plain.warnings == ("one", "two", "three")
    said = "The person who allowed this changed the content first; the diff shows what was written."
    assert changed.warnings == ("`x` stays.", said, "one", "two", "three")


def test_what_a_call_did_is_collected_and_a_cancelled_one_is_refused_last_of_all() -> None:
    told = list[EditPlan]()

    def check_first(plan: EditPlan) -> tuple[str, ...]:
        told.append(plan)
        return ("first",)

    cancelled = list[bool]()
    record = ChangeRecord(cancelled=lambda: bool(cancelled))
    proposal = record.check_cancelled(Proposal(path="a", edit=Keep(), proof=Unproven(), checks=(check_first,)))
    assert [check(PLAN) for check in proposal.checks] == [("first",), ()]
    cancelled.append(True)
    with pytest.raises(Cancelled):
        [check(PLAN) for check in proposal.checks]
    assert told == [PLAN, PLAN]

    files = receipt(None, A), receipt(A, B)
    record.receipts.append(Receipt(change_id="c1", files=files[:1]))
    record.receipts.append(Receipt(change_id="", files=()))
    record.receipts.append(Receipt(change_id="c2", files=files[1:], dry_run=True))
    assert (record.files, record.change_ids) == (files, ("c1",))
    assert (ChangeRecord().cancelled(), ChangeRecord().on_free()) == (False, None)
