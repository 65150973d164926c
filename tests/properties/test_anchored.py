"""Anchored edits against random texts."""

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from properties.strategies import LETTERS, UNICODE, Sample, any_bytes, samples
from surehold.errors import LineEditError
from surehold.text.align import EqualRun, align_lines
from surehold.text.anchored.edits import AnchoredEdits
from surehold.text.anchored.lines import AnchoredLine, ShownVersion, anchor_lines_at
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    Operation,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.encoding import Encoding
from surehold.text.snapshot import Snapshot
from text.anchored import shown_version

KINDS = ["alpha beta", "gamma_ray", "  indented", "}", "", "x", "\treturn value"]


@dataclass(frozen=True)
class Region:
    """Lines `start` to `end` of one text became `rows`."""

    start: int
    end: int
    rows: tuple[str, ...]


def regions(before: list[str], after: list[str]) -> list[Region]:
    old, new = [row.encode() for row in before], [row.encode() for row in after]
    blocks = [EqualRun(0, 0, 0), *align_lines(old, new), EqualRun(len(old), len(new), 0)]
    found = [
        Region(one.a + one.size, other.a, tuple(after[one.b + one.size : other.b])) for one, other in pairwise(blocks)
    ]
    return [each for each in found if each.start < each.end or each.rows]


def spelled(row: AnchoredLine, choose: Random) -> str:
    """Return one of the ways in which a caller may copy an anchor that names exactly one line."""
    return choose.choice([row.anchor, row.anchor.upper(), f"{row.line}#{row.hash}", str(row)])


def operation(region: Region, rows: dict[int, AnchoredLine], choose: Random) -> Operation:
    content = "\n".join(region.rows)
    if region.rows and (not region.rows[-1] or choose.random() < 0.5):
        content += "\n"
    if region.start == region.end:
        above, below = rows.get(region.start), rows.get(region.start + 1)
        gaps = [
            *([InsertAfter(hash=spelled(above, choose), content=content)] if above else []),
            *([InsertBefore(hash=spelled(below, choose), content=content)] if below else []),
            *([InsertAfter(hash="BOF", content=content)] if not above else []),
            *([InsertBefore(hash="EOF", content=content)] if not below else []),
        ]
        return choose.choice(gaps)
    first, last = spelled(rows[region.start + 1], choose), spelled(rows[region.end], choose)
    if region.end - region.start == 1:
        return ReplaceLine(hash=first, content=content) if region.rows else DeleteLine(hash=first)
    if region.rows:
        return ReplaceRange(start_hash=first, end_hash=last, content=content)
    return DeleteRange(start_hash=first, end_hash=last)


def shown_whole(snapshot: Snapshot) -> tuple[ShownVersion, ...]:
    return (shown_version(snapshot, spans=((1, len(snapshot.lines)),)),)


@given(samples(styles=("lf", "crlf", "cr")), st.data())
def test_operations_made_from_a_diff_give_exactly_the_second_text(sample: Sample, data: st.DataObject) -> None:
    letters = LETTERS.get(sample.encoding.name, UNICODE if sample.encoding.width > 1 else "ab ")
    row = st.sampled_from(sample.rows) | st.text(letters, max_size=6) if sample.rows else st.text(letters, max_size=6)
    wanted = data.draw(st.lists(row, max_size=10))
    before = Snapshot(sample.data, encoding=sample.encoding)
    changed = regions(list(sample.rows), wanted)
    assume(changed and all(sample.encoding.can_encode(each) for each in wanted))
    rows = anchor_lines_at(before, range(1, len(sample.rows) + 1))
    choose = data.draw(st.randoms(use_true_random=False))

    sent = tuple(operation(region, rows, choose) for region in changed)
    after = AnchoredEdits(operations=sent, shown=shown_whole(before)).plan(before).after

    ending = next((each for each in sample.terminators if each), "\n")
    text = "".join(each + ending for each in wanted)
    is_open = bool(sample.terminators) and not sample.terminators[-1]
    tail_went = changed[-1].end == len(sample.rows) and changed[-1].start < changed[-1].end and not changed[-1].rows
    if is_open and not tail_went:
        text = text.removesuffix(ending)
    assert after.data == sample.encoding.bom + sample.encoding.encode(text)


@st.composite
def disjoint_operations(draw: st.DrawFn, snapshot: Snapshot) -> list[Operation]:
    """Draw operations that never touch the same lines, and at most one insert per gap."""
    total = len(snapshot.lines)
    rows = anchor_lines_at(snapshot, range(1, total + 1))
    choose = draw(st.randoms(use_true_random=False))
    line, sent = 0, list[Operation]()
    while line < total:
        size = draw(st.integers(0, 3))
        end = min(total, line + size)
        count = draw(st.integers(0 if size else 1, 2))
        if draw(st.booleans()) and (end > line or count):
            new = tuple(f"<<{len(sent)}.{n}>>" for n in range(count))
            sent.append(operation(Region(line, end, new), rows, choose))
        line = end + 1
    return sent


