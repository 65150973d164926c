"""Anchors of a version that the file has left behind."""

import pytest

from spec.marks import requirement
from surehold.errors import (
    AnchorAmbiguous,
    AnchorContextAmbiguous,
    AnchorLowEntropy,
    AnchorStale,
    InvalidRangeOrder,
    RangeUnseen,
)
from surehold.text.anchored.lines import IndexedVersion
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.plan import RebaseEvidence
from surehold.text.snapshot import Snapshot
from text.anchored import File, lines, words

FUNCTION = b"def %s(value):\n    result = value + 1\n    return result\n\n"


def functions(*names: bytes) -> File:
    return File(b"".join(FUNCTION % name for name in names))


@requirement("anchored:moved_on:rebased", "anchored:moved_on:report")
def test_a_line_below_an_outside_insertion_is_edited_where_it_is_now() -> None:
    old, new = lines(20), File(b"top\nsecond\n" + lines(20).data)

    plan = new.plan(ReplaceLine(hash=old.anchor(7), content="X"), shown=(old.shown(),))

    assert plan.after.data == new.data.replace(b"line number 7\n", b"X\n")
    (found,) = plan.resolutions
    assert (found.start_line, found.cross_version) == (9, True)
    assert found.rebase == RebaseEvidence(from_line=7, to_line=9, evidence="block", context=0)


@requirement("anchored:resolution:level")
def test_the_level_of_a_line_that_moved_is_that_of_the_version_it_was_shown_in() -> None:
    old, new = lines(20), File(b"top\n" + lines(20).data)

    for sent, level in ((old.hash(7), "hash"), (f"{old.hash(7)}.1", "occurrence"), (old.anchor(7), "hash")):
        assert new.plan(DeleteLine(hash=sent), shown=(old.shown(),)).resolutions[0].resolution_level == level


@requirement("anchored:moved_on:rebased")
def test_operations_that_moved_by_different_distances_each_land_right() -> None:
    old = lines(60)
    new = File(old.data.replace(b"line number 10\n", b"a\nb\nline number 10\n").replace(b"line number 40\n", b"c\n"))

    after = new.edit(
        ReplaceLine(hash=old.anchor(5), content="five"),
        InsertAfter(hash=old.anchor(20), content="twenty and a half"),
        DeleteRange(start_hash=old.anchor(50), end_hash=old.anchor(52)),
        shown=(old.shown(),),
    )

    assert after == (
        new.data.replace(b"line number 5\n", b"five\n")
        .replace(b"line number 20\n", b"line number 20\ntwenty and a half\n")
        .replace(b"line number 50\nline number 51\nline number 52\n", b"")
    )


@requirement("anchored:moved_on:changed_target")
def test_a_target_that_changed_since_it_was_shown_is_stale() -> None:
    old = lines(20)
    new = File(old.data.replace(b"line number 7\n", b"line number seven\n"))

    error = new.refuse(ReplaceLine(hash=old.anchor(7), content="X"), shown=(old.shown(),))

    assert isinstance(error, AnchorStale)
    assert new.row(7) in error.details["fresh_rows"]


@requirement("anchored:stale:was_line")
def test_of_several_equal_lines_that_are_gone_the_refusal_names_the_one_whose_number_was_sent() -> None:
    old, new = words("start same one two same three"), words("start one two three")

    for line in (2, 5):
        error = new.refuse(DeleteLine(hash=f"{line}#{old.hash(line)}"), shown=(new.shown(), old.shown()))
        assert error.details["was"] == {"line": line, "text": "same"}


@requirement("anchored:stale:was_line")
def test_a_gone_line_is_named_also_when_the_number_that_was_sent_never_fitted() -> None:
    old, new = words("start same one two same three"), words("start one two three")

    error = new.refuse(DeleteLine(hash=f"4#{old.hash(2)}"), shown=(new.shown(), old.shown()))

    assert isinstance(error, AnchorStale)
    assert error.reason == "gone"
    assert error.details["was"] == {"line": 2, "text": "same"}


def test_a_target_that_changed_and_was_changed_back_is_edited() -> None:
    old = lines(20)
    between = File(old.data.replace(b"line number 7\n", b"other\n"))

    assert old.edit(DeleteLine(hash=old.anchor(7)), shown=(between.shown(), old.shown())) == (
        old.data.replace(b"line number 7\n", b"")
    )


