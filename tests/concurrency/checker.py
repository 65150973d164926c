"""Records what several workers asked for and were told, and says what cannot be true of it.

Every edit appends a line that no other process writes, its marker. Then nothing is lost, doubled or invented if
1. the ledger's versions of a path form one chain: each begins with what the one before left;
2. an acknowledged marker is exactly once in the file and in the ledger, a refused one never, and one whose answer was
   never heard at most once, and in both or in neither;
3. what was answered before another call began comes before it in the ledger;
4. the file is the version that the ledger knew last;
5. a read that began after an edit was acknowledged shows that edit's version or a later one.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.text.snapshot import sha256_hex

Answer = Literal["acknowledged", "refused", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One call: what it wanted, when, and what it was told."""

    path: str
    marker: str
    invoked: float
    answered: float
    """Infinite when the answer was not received."""
    answer: Answer
    seq: int = 0
    """Its place in the ledger, when it was acknowledged."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One read: which version it showed, and when it was asked for."""

    path: str
    sha256: str
    invoked: float


@dataclass
class Recording:
    """The events of all workers; safe from several threads."""

    events: list[Event] = field(default_factory=list[Event])
    readings: list[Reading] = field(default_factory=list[Reading])
    complaints: list[str] = field(default_factory=list[str])
    """What a worker noticed itself."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)

    def see(self, reading: Reading) -> None:
        with self._lock:
            self.readings.append(reading)

    def complain(self, complaint: str) -> None:
        with self._lock:
            self.complaints.append(complaint)

    def call(self, path: str, marker: str, act: Callable[[], int], refusals: type[Exception]) -> None:
        """Make one call and record it; `act` returns its place in the ledger."""
        invoked = monotonic()
        try:
            seq = act()
        except refusals:
            answer, seq = "refused", 0
        else:
            answer = "acknowledged"
        self.add(Event(path=path, marker=marker, invoked=invoked, answered=monotonic(), answer=answer, seq=seq))


def violations(
    recording: Recording, store: Store, files: Mapping[str, bytes | None], *, outside: bool = False
) -> list[str]:
    """List everything that cannot be true. `outside` says that other programs wrote as well."""
    entries = tuple(entry for entry in reversed(store.list_entries(LedgerQuery(limit=1 << 30))) if entry.ok)
    return [
        *recording.complaints,
        *_chain(entries),
        *(() if outside else _surprises(entries)),
        *(() if outside else _markers(recording.events, entries, files)),
        *_order(recording.events),
        *_stale_reads(recording, entries),
        *_heads(store, files),
        *([] if (verdict := store.verify()).ok else [f"the history is broken: {verdict}"]),
    ]


def _chain(entries: Iterable[Entry]) -> Iterator[str]:
    last = dict[str, str]()
    for entry in entries:
        for path, before, after in entry.change.transitions():
            begins = before.sha256 if before else ""
            if path in last and last[path] != begins:
                yield f"entry {entry.seq} of {path} begins with {begins[:8]}, but {last[path][:8]} was there"
            last[path] = after.sha256 if after else ""


def _surprises(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        if entry.call.operation == "external":
            yield f"entry {entry.seq} takes bytes of ours for an outside edit"


def _markers(events: Sequence[Event], entries: Sequence[Entry], files: Mapping[str, bytes | None]) -> Iterator[str]:
    added = dict[tuple[str, str], int]()
    for entry in entries:
        for line in entry.change.diff.splitlines()[2:]:
            if line.startswith("+"):
                key = (entry.change.path, line[1:])
                added[key] = added.get(key, 0) + 1
    lines = {path: (data or b"").decode().splitlines() for path, data in files.items()}
    allowed = {"acknowledged": {(1, 1)}, "refused": {(0, 0)}, "unknown": {(0, 0), (1, 1)}}
    for event in events:
        found = (lines[event.path].count(event.marker), added.get((event.path, event.marker), 0))
        if found not in allowed[event.answer]:
            yield f"{event.marker} was {event.answer}: {found[0]} times in the file, {found[1]} in the ledger"
    known = {event.marker for event in events}
    for path, rows in lines.items():
        invented = (row for row in rows if row not in known and not row.startswith("begin"))  # with that a file begins
        yield from (f"{row} in {path} was never asked for" for row in invented)


def _order(events: Sequence[Event]) -> Iterator[str]:
    told = sorted((e for e in events if e.answer == "acknowledged"), key=lambda e: e.answered)
    asked = sorted(told, key=lambda e: e.invoked)
    newest, at = 0, 0
    for event in asked:
        while at < len(told) and told[at].answered < event.invoked:
            newest, at = max(newest, told[at].seq), at + 1
        if event.seq <= newest:
            yield f"{event.marker} began after entry {newest} was acknowledged, and is entry {event.seq}"


def _stale_reads(recording: Recording, entries: Iterable[Entry]) -> Iterator[str]:
    made = {
        (path, after.sha256): entry.seq
        for entry in entries
        for path, _, after in entry.change.transitions()
        if after is not None
    }
    told = sorted((e for e in recording.events if e.answer == "acknowledged"), key=lambda e: e.answered)
    newest, at = dict[str, int](), 0
    for reading in sorted(recording.readings, key=lambda one: one.invoked):
        while at < len(told) and told[at].answered < reading.invoked:
            newest[told[at].path], at = max(newest.get(told[at].path, 0), told[at].seq), at + 1
        shown, known = made.get((reading.path, reading.sha256)), newest.get(reading.path, 0)
        if shown is not None and shown < known:  # one that no entry made yet is on its way
            yield f"{reading.path} was read after entry {known} was acknowledged, and showed entry {shown}"


def _heads(store: Store, files: Mapping[str, bytes | None]) -> Iterator[str]:
    for path, data in files.items():
        head = store.head_of(path)
        known = head.version.sha256 if head and head.version else ""
        if head and known != (sha256_hex(data) if data is not None else ""):
            yield f"{path} is not the version {known[:8]} that the ledger knew last"
