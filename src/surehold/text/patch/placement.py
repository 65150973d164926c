"""Finds the place of every hunk of a patch in its file.

1. All hunks are matched against the same file. A hunk must fit in exactly one place; there is no fuzzy matching.
2. The numbers of a header only choose between several such places. Once they are wrong for one hunk of the file, they
   choose for none; nor do they where the context says that the hunk was at an edge of the file.
3. An anchor of the envelope narrows a hunk to what follows that line, as far as its block of code goes. Where several
   lines read like the anchor, the hunk must fit below one of them only.
4. Two hunks may share context, but neither may show a line that the other changes.
5. New lines with context on one side only are refused where the file already has them: a patch that is sent twice must
   not insert twice.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice, pairwise, takewhile

from surehold.text.patch.hunks import EncodedHunk, PatchLineIndex
from surehold.text.patch.refusals import MAX_LISTED_PLACES, PatchRefusals

_MAX_COMPARED_PLACES = 300
"""A hunk that fits in more places between lines like its anchors is refused."""


class HunkPlacement:
    """Finds the places of all hunks of one file."""

    def __init__(self, index: PatchLineIndex, trouble: PatchRefusals) -> None:
        self._index, self._trouble = index, trouble
        self._stripped: dict[str, list[int]] = {}
        self._reach: dict[int, int] = {}
        """How far the block of code that an anchor opens was followed."""
        self._ends: dict[int, int] = {}
        """Where the block of code that an anchor opens ends."""

    def find_places(self, blocks: Sequence[EncodedHunk]) -> list[int]:
        """Return the index of the first line of every hunk, in the order of the hunks, or refuse."""
        if all(block.hunk.start is not None for block in blocks):
            found = self._places_by_number(blocks)
            for (one, first), (other, second) in pairwise(zip(found, blocks, strict=True)):
                if other < one:
                    raise self._trouble.out_of_order(first, second, one, other)
        else:
            self._note_anchors(blocks)
            found, cursor = list[int](), 0
            for block in blocks:
                found.append(self._place_by_context(block, cursor))
                cursor = found[-1] + len(block.old)
        for block, at in zip(blocks, found, strict=True):
            self._refuse_repeated(block, at)
        self._refuse_overlap(sorted(zip(found, blocks, strict=True), key=lambda pair: (pair[0], pair[1].index)))
        return found

    def _places_by_number(self, blocks: Sequence[EncodedHunk]) -> list[int]:
        # Of rows without context the header names the line above.
        named = [(block.hunk.start or 0) - bool(block.old) for block in blocks]
        quotes = any(block.old for block in blocks)
        found = [self._place_by_number(block, at, quotes=quotes) for block, at in zip(blocks, named, strict=True)]
        moved = next((i for i, at in enumerate(found) if at != named[i]), None)
        if moved is not None:  # the numbers are those of another version of the file
            for block, at in zip(blocks, found, strict=True):
                if not block.old:
                    raise self._trouble.numbers_are_off(block, blocks[moved], found[moved] - named[moved])
                if at == named[block.index]:
                    self._only_place(block)
        return found

    def _place_by_number(self, block: EncodedHunk, named: int, *, quotes: bool) -> int:
        """Return the place of a hunk; `quotes` tells whether any hunk of the file shows lines that it must have."""
        if not block.old:  # rows without context only go where the numbers can be right
            # Alone, rows for line 0 are those of a file that was empty; else they go above the first line.
            if (named == 0 and len(self._index) and not quotes) or named > len(self._index):
                raise self._trouble.context_needed(block)
            return self._require_applicable(block, named)
        if self._index.fits_at(block, named) and self._agrees_with_edges(block, named):
            return named
        return self._only_place(block)

    def _agrees_with_edges(self, block: EncodedHunk, at: int) -> bool:
        """Tell whether the hunk may be meant for this place by its context: a tool shows less of it on one side only at an edge."""
        signs = "".join(piece.sign for piece in block.pieces)
        above, below = len(signs) - len(signs.lstrip()), len(signs) - len(signs.rstrip())
        is_last = at + len(block.old) == len(self._index)
        return (above <= below or is_last) and (below <= above or at == 0)

    def _only_place(self, block: EncodedHunk, start: int = 0, end: Callable[[], int] | None = None) -> int:
        """Return the place where the lines are; what they say about line ends and the end of file chooses none.

        With an end, a place that lies before it is preferred to those after it: the anchor opens no more than that.
        """
        found = list(islice(self._index.find_lines(block.old, start), MAX_LISTED_PLACES + 1))
        if end is not None and len(found) > 1:
            limit = end()
            inside = [at for at in found if at < limit]
            found = inside if len(inside) == 1 else found
        if len(found) > 1:
            raise self._trouble.context_ambiguous(block, found)
        if not found or not self._index.may_apply_at(block, found[0]):
            raise self._trouble.not_found(block, start)
        return found[0]

    def _place_by_context(self, block: EncodedHunk, cursor: int) -> int:
        above = self._last_anchor(block, cursor) if block.hunk.anchors else None
        if not block.old:
            return self._insertion_place(block, above)
        if block.hunk.at_end:
            at = len(self._index) - len(block.old)
            if at < (above or 0) or not self._index.fits_at(block, at):
                raise self._trouble.not_found(block, above or 0)
            return at
        if above is None:
            return self._only_place(block)
        below = self._places_below(block, above)
        if len(below) > 1:
            raise self._trouble.context_ambiguous(block, below[: MAX_LISTED_PLACES + 1])
        if below and self._index.may_apply_at(block, below[0]):
            return below[0]
        at = self._only_place(block, above, lambda: self._end_of_block(above))
        self._refuse_outside(block, above, at)
        return at

    def _insertion_place(self, block: EncodedHunk, above: int | None) -> int:
        """Return where rows without context go: the end when they say so, below their anchor, or an empty file."""
        if block.hunk.at_end or not len(self._index):
            return self._require_applicable(block, len(self._index))
        if above is None:
            raise self._trouble.context_needed(block)
        places = self._stripped[block.hunk.anchors[-1]]
        here = bisect_right(places, above) - 1
        if here + 1 < len(places):
            raise self._trouble.context_ambiguous(block, places[here:])
        return self._require_applicable(block, above + 1)

    def _require_applicable(self, block: EncodedHunk, at: int) -> int:
        if not self._index.may_apply_at(block, at):
            raise self._trouble.wrong_end(block, at)
        return at

    def _note_anchors(self, blocks: Sequence[EncodedHunk]) -> None:
        """Find all lines that are named as anchors, without the blanks around them, in one pass."""
        self._stripped = {anchor: [] for block in blocks for anchor in block.hunk.anchors}
        if not self._stripped:
            return
        encoding = self._index.before.encoding
        for at, content in enumerate(self._index.contents):
            places = self._stripped.get(encoding.decode(content).strip())
            if places is not None:
                places.append(at)

    def _last_anchor(self, block: EncodedHunk, cursor: int) -> int:
        """Return the line of the innermost anchor, each searched below the one before."""
        above = cursor - 1
        for depth, anchor in enumerate(block.hunk.anchors):
            places = self._stripped[anchor]
            after = bisect_right(places, above)
            if after < len(places):
                above = places[after]
            elif not depth and len(places) == 1:
                above = places[0]  # it was already passed, and there is no other that it could mean
            else:
                raise self._trouble.anchor_missing(block, anchor, above + 1, places)
        return above

    def _end_of_block(self, above: int) -> int:
        """Return the first line after what an anchor opens, by its indentation; lines that close it belong to it."""
        if above not in self._ends:
            self._ends[above] = self._find_end_of_block(above)
        return self._ends[above]

    def _find_end_of_block(self, above: int) -> int:
        opened, depth = self._word_and_indent(above)
        for line in range(above + 1, len(self._index)):
            word, indent = self._word_and_indent(line)
            if word and indent <= depth and (word == opened or word[:1].isalnum() or word[:1] in {"_", "@"}):
                return line
        return len(self._index)

    def _places_below(self, block: EncodedHunk, above: int) -> list[int]:
        """Return where a hunk fits in blocks that lines like its anchors open, from the first of them on."""
        end = self._end_of_block(self._stripped[block.hunk.anchors[-1]][-1])
        inside = takewhile(lambda at: at < end, self._index.find_lines(block.old, above))
        found = list(islice(inside, _MAX_COMPARED_PLACES + 1))
        if len(found) > _MAX_COMPARED_PLACES:
            return found
        return [at for at in found if self._is_below(block.hunk.anchors, at)]

    def _is_below(self, anchors: Sequence[str], at: int) -> bool:
        """Tell whether a line is in the block of the last anchor, which is in that of the one before, and so on."""
        for anchor in reversed(anchors):
            places = self._stripped[anchor]
            nearest = bisect_right(places, at) - 1
            if nearest < 0 or at >= self._end_of_block(places[nearest]):
                return False
            at = places[nearest]
        return True

    def _refuse_outside(self, block: EncodedHunk, above: int, at: int) -> None:
        """Refuse a place after the end of what the anchor opens: the hunk was meant for a block that has changed."""
        opened, depth = self._word_and_indent(above)
        for line in range(self._reach.get(above, above + 1), at):
            word, indent = self._word_and_indent(line)
            is_sibling = indent <= depth and word == opened
            is_outside = indent < depth and (word[:1].isalnum() or word[:1] in {"_", "@"})
            if word and (is_sibling or is_outside):
                raise self._trouble.outside_anchor(block, above, line, at)
        self._reach[above] = max(self._reach.get(above, 0), at)

    def _word_and_indent(self, at: int) -> tuple[str, int]:
        text = self._index.before.encoding.decode(self._index.contents[at]).expandtabs(4)
        bare = text.lstrip()
        return (bare.split(maxsplit=1) or [""])[0], len(text) - len(bare)

    def _refuse_repeated(self, block: EncodedHunk, at: int) -> None:
        """Refuse lines that are already there, when only one side of them has context: the patch came twice."""
        signs = "".join(piece.sign for piece in block.pieces)
        added = [piece.content for piece in block.pieces if piece.sign == "+"]
        if signs.strip() != "+" * len(added) or not any(line.strip() for line in added):
            return
        if not block.old and block.hunk.start is not None:
            return  # numbers alone say where
        above, end = at - len(added), at + len(block.old)
        is_below = signs.endswith("+") and self._index.contents[end : end + len(added)] == added
        is_above = signs.startswith("+") and above >= 0 and self._index.contents[above:at] == added
        if is_below or is_above:
            raise self._trouble.already_applied(block, above if is_above else end)

    def _refuse_overlap(self, placed: list[tuple[int, EncodedHunk]]) -> None:
        for (one, first), (other, second) in pairwise(placed):
            end, begin = one + len(first.old), other
            shares = end > begin
            if not shares and (first.old or second.old or end < begin):
                continue
            changed_to, changed_from = one + first.changed_range[1], other + second.changed_range[0]
            if not shares or changed_to > begin or end > changed_from:
                raise self._trouble.hunks_overlap(first, second, one, other)
