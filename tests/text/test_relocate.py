from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.text.relocate import LineBlock, LostLines, MovedLines, relocate_lines


def lines(text: str) -> list[bytes]:
    """Return a line for every word."""
    return [b"%s\n" % word.encode() for word in text.split()]


def find(base: str, current: str, start: int, end: int) -> MovedLines | LostLines:
    (place,) = relocate_lines(lines(base), lines(current), [LineBlock(start=start, end=end)])
    return place


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A text and what became of it; `origin` knows for each line which line of the base it is, if any."""

    base: list[bytes]
    current: list[bytes]
    origin: list[int | None]

    @property
    def kept(self) -> int:
        return sum(line is not None for line in self.origin)

    def truth(self, wanted: LineBlock) -> int | None:
        """Return where the lines of a range really are, if they are still together; for a gap, its neighbours count."""
        place: dict[int, int] = {line: here for here, line in enumerate(self.origin) if line is not None}
        place[-1], place[len(self.base)] = -1, len(self.current)
        gap = wanted.start == wanted.end
        first, last = (wanted.start - 1, wanted.start + 1) if gap else (wanted.start, wanted.end)
        start = place.get(first)
        if start is None or any(place.get(line) != start + line - first for line in range(first, last)):
            return None
        return start + gap

    def explained(self, wanted: LineBlock, found: MovedLines) -> int:
        """Return how many lines were kept at most if the range really is where it was found."""
        above = lcs(self.base[: wanted.start], self.current[: found.start])
        below = lcs(self.base[wanted.end :], self.current[found.end :])
        return above + wanted.end - wanted.start + below


def lcs(a: list[bytes], b: list[bytes]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        above, row = row, [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[-1]))
    return row[-1]


def all_ranges(count: int) -> list[LineBlock]:
    return [
        LineBlock(start=start, end=start + size)
        for size in (0, 1, 3)
        for start in range(count + 1)
        if start + size <= count
    ]


def history(choose: Random, kinds: int, most: int) -> History:
    """Return a text of few kinds of lines, and a few edits of it that draw from the same kinds and one more."""
    base = [b"kind %d\n" % choose.randrange(kinds) for _ in range(choose.randrange(1, most))]
    rows: list[tuple[bytes, int | None]] = [(line, index) for index, line in enumerate(base)]
    for _ in range(choose.randrange(1, 4)):
        place, gone, added = (
            choose.randrange(len(rows) + 1),
            choose.choice([0, 1, 1, 2, 3]),
            choose.choice([0, 1, 1, 2]),
        )
        rows[place : place + gone] = [(b"kind %d\n" % choose.randrange(kinds + 1), None) for _ in range(added)]
    return History(base=base, current=[line for line, _ in rows], origin=[index for _, index in rows])


@st.composite
def distinct_histories(draw: st.DrawFn) -> History:
    """Draw a text of distinct lines, and edits that add only new lines."""
    base = [b"line number %d\n" % n for n in range(draw(st.integers(1, 40)))]
    rows: list[tuple[bytes, int | None]] = [(line, index) for index, line in enumerate(base)]
    edits = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4), st.integers(0, 3)), max_size=5))
    for number, (place, gone, added) in enumerate(edits):
        rows[place : place + gone] = [(b"new line %d of edit %d\n" % (n, number), None) for n in range(added)]
    return History(base=base, current=[line for line, _ in rows], origin=[index for _, index in rows])


few_kinds = st.lists(st.sampled_from(lines("alphabet beta gamma_ray delta } {")), max_size=25)


@given(distinct_histories())
def test_distinct_lines_are_found_exactly_where_they_are_and_never_when_edited(told: History) -> None:
    wanted = all_ranges(len(told.base))
    found = relocate_lines(told.base, told.current, wanted)
    assert [place.start if isinstance(place, MovedLines) else None for place in found] == [
        told.truth(each) for each in wanted
    ]


@given(few_kinds, few_kinds)
def test_a_place_that_is_found_holds_the_same_lines(base: list[bytes], current: list[bytes]) -> None:
    wanted = all_ranges(len(base))
    for each, place in zip(wanted, relocate_lines(base, current, wanted), strict=True):
        if isinstance(place, MovedLines):
            assert current[place.start : place.end] == base[each.start : each.end]
            assert (place.start - each.start, place.end - each.end) == (place.shift, place.shift)


@given(few_kinds, few_kinds)
def test_a_gap_that_is_found_has_the_same_neighbours(base: list[bytes], current: list[bytes]) -> None:
    gaps = [LineBlock(start=line, end=line) for line in range(len(base) + 1)]
    for gap, place in zip(gaps, relocate_lines(base, current, gaps), strict=True):
        if isinstance(place, MovedLines):
            here = place.start
            assert (current[:here][-1:], current[here:][:1]) == (base[: gap.start][-1:], base[gap.start :][:1])


@given(few_kinds, st.data())
def test_nothing_is_lost_in_a_text_that_did_not_change(base: list[bytes], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(base)))
    end = data.draw(st.integers(start, len(base)))
    same = MovedLines(start=start, end=end, shift=0, evidence="same", context=0)
    assert relocate_lines(base, list(base), [LineBlock(start=start, end=end)]) == [same]


@requirement("text:rebase:two_proofs")
@pytest.mark.parametrize(("kinds", "most", "least_moved"), [(4, 30, 0.65), (10, 40, 0.85), (30, 60, 0.95)])
def test_in_repetitive_texts_a_wrong_place_is_never_the_worse_explanation(
    kinds: int, most: int, least_moved: float
) -> None:
    """A place counts as wrong only if its text could be told from the truth: it takes more edits to explain."""
    choose = Random(kinds)
    count = Counter[str]()
    for _ in range(300):
        told = history(choose, kinds, most)
        wanted = all_ranges(len(told.base))
        for each, place in zip(wanted, relocate_lines(told.base, told.current, wanted), strict=True):
            truth = told.truth(each)
            if isinstance(place, LostLines):
                count["refused, gone" if truth is None else "refused, still there"] += 1
            elif place.start == truth:
                count["right"] += 1
            else:
                explained = told.explained(each, place)
                count["wrong" if explained < told.kept else "undecidable"] += 1
    print(f"{kinds} kinds of lines: {dict(sorted(count.items()))}")
    assert count["wrong"] == 0
    assert count["undecidable"] <= 0.03 * count["right"]
    assert count["right"] >= least_moved * (count["right"] + count["refused, still there"])


def test_an_unchanged_block_moves_with_the_lines_above_it() -> None:
    found = find("first second third fourth", "new1 new2 first second third fourth", 1, 3)
    assert found == MovedLines(start=3, end=5, shift=2, evidence="block", context=0)


def test_a_short_line_needs_a_neighbour() -> None:
    assert find("first } third", "first } other", 1, 2) == MovedLines(
        start=1, end=2, shift=0, evidence="above", context=1
    )
    assert find("first } third", "other } another", 1, 2) == LostLines(reason="ambiguous")


def test_an_edited_line_is_lost() -> None:
    assert find("first second third", "first other third", 1, 2) == LostLines(reason="changed")
    assert find("first second third", "first other third", 0, 3) == LostLines(reason="changed")


def test_lines_with_something_new_between_them_are_lost() -> None:
    assert find("first second third", "first second new third", 1, 3) == LostLines(reason="changed")


@requirement("text:rebase:two_proofs")
def test_a_block_that_was_moved_across_others_is_lost() -> None:
    found = find("moved1 moved2 one two three four five", "one two three four five moved1 moved2", 0, 2)
    assert found == LostLines(reason="disagree")


@requirement("text:rebase:two_proofs")
@pytest.mark.parametrize("body", ["check(request) return_None blank", " ".join(f"step({n})" for n in range(30))])
def test_lines_of_a_block_that_changed_places_with_one_of_equal_body_are_not_found_in_that_one(body: str) -> None:
    base = f"login {body} delete_user {body} logout {body}"
    swapped = f"delete_user {body} login {body} logout {body}"
    size = len(body.split())
    for start in range(size + 2, 2 * size + 2):
        place = find(base, swapped, start, 2 * size + 2)
        assert isinstance(place, LostLines) or place.shift == -1 - size, start
    found = find(base, swapped, 2 * size + 3, 2 * size + 5)  # in the block that stayed
    assert isinstance(found, MovedLines)
    assert found.shift == 0


@requirement("text:rebase:two_proofs")
def test_context_that_goes_on_elsewhere_does_not_count_if_other_lines_brought_it_there() -> None:
    base = "if_a call() end if_b call() finish if_a call() leave"
    assert find(base, "if_c call() end if_b call() finish if_a call() leave", 1, 2) == MovedLines(
        start=1, end=2, shift=0, evidence="below", context=1
    )
    assert find(base, "if_c call() end if_a call() finish if_b call() leave", 1, 2) == LostLines(reason="ambiguous")


def test_equal_lines_are_told_apart_by_their_context() -> None:
    found = find("a1 b1 same c1 d1 a2 b2 same c2 d2", "new a1 b1 same c1 d1 a2 b2 same c2 d2", 7, 8)
    assert found == MovedLines(start=8, end=9, shift=1, evidence="context", context=1)


def test_context_on_one_side_is_enough_if_no_equal_line_is_left_over() -> None:
    base = "a1 b1 same c1 d1 a2 b2 same c2 d2"
    assert find(base, "a1 b1 same c1 d1 a2 b2 same XX d2", 7, 8) == MovedLines(
        start=7, end=8, shift=0, evidence="above", context=1
    )
    assert find(base, "a1 b1 same c1 d1 a2 XX same c2 d2", 7, 8) == MovedLines(
        start=7, end=8, shift=0, evidence="below", context=1
    )


@pytest.mark.parametrize("current", ["a x b", "a x q b", "p a x b"])
def test_the_one_that_remains_of_two_equal_lines_is_neither(current: str) -> None:
    assert isinstance(find("a x x b", current, 1, 2), LostLines)
    assert isinstance(find("a x x b", current, 2, 3), LostLines)


def test_of_two_equal_blocks_the_one_that_remains_is_known_only_by_its_context() -> None:
    block = "alpha_one beta_two gamma_three"
    base = f"top1 top2 {block} mid1 mid2 mid3 {block} end1 end2"
    second_gone = f"top1 top2 {block} mid1 mid2 mid3 end1 end2"
    assert find(base, second_gone, 2, 5) == MovedLines(start=2, end=5, shift=0, evidence="context", context=1)
    assert find(base, second_gone, 8, 11) == LostLines(reason="changed")
    surroundings_gone = f"new1 {block} new2"
    assert isinstance(find(base, surroundings_gone, 2, 5), LostLines)
    assert isinstance(find(base, surroundings_gone, 8, 11), LostLines)


@requirement("text:rebase:two_proofs")
def test_a_copy_next_to_the_lines_makes_both_doubtful() -> None:
    assert find("a x b", "a x x b", 1, 2) == LostLines(reason="ambiguous")
    copied = find(
        "top one_line two_line three_line end",
        "top one_line two_line three_line one_line two_line three_line end",
        1,
        4,
    )
    assert copied == LostLines(reason="ambiguous")


def test_context_grows_no_further_than_sixteen_lines() -> None:
    same = "same " * 40
    assert find(f"top {same} mid {same} end", f"new top {same} mid {same} end", 20, 21) == LostLines(reason="ambiguous")
    near_the_edge = find(f"top {same} mid {same} end", f"new top {same} mid {same} end", 3, 4)
    assert near_the_edge == MovedLines(start=4, end=5, shift=1, evidence="context", context=3)


def test_a_gap_moves_with_its_neighbours() -> None:
    found = find("first second third", "new first second third", 2, 2)
    assert found == MovedLines(start=3, end=3, shift=1, evidence="block", context=0)


def test_a_gap_with_something_new_in_it_is_lost() -> None:
    assert find("first second third", "first new second third", 1, 1) == LostLines(reason="changed")


def test_the_gap_at_an_edge_stays_at_the_edge_or_is_lost() -> None:
    top, bottom = (0, 0), (3, 3)
    base = "first1 second2 third3"
    changed_below, changed_above = "first1 second2 other", "other second2 third3"
    assert find(base, changed_below, *top) == MovedLines(start=0, end=0, shift=0, evidence="block", context=0)
    assert find(base, changed_above, *bottom) == MovedLines(start=3, end=3, shift=0, evidence="block", context=0)
    assert find(base, f"new {base}", *top) == LostLines(reason="changed")
    assert find(base, f"{base} new", *bottom) == LostLines(reason="changed")


def test_the_gap_of_an_empty_text_is_lost_once_there_are_lines() -> None:
    assert find("", "", 0, 0) == MovedLines(start=0, end=0, shift=0, evidence="same", context=0)
    assert find("", "new", 0, 0) == LostLines(reason="changed")


def test_a_changed_terminator_is_a_changed_line() -> None:
    found = relocate_lines([b"one\n", b"two\n"], [b"new\n", b"one\n", b"two\r\n"], [LineBlock(start=1, end=2)])
    assert found == [LostLines(reason="changed")]


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (2, 1), (0, 3), (3, 3)])
def test_a_range_outside_the_text_is_a_mistake_of_the_caller(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="is not within 2 lines"):
        find("one two", "one two", start, end)


@pytest.mark.parametrize("kinds", [2, 50, 2000, 10**9])
def test_many_ranges_of_a_large_text_do_not_stall(kinds: int) -> None:
    choose = Random(kinds)
    base = [b"kind %d\n" % choose.randrange(kinds) for _ in range(50_000)]
    current = [*base[:20_000], b"new\n", *base[20_001:40_000], *base[40_100:]]
    wanted = [LineBlock(start=n, end=n + 3) for n in range(0, 50_000 - 3, 25)]
    found = relocate_lines(base, current, wanted)
    shifts = {place.shift for place in found if isinstance(place, MovedLines)}
    assert shifts <= {0, -100}
