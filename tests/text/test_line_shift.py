from hypothesis import given
from hypothesis import strategies as st

from surehold.text.line_edits import DeleteRange, InsertAfter, InsertBefore, ReplaceLine
from surehold.text.line_shift import LineShift, line_shifts
from text.anchored import File, lines

TEN = lines(10)


def test_shifts_add_up_from_top_to_bottom() -> None:
    plan = TEN.plan(
        InsertBefore(hash="BOF", content="top"),
        ReplaceLine(hash=TEN.hash(3), content="three"),
        InsertAfter(hash=TEN.hash(4), content="a\nb"),
        DeleteRange(start_hash=TEN.hash(6), end_hash=TEN.hash(8)),
        InsertAfter(hash="EOF", content="end"),
    )

    assert line_shifts(plan) == (
        LineShift(from_line=1, delta=1),
        LineShift(from_line=5, delta=3),
        LineShift(from_line=9, delta=0),
    )


def test_a_replacement_of_the_same_length_shifts_nothing() -> None:
    assert line_shifts(TEN.plan(ReplaceLine(hash=TEN.hash(3), content="three"))) == ()


@given(st.sets(st.integers(1, 10), min_size=1), st.data())
def test_every_untouched_line_is_where_the_shifts_say(changed: set[int], data: st.DataObject) -> None:
    kinds = st.sampled_from(["before", "after", "replace", "delete"])
    file = File(TEN.data)
    operations = [
        {
            "before": InsertBefore(hash=file.hash(line), content="new\nnewer"),
            "after": InsertAfter(hash=file.hash(line), content="new"),
            "replace": ReplaceLine(hash=file.hash(line), content="x\ny\nz"),
            "delete": ReplaceLine(hash=file.hash(line), content=""),
        }[data.draw(kinds)]
        for line in sorted(changed)
    ]

    plan = file.plan(*operations)

    shifts = line_shifts(plan)
    for number, content in enumerate(file.snapshot.lines.contents, start=1):
        delta = next((each.delta for each in reversed(shifts) if each.from_line <= number), 0)
        if content in plan.after.lines.contents:
            assert plan.after.lines.contents[number + delta - 1] == content
