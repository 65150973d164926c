"""The six operations, alone and together."""

from itertools import permutations

import pytest

from spec.marks import requirement
from surehold.errors import (
    AnchorAmbiguous,
    AnchorLowEntropy,
    AnchorStale,
    InvalidRangeOrder,
    NoChange,
    NotEncodable,
    NotFound,
    OverlappingOperations,
    SchemaInvalid,
)
from surehold.text.anchored.edits import AnchoredEdits
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    Operation,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.plan import Correction, EditPlan, Horizon
from surehold.text.snapshot import ABSENT, Snapshot
from text.anchored import File, lines, on_range, words
from text.work import count_calls

TEN = lines(10)
RAW = TEN.snapshot.lines.raw


def joined(*pieces: bytes | list[bytes]) -> bytes:
    return b"".join(piece if isinstance(piece, bytes) else b"".join(piece) for piece in pieces)


@requirement("anchored:replace_range:success")
def test_replace_range_replaces_lines_5_to_8_with_3_new_ones() -> None:
    sent = ReplaceRange(start_hash=TEN.hash(5), end_hash=TEN.hash(8), content="one\ntwo\nthree")

    assert TEN.edit(sent) == joined(RAW[:4], b"one\ntwo\nthree\n", RAW[8:])


@requirement("anchored:insert_after:success")
def test_insert_after_puts_new_lines_behind_line_4() -> None:
    sent = InsertAfter(hash=TEN.hash(4), content="  console.log('debug');\n  return result;")

    assert TEN.edit(sent) == joined(RAW[:4], b"  console.log('debug');\n  return result;\n", RAW[4:])


@requirement("anchored:insert_before:success")
def test_insert_before_line_1_makes_a_new_line_1() -> None:
    sent = InsertBefore(hash=TEN.hash(1), content="// Copyright 2024\n")

    assert TEN.edit(sent) == joined(b"// Copyright 2024\n", RAW)


@requirement("anchored:delete_line:success")
def test_delete_line_removes_exactly_line_3() -> None:
    assert TEN.edit(DeleteLine(hash=TEN.hash(3))) == joined(RAW[:2], RAW[3:])


@requirement("anchored:delete_range:success")
def test_delete_range_removes_lines_2_3_and_4() -> None:
    sent = DeleteRange(start_hash=TEN.hash(2), end_hash=TEN.hash(4))

    assert TEN.edit(sent) == joined(RAW[:1], RAW[4:])


@requirement("anchored:content:final_terminator")
@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("", b"\n"),
        ("\n", b"\n"),
        ("\n\n", b"\n\n"),
        ("x", b"x\n"),
        ("x\n", b"x\n"),
        ("x\n\n", b"x\n\n"),
        ("x\r\n", b"x\n"),
        ("x\r\ny", b"x\ny\n"),
        ("\nx", b"\nx\n"),
        ("a\u2028b\x0cc\x0bd\u0085e", "a\u2028b\x0cc\x0bd\u0085e\n".encode()),
        ("a\rb", b"a\rb\n"),
    ],
)
def test_one_final_terminator_of_the_content_is_dropped(content: str, written: bytes) -> None:
    assert TEN.edit(ReplaceLine(hash=TEN.hash(3), content=content)) == joined(RAW[:2], written, RAW[3:])
    assert TEN.edit(InsertAfter(hash=TEN.hash(3), content=content)) == joined(RAW[:3], written, RAW[3:])


@requirement("anchored:batch:snapshot")
def test_a_deletion_and_an_insertion_both_use_the_file_as_it_was_at_the_start() -> None:
    sent = (DeleteLine(hash=TEN.hash(2)), InsertAfter(hash=TEN.hash(5), content="new"))

    assert TEN.edit(*sent) == joined(RAW[:1], RAW[2:5], b"new\n", RAW[5:])


@requirement("anchored:batch:snapshot")
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_the_order_of_operations_does_not_matter(order: tuple[int, ...]) -> None:
    sent: tuple[Operation, ...] = (
        InsertAfter(hash=TEN.hash(2), content="a\nb"),
        ReplaceLine(hash=TEN.hash(5), content="five"),
        DeleteLine(hash=TEN.hash(7)),
    )

    assert TEN.edit(*(sent[n] for n in order)) == joined(RAW[:2], b"a\nb\n", RAW[2:4], b"five\n", RAW[5:6], RAW[7:])


