"""How sightings are merged and forgotten, and what waits in the buffer, one rule after the other."""

# What waits is inside the buffer.
# pyright: reportPrivateUsage=false

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from stores.scenes import blob, sha
from surehold.errors import StateUnavailable
from surehold.stores import sightings as module
from surehold.stores.base import Blob, Sighting
from surehold.stores.sightings import (
    VERSIONS_PER_PATH,
    ShownSighting,
    SightingBuffer,
    StoredSightings,
    merge_sightings,
    must_be_written_at_once,
    rows_to_forget,
    sighting_from_row,
    versions_to_forget,
    with_later_sightings,
)


def seen(name: str, *spans: tuple[int, int], path: str = "a", **more: Any) -> Sighting:
    return Sighting(session="s", path=path, sha256=name, spans=spans, **more)


ANCHORED = seen("1", (1, 5), anchored=((1, 5),))


@pytest.mark.parametrize(
    ("known", "shown", "merged"),
    [
        (None, seen("1", (3, 4)), seen("1", (3, 4), seq=9)),
        (None, seen("1", (3, 4), (1, 2), whole=True), seen("1", (1, 4), whole=True, seq=9)),
        (seen("1", (1, 2), seq=4), seen("1", (5, 6)), seen("1", (1, 2), (5, 6), seq=4)),
        (seen("1", (1, 2), whole=True), seen("1", (2, 3)), seen("1", (1, 3), whole=True)),
        (seen("1", (1, 2)), seen("1", (2, 3), whole=True), seen("1", (1, 3), whole=True)),
        (ANCHORED, seen("1", (6, 6), anchored=((6, 6),)), seen("1", (1, 6), anchored=((1, 6),))),
        (None, ANCHORED, replace(ANCHORED, seq=9)),
    ],
)
def test_what_was_shown_of_one_version_is_one_and_has_its_first_entry(
    known: Sighting | None, shown: Sighting, merged: Sighting
) -> None:
    assert merge_sightings(known, shown, seq=9) == merged


OTHER = seen("2", (1, 5), anchored=((1, 5),))


@pytest.mark.parametrize(
    ("shown", "known", "at_once"),
    [
        (ANCHORED, [], False),
        (ANCHORED, [ANCHORED], False),
        (ANCHORED, [OTHER], True),
        (seen("1", (1, 5)), [OTHER], False),
        (ANCHORED, [ANCHORED, OTHER], False),
        (replace(ANCHORED, anchored=((1, 6),)), [ANCHORED, OTHER], True),
        (replace(ANCHORED, spans=((1, 6),)), [ANCHORED, OTHER], True),
        (replace(ANCHORED, spans=((2, 3),)), [ANCHORED, OTHER], False),
        (ANCHORED, [OTHER, ANCHORED], True),
    ],
)
def test_anchors_that_could_be_taken_for_those_of_another_version_are_written_at_once(
    shown: Sighting, known: Sequence[Sighting], *, at_once: bool
) -> None:
    assert must_be_written_at_once(shown, known) is at_once


def names(found: Sequence[Sighting]) -> list[str]:
    return [one.sha256 for one in found]


def test_later_sightings_come_first_and_are_merged_with_those_before() -> None:
    stored = (seen("2", (1, 1), seq=3), seen("1", (1, 1), seq=4))
    assert with_later_sightings(stored, ()) is stored
    later = (seen("1", (2, 2), seq=8), seen("3", (1, 1), seq=9))
    assert with_later_sightings(stored, later) == (
        seen("3", (1, 1), seq=3),
        seen("1", (1, 2), seq=4),
        seen("2", (1, 1), seq=3),
    )
    assert with_later_sightings((), later) == (seen("3", (1, 1), seq=8), seen("1", (2, 2), seq=8))
    assert with_later_sightings((), later[:1])[0] is later[0]


