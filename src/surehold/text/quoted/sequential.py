"""A text to which edits are applied one after the other, many of them at once where that comes to the same.

1. `find_needles` finds many needles in one pass. The text is cut into blocks; wherever a needle occurs it covers whole
   blocks, and which of its bytes they are depends only on how it lies on the grid. For each such shift the rarest of
   these blocks is looked up. Few needles, short ones and little text are searched for one by one.
2. `StagedText.replace_many` makes edits at once if each finds its text exactly once, whatever those before it did: the
   needle occurs once in the text; no other edit takes a byte of that place; and what earlier edits wrote, with the text
   around it, does not contain it. Edits that are near each other are followed step by step in their neighbourhood.
3. `StagedText` knows what differs from the original, and which original bytes each edit removed.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from struct import Struct
from typing import Literal

from surehold.text.plan import Span, splice_spans
from surehold.text.snapshot import Snapshot

_MAX_PLACES = 256
_MAX_CANDIDATES = 4096
_KEYED_BYTES = 160
"""So many leading bytes of a needle are offered as blocks to look up."""
_SEARCHED_NEEDLES = 16
_SEARCHED_BYTES = 8 << 20
"""A pass over a text costs about as much as so many searches, and never pays for less than so many searched bytes."""
_SAMPLE_EVERY_BLOCKS = 16
_PASS_BYTES = 1 << 21
"""How many bytes are looked at in one go: a byte is kept for each of their blocks."""

Places = tuple[int, ...] | None
"""Where a needle occurs, overlaps included; None when there are too many places to be worth a look."""


def find_needles(text: bytes, needles: Collection[bytes]) -> dict[bytes, Places]:
    found = dict[bytes, Places]()
    long = [needle for needle in needles if len(needle) >= _WIDE.min_needle_bytes]
    short = [needle for needle in needles if _NARROW.min_needle_bytes <= len(needle) < _WIDE.min_needle_bytes]
    for grid, group in ((_WIDE, long), (_NARROW, short)):
        if len(group) > _SEARCHED_NEEDLES and len(group) * len(text) > _SEARCHED_BYTES:
            found.update(_find_on_grid(text, group, grid))
    found.update((needle, _find_alone(text, needle)) for needle in needles if needle not in found)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockGrid:
    """Cuts bytes into blocks of one size, each of which is a number."""

    size: int
    code: Literal["Q", "I"]

    @property
    def min_needle_bytes(self) -> int:
        """How long a needle must be to cover a block however it lies."""
        return 2 * self.size - 1

    def keys_by_shift(self, part: bytes) -> list[tuple[int, ...]]:
        """Return the blocks that a part covers, for each way in which it may lie: shifted by 0, by 1 and so on."""
        size, code, length = self.size, self.code, len(part)
        return [_block_struct((length - shift) // size, code).unpack_from(part, shift) for shift in range(size)]

    def split_blocks(self, text: bytes) -> Iterator[tuple[int, "memoryview[int]"]]:
        """Yield parts of the text as blocks, and where each part begins."""
        view = memoryview(text)[: len(text) // self.size * self.size]
        for at in range(0, len(view), _PASS_BYTES):
            yield at, view[at : at + _PASS_BYTES].cast(self.code)


@cache
def _block_struct(count: int, code: str) -> Struct:
    return Struct(f"={count}{code}")


_WIDE, _NARROW = _BlockGrid(size=8, code="Q"), _BlockGrid(size=4, code="I")


def _find_on_grid(text: bytes, needles: Collection[bytes], grid: _BlockGrid) -> Iterator[tuple[bytes, Places]]:
    rows = {needle: grid.keys_by_shift(needle[:_KEYED_BYTES]) for needle in needles}
    rates = _sample_rates(text, grid, dict.fromkeys(chain.from_iterable(chain.from_iterable(rows.values())), 0))
    chosen = {needle: [min(keys, key=rates.__getitem__) for keys in shifts] for needle, shifts in rows.items()}
    located = _locate_blocks(text, grid, set(chain.from_iterable(chosen.values())))
    for needle, picks in chosen.items():
        hits = [(shift, key) for shift, key in enumerate(picks) if key in located]
        if sum(len(located[key]) for _, key in hits) > _MAX_CANDIDATES:
            yield needle, _find_alone(text, needle)
            continue
        offsets = [(shift + rows[needle][shift].index(key) * grid.size, located[key]) for shift, key in hits]
        begins = {at - offset for offset, found in offsets for at in found}
        places = sorted(at for at in begins if at >= 0 and text.startswith(needle, at))
        yield needle, tuple(places) if len(places) <= _MAX_PLACES else None


def _sample_rates(text: bytes, grid: _BlockGrid, rates: dict[int, int]) -> Mapping[int, int]:
    for _, blocks in grid.split_blocks(text):
        for key in filter(rates.__contains__, blocks[::_SAMPLE_EVERY_BLOCKS]):
            rates[key] += 1
    return rates


def _locate_blocks(text: bytes, grid: _BlockGrid, wanted: Collection[int]) -> Mapping[int, list[int]]:
    found = dict[int, list[int]]()
    for begin, blocks in grid.split_blocks(text):
        hits = bytes(map(wanted.__contains__, blocks))  # a byte for each block: the next hit is found at once
        number = hits.find(1)
        while number >= 0:
            found.setdefault(blocks[number], []).append(begin + number * grid.size)
            number = hits.find(1, number + 1)
    return found


def _find_alone(text: bytes, needle: bytes) -> Places:
    places, at = list[int](), text.find(needle)
    while at >= 0 and len(places) <= _MAX_PLACES:
        places.append(at)
        at = text.find(needle, at + 1)
    return tuple(places) if len(places) <= _MAX_PLACES else None


@dataclass(frozen=True, slots=True)
class Replacement:
    """One edit as bytes."""

    old: bytes
    new: bytes


_Piece = bytes | tuple[int, int]
"""New bytes, or a range of the original."""


class StagedText:
    """The text as the edits so far have left it."""

    def __init__(self, before: Snapshot) -> None:
        self._before = self.snapshot = before
        self._pieces: list[_Piece] = [(0, before.size)]
        self._removed = dict[int, list[tuple[int, int]]]()

    @property
    def spans(self) -> tuple[Span, ...]:
        spans, at, new = list[Span](), 0, b""
        for piece in [*self._pieces, (self._before.size, self._before.size)]:
            if isinstance(piece, bytes):
                new += piece
                continue
            if self._before.data[at : piece[0]] != new:
                spans.append(Span(start=at, end=piece[0], new=new))
            at, new = piece[1], b""
        return tuple(spans)

    def replace_spans(self, after: Snapshot, spans: Sequence[Span], owners: Sequence[int]) -> None:
        """Take over a text in which some edits replaced sorted and disjoint spans of this one."""
        rest, pieces, at = self._pieces[::-1], list[_Piece](), 0
        for span, owner in zip(spans, owners, strict=True):
            pieces += _take_pieces(rest, span.start - at)
            taken = _take_pieces(rest, span.end - span.start)
            self._removed.setdefault(owner, []).extend(_original_ranges(taken))
            pieces.append(span.new)
            at = span.end
        self._pieces, self.snapshot = [*pieces, *reversed(rest)], after

    def replace_many(self, edits: Sequence[Replacement], *, first: int) -> list[Span]:
        """Make as many edits as come to the same when they are made at once; return their spans in the order given."""
        spans = _independent_spans(self.snapshot.data, edits)
        if spans:
            order = sorted(range(len(spans)), key=lambda number: spans[number].start)
            ordered = [spans[number] for number in order]
            after = splice_spans(self.snapshot, ordered).after
            self.replace_spans(after, ordered, [first + number for number in order])
        return spans

    def edits_that_removed(self, start: int, end: int) -> dict[int, list[tuple[int, int]]]:
        """Return which edits removed original bytes of that range, and all that each of them removed."""
        return {owner: parts for owner, parts in self._removed.items() if any(a < end and start < b for a, b in parts)}


def _take_pieces(rest: list[_Piece], size: int) -> Iterator[_Piece]:
    """Yield so many bytes from the end of a reversed list of pieces."""
    while size > 0:
        piece = rest.pop()
        length = len(piece) if isinstance(piece, bytes) else piece[1] - piece[0]
        if length <= size:
            yield piece
        elif isinstance(piece, bytes):
            rest.append(piece[size:])
            yield piece[:size]
        else:
            rest.append((piece[0] + size, piece[1]))
            yield piece[0], piece[0] + size
        size -= length


def _original_ranges(pieces: Iterable[_Piece]) -> list[tuple[int, int]]:
    """Return the ranges of the original among some pieces, joined where nothing is between them."""
    ranges, touches = list[tuple[int, int]](), False
    for piece in pieces:
        if isinstance(piece, bytes):
            touches = touches and not piece
        elif touches and ranges[-1][1] == piece[0]:
            ranges[-1] = ranges[-1][0], piece[1]
        else:
            ranges.append(piece)
            touches = True
    return ranges


def _independent_spans(data: bytes, edits: Sequence[Replacement]) -> list[Span]:
    """Return the spans of the first edits that come to the same when they are made at once."""
    places = find_needles(data, {edit.old for edit in edits})
    spans, taken = list[Span](), list[tuple[int, int]]()
    for edit in edits:
        found = places[edit.old]
        if found is None or len(found) != 1:
            break
        start, end = found[0], found[0] + len(edit.old)
        at = bisect_right(taken, (start, end))
        if (at and taken[at - 1][1] > start) or (at < len(taken) and taken[at][0] < end):
            break
        taken.insert(at, (start, end))
        spans.append(Span(start=start, end=end, new=edit.new))
    return spans[: _count_unaffected(data, edits, spans)] if len(spans) > 1 else spans


def _count_unaffected(data: bytes, edits: Sequence[Replacement], spans: Sequence[Span]) -> int:
    """Return how many of the edits find their text nowhere in what those before them wrote."""
    margin = max(len(edit.old) for edit in edits[: len(spans)]) - 1
    areas = _Neighbourhoods(data, spans, margin)
    written = list[bytes]()
    for number, edit in enumerate(edits[: len(spans)]):
        window = areas.replace(number, edit)
        if window is None:
            return number
        written.append(window)
    starts = list(accumulate(map(len, written), initial=0))
    found = find_needles(b"".join(written), {edit.old for edit in edits[: len(spans)]})
    for number, edit in enumerate(edits[: len(spans)]):
        places = found[edit.old]
        if places is None:
            return number
        for at in places:
            writer = bisect_right(starts, at) - 1
            inside = at + len(edit.old) <= starts[writer + 1]
            if inside and writer < number and areas.number_of[writer] != areas.number_of[number]:
                return number
    return len(spans)


class _Neighbourhoods:
    """The text around spans, step by step: those nearer than a margin share one text."""

    def __init__(self, data: bytes, spans: Sequence[Span], margin: int) -> None:
        self._margin = margin
        self._texts = list[bytearray]()
        self.number_of = dict[int, int]()
        """Which text each span is in."""
        group, end = list[int](), 0
        for number in sorted(range(len(spans)), key=lambda n: spans[n].start):
            if group and spans[number].start - end > 2 * margin:
                self._add(data, spans, group, end)
                group = []
            group.append(number)
            end = spans[number].end
        self._add(data, spans, group, end)

    def _add(self, data: bytes, spans: Sequence[Span], group: Sequence[int], end: int) -> None:
        self.number_of.update(dict.fromkeys(group, len(self._texts)))
        self._texts.append(bytearray(data[max(spans[group[0]].start - self._margin, 0) : end + self._margin]))

    def replace(self, number: int, edit: Replacement) -> bytes | None:
        """Make an edit; return what is there now with the text around it. None if its text is not there exactly once."""
        text = self._texts[self.number_of[number]]
        at = text.find(edit.old)
        if at < 0 or text.find(edit.old, at + 1) >= 0:
            return None
        text[at : at + len(edit.old)] = edit.new
        return bytes(text[max(at - self._margin, 0) : at + len(edit.new) + self._margin])
