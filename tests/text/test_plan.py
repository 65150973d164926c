"""What a plan says of itself: where its spans are, which lines they touch, and whether another version has it already."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehold.text import plan as plans
from surehold.text.diff import Hunk, UnifiedDiff
from surehold.text.encoding import UTF8, Encoding, encoding_named
from surehold.text.plan import (
    Delete,
    EditOutcome,
    EditPlan,
    Horizon,
    Keep,
    LineSpan,
    Span,
    convert_parts,
    diff_between,
    diff_of_plan,
    name_difference,
    plan_between,
    splice_spans,
)
from surehold.text.snapshot import ABSENT, LineCounter, Meta, Snapshot

WIDE = Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)
BOM = b"\xef\xbb\xbf"


def spliced(before: bytes | Snapshot, *spans: tuple[int, int, bytes]) -> EditPlan:
    snapshot = before if isinstance(before, Snapshot) else Snapshot(before)
    return splice_spans(snapshot, [Span(start=start, end=end, new=new) for start, end, new in spans])


@st.composite
def plans_of_spans(draw: st.DrawFn, *, least: int = 0) -> EditPlan:
    data = draw(st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n"]), max_size=14).map(b"".join))
    count = draw(st.integers(least, 3))
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), min_size=2 * count, max_size=2 * count)))
    news = st.sampled_from([b"", b"x", b"\n", b"y\n", b"\nz", b"a\nb"])
    return spliced(data, *((start, end, draw(news)) for start, end in zip(cuts[::2], cuts[1::2], strict=True)))


@given(plans_of_spans())
def test_spans_are_known_by_their_offsets_on_both_sides(plan: EditPlan) -> None:
    before, after = plan.before.data, plan.after.data
    rows = plan.span_offsets()

    assert [(start, end, after[begin:stop]) for start, end, begin, stop in rows] == list(plan.spans)
    ends = [(0, 0), *((end, stop) for _, end, _, stop in rows)]
    starts = [*((start, begin) for start, _, begin, _ in rows), (len(before), len(after))]
    for (end, stop), (start, begin) in zip(ends, starts, strict=True):
        assert before[end:start] == after[stop:begin]


@given(plans_of_spans())
def test_line_breaks_of_spans_are_counted_once_and_right(plan: EditPlan) -> None:
    before = plan.before.data
    firsts = [plan.before.line_number(start) for start, _, _ in plan.spans]

    assert [list(part) for part in plan.span_breaks()] == [
        [1 + before.count(b"\n", 0, start) for start, _, _ in plan.spans],
        [before.count(b"\n", start, end) for start, end, _ in plan.spans],
        [new.count(b"\n") for _, _, new in plan.spans],
    ]
    assert all(first <= line for first, line in zip(firsts, plan.span_breaks()[0], strict=True))


@given(plans_of_spans())
def test_the_lines_of_a_span_are_those_of_its_first_and_last_byte(plan: EditPlan) -> None:
    before, after = plan.before.data, plan.after.data

    def lines_of(data: bytes, start: int, end: int) -> tuple[int, int]:
        return 1 + data.count(b"\n", 0, start), 1 + data.count(b"\n", 0, max(start, end - 1))

    assert plan.line_spans() == [
        (*lines_of(before, start, end), *lines_of(after, begin, stop))
        for start, end, begin, stop in plan.span_offsets()
    ]


@pytest.mark.parametrize(
    ("before", "after", "spans", "lines"),
    [
        pytest.param(b"a\rb\rc", None, [(2, 4, b"x\ry\r")], (2, 2, 2, 3), id="CR on both sides"),
        pytest.param(b"a\rb\rc", None, [(2, 3, b"\n")], (2, 2, 1, 1), id="CR on the old side alone"),
        pytest.param(b"a\nb\rc", None, [(1, 2, b"")], (1, 1, 1, 1), id="CR on the new side alone"),
        pytest.param(b"a\rb\rc", None, [(2, 2, b"")], (2, 2, 2, 2), id="nothing in a file of CR"),
        pytest.param(b"a\rb\rc", None, [(2, 5, b"")], (2, 3, 1, 1), id="to the end of a file of CR"),
        pytest.param(b"a\nb\rc\rd", None, [(1, 2, b""), (5, 6, b"")], (2, 2, 2, 2), id="the second in CR"),
        pytest.param(b"a\rb\rc", None, [(0, 3, b"x\ry\rz")], (1, 2, 1, 3), id="up to a line break, not beyond it"),
    ],
)
def test_where_lf_does_not_end_all_lines_they_are_looked_up(
    before: bytes, after: None, spans: list[tuple[int, int, bytes]], lines: tuple[int, int, int, int]
) -> None:
    plan = spliced(before, *spans)

    assert plan.line_spans()[-1] == LineSpan(*lines)


def test_changes_are_compared_in_parts_up_to_the_last_byte() -> None:
    size = 1 << 16
    before = b"a" * (2 * size + 3)

    for at in (0, size - 1, size, 2 * size, len(before) - 1):
        assert spliced(before, (at, at + 1, b"b")).changes_bytes
        assert not spliced(before, (at, at + 1, b"a")).changes_bytes
    assert not spliced(before, (0, len(before), before)).changes_bytes
    assert spliced(before, (0, len(before), before[:-1] + b"b")).changes_bytes
    assert not spliced(b"ab", (0, 1, b"a"), (1, 2, b"b")).changes_bytes
    assert spliced(b"ab", (0, 1, b"")).changes_bytes
    assert spliced(b"ab", (1, 1, b"x")).changes_bytes


def test_a_plan_without_spans_changes_what_its_sides_differ_in() -> None:
    file = Snapshot(b"a\n")

    assert Delete().plan(file) == EditPlan(before=file, after=ABSENT)
    assert Delete().plan(file).changes_bytes
    assert Keep().plan(file) == EditPlan(before=file, after=file)
    assert not Keep().plan(file).changes_bytes
    assert (Delete().plan(file).horizon, Keep().plan(file).horizon) == (None, None)
    assert (Delete().plan(file).span_breaks(), Delete().plan(file).line_spans()) == (([], [], []), [])


@pytest.mark.parametrize(
    ("before", "spans", "line"),
    [
        pytest.param(b"a\nb\nc\n", [(2, 3, b"B")], 2, id="the line of the change"),
        pytest.param(b"a\nb\nc\n", [(0, 5, b"a\nb\nC")], 3, id="what is equal at its beginning is still valid"),
        pytest.param(b"a\nb\nc\n", [(0, 1, b"a"), (4, 5, b"C")], 3, id="a span that changes nothing is passed over"),
        pytest.param(b"a\nb\nc\n", [(0, 2, b"")], 1, id="a line that goes"),
        pytest.param(b"a\nb\nc\n", [(4, 4, b"x\n")], 3, id="a line that comes"),
        pytest.param(b"a\nb\nc\n", [(0, 1, b"a")], None, id="nothing"),
    ],
)
def test_anchors_are_valid_up_to_the_first_line_that_differs(
    before: bytes, spans: list[tuple[int, int, bytes]], line: int | None
) -> None:
    wanted = None if line is None else Horizon(anchors_valid_through=line - 1, must_refresh_from_line=line)

    assert spliced(before, *spans).horizon == wanted


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        (EditPlan(before=Snapshot(b"abc"), after=Snapshot(b"a")), 3),
        (EditPlan(before=Snapshot(b"a"), after=Snapshot(b"abc")), 3),
        (spliced(b"abcdef", (1, 2, b""), (4, 5, b"x")), 4),
        (spliced(b"abcdef", (1, 2, b"123"), (2, 3, b"45")), 5),
    ],
)
def test_what_has_to_be_compared_is_what_is_between_the_outer_ends_of_the_spans(plan: EditPlan, size: int) -> None:
    assert plan.differing_bytes == size


def test_facts_about_spans_are_kept_with_the_outcomes_and_hunks_are_not() -> None:
    plan = spliced(b"a\nb\n", (0, 1, b"A"))
    facts = plan.changes_bytes, plan.span_offsets(), plan.span_breaks()
    _ = list(plan.hunks())
    outcome = EditOutcome(index=0, occurrences=1, ranges=())

    finished = plan.with_outcomes(iter([outcome]))

    assert finished.applied == (outcome,)
    assert finished.warnings == ()
    assert {name: finished.__dict__[name] for name in plans._KEPT_FACTS} == dict(  # pyright: ignore[reportPrivateUsage]
        zip(("changes_bytes", "_span_offsets", "_span_breaks"), facts, strict=True)
    )
    assert finished.__dict__["_span_offsets"] is plan.span_offsets()


def test_outcomes_come_with_a_warning_where_a_file_no_longer_is_what_it_declares() -> None:
    before = Snapshot(b"# coding: latin-1\n\xe9\n")
    at = before.data.index(b"latin-1")

    assert spliced(before, (at, at + 7, b"cp1251")).with_outcomes([]).warnings != ()


LINES = b"1\n2\n3\n4\n5\n6\n7\n8\n"


@pytest.mark.parametrize(
    ("other", "is_part"),
    [
        pytest.param(b"1\n2\nX\n4\n5\n6\n7\n8\n", True, id="it is the result"),
        pytest.param(b"0\n2\nX\n4\n6\n", True, id="with the lines beside it, whatever the others are"),
        pytest.param(b"1\nX\n4\n", False, id="the line above is another"),
        pytest.param(b"2\nX\n5\n", False, id="the line below is another"),
        pytest.param(LINES, False, id="the file as it was"),
        pytest.param(b"", False, id="an empty file"),
        pytest.param(None, False, id="no file"),
    ],
)
def test_another_version_has_a_change_if_it_has_its_lines_with_those_beside(other: bytes | None, is_part: bool) -> None:
    assert spliced(LINES, (4, 5, b"X")).is_part_of(Snapshot(other)) == is_part


def test_every_change_must_be_there_and_more_often_than_before() -> None:
    both = spliced(LINES, (2, 3, b"X"), (12, 13, b"Y"))
    added = spliced(b"a\nx\nb\na\nb\n", (8, 8, b"x\n"))

    assert both.is_part_of(Snapshot(b"1\nX\n3\n-\n6\nY\n8\n"))
    assert not both.is_part_of(Snapshot(b"1\nX\n3\n-\n6\n7\n8\n"))
    assert not both.is_part_of(Snapshot(b"1\n2\n3\n-\n6\nY\n8\n"))
    assert not added.is_part_of(Snapshot(b"a\nx\nb\n"))
    assert added.is_part_of(Snapshot(b"a\nx\nb\na\nx\nb\nend\n"))


def test_of_a_text_that_is_gone_nothing_can_be_found() -> None:
    emptied = spliced(b"a\n", (0, 2, b""))

    assert not emptied.is_part_of(Snapshot(b"b\n"))
    assert not emptied.is_part_of(Snapshot(b"b\nc\nd\n"))
    assert emptied.is_part_of(Snapshot(b""))
    assert not Delete().plan(Snapshot(b"a\n")).is_part_of(ABSENT)  # another program may have removed it
    assert not Delete().plan(Snapshot(b"a\n")).is_part_of(Snapshot(b"a\n"))
    assert not Delete().plan(Snapshot(b"a\n")).is_part_of(Snapshot(b""))


def test_a_change_of_nothing_is_part_of_every_file_and_of_no_missing_one() -> None:
    nothing = spliced(b"a\n", (0, 1, b"a"))

    assert nothing.is_part_of(Snapshot(b"b\n"))
    assert not nothing.is_part_of(ABSENT)


def test_a_file_that_is_written_whole_is_there_only_if_nothing_was_added() -> None:
    plan = EditPlan(before=Snapshot(b"a\n"), after=Snapshot(b"b\n"))

    assert plan.is_part_of(Snapshot(b"b\n"))
    assert not plan.is_part_of(Snapshot(b"b\nc\n"))


def test_changes_of_wide_files_are_not_looked_for_elsewhere() -> None:
    before = Snapshot(WIDE.bom + WIDE.encode("a\nb\n"), encoding=WIDE)
    plan = spliced(before, (2, 4, WIDE.encode("A")))

    assert plan.is_part_of(plan.after)
    assert not plan.is_part_of(Snapshot(plan.after.data + WIDE.encode("c\n"), encoding=WIDE))
    assert not plan.is_part_of(Snapshot(b"A\nb\nc\n"))


def test_a_plan_is_wide_if_one_of_its_sides_is() -> None:
    wide, narrow = Snapshot(WIDE.bom + WIDE.encode("a\n")), Snapshot(b"b\n")

    rows = {(one.is_text, other.is_text, EditPlan(before=one, after=other).is_wide) for one in (wide, narrow)
            for other in (wide, narrow)}  # fmt: skip
    assert rows == {(True, True, True), (True, True, False)}
    for before, after, shown in ((wide, narrow, "-a\n+b\n"), (narrow, wide, "-b\n+a\n")):
        plan = EditPlan(before=before, after=after)
        assert plan.is_wide
        assert "".join(plan.decode_row(row) for hunk in plan.hunks() for row in hunk.lines) == shown
    assert not EditPlan(before=narrow, after=narrow).is_wide


def test_rows_are_decoded_as_the_side_they_are_from() -> None:
    latin, greek = encoding_named("latin-1"), encoding_named("iso8859-7")
    plan = EditPlan(before=Snapshot(b"", encoding=latin), after=Snapshot(b"", encoding=greek))

    assert [plan.decode_row(row) for row in (b"-\xe1", b" \xe1", b"+\xe1")] == ["-á", " á", "+α"]


def test_context_is_three_lines_unless_told_and_marks_are_left_out() -> None:
    plan = spliced(BOM + LINES, (3 + 8, 3 + 9, b"X"))
    (hunk,), (narrow,), (marked,) = plan.hunks(), plan.hunks(context=1), plan.hunks(context=4, with_bom=True)

    assert (hunk.old_start, hunk.old_lines, narrow.old_start, narrow.old_lines) == (2, 7, 4, 3)
    assert hunk.lines == (b" 2\n", b" 3\n", b" 4\n", b"-5\n", b"+X\n", b" 6\n", b" 7\n", b" 8\n")
    assert marked.lines[0] == b" " + BOM + b"1\n"
    assert next(plan.hunks(context=4)).lines[0] == b" 1\n"


def test_hunks_of_a_plan_without_a_mark_are_the_same_whether_the_mark_is_asked_for() -> None:
    plain, marked = spliced(LINES, (0, 1, b"X")), spliced(BOM + LINES, (3, 4, b"X"))
    gone = EditPlan(before=Snapshot(BOM + LINES), after=Snapshot(LINES), spans=(Span(0, 3, b""),))
    come = EditPlan(before=Snapshot(LINES), after=Snapshot(BOM + LINES), spans=(Span(0, 0, BOM),))

    assert next(plain.hunks(with_bom=True)) is next(plain.hunks())
    assert next(marked.hunks(with_bom=True)) is not next(marked.hunks())
    assert [next(plan.hunks(context=0, with_bom=True)).lines for plan in (gone, come)] == [
        (b"-" + BOM + b"1\n", b"+1\n"),
        (b"-1\n", b"+" + BOM + b"1\n"),
    ]
    assert [list(plan.hunks()) for plan in (gone, come)] == [[], []]


def test_an_insertion_among_equal_lines_is_shown_where_the_span_is() -> None:
    """Not where an alignment of the whole file would find it."""
    narrow = spliced(b"x\n" * 9, (8, 8, b"x\n"))
    marked = spliced(BOM + b"x\n" * 9, (3 + 8, 3 + 8, b"x\n"))
    wide = Snapshot(WIDE.bom + WIDE.encode("x\n" * 9), encoding=WIDE)
    wanted = [Hunk(old_start=5, old_lines=2, new_start=5, new_lines=3, lines=(b" x\n", b"+x\n", b" x\n"))]

    assert list(narrow.hunks(context=1)) == wanted
    assert list(marked.hunks(context=1)) == wanted
    assert list(marked.hunks(context=1, with_bom=True)) == wanted
    assert list(spliced(wide, (2 + 16, 2 + 16, WIDE.encode("x\n"))).hunks(context=1)) == wanted


def test_at_the_top_of_a_file_with_a_mark_an_insertion_is_shown_there() -> None:
    wide = Snapshot(WIDE.bom + WIDE.encode("x\nx\nx\n"), encoding=WIDE)
    wanted = [Hunk(old_start=1, old_lines=2, new_start=1, new_lines=3, lines=(b" x\n", b"+x\n", b" x\n"))]

    assert list(spliced(BOM + b"x\nx\nx\n", (3, 3, b"x\n")).hunks(context=1)) == wanted
    assert list(spliced(wide, (2, 2, WIDE.encode("x\n"))).hunks(context=1)) == wanted


def test_lines_of_carriage_returns_are_aligned_as_a_whole() -> None:
    from_cr, to_cr = spliced(b"a\rb\rc", (1, 2, b"\n")), spliced(b"a\nb\rc", (1, 2, b"\r"))

    assert [hunk.lines for hunk in from_cr.hunks()] == [(b"-a\r", b"-b\r", b"-c", b"+a\n", b"+b\rc")]
    assert [hunk.lines for hunk in to_cr.hunks()] == [(b"-a\n", b"-b\rc", b"+a\r", b"+b\r", b"+c")]


def test_what_cannot_be_converted_part_by_part_is_aligned_as_a_whole() -> None:
    before = Snapshot(WIDE.bom + WIDE.encode("ab\n"), encoding=WIDE)
    half = spliced(before, (3, 5, b"\0c"))  # it cuts characters in two, and makes whole ones
    unmarked = spliced(before, (0, 2, b""))  # the encoding still has the mark that the bytes have lost
    other = EditPlan(before=before, after=Snapshot(b"acd\n"), spans=(Span(2, before.size, b"acd\n"),))

    assert [hunk.lines for hunk in half.hunks()] == [(b"-ab\n", b"+" + half.after.text.encode())]
    assert [hunk.lines for hunk in other.hunks()] == [(b"-ab\n", b"+acd\n")]
    assert [hunk.lines for hunk in unmarked.hunks()] == [(b"-ab\n", b"+b\n")]


@pytest.mark.parametrize("size", [1, 1 << 10, (1 << 10) + 1])
def test_spans_are_spliced_between_short_and_long_parts(size: int) -> None:
    part = bytes(range(97, 123)) * (size // 26 + 1)
    before = Snapshot(part[:size] + b"OLD" + part[:size] + b"END", meta=Meta(mode=0o600), encoding="latin-1")

    plan = splice_spans(before, [Span(size, size + 3, b"new"), Span(2 * size + 3, 2 * size + 6, b"")], warnings=("w",))

    assert plan.after.data == part[:size] + b"new" + part[:size]
    assert (plan.after.meta, plan.after.encoding, plan.warnings) == (before.meta, before.encoding, ("w",))
    assert isinstance(plan.spans, tuple)


def test_each_part_is_converted_by_itself() -> None:
    parts = list[bytes]()

    def convert(part: bytes) -> bytes:
        parts.append(part)
        return part + part

    assert convert_parts(b"0abcdef", [Span(2, 3, b"X"), Span(4, 4, b"YZ")], convert, begin=1) == (
        b"aabbccddeeff"[:0] + b"aabbccdefdef",
        [Span(2, 4, b"XX"), Span(6, 6, b"YZYZ")],
    )
    assert parts == [b"a", b"b", b"X", b"c", b"", b"YZ", b"def"]
    assert convert_parts(b"ab", [], bytes.upper) == (b"AB", [])


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (b"a\n", b"a\n", ""),
        (b"a\n", b"b\n", "--- old\n+++ new\n@@ -1 +1 @@\n-a\n+b\n"),
        (None, b"b\n", "--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+b\n"),
        (b"a\n", None, "--- old\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (None, b"", ""),
        (b"\0", b"\0", ""),
        (BOM, BOM + b"a\n", "--- old\n+++ new\n@@ -1 +1 @@\n-\ufeff\n\\ No newline at end of file\n+\ufeffa\n"),
        (None, BOM, "--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+\ufeff\n\\ No newline at end of file\n"),
        (BOM, b"", "--- old\n+++ new\n@@ -1 +0,0 @@\n-\ufeff\n\\ No newline at end of file\n"),
        (b"\0", b"b\n", "Binary files old and new differ\n"),
        (b"b\n", b"\0", "Binary files old and new differ\n"),
        (None, b"\0", "Binary files /dev/null and new differ\n"),
        (b"\0", None, "Binary files old and /dev/null differ\n"),
    ],
)
def test_a_difference_names_its_sides_and_what_cannot_be_shown(
    before: bytes | None, after: bytes | None, text: str
) -> None:
    plan = EditPlan(before=Snapshot(before), after=Snapshot(after))

    diff = diff_of_plan(plan, from_name="old", to_name="new")

    assert (diff.text, diff.truncated) == (text, False)
    assert diff_between(plan.before, plan.after, from_name="old", to_name="new") == diff


def test_a_difference_is_decoded_as_the_file_was_or_as_it_is_if_it_was_not() -> None:
    latin = encoding_named("latin-1")
    old, new = Snapshot(b"\xe9\n", encoding=latin), Snapshot(b"\xe8\n", encoding=latin)
    wide = Snapshot(WIDE.bom + WIDE.encode("ü\n"), encoding=WIDE)

    def shown(before: Snapshot, after: Snapshot) -> str:
        return diff_between(before, after, from_name="f", to_name="f").text.partition("@@\n")[2]

    assert [shown(old, new), shown(ABSENT, new), shown(old, ABSENT)] == ["-é\n+è\n", "+è\n", "-é\n"]
    assert [shown(ABSENT, wide), shown(wide, ABSENT)] == ["+ü\n", "-ü\n"]
    assert shown(Snapshot("é\n".encode(), encoding=UTF8), Snapshot("è\n".encode(), encoding=latin)) == "-é\n+è\n"


def test_only_so_many_bytes_of_a_difference_are_kept_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = spliced(b"a\n", (0, 1, b"b"))

    assert not diff_of_plan(plan, from_name="f", to_name="f").truncated
    assert diff_of_plan(plan, from_name="f", to_name="f", limit=10).truncated
    many = EditPlan(before=Snapshot(b""), after=Snapshot(b"line\n" * 14_000))
    assert diff_of_plan(many, from_name="f", to_name="f").truncated
    assert not diff_between(many.before, many.after, from_name="f", to_name="f").truncated


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (b"abcd\n", b"x\n", True),
        (b"abc\n", b"x\n", False),
        (b"x\n", b"abcd\n", True),
        (b"abcd\n", b"abcd\n", False),
        (b"\0bcd\n", b"x\n", False),
        (b"x\n", b"\0bcd\n", False),
        (None, b"abcd\n", True),
        (b"abcd\n", None, True),
    ],
)
def test_what_is_more_than_can_be_compared_is_text_that_differs(
    monkeypatch: pytest.MonkeyPatch, before: bytes | None, after: bytes | None, named: bool
) -> None:
    monkeypatch.setattr(plans, "MAX_COMPARED_BYTES", 4)
    one, other = Snapshot(before), Snapshot(after)

    diff = diff_between(one, other, from_name="old", to_name="new")

    assert ("too large to compare" in diff.text) == named
    if named:
        names = ("old" if one.exists else "/dev/null", "new" if other.exists else "/dev/null")
        text = name_difference(*names, (one.version, other.version), why="too large to compare line by line")
        assert diff == UnifiedDiff(text=text, truncated=False)


def test_a_difference_by_name_says_what_the_versions_are() -> None:
    version = Snapshot(b"ab").version
    assert version is not None

    text = name_difference("/dev/null", "b c", (None, version), why="binary")

    assert text == f"Files /dev/null and b c\t differ: binary (no file; 2 bytes, sha256 {version.sha256})\n"


def test_only_of_large_files_the_equal_ends_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_NARROWED_BYTES", 3)

    assert plan_between(Snapshot(b"abcd"), Snapshot(b"abXcd")).spans == (Span(2, 2, b"X"),)
    assert plan_between(Snapshot(b"abcde"), Snapshot(b"axxde")).spans == (Span(1, 3, b"xx"),)
    assert plan_between(Snapshot(b"abc"), Snapshot(b"abXcd")).spans == ()
    assert plan_between(Snapshot(b"abcd"), Snapshot(b"abc")).spans == ()


@given(plans_of_spans(least=1))
def test_counted_lines_are_those_of_a_table(plan: EditPlan) -> None:
    old, new = LineCounter(plan.before), LineCounter(plan.after)

    assert [(row.start_line, row.new_start_line) for row in plan.line_spans()] == [
        (old.line_at(start), new.line_at(begin)) for start, _, begin, _ in plan.span_offsets()
    ]
