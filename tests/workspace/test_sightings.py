from hypothesis import given
from hypothesis import strategies as st

from surehold.stores.base import PathRecord, Sighting
from surehold.text.plan import Span, splice_spans
from surehold.text.snapshot import ABSENT, Snapshot, merge_ranges
from surehold.workspace.access.seen_lines import KnownFile, sighting_after_write

TEN = "".join(f"line {n}\n" for n in range(1, 11)).encode()


def seen_after(before: bytes, spans: list[Span], *seen: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    snapshot = Snapshot(before)
    known = Sighting(session="s", path="p", sha256=snapshot.sha256, spans=seen)
    sighting = sighting_after_write(splice_spans(snapshot, spans), session="s", key="p", known=known)
    assert sighting
    return sighting.spans


def lines(first: int, last: int, new: bytes = b"") -> Span:
    """Replace whole lines of TEN; nothing is replaced when the last comes before the first."""
    starts = Snapshot(TEN).lines.starts
    return Span(start=starts[first - 1], end=starts[last], new=new)


def test_lines_below_a_deletion_move_up_by_as_many_as_went() -> None:
    assert seen_after(TEN, [lines(5, 6)], (1, 3), (7, 9)) == ((1, 3), (5, 7))


def test_lines_below_an_insertion_move_down_by_as_many_as_came() -> None:
    assert seen_after(TEN, [lines(5, 4, b"new\nnewer\n")], (1, 3), (7, 9)) == ((1, 3), (5, 6), (9, 11))


def test_the_lines_next_to_whole_lines_that_came_or_went_are_not_seen_thereby() -> None:
    assert seen_after(TEN, [lines(5, 6)], (1, 1)) == ((1, 1),)
    assert seen_after(TEN, [lines(5, 4, b"new\n")], (1, 1)) == ((1, 1), (5, 5))


def test_a_change_inside_of_a_line_makes_it_seen() -> None:
    at = TEN.index(b"line 5")
    assert seen_after(TEN, [Span(start=at, end=at + 4, new=b"LINE")], (9, 9)) == ((5, 5), (9, 9))


def test_two_lines_that_become_one_are_one() -> None:
    at = TEN.index(b"\nline 6")
    assert seen_after(TEN, [Span(start=at, end=at + 1, new=b" ")], (8, 9)) == ((5, 5), (7, 8))


@given(st.data())
def test_a_file_that_was_seen_whole_is_seen_whole_after_an_edit(data: st.DataObject) -> None:
    rows = st.lists(st.sampled_from([b"a\n", b"bb\n", b"\n", b"c\r\n", b"open", b"\xef\xbb\xbf"]), max_size=8)
    before, new = (b"".join(data.draw(rows)) for _ in range(2))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(before)), min_size=2, max_size=2)))
    snapshot = Snapshot(before)
    plan, total = splice_spans(snapshot, [Span(start=cuts[0], end=cuts[1], new=new)]), snapshot.line_count
    spans = ((1, total),) if total else ()
    known = Sighting(session="s", path="p", sha256=snapshot.sha256, spans=spans, whole=True)

    sighting = sighting_after_write(plan, session="s", key="p", known=known)

    count = len(Snapshot(plan.after.data, encoding=plan.after.encoding).lines)
    assert sighting
    assert (sighting.whole, sighting.spans) == (True, ((1, count),) if count else ())


@given(st.data())
def test_a_line_that_counts_as_seen_was_seen_or_written(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.sampled_from([b"a\n", b"bb\n", b"\n", b"c\r\n"]), min_size=1, max_size=12))
    unique = [b"%d%s" % (n, row) for n, row in enumerate(rows)]
    before = b"".join(unique)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(before)), min_size=2, max_size=4)))
    new = data.draw(st.sampled_from([b"", b"X", b"X\n", b"X\nY", b"\nX", b"X\nY\n"]))
    shown = [(n, n) for n in data.draw(st.sets(st.integers(1, len(rows)), max_size=6))]
    span = Span(start=cuts[0], end=cuts[1], new=new)

    found = seen_after(before, [span], *sorted(shown))

    after = splice_spans(Snapshot(before), [span]).after
    seen_rows = {unique[n - 1] for n, _ in shown}
    for first, last in found:
        assert 1 <= first <= last <= after.line_count
        for number in range(first, last + 1):
            row = after.lines.raw[number - 1]
            at, end = after.lines.starts[number - 1], after.lines.starts[number]
            touched = at <= span.start + len(new) and end >= span.start
            assert row in seen_rows or touched, (found, row)


@given(st.data())
def test_seen_lines_between_many_changes_move_with_what_comes_and_goes_above_them(data: st.DataObject) -> None:
    rows = [f"{number}\n".encode() for number in range(1, 31)]
    changed = sorted(data.draw(st.sets(st.integers(1, 30), max_size=8)))
    news = [data.draw(st.sampled_from([b"", b"X\n", b"X\nY\n"])) for _ in changed]
    shown = data.draw(st.sets(st.integers(1, 30)))
    starts = Snapshot(b"".join(rows)).lines.starts
    spans = [Span(start=starts[n - 1], end=starts[n], new=new) for n, new in zip(changed, news, strict=True)]

    found = seen_after(b"".join(rows), spans, *merge_ranges((n, n) for n in shown))

    after = list[bytes]()
    for number, row in enumerate(rows, start=1):
        after += dict(zip(changed, news, strict=True)).get(number, row).splitlines(keepends=True)
    seen_rows = {rows[n - 1] for n in shown if n not in changed} | {b"X\n", b"Y\n"}
    expected = merge_ranges((number, number) for number, row in enumerate(after, start=1) if row in seen_rows)
    assert found == expected


def test_the_hash_of_a_file_is_not_waited_for_before_it_is_asked_for() -> None:
    asked = list[str]()

    def wait_for_hash() -> str:
        asked.append("waited")
        return "5" * 64

    seen = Sighting(session="s", path="f", sha256="5" * 64, spans=((1, 1),))
    known = KnownFile(PathRecord(key="f", sightings=(seen,)), Snapshot(b"a\n", name=wait_for_hash), session="s")

    assert not asked
    assert (known.shown, asked) == (seen, ["waited"])


def test_the_absence_of_a_file_is_seen_whole_and_a_file_only_if_all_of_its_lines_are() -> None:
    absent, present = (KnownFile(PathRecord(key="f"), one, session="s") for one in (ABSENT, Snapshot(b"a\nb\n")))

    assert absent.sighting_of(()).whole
    assert [present.sighting_of(spans).whole for spans in ((), ((1, 1),), ((1, 2),))] == [False, False, True]
