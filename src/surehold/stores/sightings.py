"""What a session was shown: how sightings merge, and how many are remembered; pure.

Losing a sighting is safe: the agent reads again. So memory is bounded and the oldest goes first; but the version of which
the most was shown stays: it is what an agent works from that edits on and on after one reading.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from surehold.stores.base import Sighting
from surehold.text.line_spans import merged

VERSIONS_PER_PATH = 8
PATHS_PER_SESSION = 2_000
FORGOTTEN_AFTER = timedelta(days=30)


def merge(known: Sighting | None, shown: Sighting, *, seq: int) -> Sighting:
    """Add what was shown now to what was known of the same version."""
    if known is None:
        return replace(shown, spans=merged(shown.spans), anchored=merged(shown.anchored), seq=seq)
    return replace(
        shown,
        spans=merged((*known.spans, *shown.spans)),
        whole=known.whole or shown.whole,
        anchored=merged((*known.anchored, *shown.anchored)),
        seq=seq,
    )


def to_forget(versions: Sequence[Sighting]) -> list[str]:
    """Name the versions of one path that are too many; they come newest first."""
    surplus = versions[VERSIONS_PER_PATH:]
    if not surplus:
        return []
    best = max(versions, key=lambda one: (one.whole, sum(last - first + 1 for first, last in one.spans)))
    return [one.sha256 for one in surplus if one is not best]
