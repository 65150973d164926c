"""Lines that were sent again although they were already there.

Whoever replaces lines 10 to 20 and repeats line 21 in the new text leaves it doubled. So an edge line of the new block
is suspicious when it equals the surviving line that it touches, says something, and did not stand there before. One
more item of a list is meant: real edits put another `false,` under the one that is there.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from surehold.text.quality import quality
from surehold.text.sanity_finding import Finding
from surehold.text.sanity_regions import Region

_SHOWN = 60
_PLAIN = re.compile(
    rb"\s*(?:#\s*(?:endif|else)\b.*|(?:[-+]?\d[\w.]*|true|false|none|null|nil|undefined|void 0|\"\"|''),?)\s*",
    re.IGNORECASE,
)
"""Literals in a list, and closers of the preprocessor: they stand below each other all the time."""
_ITEM = re.compile(rb"\s*[\w.:]+,\s*")


def doubled_seams(changed: Sequence[Region]) -> Iterator[Finding]:
    """Find the edges at which a new line repeats its neighbour."""
    for region in changed:
        if not region.new or _is_one_more_item(region):
            continue
        old, new = region.old, region.new
        if _is_doubled(new[0], region.above, old[:1] or region.below):
            yield _doubled(new[0], region.line, "above")
        elif _is_doubled(new[-1], region.below, old[-1:] or region.above):
            yield _doubled(new[-1], region.line + len(new) - 1, "below")


def repeated_lines(changed: Sequence[Region]) -> Iterator[Finding]:
    """Mention, once, a new line that the edit writes more than once."""
    fresh = Counter(row for region in changed for row in region.new if _says_something(row))
    gone = Counter(row for region in changed for row in region.old)
    row = next((row for row, count in fresh.items() if count > max(1, gone[row])), None)
    if row is None:
        return
    lines = [r.line + i for r in changed for i, text in enumerate(r.new) if text == row]
    yield Finding(
        kind="duplicate_lines",
        message=f"Lines {lines[0]} and {lines[1]} of the new text are equal: `{shown(row)}`.",
        line=lines[1],
    )


def shown(row: bytes) -> str:
    """Return a line as it may stand in a sentence."""
    text = row.decode("utf-8", "replace").strip()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _is_doubled(row: bytes, surviving: Sequence[bytes], earlier: Sequence[bytes]) -> bool:
    """Tell whether a new line equals the surviving one that it touches, which did not touch its like before."""
    touched = surviving[:1] == (row,)
    already = row in (*earlier[:1], *surviving[1:])
    return touched and not already and _says_something(row)


def _doubled(row: bytes, line: int, side: str) -> Finding:
    return Finding(
        kind="seam_duplicate",
        message=f"Line {line} repeats the line {side} it, which was already there: `{shown(row)}`.",
        line=line,
        suspicious=True,
    )


def _is_one_more_item(region: Region) -> bool:
    """Tell whether the edit only adds a name to a list that is written one item a line."""
    return not region.old and len(region.new) == 1 and _ITEM.fullmatch(region.new[0]) is not None


def _says_something(row: bytes) -> bool:
    return quality(row.decode("utf-8", "replace"), 1) != "low" and not _PLAIN.fullmatch(row)