@requirement("anchored:moved_on:range_bytes")
def test_a_range_with_a_changed_line_inside_is_stale_and_names_that_line() -> None:
    old = lines(20)
    new = File(b"top\n" + old.data.replace(b"line number 7\n", b"line number seven\n"))

    error = new.refuse(
        ReplaceRange(start_hash=old.anchor(5), end_hash=old.anchor(9), content="X"), shown=(old.shown(),)
    )

    assert isinstance(error, AnchorStale)
    assert "lines 5 to 9" in error.message
    assert error.details["changed_lines"] == [{"line": 7, "text": "line number 7"}]
    assert new.row(8) in error.details["fresh_rows"]


@requirement("anchored:moved_on:range_bytes")
def test_a_range_with_a_new_line_inside_is_stale() -> None:
    old = lines(20)
    new = File(old.data.replace(b"line number 7\n", b"line number 7\ninserted\n"))

    assert isinstance(
        new.refuse(DeleteRange(start_hash=old.anchor(5), end_hash=old.anchor(9)), shown=(old.shown(),)), AnchorStale
    )


@requirement("anchored:moved_on:range_bytes")
@pytest.mark.parametrize("changed", [b"line number 7 \n", b"line number 7\r\n", b"line number 7\t\n"])
def test_a_range_is_compared_byte_by_byte_with_what_was_shown(changed: bytes) -> None:
    old = lines(20)
    new = File(old.data.replace(b"line number 7\n", changed))

    assert isinstance(
        new.refuse(DeleteRange(start_hash=old.anchor(5), end_hash=old.anchor(9)), shown=(old.shown(),)), AnchorStale
    )


def test_a_copy_pasted_above_does_not_take_the_edit() -> None:
    old = functions(b"one", b"two", b"three")
    new = File(FUNCTION % b"two" + old.data)

    for sent in (DeleteLine(hash=old.anchor(6)), DeleteLine(hash=old.anchor(5))):
        try:
            after = new.edit(sent, shown=(old.shown(),))
        except (AnchorStale, AnchorAmbiguous, AnchorContextAmbiguous):
            continue
        assert after.startswith(FUNCTION % b"two" + FUNCTION % b"one")


def test_lines_that_were_cut_and_pasted_elsewhere_are_stale() -> None:
    old = words("moved1 moved2 one two three four five")
    new = words("one two three four five moved1 moved2")

    error = new.refuse(DeleteLine(hash=old.anchor(1)), shown=(old.shown(),))

    assert isinstance(error, AnchorStale)
    assert "moved to another place" in error.message


def test_a_file_that_was_re_indented_is_refused_and_the_cause_is_named() -> None:
    old = File(b"class A:\n  def f(self):\n    return 1\n")
    new = File(b"class A:\n    def f(self):\n        return 1\n")

    error = new.refuse(ReplaceLine(hash=old.anchor(3), content="    return 2"), shown=(old.shown(),))

    assert isinstance(error, AnchorStale)
    assert error.details["drift"] == "indentation"
    assert "only its indentation changed" in error.message


def test_trailing_blanks_that_came_to_the_target_are_named() -> None:
    old = lines(9)
    new = File(old.data.replace(b"line number 5\n", b"line number 5  \n"))

    error = new.refuse(DeleteLine(hash=old.anchor(5)), shown=(old.shown(),))

    assert error.details["drift"] == "trailing blanks or line ending"


def test_another_file_that_has_the_same_line_at_the_same_place_is_refused() -> None:
    old = File(b"".join(b"old %d\n" % n for n in range(9)) + b"}\n" + b"older\n")
    new = File(b"".join(b"new %d\n" % n for n in range(9)) + b"}\n" + b"newer\n")

    assert isinstance(new.refuse(DeleteLine(hash=old.anchor(10)), shown=(old.shown(),)), AnchorStale)


def test_an_occurrence_is_counted_where_it_was_shown() -> None:
    old = words("start same one two three same four five six same seven eight")
    new = words("start one two three same four five six same seven eight")

    for sent in (old.anchor(10), f"{old.hash(10)}.3"):
        plan = new.plan(DeleteLine(hash=sent), shown=(old.shown(),))
        assert plan.resolutions[0].start_line == 9
    plan = new.plan(DeleteLine(hash=old.hash(6), occurrence=2), shown=(old.shown(),))
    assert plan.resolutions[0].start_line == 5
    assert isinstance(new.refuse(DeleteLine(hash=old.hash(2), occurrence=1), shown=(old.shown(),)), AnchorStale)


def test_a_hash_that_named_two_shown_lines_is_ambiguous_although_one_of_them_is_gone() -> None:
    old = words("start same one two three same four")
    new = words("start one two three same four")

    assert isinstance(
        new.refuse(DeleteLine(hash=old.hash(2)), shown=(old.shown(),)), AnchorAmbiguous | AnchorContextAmbiguous
    )