@given(any_bytes(), st.data())
def test_untouched_bytes_stay(raw: bytes, data: st.DataObject) -> None:
    before = Snapshot(raw, encoding=Encoding(name="bytes"))
    sent = data.draw(disjoint_operations(before))
    assume(sent)

    plan = AnchoredEdits(operations=tuple(sent), shown=shown_whole(before)).plan(before)

    gone = {
        line
        for each in plan.resolutions
        if not each.op.startswith("insert")
        for line in range(each.start_line, each.end_line + 1)
    }
    kept = b"".join(line for number, line in enumerate(before.lines.raw, start=1) if number not in gone)
    cleaned = re.sub(rb"<<\d+\.\d+>>(?:\r\n|\n|\r)?", b"", plan.after.data)
    opened = not before.lines.final_newline
    assert cleaned == kept or (opened and cleaned in {kept + b"\n", kept + b"\r\n", kept + b"\r"})
    old = _outside([(start, end) for start, end, _, _ in plan.span_offsets()], before.size)
    new = _outside([(start, end) for _, _, start, end in plan.span_offsets()], plan.after.size)
    assert [raw[a:b] for a, b in old] == [plan.after.data[a:b] for a, b in new]


def _outside(edges: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    flat = [0, *(edge for pair in edges for edge in pair), size]
    return list(zip(flat[::2], flat[1::2], strict=True))


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=20), st.data())
def test_the_order_of_the_array_does_not_matter(texts: list[str], data: st.DataObject) -> None:
    before = Snapshot("".join(text + "\n" for text in texts).encode())
    sent = data.draw(disjoint_operations(before))
    assume(sent)
    other = data.draw(st.permutations(sent))

    assert (
        AnchoredEdits(operations=tuple(sent), shown=shown_whole(before)).plan(before).after.data
        == AnchoredEdits(operations=tuple(other), shown=shown_whole(before)).plan(before).after.data
    )


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=15), st.integers(1, 4), st.data())
def test_inserts_at_one_gap_stand_in_the_order_of_the_array(texts: list[str], count: int, data: st.DataObject) -> None:
    before = Snapshot("".join(text + "\n" for text in texts).encode())
    line = data.draw(st.integers(1, len(texts)))
    anchor = anchor_lines_at(before, [line])[line].anchor
    sent = tuple(InsertAfter(hash=anchor, content=f"<<{n}>>") for n in range(count))

    after = AnchoredEdits(operations=sent, shown=shown_whole(before)).plan(before).after

    assert after.lines.contents[line : line + count] == [b"<<%d>>" % n for n in range(count)]


MARK = b"<<MARK>>"


@dataclass(frozen=True)
class History:
    """A text and what became of it; `origin` knows for each line which line of the old text it is, if any."""

    old: list[bytes]
    new: list[bytes]
    origin: list[int | None]

    @property
    def kept(self) -> int:
        return sum(each is not None for each in self.origin)

    def explained(self, line: int, here: int) -> int:
        """Return how many lines were kept at most if this line really is there."""
        return 1 + lcs(self.old[:line], self.new[:here]) + lcs(self.old[line + 1 :], self.new[here + 1 :])


def lcs(a: list[bytes], b: list[bytes]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        above, row = row, [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[-1]))
    return row[-1]


def history(choose: Random, kinds: list[bytes], most: int) -> History:
    old = [choose.choice(kinds) for _ in range(choose.randrange(1, most))]
    rows: list[tuple[bytes, int | None]] = [(line, index) for index, line in enumerate(old)]
    for _ in range(choose.randrange(1, 4)):
        place, gone, added = (
            choose.randrange(len(rows) + 1),
            choose.choice([0, 1, 1, 2, 3]),
            choose.choice([0, 1, 1, 2]),
        )
        rows[place : place + gone] = [(choose.choice([*kinds, b"something new\n"]), None) for _ in range(added)]
    return History(old=old, new=[line for line, _ in rows], origin=[index for _, index in rows])


def landed(told: History, anchor: str, shown: tuple[ShownVersion, ...]) -> int | None:
    """Return the line of the new text that an edit replaced; None when it was refused."""
    live = Snapshot(b"".join(told.new))
    try:
        plan = AnchoredEdits(operations=(ReplaceLine(hash=anchor, content=MARK.decode()),), shown=shown).plan(live)
    except LineEditError:
        return None
    return plan.after.lines.contents.index(MARK)


