"""The hunks of a plan: one walk for every reader of them, whatever the encoding and the byte order mark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehold.text.anchored.lines import anchored_diff
from surehold.text.encoding import Encoding, encoding_named
from surehold.text.measure import TextRoom
from surehold.text.plan import EditPlan, Span, diff_of_plan, splice_spans
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import Snapshot

BOM = b"\xef\xbb\xbf"
ENCODINGS = (
    Encoding(name="utf-8"),
    Encoding(name="utf-8", bom=BOM),
    Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2),
    Encoding(name="iso8859-1"),
)


def rows_of(plan: EditPlan) -> list[str]:
    return [plan.decode_row(row) for hunk in plan.hunks() for row in hunk.lines]


@pytest.mark.parametrize(
    ("data", "span", "rows"),
    [
        (b"a\n", (3, 5, b""), ["-a\n"]),
        (b"a\nb\n", (3, 5, b""), ["-a\n", " b\n"]),
        (b"a\nb\n", (3, 3, b"x\n"), ["+x\n", " a\n", " b\n"]),
        (b"", (3, 3, b"x\n"), ["+x\n"]),
        (b"a\nb\n", (5, 6, b"B"), [" a\n", "-b\n", "+B\n"]),
    ],
)
def test_a_byte_order_mark_is_not_part_of_a_line(data: bytes, span: tuple[int, int, bytes], rows: list[str]) -> None:
    plan = splice_spans(Snapshot(BOM + data), [Span(start=span[0], end=span[1], new=span[2])])

    assert rows_of(plan) == rows


def test_the_only_line_of_a_file_with_a_byte_order_mark_can_be_deleted() -> None:
    plan = splice_spans(Snapshot(BOM + b"a\n"), [Span(start=3, end=5, new=b"")])

    assert anchored_diff(plan, room=TextRoom(size=1_000)).text == "@@ -1 +0,0 @@\n-a"
    assert [(hunk.new_start, hunk.new_lines) for hunk in plan.hunks()] == [(0, 0)]


def test_a_unified_diff_has_the_byte_order_mark_that_programs_need_to_apply_it() -> None:
    plan = splice_spans(Snapshot(BOM + b"a\nb\n"), [Span(start=3, end=5, new=b"")])

    diff = diff_of_plan(plan, from_name="f", to_name="f").text

    assert diff == "--- f\n+++ f\n@@ -1,2 +1 @@\n-\ufeffa\n-b\n+\ufeffb\n"


def test_a_byte_order_mark_that_goes_is_a_difference() -> None:
    plan = WriteBytes(b"a\n").plan(Snapshot(BOM + b"a\n"))

    assert diff_of_plan(plan, from_name="f", to_name="f").text == "--- f\n+++ f\n@@ -1 +1 @@\n-\ufeffa\n+a\n"
    assert rows_of(plan) == []


def test_hunks_are_worked_out_once() -> None:
    plan = splice_spans(Snapshot(b"a\nb\n"), [Span(start=0, end=1, new=b"A")])

    assert next(plan.hunks()) is next(plan.hunks())


def test_both_versions_are_decoded_by_their_own_encoding() -> None:
    before = Snapshot("é\n".encode("latin-1"), encoding=encoding_named("latin-1"))

    assert rows_of(EditPlan(before=before, after=Snapshot("é!\n".encode()))) == ["-é\n", "+é!\n"]


@given(st.sampled_from(ENCODINGS), st.text("aé\n", max_size=12), st.data())
def test_hunks_turn_one_text_into_the_other(encoding: Encoding, text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(st.text("bé\n", max_size=5))
    offsets = [len(encoding.bom) + len(encoding.encode(text[:at])) for at in (start, end)]
    before = Snapshot(encoding.bom + encoding.encode(text), encoding=encoding)
    plan = splice_spans(before, [Span(start=offsets[0], end=offsets[1], new=encoding.encode(new))])

    old, made, at = text.splitlines(keepends=True), list[str](), 0
    for hunk in plan.hunks():
        begin = hunk.old_start - (hunk.old_lines > 0)
        made += old[at:begin]
        assert len(made) == hunk.new_start - (hunk.new_lines > 0)
        rows = [plan.decode_row(row) for row in hunk.lines]
        assert [row[1:] for row in rows if row[0] in " -"] == old[begin : begin + hunk.old_lines]
        made += [row[1:] for row in rows if row[0] in " +"]
        at = begin + hunk.old_lines
    assert "".join([*made, *old[at:]]) == text[:start] + new + text[end:]
