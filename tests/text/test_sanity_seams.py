import pytest

from spec.marks import requirement
from surehold.text.plan import Span, splice_spans
from surehold.text.sanity.check import SanityCheck
from surehold.text.snapshot import Snapshot
from text.sanity_scenes import kinds, report

TEXT = "first line\nsecond line\nthird line\nfourth line\n"


@requirement("anchored:sanity:seam_duplicate")
def test_a_block_that_repeats_the_line_below_it_is_suspicious() -> None:
    found = report("a.txt", TEXT, TEXT.replace("second line\n", "another line\nthird line\n"))

    assert [(f.kind, f.line, f.message) for f in found.findings] == [
        ("seam_duplicate", 3, "Line 3 repeats the line below it, which was already there: `third line`.")
    ]


@requirement("anchored:sanity:seam_duplicate")
def test_a_block_that_repeats_the_line_above_it_is_suspicious() -> None:
    found = report("a.txt", TEXT, TEXT.replace("third line\n", "second line\nanother line\n"))

    assert [(f.kind, f.line, f.message) for f in found.findings] == [
        ("seam_duplicate", 3, "Line 3 repeats the line above it, which was already there: `second line`.")
    ]


@requirement("anchored:sanity:seam_duplicate")
def test_lines_that_are_sent_again_unchanged_are_no_seam() -> None:
    before = Snapshot(TEXT.encode())
    span = Span(start=0, end=before.size, new=TEXT.replace("second", "2nd").encode())

    assert SanityCheck(path="a.txt").report_on(splice_spans(before, (span,))).findings == ()


@requirement("anchored:sanity:seam_duplicate")
def test_a_line_that_is_replaced_by_itself_twice_is_a_doubled_one() -> None:
    before = Snapshot(TEXT.encode())
    span = Span(start=11, end=23, new=b"second line\nsecond line\n")

    assert [f.kind for f in SanityCheck(path="a.txt").report_on(splice_spans(before, (span,))).findings] == [
        "seam_duplicate"
    ]


@requirement("anchored:sanity:seam_duplicate")
def test_lines_that_were_equal_before_may_stay_so() -> None:
    before = Snapshot(b"one thing\none thing\nlast thing\n")
    span = Span(start=0, end=10, new=b"other thing\none thing\n")

    assert SanityCheck(path="a.txt").report_on(splice_spans(before, (span,))).findings == ()


@requirement("anchored:sanity:seam_duplicate")
def test_a_run_of_equal_lines_may_grow() -> None:
    run = "table\n{zero, decode}\n{zero, decode}\nend of table\n"

    assert kinds("a.txt", run, run.replace("table\n{", "table\n{zero, decode}\n{", 1)) == []
    assert kinds("a.txt", run, run.replace("end of", "{zero, decode}\nthe end of")) == []


@requirement("anchored:sanity:seam_duplicate")
@pytest.mark.parametrize("low", ["", "}", "    });", "\t]", "end", "</div>", "*/", "#endif", "  null,", "0,"])
def test_lines_that_say_nothing_may_be_repeated(low: str) -> None:
    assert (
        kinds("a.txt", f"first line\n{low}\nlast line\n", f"first line\nmiddle line\n{low}\n{low}\nlast line\n") == []
    )


@requirement("anchored:sanity:seam_duplicate")
def test_one_more_item_of_a_list_is_meant() -> None:
    assert kinds("a.txt", "f(\n  width,\n  height\n", "f(\n  width,\n  width,\n  height\n") == []


@requirement("anchored:sanity:seam_duplicate")
def test_indentation_makes_lines_different() -> None:
    assert kinds("a.txt", TEXT, TEXT.replace("third line\n", "    second line\n")) == []


@requirement("anchored:sanity:seam_duplicate", "anchored:sanity:names_operation")
def test_the_operation_that_doubled_a_line_is_named() -> None:
    before = Snapshot(TEXT.encode())
    spans = (Span(start=0, end=10, new=b"FIRST LINE"), Span(start=34, end=46, new=b"third line\nlast line\n"))

    found = SanityCheck(path="a.txt").report_on(splice_spans(before, spans))

    assert [(f.kind, f.operation, f.line) for f in found.findings] == [("seam_duplicate", 1, 4)]


def test_two_operations_that_touch_are_one_block() -> None:
    before = Snapshot(TEXT.encode())
    spans = (Span(start=11, end=23, new=b"same line\n"), Span(start=23, end=34, new=b"same line\n"))

    found = SanityCheck(path="a.txt").report_on(splice_spans(before, spans))

    assert [(f.kind, f.suspicious) for f in found.findings] == [("duplicate_lines", False)]


def test_a_span_within_a_line_is_seen_as_its_line() -> None:
    before = Snapshot(b"alpha beta\nalpha gamma\n")
    span = Span(start=17, end=22, new=b"beta")

    assert [f.kind for f in SanityCheck(path="a.txt").report_on(splice_spans(before, (span,))).findings] == [
        "seam_duplicate"
    ]


@requirement("anchored:sanity:only_warnings")
def test_equal_new_lines_elsewhere_are_a_warning_and_clean() -> None:
    found = report("a.txt", TEXT, "new line\n" + TEXT + "new line\n", "strict")

    assert (found.status, [f.kind for f in found.findings]) == ("clean", ["duplicate_lines"])
    assert found.warnings == ("Lines 1 and 6 of the new text are equal: `new line`.",)
