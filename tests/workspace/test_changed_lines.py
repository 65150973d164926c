"""Which lines a change touches: counted by line ends, and looked up, it is the same."""

# The two ways are compared with each other.
# pyright: reportPrivateUsage=false

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from surehold.text.plan import EditPlan, Span, splice_spans
from surehold.text.snapshot import LineCounter, Snapshot
from surehold.workspace.access import seen_lines

TEXTS = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\n\n"]), max_size=14).map(b"".join)


@st.composite
def plans(draw: st.DrawFn) -> EditPlan:
    data = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + draw(TEXTS)
    starts = sorted(draw(st.sets(st.integers(0, len(data)), min_size=1, max_size=3)))
    spans = list[Span]()
    for start, following in pairwise((*starts, len(data))):
        spans.append(Span(start=start, end=draw(st.integers(start, following)), new=draw(TEXTS)))
    return splice_spans(Snapshot(data), spans)


@given(plan=plans())
def test_lines_that_a_change_touches_are_counted_as_they_are_looked_up(plan: EditPlan) -> None:
    assert seen_lines._find_changed_lines(plan) == seen_lines._look_up_changed_lines(plan)


@given(plan=plans())
def test_where_a_match_was_is_counted_as_it_is_looked_up(plan: EditPlan) -> None:
    old, new = LineCounter(plan.before), LineCounter(plan.after)
    expected = [
        (
            old.line_at(start),
            old.line_at(max(start, end - 1)),
            new.line_at(new_start),
            new.line_at(max(new_start, new_end - 1)),
        )
        for start, end, new_start, new_end in plan.span_offsets()
    ]

    assert plan.line_spans() == expected
