"""What sessions were shown: how sightings of one version are merged, and which are forgotten."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from surehold.stores.base import Sighting
from surehold.text.lines import LineRanges, merge_ranges

VERSIONS_PER_PATH = 8
PATHS_PER_SESSION = 2_000
FORGOTTEN_AFTER = timedelta(days=30)


def merge_sightings(known: Sighting | None, shown: Sighting, *, seq: int) -> Sighting:
    earlier, anchored = (known.spans, known.anchored) if known else ((), ())
    return replace(
        shown,
        spans=merge_ranges((*earlier, *shown.spans)),
        whole=shown.whole or (known is not None and known.whole),
        anchored=merge_ranges((*anchored, *shown.anchored)),
        seq=known.seq if known else seq,
    )


def with_later_sightings(versions: Sequence[Sighting], later: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Return the versions of one path, newest first, as they are after later sightings (merged ones) were added."""
    found = {one.sha256: one for one in reversed(versions)}
    first = min((one.seq for one in versions), default=None)
    for one in later:
        first = one.seq if first is None else first
        known = found.pop(one.sha256, None)
        found[one.sha256] = one if known is None and one.seq == first else merge_sightings(known, one, seq=first)
        for sha256 in versions_to_forget([*reversed(found.values())]) if len(found) > VERSIONS_PER_PATH else ():
            del found[sha256]
    return tuple(reversed(found.values()))


def versions_to_forget(versions: Sequence[Sighting]) -> list[str]:
    """Name the versions of one path that are too many; they come newest first."""
    best = max(versions, key=lambda one: (one.whole, sum(last - first + 1 for first, last in one.spans)), default=None)
    return [one.sha256 for one in versions[VERSIONS_PER_PATH:] if one is not best]


@lru_cache(maxsize=512)  # most versions of a file were shown in the same lines as the one before
def ranges_from_text(text: str) -> LineRanges:
    return tuple((first, last) for first, last in json.loads(text))


def sighting_from_row(session: str, path: str, row: tuple[str, str, int, str, int]) -> Sighting:
    sha256, spans, whole, anchored, seq = row
    return Sighting(
        session=session,
        path=path,
        sha256=sha256,
        spans=ranges_from_text(spans),
        whole=bool(whole),
        anchored=ranges_from_text(anchored),
        seq=seq,
    )