def test_a_number_that_told_two_equal_lines_apart_does_not_slip_to_the_one_that_is_left() -> None:
    old = words("start same one two three same four")
    new = words("start one two three same four")

    error = new.refuse(DeleteLine(hash=f"2#{old.hash(2)}"), shown=(new.shown(), old.shown()))

    assert isinstance(error, AnchorStale)


def test_our_own_edit_shifted_the_lines_and_old_anchors_still_work() -> None:
    first = lines(30)
    second = File(first.edit(InsertAfter(hash=first.anchor(3), content="a\nb\nc")))
    third = File(second.edit(DeleteLine(hash=first.anchor(10)), shown=(second.shown(), first.shown())))

    after = third.edit(
        ReplaceLine(hash=first.anchor(20), content="twenty"), shown=(third.shown(), second.shown(), first.shown())
    )

    assert after == third.data.replace(b"line number 20\n", b"twenty\n")


def test_old_anchors_of_blank_lines_follow_our_own_edits() -> None:
    first = File(b"alpha\n\nbeta\n\ngamma\n\ndelta\n")
    second = File(first.edit(InsertBefore(hash=first.anchor(1), content="new\n\nnewer")))

    plan = second.plan(DeleteLine(hash=first.anchor(6)), shown=(second.shown(), first.shown()))

    assert plan.resolutions[0].start_line == 9
    assert plan.after.data == b"new\n\nnewer\nalpha\n\nbeta\n\ngamma\ndelta\n"


def test_an_anchor_that_means_one_line_now_and_another_before_is_refused_until_the_version_is_named() -> None:
    first = File(b"first function\nbody of it\n}\nrest of the file\nmore of it\nend\n")
    second = File(b"other function\nanother body\n}\n" + first.data)
    assert first.anchor(3) == second.anchor(3).removesuffix(".1")
    sent = DeleteLine(hash=first.anchor(3))

    error = second.refuse(sent, shown=(second.shown(), first.shown()))

    assert isinstance(error, AnchorAmbiguous)
    assert error.reason == "versions_disagree"
    assert [each["line"] for each in error.details["candidates"]] == [3, 6]
    assert "expected_sha256" in error.action
    assert second.plan(sent, shown=(second.shown(), first.shown()), allow_rebase=False).resolutions[0].start_line == 3


RECORDS = File(b"[\n" + b"".join(b'  {\n    "id": %d\n  },\n' % n for n in range(9)) + b"]\n")
GROWN = File(RECORDS.data.replace(b"[\n", b'[\n  {\n    "id": "new"\n  },\n', 1))


def test_after_our_own_edit_old_anchors_mean_what_they_meant_when_they_were_shown() -> None:
    assert RECORDS.anchor(10) == GROWN.anchor(10)

    plan = GROWN.plan(DeleteLine(hash=RECORDS.anchor(10)), shown=(GROWN.written((1, 5)), RECORDS.reread()))

    assert plan.resolutions[0].start_line == 13
    assert plan.resolutions[0].cross_version


def test_after_our_own_edit_the_anchors_of_its_answer_mean_the_new_lines() -> None:
    plan = GROWN.plan(DeleteLine(hash=GROWN.anchor(4)), shown=(GROWN.written((1, 5)), RECORDS.reread()))

    assert plan.resolutions[0].start_line == 4
    assert plan.resolutions[0].cross_version is False


def test_after_another_read_the_anchors_of_that_read_count() -> None:
    plan = GROWN.plan(DeleteLine(hash=GROWN.anchor(10)), shown=(GROWN.reread(), RECORDS.reread()))

    assert plan.resolutions[0].start_line == 10


def test_after_our_own_edit_the_only_low_line_is_still_named_by_its_old_number() -> None:
    old = File(b"first line\nsecond line\n}\nlast line\n")
    new = File(b"own line\n" + old.data)
    shown = (new.written((1, 2)), old.reread())

    assert new.plan(DeleteLine(hash=old.anchor(3)), shown=shown).resolutions[0].start_line == 4
    assert isinstance(new.refuse(DeleteLine(hash=old.hash(3)), shown=shown), AnchorLowEntropy)
    assert isinstance(new.refuse(DeleteLine(hash=f"2#{old.hash(3)}"), shown=shown), AnchorLowEntropy)


def test_ranges_may_cover_what_we_wrote_ourselves() -> None:
    sent = DeleteRange(start_hash=GROWN.anchor(2), end_hash=RECORDS.hash(3))

    plan = GROWN.plan(sent, shown=(GROWN.written((1, 5)), RECORDS.reread()))

    assert (plan.resolutions[0].start_line, plan.resolutions[0].end_line) == (2, 6)