@requirement("anchored:batch:invalid_hash", "anchored:batch:all_problems")
def test_one_invalid_hash_of_three_refuses_the_batch_and_is_listed() -> None:
    sent = (DeleteLine(hash=TEN.hash(2)), DeleteLine(hash=TEN.hash(5)), DeleteLine(hash="beef00"))

    error = TEN.refuse(*sent)

    assert isinstance(error, AnchorStale)
    assert error.details["operation_index"] == 2
    assert "beef00" in error.message
    assert [each["index"] for each in error.details["problems"]] == [2]


@requirement("anchored:batch:ambiguous_hash")
def test_one_ambiguous_hash_without_an_occurrence_refuses_the_batch() -> None:
    file = words("unique same other same")

    error = file.refuse(DeleteLine(hash=file.hash(1)), DeleteLine(hash=file.hash(2)))

    assert isinstance(error, AnchorAmbiguous)
    assert error.details["operation_index"] == 1


@requirement("anchored:batch:all_problems")
def test_every_problem_is_listed_and_the_gravest_names_the_error() -> None:
    file = File(b"alpha\n}\nsame line\nbeta\nsame line\ngamma\n")
    shown = (file.shown(),)
    overlapping = (
        DeleteRange(start_hash=file.hash(1), end_hash=file.hash(4)),
        ReplaceLine(hash=f"3#{file.hash(3)}", content="x"),
    )
    ambiguous = DeleteLine(hash=file.hash(3))
    low = DeleteLine(hash=file.hash(2))
    stale = DeleteLine(hash="beef00")

    everything = file.refuse(*overlapping, ambiguous, low, stale, shown=shown)

    assert isinstance(everything, AnchorStale)
    assert [(each["index"], each["error"]) for each in everything.details["problems"]] == [
        (1, "overlapping_operations"),
        (2, "anchor_ambiguous"),
        (3, "anchor_low_entropy"),
        (4, "anchor_stale"),
    ]
    assert everything.message.endswith("(3 more problems are listed).")
    assert isinstance(file.refuse(*overlapping, ambiguous, low, shown=shown), AnchorLowEntropy)
    assert isinstance(file.refuse(*overlapping, ambiguous, shown=shown), AnchorAmbiguous)
    assert isinstance(file.refuse(*overlapping, shown=shown), OverlappingOperations)


def test_other_problems_carry_what_is_needed_to_repair_them_too() -> None:
    file = words("unique same other same")

    error = file.refuse(DeleteLine(hash="beef00"), DeleteLine(hash=file.hash(2)))

    assert [each["line"] for each in error.details["problems"][1]["candidates"]] == [2, 4]


@requirement("anchored:anchor:malformed", "anchored:batch:all_problems")
def test_an_anchor_that_cannot_be_read_is_listed_with_its_operation() -> None:
    error = TEN.refuse(DeleteLine(hash="12:a1b2c3"), DeleteLine(hash="beef00"))

    assert isinstance(error, SchemaInvalid)
    assert error.details["did_you_mean"] == "12#a1b2c3"
    assert error.message == (
        "Operation 0: `hash` is not an anchor: `12:a1b2c3`; did you mean `12#a1b2c3` (1 more problem is listed)."
    )


@requirement("anchored:batch:overlap")
@pytest.mark.parametrize(
    "sent",
    [
        (ReplaceLine(hash=TEN.hash(5), content="x"), DeleteLine(hash=TEN.hash(5))),
        (ReplaceLine(hash=TEN.hash(5), content="x"), ReplaceLine(hash=TEN.hash(5), content="y")),
        (DeleteRange(start_hash=TEN.hash(3), end_hash=TEN.hash(6)), InsertAfter(hash=TEN.hash(4), content="x")),
        (InsertBefore(hash=TEN.hash(4), content="x"), DeleteRange(start_hash=TEN.hash(3), end_hash=TEN.hash(6))),
        (
            DeleteRange(start_hash=TEN.hash(3), end_hash=TEN.hash(6)),
            ReplaceRange(start_hash=TEN.hash(6), end_hash=TEN.hash(8), content="x"),
        ),
        (DeleteRange(start_hash=TEN.hash(3), end_hash=TEN.hash(6)), DeleteLine(hash=TEN.hash(3))),
    ],
    ids=["replace and delete", "two replacements", "insert inside", "insert inside, first", "ranges", "edge of range"],
)
def test_operations_that_want_the_same_lines_are_refused_naming_both(sent: tuple[Operation, ...]) -> None:
    error = TEN.refuse(*sent)

    assert isinstance(error, OverlappingOperations)
    assert error.details["operation_indices"] == [0, 1]
    assert error.step == "rewrite_as_single_block"


