"""Edits that cannot meet: each finds its text exactly once, whatever the others did before it.

1. A probe stands once in the original, and there the whole needle does. The places lie further apart than a probe is long.
2. What an edit writes, with what stands around it, holds no probe of another edit. So no needle can come to stand twice.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, compress, count, pairwise

from surehold.text.plan import Span
from surehold.text.snapshot import Snapshot
from surehold.text.staged_probe import BLOCK, LONGEST, Probe, blocks_of, by_key

_MARGIN = LONGEST + 1


def apart(before: Snapshot, probes: Sequence[Probe], news: Sequence[bytes]) -> list[Span] | None:
    """Return the span of every edit, in the order of the edits; None when they might meet."""
    spans, begin = list[Span](), len(before.encoding.bom)
    for probe, new in zip(probes, news, strict=True):
        if not probe.keys or probe.places is None or len(probe.places) != 1:
            return None
        start = probe.places[0] - probe.offset
        if start < begin or not before.data.startswith(probe.needle, start):
            return None
        spans.append(Span(start=start, end=start + len(probe.needle), new=new))
    ordered = sorted(spans, key=lambda span: span.start)
    if any(other.start - one.end < _MARGIN for one, other in pairwise(ordered)) or _meet(before, probes, spans):
        return None
    return spans


def _meet(before: Snapshot, probes: Sequence[Probe], spans: Sequence[Span]) -> bool:
    """Tell whether an edit writes what may hold another one's probe."""
    data, begin = before.data, len(before.encoding.bom)
    around = [data[max(s.start - _MARGIN, begin) : s.start] + s.new + data[s.end : s.end + _MARGIN] for s in spans]
    begins = list(accumulate(map(len, around), initial=0))
    keyed, blocks = by_key(probes), blocks_of(b"".join(around))
    if len({probe.needle for sharing in keyed.values() for probe in sharing}) < len(probes):
        return True
    for at in compress(count(), map(keyed.__contains__, blocks)):
        number = bisect_right(begins, at * BLOCK) - 1
        if any(probe.data in around[number] for probe in keyed[blocks[at]] if probe is not probes[number]):
            return True
    return False