@pytest.mark.parametrize("own", [False, True], ids=["another program wrote", "the session wrote"])
@pytest.mark.parametrize(("kinds", "least_right"), [(4, 0.4), (12, 0.75), (40, 0.9)])
def test_a_copied_anchor_never_lands_on_a_line_that_can_be_told_from_the_right_one(
    kinds: int, least_right: float, own: bool
) -> None:
    """It counts as wrong only if the text could tell: the landing takes more edits to explain than the truth.

    After its own edit a session knows the file as it is; there, a hash that one line has names that line.
    """
    choose, count = Random(kinds), Counter[str]()
    for _ in range(150):
        told = history(choose, [b"kind number %d\n" % n for n in range(kinds)], 30)
        old, whole = Snapshot(b"".join(told.old)), ((1, len(told.old)),)
        shown = (shown_version(old, spans=whole, anchored=whole),)
        if own:
            new = Snapshot(b"".join(told.new))
            shown = (shown_version(new, spans=((1, len(told.new)),), anchored=()), *shown)
        for line, row in anchor_lines_at(old, range(1, len(told.old) + 1)).items():
            here = landed(told, choose.choice([row.anchor, f"{row.hash}.{row.occurrence or 1}", str(row)]), shown)
            truth = next((n for n, each in enumerate(told.origin) if each == line - 1), None)
            if here is None:
                count["refused, gone" if truth is None else "refused, still there"] += 1
            elif here == truth:
                count["right"] += 1
            elif own and told.new.count(told.old[line - 1]) == 1:
                count["the only such line now"] += 1
            else:
                count["wrong" if told.explained(line - 1, here) < told.kept else "undecidable"] += 1
    print(f"{kinds} kinds of lines: {dict(sorted(count.items()))}")
    assert count["wrong"] == 0
    assert count["undecidable"] <= 0.03 * count["right"]
    assert count["right"] >= least_right * (count["right"] + count["refused, still there"])


@given(st.data())
def test_among_distinct_lines_an_edit_lands_exactly_on_its_line_or_is_refused_when_that_is_gone(
    data: st.DataObject,
) -> None:
    old = [b"line number %d\n" % n for n in range(data.draw(st.integers(1, 30)))]
    rows: list[tuple[bytes, int | None]] = [(line, index) for index, line in enumerate(old)]
    edits = data.draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.integers(0, 3)), max_size=5))
    for number, (place, gone, added) in enumerate(edits):
        rows[place : place + gone] = [(b"new line %d of edit %d\n" % (n, number), None) for n in range(added)]
    told = History(old=old, new=[line for line, _ in rows], origin=[index for _, index in rows])
    base = Snapshot(b"".join(old))
    shown = (shown_version(base, spans=((1, len(old)),)),)

    for line, row in anchor_lines_at(base, range(1, len(old) + 1)).items():
        truth = next((n for n, each in enumerate(told.origin) if each == line - 1), None)
        for anchor in (row.anchor, row.hash):
            assert landed(told, anchor, shown) == truth


few_kinds = st.lists(st.sampled_from([kind.encode() + b"\n" for kind in KINDS]), min_size=1, max_size=20)


@given(few_kinds, few_kinds, st.data())
def test_an_edit_lands_only_on_lines_with_the_very_bytes_that_were_shown(
    old: list[bytes], new: list[bytes], data: st.DataObject
) -> None:
    base, live = Snapshot(b"".join(old)), Snapshot(b"".join(new))
    rows = anchor_lines_at(base, range(1, len(old) + 1))
    first = data.draw(st.integers(1, len(old)))
    last = data.draw(st.integers(first, len(old)))
    shown = (shown_version(base, spans=((1, len(old)),)),)
    sent: Operation = DeleteRange(start_hash=rows[first].anchor, end_hash=rows[last].anchor)
    if first == last:
        sent = DeleteLine(hash=rows[first].anchor)
    try:
        plan = AnchoredEdits(operations=(sent,), shown=shown).plan(live)
    except LineEditError:
        return
    (found,) = plan.resolutions
    assert new[found.start_line - 1 : found.end_line] == old[first - 1 : last]


@given(few_kinds, st.data())
def test_what_a_refusal_offers_works_on_the_retry(texts: list[bytes], data: st.DataObject) -> None:
    live = Snapshot(b"".join(texts))
    line = data.draw(st.integers(1, len(texts)))
    bare = anchor_lines_at(live, [line])[line].hash

    with suppress(LineEditError):
        assert AnchoredEdits(operations=(DeleteLine(hash=bare),)).plan(live).resolutions[0].start_line == line
        return
    with pytest.raises(LineEditError) as caught:
        AnchoredEdits(operations=(DeleteLine(hash=bare),)).plan(live)
    offered = caught.value.details["candidates"]
    assert caught.value.shown
    shown = (shown_version(live, spans=caught.value.shown),)
    assert line in [each["line"] for each in offered]
    for each in offered:
        plan = AnchoredEdits(operations=(DeleteLine(hash=each["anchor"]),), shown=shown).plan(live)
        assert plan.resolutions[0].start_line == each["line"]
