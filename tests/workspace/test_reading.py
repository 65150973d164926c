from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from doubles.memory_store import MemoryStore
from spec.marks import requirement
from surehold.stores.base import Blob, PathRecord, Sighting, Store
from surehold.stores.conversations import SessionRow
from surehold.stores.ledger_entries import utc_now
from surehold.text.snapshot import Snapshot, merge_ranges
from surehold.workspace.access.read_gate import find_in_earlier_version
from surehold.workspace.access.seen_lines import KnownFile, clip_spans, subtract_spans

_LINES = st.sets(st.integers(1, 30))


def spans_of(lines: Iterable[int]) -> tuple[tuple[int, int], ...]:
    return merge_ranges([(line, line) for line in lines])


def lines_of(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {line for first, last in spans for line in range(first, last + 1)}


@given(_LINES, _LINES)
def test_what_is_lacking_is_what_is_wanted_and_not_known(wanted: set[int], known: set[int]) -> None:
    assert lines_of(subtract_spans(spans_of(wanted), spans_of(known))) == wanted - known


@given(_LINES, st.integers(1, 30), st.integers(1, 30))
def test_what_lies_within_is_cut_at_both_ends(known: set[int], first: int, last: int) -> None:
    assert lines_of(clip_spans(spans_of(known), first, last)) == {line for line in known if first <= line <= last}


def seen_by(store: Store, *versions: tuple[bytes, set[int]]) -> tuple[Sighting, ...]:
    """Show lines of versions to a session, one after the other."""
    store.open_session(SessionRow(id="s", agent="", opened="now"))
    for data, lines in versions:
        version = Snapshot(data)
        sighting = Sighting(session="s", path="file", sha256=version.sha256, spans=spans_of(lines))
        store.record_sightings([sighting], [Blob(data=data, sha256=version.sha256)])
    return store.list_sightings("s", "file")


def known_file(store: Store, data: bytes, seen: tuple[Sighting, ...]) -> KnownFile:
    return KnownFile(PathRecord(key="file", sightings=seen), Snapshot(data), store=store, session="s")


_ROWS = st.lists(st.sampled_from([b"one\n", b"two\n", b"three\n", b"four\n"]), min_size=1, max_size=12)


@requirement("claude:gate:stale")
@given(_ROWS, _ROWS, st.data())
def test_a_line_is_known_only_if_an_equal_one_was_shown(
    old: list[bytes], new: list[bytes], data: st.DataObject
) -> None:
    shown = data.draw(st.sets(st.integers(1, len(old))))
    store = MemoryStore(clock=utc_now)
    known = known_file(store, b"".join(new), seen_by(store, (b"".join(old), shown)))

    texts = {old[line - 1] for line in shown}

    assert all(new[line - 1] in texts for line in lines_of(known.known))
    if old == new:
        assert lines_of(known.known) == shown


@requirement("claude:gate:adds_up")
def test_what_was_shown_of_several_versions_adds_up() -> None:
    store = MemoryStore(clock=utc_now)
    seen = seen_by(store, (b"a\nb\nc\nd\n", {1, 2}), (b"a\nb\nc\nX\nd\n", {3}))

    known = known_file(store, b"new\na\nb\nc\nd\n", seen)

    assert known.known == ((2, 4),)
    assert known.shown is None
    assert not known.is_fully_known


def test_lines_are_relocated_only_where_that_is_proven() -> None:
    base, current = Snapshot(b"a {\n}\nb {\n}\n"), Snapshot(b"b {\n}\n")

    assert find_in_earlier_version(((1, 1),), current, base) == ((3, 3),)
    assert find_in_earlier_version(((1, 1),), Snapshot(b"c {\n}\n"), base) == ()
