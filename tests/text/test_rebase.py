import pytest

from spec.marks import requirement
from surehold.text.plan import EditPlan, SpliceSpans, diff_of_plan, spans_between
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.relocate import RebaseConflict, rebase_plan
from surehold.text.snapshot import Snapshot

BASE = b"".join(b"line %d\n" % n for n in range(1, 21))


def plan_of(old: str, new: str) -> EditPlan:
    return SnapshotEdits((StringEdit(old=old, new=new),)).plan(Snapshot(BASE))


@requirement("text:rebase:follows")
def test_a_plan_follows_its_line_over_lines_added_above() -> None:
    current = Snapshot(b"new 1\nnew 2\n" + BASE)

    rebased = rebase_plan(plan_of("line 7\n", "LINE 7\n"), current)

    assert isinstance(rebased, EditPlan)
    assert [lines.start_line for lines in rebased.line_spans()] == [9]
    assert rebased.after.data == current.data.replace(b"line 7\n", b"LINE 7\n")


@requirement("text:rebase:touched")
def test_a_plan_for_a_line_that_changed_is_a_conflict() -> None:
    current = Snapshot(BASE.replace(b"line 7\n", b"other\n"))

    assert rebase_plan(plan_of("line 7\n", "LINE 7\n"), current) == (RebaseConflict(line=7, reason="changed"),)


@requirement("text:rebase:follows")
def test_an_insertion_between_two_lines_follows_them() -> None:
    plan = SpliceSpans(spans_between(Snapshot(BASE), Snapshot(BASE.replace(b"line 5\n", b"line 5\nnew\n")))).plan(
        Snapshot(BASE)
    )
    current = Snapshot(b"top\n" + BASE)

    rebased = rebase_plan(plan, current)

    assert isinstance(rebased, EditPlan)
    assert rebased.after.data == b"top\n" + BASE.replace(b"line 5\n", b"line 5\nnew\n")


@requirement("text:rebase:two_proofs")
@pytest.mark.parametrize(
    ("current", "reason"),
    [
        (BASE.replace(b"line 7\n", b"") + b"line 7\n", "disagree"),
        (BASE.replace(b"line 7\n", b"line 7\nline 7\n"), "ambiguous"),
    ],
    ids=["moved across others", "copied"],
)
def test_a_plan_whose_line_cannot_be_proven_to_be_the_same_is_a_conflict(current: bytes, reason: str) -> None:
    assert rebase_plan(plan_of("line 7\n", "LINE 7\n"), Snapshot(current)) == (RebaseConflict(line=7, reason=reason),)


def test_spans_between_two_versions_turn_one_into_the_other() -> None:
    for other in (b"", BASE[:50], b"x" + BASE + b"y", BASE[::-1], b"\n" * 5):
        before = Snapshot(BASE)
        assert SpliceSpans(spans_between(before, Snapshot(other))).plan(before).after.data == other


def test_the_diff_of_a_plan_shows_its_lines_with_context() -> None:
    diff = diff_of_plan(plan_of("line 7\n", "LINE 7\n"), from_name="a.txt", to_name="a.txt")

    assert diff.text == (
        "--- a.txt\n+++ a.txt\n@@ -4,7 +4,7 @@\n line 4\n line 5\n line 6\n-line 7\n+LINE 7\n line 8\n line 9\n line 10\n"
    )