def test_every_overlap_is_told() -> None:
    error = TEN.refuse(
        DeleteRange(start_hash=TEN.hash(2), end_hash=TEN.hash(9)),
        *(ReplaceLine(hash=TEN.hash(line), content="x") for line in (3, 5, 9)),
    )

    assert [each["index"] for each in error.details["problems"]] == [1, 2, 3]


@requirement("anchored:batch:overlap")
def test_inserts_at_the_edges_of_a_span_are_fine() -> None:
    sent = (
        DeleteRange(start_hash=TEN.hash(3), end_hash=TEN.hash(6)),
        InsertBefore(hash=TEN.hash(3), content="before"),
        InsertAfter(hash=TEN.hash(6), content="after"),
    )

    assert TEN.edit(*sent) == joined(RAW[:2], b"before\nafter\n", RAW[6:])


def test_spans_may_touch() -> None:
    sent = (
        ReplaceRange(start_hash=TEN.hash(3), end_hash=TEN.hash(4), content="x"),
        DeleteLine(hash=TEN.hash(5)),
        ReplaceLine(hash=TEN.hash(6), content="y\nz"),
    )

    assert TEN.edit(*sent) == joined(RAW[:2], b"x\ny\nz\n", RAW[6:])


@requirement("anchored:batch:compose")
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_replacing_a_line_and_inserting_around_it_compose_once(order: tuple[int, ...]) -> None:
    sent: tuple[Operation, ...] = (
        ReplaceLine(hash=TEN.hash(5), content="five"),
        InsertAfter(hash=TEN.hash(5), content="after"),
        InsertBefore(hash=TEN.hash(5), content="before"),
    )

    assert TEN.edit(*(sent[n] for n in order)) == joined(RAW[:4], b"before\nfive\nafter\n", RAW[5:])


@requirement("anchored:batch:compose")
def test_an_operation_that_was_sent_twice_is_applied_once_with_a_note() -> None:
    sent = InsertAfter(hash=TEN.hash(5), content="once")

    plan = TEN.plan(sent, DeleteLine(hash=TEN.hash(7)), sent)

    assert plan.after.data == joined(RAW[:5], b"once\n", RAW[5:6], RAW[7:])
    assert plan.corrections == (
        Correction(type="duplicate_operation", detail="Operation 2 repeats operation 0. Applied once."),
    )
    assert [each.index for each in plan.resolutions] == [0, 1]


@requirement("anchored:batch:insert_order")
def test_several_inserts_at_one_gap_stand_in_the_order_of_the_array() -> None:
    sent: tuple[Operation, ...] = (
        InsertAfter(hash=TEN.hash(5), content="one"),
        InsertBefore(hash=TEN.hash(6), content="two"),
        InsertAfter(hash=TEN.hash(5), content="three"),
    )

    assert TEN.edit(*sent) == joined(RAW[:5], b"one\ntwo\nthree\n", RAW[5:])
    assert TEN.edit(*sent[::-1]) == joined(RAW[:5], b"three\ntwo\none\n", RAW[5:])


@requirement("anchored:range:swapped")
@pytest.mark.parametrize("op", ["replace_range", "delete_range"])
def test_a_range_from_791_to_17_is_swapped_with_the_sentence_of_the_seed(op: str) -> None:
    file = lines(800)

    plan = file.plan(on_range(op, file.hash(791), file.hash(17)))

    raw = file.snapshot.lines.raw
    assert plan.after.data == joined(raw[:16], b"x\n" if op == "replace_range" else b"", raw[791:])
    assert plan.corrections == (
        Correction(
            type="range_order_swapped", detail="start_line (791) was after end_line (17). Swapped automatically."
        ),
    )
    assert (plan.resolutions[0].start_line, plan.resolutions[0].end_line) == (17, 791)


@requirement("anchored:range:strict_order")
def test_with_strict_order_a_reversed_range_is_refused() -> None:
    error = TEN.refuse(DeleteRange(start_hash=TEN.hash(7), end_hash=TEN.hash(2)), strict_order=True)

    assert isinstance(error, InvalidRangeOrder)
    assert error.details["operation"] == {"op": "delete_range", "start_hash": TEN.hash(2), "end_hash": TEN.hash(7)}


@requirement("anchored:range:same_line")
def test_both_ends_on_one_line_is_a_no_op_with_the_ready_operation() -> None:
    replaced = TEN.refuse(ReplaceRange(start_hash=TEN.hash(4), end_hash=TEN.anchor(4), content="four"))
    deleted = TEN.refuse(DeleteRange(start_hash=TEN.hash(4), end_hash=TEN.hash(4)))

    assert isinstance(replaced, InvalidRangeOrder)
    assert "no-op" in replaced.message
    assert "start equals end" in replaced.message
    assert replaced.details["operation"] == {"op": "replace_line", "hash": TEN.anchor(4), "content": "four"}
    assert deleted.details["operation"] == {"op": "delete_line", "hash": TEN.anchor(4)}


