"""What a session was shown: how sightings merge, and how many are remembered; pure.

Losing a sighting is safe: the agent reads again. So memory is bounded and the oldest goes first; only the newest version
that was shown as a whole stays: it is what an agent works from that edits on and on after one reading.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from surehold.stores.base import Sighting

VERSIONS_PER_PATH = 8
PATHS_PER_SESSION = 2_000
FORGOTTEN_AFTER = timedelta(days=30)

Spans = tuple[tuple[int, int], ...]


def merge(known: Sighting | None, shown: Sighting, *, seq: int) -> Sighting:
    """Add what was shown now to what was known of the same version."""
    if known is None:
        return replace(shown, spans=merge_spans(shown.spans), anchored=merge_spans(shown.anchored), seq=seq)
    return replace(
        shown,
        spans=merge_spans((*known.spans, *shown.spans)),
        whole=known.whole or shown.whole,
        anchored=merge_spans((*known.anchored, *shown.anchored)),
        seq=seq,
    )


def merge_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """Sort inclusive pairs of line numbers and join those that touch."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)