@pytest.mark.parametrize("best", [0, 4, VERSIONS_PER_PATH - 1, VERSIONS_PER_PATH, VERSIONS_PER_PATH + 1])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "most lines"])
def test_the_oldest_versions_are_forgotten_but_the_one_that_was_seen_best(best: int, *, whole: bool) -> None:
    many = [seen(str(number), (1, 2), (5, 6)) for number in range(VERSIONS_PER_PATH + 2)]
    many[best] = replace(many[best], whole=True) if whole else replace(many[best], spans=((1, 2), (5, 7)))
    oldest = [str(VERSIONS_PER_PATH), str(VERSIONS_PER_PATH + 1)]
    expected = [name for name in oldest if name != str(best)]
    assert versions_to_forget(many) == expected
    rows = [(one.sha256, module.ranges_to_text(one.spans), int(one.whole), "[]", 0) for one in many]
    assert rows_to_forget(rows) == expected
    assert (versions_to_forget([]), rows_to_forget([])) == ([], [])
    assert versions_to_forget(many[:VERSIONS_PER_PATH]) == rows_to_forget(rows[:VERSIONS_PER_PATH]) == []
    later = with_later_sightings((), list(reversed(many)))
    assert len(later) == len(many) - len(expected)


def test_a_row_is_the_sighting_that_it_was_made_of_and_is_read_when_it_is_asked_for() -> None:
    one = seen("1", (1, 2), (4, 5), whole=True, anchored=((4, 4),), seq=7)
    row = ("1", module.ranges_to_text(one.spans), 1, module.ranges_to_text(one.anchored), 7)
    assert sighting_from_row("s", "a", row) == one
    stored = StoredSightings("s", "a", [row, ("2", "not read", 0, "[]", 8)])
    assert (len(stored), stored[0], next(iter(stored)), next(iter(stored))) == (2, one, one, one)
    assert next(iter(stored)) is next(iter(stored))
    both = StoredSightings("s", "a", [row, ("2", "[]", 0, "[]", 8)])
    assert both[:1] == (one,)
    assert (list(both), both[1]) == ([one, seen("2", seq=8)], seen("2", seq=8))
    assert list(both) == [one, seen("2", seq=8)]


# The buffer


class Buffered:
    """A buffer, what it wrote, and what fails."""

    def __init__(self) -> None:
        self.written = list[tuple[list[str], list[str]]]()
        self.fails = False
        self.buffer = SightingBuffer(self._write)
        self.buffer._has_thread = lambda: True  # type: ignore[method-assign] - nothing is written by itself

    def _write(self, sightings: Sequence[ShownSighting], blobs: Sequence[Blob]) -> None:
        if self.fails:
            raise StateUnavailable("away")
        self.written.append((shown(sightings), [one.data.decode() for one in blobs]))

    def add(self, *new: Sighting, blobs: Sequence[Blob] = (), at_once: bool = False) -> None:
        self.buffer.add([(one, "now") for one in new], blobs, at_once=at_once)

    def waiting(self, path: str = "a") -> list[str]:
        return names(self.buffer.sightings_of("s", path))


def shown(sightings: Sequence[ShownSighting] | None) -> list[str]:
    return [f"{one.path}{one.sha256}" for one, _ in sightings or ()]


def fail_with(rows: Sequence[ShownSighting] | None, expected: list[str]) -> None:
    """Fail as a transaction that got these sightings."""
    assert shown(rows) == expected
    raise StateUnavailable("away")


@pytest.fixture
def made() -> Iterator[Buffered]:
    made = Buffered()
    yield made
    made.fails = False
    made.buffer.close()


def test_what_waits_is_known_in_its_order_and_written_once(made: Buffered) -> None:
    made.add(seen("1", (1, 1), seq=4), seen("2", seq=5), blobs=[blob(b"x")])
    made.add(seen("1", (2, 2), seq=6), seen("3", path="b"))
    assert (made.waiting(), made.waiting("b"), made.waiting("c")) == (["2", "1"], ["3"], [])
    assert made.buffer.sightings_of("s", "a")[1] == seen("1", (1, 2), seq=4)
    assert (made.buffer.find_blob(sha(b"x")), made.buffer.find_blob(sha(b"y"))) == (b"x", None)
    assert made.written == []
    made.buffer.flush()
    made.buffer.flush()
    assert made.written == [(["a2", "a1", "b3"], ["x"])]
    assert (made.waiting(), made.buffer.find_blob(sha(b"x"))) == ([], None)


