"""A text to which edits are applied one after the other, many of them at once where that comes to the same.

1. `NeedleSearch` finds many needles in one pass. The text is cut into blocks; wherever a needle occurs it covers whole
   blocks, and which of its bytes they are depends only on how it lies on the grid. For each such shift the rarest of
   these blocks is looked up. Few needles, short ones and little text are searched for one by one.
2. `StagedText.replace_many` makes edits at once if each finds its text exactly once at its turn. Edits are followed step
   by step in the neighbourhood of their places, also where one edits what another wrote. A text cannot occur elsewhere:
   it begins in the original at most once, and nowhere in what earlier edits wrote in other neighbourhoods.
3. `StagedText` knows what differs from the original, and which original bytes each edit removed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, filterfalse, pairwise, takewhile
from struct import unpack_from
from typing import Literal

from surehold.text.plan import Span, splice_spans
from surehold.text.snapshot import Snapshot

_MAX_PLACES = 256
_MAX_CANDIDATES = 4096
_HEAD_BYTES = 160
"""So many leading bytes of an old text tell where it may be."""
_SEARCHED_NEEDLES = 16
_SEARCHED_BYTES = 8 << 20
"""A pass over a text costs about as much as so many searches, and never pays for less than so many searched bytes."""
_SAMPLE_EVERY_BLOCKS = 16
_PASS_BYTES = 1 << 21
"""How many bytes are looked at in one go: a byte is kept for each of their blocks."""
_AROUND_BYTES = 1 << 19
"""So many bytes around their places are shared by the edits that are made at once."""

Places = tuple[int, ...] | None
"""Where a needle occurs, overlaps included; None when there are too many places to be worth a look."""


_BlockCode = Literal["Q", "I"]
"""How a block is read as a number; needles must be so long that they cover one however they lie."""
_BLOCK_BYTES: Mapping[_BlockCode, int] = {"Q": 8, "I": 4}

_NeedleKeys = Mapping[bytes, list[tuple[int, int]]]
"""For each needle and each shift, the block to look up, and where in the needle it begins."""


class NeedleSearch:
    """Searches texts for needles; which blocks of them to look up is decided once, by a sample of the first text."""

    def __init__(self, needles: Collection[bytes]) -> None:
        self._needles, self._keys = needles, dict[_BlockCode, _NeedleKeys]()
        long, short = (2 * size - 1 for size in _BLOCK_BYTES.values())
        self._groups: Mapping[_BlockCode, list[bytes]] = {
            "Q": [needle for needle in needles if len(needle) >= long],
            "I": [needle for needle in needles if short <= len(needle) < long],
        }

    def find_in(self, text: bytes) -> dict[bytes, Places]:
        found = dict[bytes, Places]()
        for code, group in self._groups.items():
            if len(group) > _SEARCHED_NEEDLES and len(group) * len(text) > _SEARCHED_BYTES:
                keys = self._keys[code] = self._keys.get(code) or _choose_keys(text, group, code)
                found.update(_find_by_keys(text, keys, code))
        found.update((needle, _find_alone(text, needle)) for needle in self._needles if needle not in found)
        return found


def _choose_keys(text: bytes, needles: Collection[bytes], code: _BlockCode) -> _NeedleKeys:
    samples = (blocks[::_SAMPLE_EVERY_BLOCKS] for _, blocks in _split_blocks(text, code))
    rates, size = Counter(chain.from_iterable(samples)), _BLOCK_BYTES[code]
    chosen: dict[bytes, list[tuple[int, int]]] = {needle: [] for needle in needles}
    for needle, picks in chosen.items():
        for shift in range(size):
            keys = unpack_from(f"={(len(needle) - shift) // size}{code}", needle, shift)
            key = next(filterfalse(rates.__contains__, reversed(keys)), None)
            key = min(keys, key=rates.__getitem__) if key is None else key
            picks.append((key, shift + keys.index(key) * size))
    return chosen


def _find_by_keys(text: bytes, chosen: _NeedleKeys, code: _BlockCode) -> Iterator[tuple[bytes, Places]]:
    located = _locate_blocks(text, {key for picks in chosen.values() for key, _ in picks}, code)
    for needle, picks in chosen.items():
        hits = [(located[key], offset) for key, offset in picks if key in located]
        if sum([len(found) for found, _ in hits]) > _MAX_CANDIDATES:
            yield needle, _find_alone(text, needle)
            continue
        begins = {at - offset for found, offset in hits for at in found}
        places = sorted([at for at in begins if at >= 0 and text.startswith(needle, at)])
        yield needle, tuple(places) if len(places) <= _MAX_PLACES else None


def _locate_blocks(text: bytes, wanted: Collection[int], code: _BlockCode) -> Mapping[int, list[int]]:
    found = dict[int, list[int]]()
    for begin, blocks in _split_blocks(text, code):
        hits = bytes(map(wanted.__contains__, blocks))  # a byte for each block: the next hit is found at once
        number = hits.find(1)
        while number >= 0:
            found.setdefault(blocks[number], []).append(begin + number * blocks.itemsize)
            number = hits.find(1, number + 1)
    return found


def _split_blocks(text: bytes, code: _BlockCode) -> Iterator[tuple[int, "memoryview[int]"]]:
    """Yield parts of the text as blocks, and where each part begins."""
    view = memoryview(text)[: len(text) - len(text) % _BLOCK_BYTES[code]]
    for at in range(0, len(view), _PASS_BYTES):
        yield at, view[at : at + _PASS_BYTES].cast(code)


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

    @property
    def head(self) -> bytes:
        return self.old[:_HEAD_BYTES]


StagedPlace = tuple[int, bytes]
"""Where an edit was made: an offset of the text before, and the bytes that other edits wrote between it and the place."""
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
            self._removed.setdefault(owner, []).extend(piece for piece in taken if not isinstance(piece, bytes))
            pieces.append(span.new)
            at = span.end
        self._pieces, self.snapshot = [*pieces, *reversed(rest)], after

    def replace_many(self, edits: Sequence[Replacement], *, first: int) -> list[StagedPlace]:
        """Make as many edits as come to the same when they are made at once; return where each of them was made."""
        data, width = self.snapshot.data, self.snapshot.encoding.width
        search = NeedleSearch({edit.head for edit in edits})
        found = search.find_in(data)
        batch = _EditBatch(data, edits, found, width)
        certain = batch.count_certain(search)
        if certain < len(batch.places):
            batch = _EditBatch(data, edits[:certain], found, width)
        if batch.places:
            rows = [row for area in batch.areas for row in area.list_spans()]
            spans, owners = [span for span, _ in rows], [first + number for _, number in rows]
            self.replace_spans(splice_spans(self.snapshot, spans).after, spans, owners)
        return batch.places

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


class _EditBatch:
    """Edits that are made step by step in the neighbourhoods of their places, up to the first that leaves a doubt."""

    def __init__(self, data: bytes, edits: Sequence[Replacement], found: Mapping[bytes, Places], width: int) -> None:
        self._edits = list(takewhile(lambda edit: (at := found[edit.head]) is not None and len(at) <= 1, edits))
        self.areas = _lay_out(data, self._edits, found)
        self.places = list[StagedPlace]()
        self._log, self._log_starts, self._area_of = bytearray(), [0], list[_Neighbourhood]()
        starts = [area.start for area in self.areas]
        for number, edit in enumerate(self._edits):
            if place := found[edit.head]:
                area = self.areas[bisect_right(starts, place[0]) - 1]
            elif (at := self._log.rfind(edit.head)) >= 0:
                area = self._area_of[bisect_right(self._log_starts, at) - 1]
            else:
                break
            if (made := area.replace(edit, number, width)) is None:
                break
            self.places.append(made[0])
            self._log += made[1]
            self._log_starts.append(len(self._log))
            self._area_of.append(area)

    def count_certain(self, search: NeedleSearch) -> int:
        """Return how many of the edits made find their text nowhere in what those before them wrote elsewhere."""
        found = search.find_in(bytes(self._log))
        for number, area in enumerate(self._area_of):
            head = self._edits[number].head
            places = found[head]
            if places is None:
                return number
            for at in places:
                writer = bisect_right(self._log_starts, at) - 1
                inside = at + len(head) <= self._log_starts[writer + 1]
                if inside and writer < number and self._area_of[writer] is not area:
                    return number
        return len(self._area_of)


def _lay_out(data: bytes, edits: Sequence[Replacement], found: Mapping[bytes, Places]) -> list["_Neighbourhood"]:
    """Return the neighbourhoods of the places at which texts begin; places nearer than two margins share one."""
    margin = max((len(edit.head) for edit in edits), default=1) - 1
    groups = list[tuple[int, int]]()
    for start, end in sorted((at, at + len(edit.old)) for edit in edits for at in found[edit.head] or ()):
        if groups and start - groups[-1][1] <= 2 * margin:
            groups[-1] = groups[-1][0], max(groups[-1][1], end)
        else:
            groups.append((start, end))
    around = max(margin, _AROUND_BYTES // (len(edits) + 1))
    middles = [0, *((one[1] + other[0]) // 2 for one, other in pairwise(groups)), len(data)]
    return [
        _Neighbourhood(data, max(start - around, low), min(end + around, high), margin)
        for (start, end), (low, high) in zip(groups, pairwise(middles), strict=False)
    ]


class _Neighbourhood:
    """A part of a text as edits leave it: regions of the part have new bytes; they do not touch each other."""

    def __init__(self, data: bytes, start: int, end: int, margin: int) -> None:
        self.start, self._text, self._margin = start, bytearray(data[start:end]), margin
        self._kept_head, self._kept_tail = margin if start else 0, margin if end < len(data) else 0
        # Each region: its range before, its range now. The first is empty, so that there is one before every place.
        self._starts, self._ends, self._lows, self._highs = [start], [start], [0], [0]
        self._removed = list[tuple[int, int, int]]()

    def replace(self, edit: Replacement, number: int, width: int) -> tuple[StagedPlace, bytearray] | None:
        """Make an edit; return where, and what is there now with the text around it.

        None unless its text is there exactly once, on whole units, with a margin around it.
        """
        text, at = self._text, self._text.find(edit.head)
        end = at + len(edit.old)
        if at < self._kept_head or end + self._kept_tail > len(text) or (self.start + at) % width:
            return None
        if width > 1 and not edit.new and end == len(text):  # after the last line there is no line to name
            return None
        if not text.startswith(edit.old, at) or text.find(edit.head, at + 1) >= 0:
            return None
        starts, ends, lows, highs = self._starts, self._ends, self._lows, self._highs
        i, j = bisect_left(highs, at), bisect_right(lows, end)  # the regions that the place touches
        low, first = at, at - highs[i - 1] + ends[i - 1]
        high, last = end, end - highs[j - 1] + ends[j - 1]
        if i < j and lows[i] <= at:
            low, first = lows[i], starts[i]
        if i < j and highs[j - 1] >= end:
            high, last = highs[j - 1], ends[j - 1]
        gaps = zip((first, *ends[i:j]), (*starts[i:j], last), strict=True)
        self._removed += [(one, other, number) for one, other in gaps if one < other]
        place = first, bytes(text[low:at])
        text[at:end] = edit.new
        grown = len(edit.new) - len(edit.old)
        starts[i:j], ends[i:j] = [first], [last]
        lows[i:] = [low, *[offset + grown for offset in lows[j:]]]
        highs[i:] = [offset + grown for offset in [high, *highs[j:]]]
        return place, text[max(at - self._margin, 0) : end + grown + self._margin]

    def list_spans(self) -> Iterator[tuple[Span, int]]:
        """Yield what was removed, and by which edit; the first span of a region has its new bytes."""
        regions = zip(self._starts, self._lows, self._highs, strict=True)
        news = {start: bytes(self._text[low:high]) for start, low, high in regions}
        for start, end, number in sorted(self._removed):
            yield Span(start=start, end=end, new=news.get(start, b"")), number