@requirement("anchored:result:no_change")
def test_a_result_equal_to_the_file_is_no_change() -> None:
    for sent in (
        ReplaceLine(hash=TEN.hash(3), content="line number 3"),
        ReplaceRange(start_hash=TEN.hash(3), end_hash=TEN.hash(4), content="line number 3\nline number 4\n"),
    ):
        assert isinstance(TEN.refuse(sent), NoChange)


def test_lines_that_a_range_writes_again_are_not_part_of_the_change() -> None:
    sent = ReplaceRange(
        start_hash=TEN.hash(3), end_hash=TEN.hash(6), content="line number 3\nline number 4\nnew\nline number 6"
    )

    plan = TEN.plan(sent)

    (span,) = plan.spans
    assert TEN.data[span.start : span.end] == b"line number 5\n"
    assert plan.horizon == Horizon(anchors_valid_through=4, must_refresh_from_line=5)


@requirement("anchored:result:horizon")
def test_an_edit_of_lines_20_to_22_keeps_anchors_valid_through_19() -> None:
    file = lines(40)

    plan = file.plan(ReplaceRange(start_hash=file.hash(20), end_hash=file.hash(22), content="a\nb\nc"))

    assert plan.horizon == Horizon(anchors_valid_through=19, must_refresh_from_line=20)
    assert (plan.corrections, plan.warnings) == ((), ())


@requirement("anchored:result:summary")
def test_a_replacement_and_an_insertion_say_where_their_lines_stand() -> None:
    file = lines(40)

    plan = file.plan(
        ReplaceLine(hash=file.hash(12), content="a\nb"), InsertAfter(hash=file.hash(20), content="c\nd\ne")
    )

    first, second = plan.resolutions
    assert plan.horizon == Horizon(anchors_valid_through=11, must_refresh_from_line=12)
    assert (first.start_line, first.new_start_line, first.new_end_line) == (12, 12, 13)
    assert (second.start_line, second.new_start_line, second.new_end_line) == (20, 22, 24)
    assert plan.after.line_count - plan.before.line_count == 4
    assert plan.after.lines.contents[21:24] == [b"c", b"d", b"e"]


def test_every_operation_knows_its_own_new_lines_also_where_they_touch() -> None:
    sent = (
        InsertAfter(hash=TEN.hash(5), content="x\ny"),
        ReplaceLine(hash=TEN.hash(5), content="five\nfive and a half"),
        DeleteLine(hash=TEN.hash(6)),
        InsertBefore(hash=TEN.hash(5), content="w"),
    )

    plan = TEN.plan(*sent)

    contents = plan.after.lines.contents
    assert [contents[each.new_start_line - 1 : each.new_end_line] for each in plan.resolutions] == [
        [b"x", b"y"],
        [b"five", b"five and a half"],
        [],
        [b"w"],
    ]
    assert [each.index for each in plan.applied] == [0, 1, 2, 3]


@requirement("anchored:virtual:ends")
@pytest.mark.parametrize("kind", [InsertAfter, InsertBefore])
def test_the_edges_of_the_file_anchor_inserts(kind: type[InsertAfter | InsertBefore]) -> None:
    assert TEN.edit(kind(hash="BOF", content="first")) == b"first\n" + TEN.data
    assert TEN.edit(kind(hash="EOF", content="last")) == TEN.data + b"last\n"
    (first,), (last,) = (TEN.plan(kind(hash=edge, content="new")).resolutions for edge in ("bof", "eof"))
    assert (first.resolution_level, first.start_line, first.new_start_line) == ("edge", 1, 1)
    assert (last.resolution_level, last.start_line, last.new_start_line) == ("edge", 10, 11)
    assert File(b"").edit(kind(hash="BOF", content="only\n")) == b"only\n"
    assert File(b"").edit(kind(hash="EOF", content="one\ntwo")) == b"one\ntwo\n"


@requirement("anchored:virtual:ends")
@pytest.mark.parametrize(
    "sent",
    [DeleteLine(hash="EOF"), ReplaceLine(hash="BOF", content="x"), DeleteRange(start_hash="BOF", end_hash=TEN.hash(3))],
    ids=["delete", "replace", "range"],
)
def test_the_edges_of_the_file_are_no_lines(sent: Operation) -> None:
    error = TEN.refuse(sent)

    assert isinstance(error, SchemaInvalid)
    assert "insert_after" in error.action