def test_what_is_due_at_once_is_written_at_once_and_an_error_is_for_later(made: Buffered) -> None:
    made.add(seen("1"), at_once=True)
    assert made.written == [(["a1"], [])]
    made.fails = True
    made.add(seen("2"), at_once=True)
    assert (len(made.written), made.waiting()) == (1, ["2"])
    with pytest.raises(StateUnavailable):
        made.buffer.flush()
    made.fails = False
    made.buffer.flush()
    assert made.written[1:] == [(["a2"], [])]


def test_what_failed_comes_before_what_was_shown_since(made: Buffered) -> None:
    made.fails = True
    made.add(seen("1", (1, 1)), blobs=[blob(b"x")])
    with pytest.raises(StateUnavailable):
        made.buffer.flush()
    made.add(seen("1", (2, 2)), seen("2"))
    with pytest.raises(StateUnavailable):
        made.buffer.flush()
    assert (made.waiting(), made.buffer.find_blob(sha(b"x"))) == (["1", "2"], b"x")
    made.fails = False
    made.buffer.flush()
    assert made.written == [(["a1", "a2"], ["x"])]
    assert made.buffer._count == made.buffer._bytes == 0


def test_a_buffer_that_is_full_writes_and_one_that_cannot_forgets(
    made: Buffered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_WAITING", 2)
    monkeypatch.setattr(module, "_MAX_WAITING_BYTES", 4)
    made.add(seen("1"), seen("2"))
    made.add(seen("2"), blobs=[blob(b"1234")])
    made.add(blobs=[blob(b"1234")])
    assert made.written == []
    made.add(seen("3"))
    assert made.written == [(["a1", "a2", "a3"], ["1234"])]
    made.add(blobs=[blob(b"12345")])
    assert made.written[1:] == [([], ["12345"])]
    made.fails = True
    made.add(seen("1"), seen("2"), blobs=[blob(b"1234")])
    with pytest.raises(StateUnavailable):
        made.buffer.flush()
    assert made.waiting() == ["1", "2"]
    with pytest.raises(StateUnavailable):
        made.add(seen("3"))
    assert (made.waiting(), made.buffer.find_blob(sha(b"1234"))) == ([], None)
    with pytest.raises(StateUnavailable):
        made.add(blobs=[blob(b"12345")])
    assert made.buffer.find_blob(sha(b"12345")) is None
    assert made.buffer._count == made.buffer._bytes == 0


def test_bytes_that_were_stored_on_another_way_do_not_wait(made: Buffered) -> None:
    made.add(blobs=[blob(b"1234"), blob(b"56")])
    made.buffer.drop_blobs([sha(b"1234"), sha(b"other")])
    assert (made.buffer.find_blob(sha(b"1234")), made.buffer._bytes) == (None, 2)
    made.buffer.flush()
    assert made.written == [([], ["56"])]


def test_bytes_that_came_again_while_they_were_written_are_written_again(made: Buffered) -> None:
    write = made.buffer._write

    def write_and_add(sightings: Sequence[ShownSighting], blobs: Sequence[Blob]) -> None:
        made.buffer._write = write
        write(sightings, blobs)
        assert made.waiting() == ["1"], "what is being written is known"
        made.add(seen("2"), blobs=[blob(b"x")])

    made.buffer._write = write_and_add
    made.add(seen("1"), blobs=[blob(b"x"), blob(b"y")])
    made.buffer.flush()
    assert (made.waiting(), made.buffer.find_blob(sha(b"x")), made.buffer.find_blob(sha(b"y"))) == (["2"], b"x", None)


def test_a_transaction_takes_what_waits_unless_it_fails(made: Buffered) -> None:
    made.add(seen("1"), seen("2"))
    with made.buffer.lend() as rows:
        assert (shown(rows), made.waiting()) == (["a1", "a2"], ["1", "2"])
        with made.buffer.lend() as more:
            assert more is None
        made.add(seen("3"))
    assert (made.waiting(), made.written, made.buffer._count) == (["3"], [], 1)
    with pytest.raises(StateUnavailable), made.buffer.lend() as rows:
        fail_with(rows, ["a3"])
    assert (made.waiting(), made.buffer._count) == (["3"], 1)
    made.add(blobs=[blob(b"x")])
    with made.buffer.lend() as rows:
        assert rows is None
    assert made.waiting() == ["3"]
    made.buffer.flush()
    assert made.written == [(["a3"], ["x"])]


def test_a_transaction_takes_what_waits_of_its_paths_alone(made: Buffered) -> None:
    made.add(seen("1"), seen("2", path="b"), seen("3", path="c"), blobs=[Blob(data=b"x", sha256="3")])
    with made.buffer.lend_places([("s", "a"), ("s", "none")]) as rows:
        assert (shown(rows), made.waiting(), made.waiting("b")) == (["a1"], ["1"], ["2"])
        with made.buffer.lend_places([("s", "a")]) as more:
            assert more is None
        with made.buffer.lend_places([("s", "b")]) as more:
            assert shown(more) == ["b2"]
        assert made.waiting() == ["1"], "it is still under way"
        assert made.buffer._count == 1
    assert (made.waiting(), made.waiting("b")) == ([], [])
    with made.buffer.lend_places([("s", "c")]) as rows:
        assert rows is None, "its bytes wait too"
    made.add(seen("4"))
    with pytest.raises(StateUnavailable), made.buffer.lend_places([("s", "a")]) as rows:
        fail_with(rows, ["a4"])
    assert (made.waiting(), made.buffer._count) == (["4"], 2)
    made.buffer.flush()
    assert made.written == [(["c3", "a4"], ["x"])]


def test_a_closed_buffer_waits_for_nothing_and_not_long(made: Buffered) -> None:
    made.add(seen("1"))
    assert (made.buffer.patience, made.buffer.flush_when_due()) == (None, True)
    made.buffer._due.set()
    assert made.buffer.flush_when_due()
    assert not made.buffer._due.is_set()
    made.add(seen("2"))
    made.buffer.close()
    assert (made.written, made.buffer._due.is_set()) == ([(["a1"], []), (["a2"], [])], True)
    made.add(seen("3"))
    assert made.written[2:] == [(["a3"], [])]
    assert (made.buffer.patience, made.buffer.flush_when_due()) == (module._LAST_WRITE_SECONDS, False)


def test_what_cannot_be_written_keeps_neither_the_thread_nor_the_end(made: Buffered) -> None:
    made.fails = True
    made.add(seen("1"))
    assert made.buffer.flush_when_due()
    made.buffer.close()
    assert made.waiting() == ["1"]


def test_what_is_shown_while_a_write_fails_comes_after_what_failed(made: Buffered) -> None:
    def add_and_fail(_: Sequence[ShownSighting], __: Sequence[Blob]) -> None:
        made.add(seen("2"), seen("1", (2, 2)), blobs=[blob(b"x")])
        raise StateUnavailable("away")

    write, made.buffer._write = made.buffer._write, add_and_fail
    made.add(seen("3"), seen("1", (1, 1)))
    with pytest.raises(StateUnavailable):
        made.buffer.flush()
    assert (made.waiting(), made.buffer._count, made.buffer._bytes) == (["3", "2", "1"], 3, 1)
    assert made.buffer.sightings_of("s", "a")[2].spans == ((1, 2),)
    made.buffer._write = write


def test_the_child_of_a_fork_forgets_what_its_parent_writes(made: Buffered) -> None:
    made.add(seen("1"), blobs=[blob(b"x")])
    made.buffer.forget()
    assert (made.waiting(), made.buffer.find_blob(sha(b"x")), made.buffer._count, made.buffer._bytes) == (
        [],
        None,
        0,
        0,
    )