@requirement("anchored:moved_on:expected_sha256")
def test_without_rebase_only_the_live_file_counts() -> None:
    old, new = lines(20), File(b"top\n" + lines(20).data)

    plan = new.plan(ReplaceLine(hash=old.anchor(7), content="X"), shown=(old.shown(),), allow_rebase=False)
    error = new.refuse(
        DeleteRange(start_hash=new.anchor(5), end_hash=new.anchor(7)), shown=(old.shown(),), allow_rebase=False
    )

    assert plan.resolutions[0].cross_version is False
    assert isinstance(error, RangeUnseen)


@requirement("anchored:range:strict_order")
def test_a_reversed_range_that_was_found_by_rebase_is_refused() -> None:
    old, new = lines(20), File(b"top\n" + lines(20).data)

    error = new.refuse(DeleteRange(start_hash=old.anchor(9), end_hash=old.anchor(5)), shown=(old.shown(),))

    assert isinstance(error, InvalidRangeOrder)
    assert error.details["operation"]["start_hash"] == old.anchor(5)


def test_ends_that_were_shown_in_different_versions_are_never_stretched_over_unseen_lines() -> None:
    old = lines(30)
    new = File(old.data.replace(b"line number 15\n", b"changed\n"))

    error = new.refuse(
        DeleteRange(start_hash=old.anchor(10), end_hash=new.anchor(20)), shown=(new.shown((18, 30)), old.shown((1, 12)))
    )

    assert isinstance(error, RangeUnseen)
    assert error.details["unseen"] == [[10, 17]]


def test_a_range_whose_ends_no_version_showed_together_is_stale_when_an_end_is_not_certain() -> None:
    old = words("a same b c d e f g same h")
    new = words("top a same b c X e f g same h")

    error = new.refuse(
        DeleteRange(start_hash=f"2#{old.hash(2)}", end_hash=new.anchor(9)),
        shown=(new.shown((7, 11)), old.shown((1, 4))),
    )

    assert isinstance(error, AnchorStale)
    assert error.reason == "versions"


def test_an_anchor_that_was_never_shown_is_looked_up_in_the_live_file() -> None:
    old, new = lines(20), File(lines(20).data + b"appended line\n")

    assert new.edit(DeleteLine(hash=new.anchor(21)), shown=(old.shown(),)) == old.data


def test_an_offset_is_carried_with_all_lines_between() -> None:
    old = lines(20)
    moved, torn = File(b"top\n" + old.data), File(old.data.replace(b"line number 6\n", b"line number 6\nnew\n"))
    sent = DeleteLine(hash=f"5#{old.hash(5)}+3")

    assert moved.edit(sent, shown=(old.shown(),)) == moved.data.replace(b"line number 8\n", b"")
    assert isinstance(torn.refuse(sent, shown=(old.shown(),)), AnchorStale)


def test_a_file_that_became_empty_is_stale() -> None:
    old = lines(5)

    error = File(b"").refuse(DeleteLine(hash=old.anchor(2)), shown=(old.shown(),))

    assert isinstance(error, AnchorStale)
    assert error.details["was"] == {"line": 2, "text": "line number 2"}


def test_a_version_that_was_not_text_is_left_out() -> None:
    binary = File(b"\0\1\2\3\0")
    new = lines(5)

    assert new.edit(DeleteLine(hash=new.anchor(2)), shown=(binary.shown((1, 1)),)) == (
        new.data.replace(b"line number 2\n", b"")
    )


def test_a_number_of_a_version_that_is_not_known_any_more_decides_nothing() -> None:
    old = words("same a b same c d same e")
    live = words("new " + "same a b same c d same e same")
    shown = (old.shown((1, 3)),)

    refused = live.refuse(DeleteLine(hash=f"8#{live.hash(8)}.3"), shown=shown)

    assert isinstance(refused, AnchorAmbiguous)
    assert live.plan(DeleteLine(hash=f"8#{live.hash(8)}.3"), shown=(live.shown(),)).resolutions[0].start_line == 8


@pytest.mark.parametrize(
    ("line", "old", "new", "place"),
    [
        (1, b"first\nsecond\n", b"new\nnewer\nfirst\nother\n", 3),  # by the very first line
        (0, b"first\nlast\n", b"new\nother\nlast\n", 1),  # by the very last one
        (1, b"a\nb\n", b"c\nd\ne\n", 1),  # nothing is left
        (0, b"gone\nfirst\n", b"first\n", 0),  # it would be above the first line
    ],
)
def test_where_a_line_would_be_is_told_by_the_nearest_line_that_is_left(
    line: int, old: bytes, new: bytes, place: int
) -> None:
    one, other = (IndexedVersion(Snapshot(data), (), frozenset()) for data in (old, new))

    assert one.estimate_place(line, other) == place
