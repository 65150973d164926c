from hypothesis import assume, given
from hypothesis import strategies as st

from properties.strategies import Sample, any_bytes, samples
from spec.marks import requirement
from surehold.errors import SureholdError
from surehold.text.align import TextRegion, shared_ends, shared_length
from surehold.text.encoding import RAW
from surehold.text.plan import EditPlan
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteBytes, WriteText
from surehold.text.snapshot import Snapshot


def outside_is_untouched(plan: EditPlan) -> bool:
    """Cut the spans out of both sides: what remains must be the same bytes."""
    before, after = plan.before.data, plan.after.data
    at_before = at_after = 0
    for start, end, new_start, new_end in plan.span_offsets():
        if before[at_before:start] != after[at_after:new_start]:
            return False
        at_before, at_after = end, new_end
    return before[at_before:] == after[at_after:]


@requirement("text:splice:outside")
@given(samples(), st.data())
def test_bytes_outside_the_replaced_text_stay(sample: Sample, data: st.DataObject) -> None:
    assume(any(sample.rows))
    row = data.draw(st.sampled_from([r for r in sample.rows if r]))
    snapshot = Snapshot(sample.data, encoding=sample.encoding)

    plan = SnapshotEdits((StringEdit(old=row, new="X\nY", replace_all=True),)).plan(snapshot)

    assert outside_is_untouched(plan)
    assert plan.applied[0].occurrences == len(plan.spans) >= 1


@requirement("text:splice:outside", "text:splice:final_newline", "text:strings:exact")
@given(samples(styles=("lf", "crlf", "cr")), st.data())
def test_an_edit_says_what_plain_string_replacement_says(sample: Sample, data: st.DataObject) -> None:
    unique = [r for r in sample.rows if r and sample.text.count(r) == 1 and (r + r)[1:-1].count(r) == 0]
    assume(unique)
    row = data.draw(st.sampled_from(unique))
    snapshot = Snapshot(sample.data, encoding=sample.encoding)

    plan = SnapshotEdits((StringEdit(old=row, new="Zz"),)).plan(snapshot)

    assert plan.after.text == sample.text.replace(row, "Zz")
    assert plan.after.data == sample.encoding.bom + sample.text.replace(row, "Zz").encode(sample.encoding.name)


@requirement("text:strings:line_ends")
@given(samples(), st.data())
def test_a_quote_over_several_lines_matches_whatever_the_line_endings_are(sample: Sample, data: st.DataObject) -> None:
    snapshot = Snapshot(sample.data, encoding=sample.encoding)
    count = len(snapshot.lines)
    assume(count >= 2)
    first = data.draw(st.integers(0, count - 2))
    rows = [sample.encoding.decode(c) for c in snapshot.lines.contents[first : first + 2]]
    assume(all(rows) and not any("\r" in row or "\n" in row for row in rows))

    plan = SnapshotEdits((StringEdit(old="\n".join(rows), new="new one\nnew two", replace_all=True),)).plan(snapshot)

    assert outside_is_untouched(plan)
    assert len(plan.after.lines) == count
    assert plan.after.lines.style in {snapshot.lines.style, "mixed", "lf", "crlf"}
    if snapshot.lines.style != "mixed":
        assert plan.after.lines.style == snapshot.lines.style


@requirement("text:splice:damaged_bytes", "text:splice:outside")
@given(any_bytes(), any_bytes(), st.text("abX\n", min_size=1, max_size=4))
def test_damaged_bytes_are_edited_with_ascii_and_keep_everything_else(head: bytes, tail: bytes, new: str) -> None:
    snapshot = Snapshot(head + b"end" + tail, encoding=RAW)

    plan = SnapshotEdits((StringEdit(old="end", new=new, replace_all=True),)).plan(snapshot)

    assert outside_is_untouched(plan)


@requirement("text:rewrite:bytes")
@given(samples(), samples())
def test_writing_bytes_gives_exactly_these_bytes_by_one_minimal_span(one: Sample, other: Sample) -> None:
    plan = WriteBytes(other.data).plan(Snapshot(one.data))

    assert plan.after.data == other.data
    assert outside_is_untouched(plan)
    assert len(plan.spans) <= 1


@requirement("text:rewrite:same_text")
@given(samples())
def test_writing_a_files_own_text_changes_nothing(sample: Sample) -> None:
    snapshot = Snapshot(sample.data, encoding=sample.encoding)

    assert WriteText(sample.text).plan(snapshot).changes_bytes is False
    assert WriteText(sample.text.replace("\r\n", "\n")).plan(snapshot).changes_bytes is False


@requirement("text:rewrite:keeps_style")
@given(samples(styles=("lf", "crlf", "mixed")))
def test_rewriting_keeps_the_terminator_of_every_line_that_stays(sample: Sample) -> None:
    snapshot = Snapshot(sample.data, encoding=sample.encoding)
    assume(len(snapshot.lines) > 1 and snapshot.lines.style != "none")
    text = "first\n" + sample.text.replace("\r\n", "\n")

    plan = WriteText(text).plan(snapshot)

    assert plan.after.data.endswith(sample.data[len(sample.encoding.bom) :])


@requirement("text:strings:sequential_mode")
@given(
    samples(("utf-8", "gbk", "utf-16-le")),
    st.lists(st.tuples(st.text("ab é", max_size=3), st.text("abX", max_size=3)), min_size=1, max_size=4),
)
def test_sequential_edits_end_where_one_replacement_after_the_other_ends(
    sample: Sample, pairs: list[tuple[str, str]]
) -> None:
    snapshot, text = Snapshot(sample.data, encoding=sample.encoding), sample.text
    edits = tuple(StringEdit(old=old, new=new, replace_all=True) for old, new in pairs)
    try:
        plan = SequentialEdits(edits).plan(snapshot)
    except SureholdError:
        return

    for old, new in pairs:
        text = text.replace(old, new)
    assert plan.after.text == text
    assert outside_is_untouched(plan)


@requirement("text:rewrite:bytes")
@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300))
def test_common_ends_are_found_exactly(one: bytes, middle: bytes, other: bytes) -> None:
    left, right = one + middle, one + other
    prefix, _ = shared_ends(left, right)
    assert left[:prefix] == right[:prefix]
    assert left[prefix : prefix + 1] != right[prefix : prefix + 1] or prefix == min(len(left), len(right))

    left, right = middle + one, other + one
    suffix = shared_length(left, right, TextRegion(0, len(left), 0, len(right)), -1)
    assert left[len(left) - suffix :] == right[len(right) - suffix :]
    assert suffix >= len(one)