def test_an_empty_file_has_no_line_to_point_at() -> None:
    assert isinstance(File(b"").refuse(InsertAfter(hash="beef00", content="x")), AnchorStale)


def test_a_call_without_operations_is_refused() -> None:
    assert TEN.refuse().reason == "no_operations"


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(NotFound):
        AnchoredEdits(operations=(InsertAfter(hash="BOF", content="x"),)).plan(ABSENT)


@requirement("anchored:content:copied_prefixes")
def test_rows_that_all_begin_with_real_anchors_lose_them_with_a_note() -> None:
    content = f"{TEN.row(3)}\n{TEN.anchor(4)}|changed\n{TEN.anchor(4)}!|  new"

    plan = TEN.plan(ReplaceRange(start_hash=TEN.hash(3), end_hash=TEN.hash(4), content=content))

    assert plan.after.data == joined(RAW[:3], b"changed\n  new\n", RAW[4:])
    (note,) = plan.corrections
    assert note.type == "anchor_prefixes_stripped"
    assert "3 rows" in note.detail


@requirement("anchored:content:copied_prefixes")
def test_rows_of_which_only_some_begin_with_real_anchors_are_refused() -> None:
    error = TEN.refuse(ReplaceLine(hash=TEN.hash(3), content=f"{TEN.row(3)}\nnew line"))

    assert isinstance(error, SchemaInvalid)
    assert "1 of 2 rows" in error.message


@requirement("anchored:content:copied_prefixes")
def test_text_that_only_looks_like_anchors_is_written_as_it_is() -> None:
    assert TEN.edit(ReplaceLine(hash=TEN.hash(3), content="118#5da3f1.7|text")) == (
        joined(RAW[:2], b"118#5da3f1.7|text\n", RAW[3:])
    )


def test_anchors_of_a_version_that_was_shown_are_real_too() -> None:
    old, new = TEN, File(TEN.data.replace(b"line number 3\n", b"other\n"))

    plan = new.plan(InsertAfter(hash=new.anchor(5), content=old.row(3)), shown=(new.shown(), old.shown()))

    assert plan.after.data == new.data.replace(b"line number 5\n", b"line number 5\nline number 3\n")


@pytest.mark.parametrize("content", ["pass", "pass\npass", "}\n}\n}", "+ added", "- item", "<<<<<<< HEAD"])
def test_content_is_written_literally(content: str) -> None:
    file = File(b"def f():\n    pass\n    y = 2\n")

    assert file.edit(InsertAfter(hash=file.anchor(2), content=content)) == (
        b"def f():\n    pass\n" + content.encode() + b"\n    y = 2\n"
    )


def test_an_intended_dedent_is_not_undone() -> None:
    file = File(b"def f():\n    y = 2\n")

    assert file.edit(ReplaceLine(hash=file.anchor(2), content="y = 2")) == b"def f():\ny = 2\n"


def test_text_that_the_file_cannot_hold_is_refused_naming_the_operation() -> None:
    file = File("# coding: latin-1\ncafé\nend of it\n".encode("latin-1"))

    with pytest.raises(NotEncodable) as caught:
        file.plan(DeleteLine(hash=file.anchor(3)), ReplaceLine(hash=file.anchor(2), content="€ 中"))

    assert caught.value.details["operation_index"] == 1
    assert caught.value.details["characters"] == ["U+20AC", "U+4E2D"]


def test_ten_times_as_many_operations_on_ten_times_as_many_lines_are_ten_times_the_work() -> None:
    small = work_of(lines_with_blanks(5_000), 200)
    large = work_of(lines_with_blanks(50_000), 2_000)

    assert large < 15 * small


def test_two_thousand_refused_operations_are_all_listed() -> None:
    file = lines_with_blanks(50_000)

    error = file.refuse(*(DeleteLine(hash=f"{number:08x}ff") for number in range(2_000)), shown=(file.shown(),))

    assert len(error.details["problems"]) == 2_000


def lines_with_blanks(count: int) -> File:
    return File(b"".join(b"line number %d\n\n" % number for number in range(count // 2)))


def work_of(file: File, operations: int) -> int:
    step = len(file.rows) // operations
    sent = tuple(ReplaceLine(hash=file.anchor(n * step + 1 + n % 2), content=f"new {n}") for n in range(operations))
    moved = Snapshot(b"top\n" + file.data)
    plans = list[EditPlan]()
    calls = count_calls(lambda: plans.append(AnchoredEdits(operations=sent, shown=(file.shown(),)).plan(moved)))
    assert len(plans[0].resolutions) == operations
    return calls
