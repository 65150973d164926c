"""Who wrote a file, and whether that was always the same, as a session that was shown it may know."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from surehold.stores.base import Change, Entry, Head, LedgerQuery, PathRecord, Sighting, Store, WriterSpan
from surehold.text.plan import Span, splice_spans
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import ABSENT, Snapshot, Version, sha256_hex
from surehold.workspace.access.seen_lines import KnownFile, sighting_after_write
from workspaces import call

OLD, NEW, NOW = b"old\n", b"new\n", b"now\n"


def version(data: bytes) -> Version:
    return Version(sha256=sha256_hex(data), size=len(data))


def seen(data: bytes, *, seq: int = 0, session: str = "s") -> Sighting:
    sha256 = sha256_hex(data) if data else ""
    return Sighting(session=session, path="a", sha256=sha256, spans=((1, 1),), whole=True, seq=seq)


def head(data: bytes, writer: str = "edit") -> Head:
    return Head(path="a", version=version(data) if data else None, writer=writer, seq=9, timestamp="")


@dataclass
class Ledger:
    """A store of which nothing but the entries and the writers of one path is asked."""

    outside: tuple[tuple[bytes, bytes], ...] = ()
    """What outside edits replaced, and what they left."""
    writers: tuple[WriterSpan, ...] = ()

    def list_writers(self, key: str) -> tuple[WriterSpan, ...]:
        assert key == "a"
        return self.writers

    def list_entries(self, query: LedgerQuery) -> tuple[Entry, ...]:
        assert (query.path, query.operation, query.ok_only) == ("a", "external", True)
        changes = (
            Change(path="a", before=version(one) if one else None, after=version(other) if other else None)
            for one, other in self.outside
        )
        return tuple(Entry(change_id="x", timestamp="", call=call("external"), change=one) for one in changes)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is known of a file that holds NOW, and what follows from that."""

    head: Head | None = None
    seen: tuple[Sighting, ...] = ()
    ledger: Ledger | None = None
    last: str
    writers: tuple[str, ...] = ()
    is_mixed: bool = False


def spans(**names: tuple[int, int]) -> tuple[WriterSpan, ...]:
    return tuple(WriterSpan(writer=name, first_seq=one, last_seq=last) for name, (one, last) in names.items())


CASES = {
    "nothing is known": Case(last=""),
    "it was shown, and never written": Case(seen=(seen(NOW),), last=""),
    "it was shown before an outside edit": Case(
        seen=(seen(OLD),), last="external", writers=("external",), is_mixed=True
    ),
    "it was shown again after one": Case(seen=(seen(NOW), seen(OLD)), last=""),
    "edit wrote it": Case(head=head(NOW), ledger=Ledger(writers=spans(edit=(1, 9))), last="edit", writers=("edit",)),
    "another tool wrote it": Case(
        head=head(NOW, "Write"),
        ledger=Ledger(writers=spans(edit=(1, 1), Write=(2, 9))),
        last="Write",
        writers=("edit", "Write"),
        is_mixed=True,
    ),
    "another tool wrote it before it was shown": Case(
        head=head(NOW),
        seen=(seen(NOW, seq=2),),
        ledger=Ledger(writers=spans(Write=(1, 2), edit=(3, 9))),
        last="edit",
        writers=("Write", "edit"),
    ),
    "another tool wrote it after it was shown first": Case(
        head=head(NOW),
        seen=(seen(NOW, seq=5), seen(OLD, seq=2)),
        ledger=Ledger(writers=spans(Write=(3, 3), edit=(4, 9))),
        last="edit",
        writers=("Write", "edit"),
        is_mixed=True,
    ),
    "an outside edit that is not recorded": Case(
        head=head(OLD),
        seen=(seen(OLD, seq=1),),
        ledger=Ledger(writers=spans(edit=(1, 9))),
        last="external",
        writers=("edit", "external"),
        is_mixed=True,
    ),
    "what an outside edit left was shown first": Case(
        head=head(OLD),
        seen=(seen(NOW, seq=1),),
        ledger=Ledger(writers=spans(edit=(1, 9))),
        last="external",
        writers=("edit", "external"),
    ),
    "a recorded outside edit of what was shown": Case(
        head=head(NOW, "external"),
        seen=(seen(OLD, seq=1),),
        ledger=Ledger(writers=spans(external=(2, 2)), outside=((OLD, NOW),)),
        last="external",
        writers=("external",),
        is_mixed=True,
    ),
    "one that came before the first look and was recorded later": Case(
        head=head(NOW, "external"),
        seen=(seen(NOW, seq=1),),
        ledger=Ledger(writers=spans(external=(2, 2)), outside=((OLD, NOW),)),
        last="external",
        writers=("external",),
    ),
    "one that brought back what was shown": Case(
        head=head(NOW, "external"),
        seen=(seen(NOW, seq=1), seen(OLD, seq=1)),
        ledger=Ledger(writers=spans(external=(2, 2)), outside=((OLD, NOW),)),
        last="external",
        writers=("external",),
        is_mixed=True,
    ),
    "one that deleted it after it was shown absent": Case(
        head=head(NOW, "external"),
        seen=(seen(NOW, seq=1), seen(b"", seq=1)),
        ledger=Ledger(writers=spans(external=(2, 2)), outside=((b"", NOW),)),
        last="external",
        writers=("external",),
        is_mixed=True,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_who_wrote_a_file_and_whether_that_was_always_the_same(case: Case) -> None:
    record = PathRecord(key="a", head=case.head, sightings=case.seen)
    file = KnownFile(record, Snapshot(NOW), store=cast("Store", case.ledger), session="s")

    assert (file.last_writer, file.writers) == (case.last, case.writers)
    assert file.baseline_continuity == ("mixed" if case.is_mixed else "clean")


def test_writers_that_are_known_already_are_not_asked_for() -> None:
    record = PathRecord(key="a", head=head(NOW), writers=spans(edit=(1, 9), Write=(2, 2)))
    assert KnownFile(record, Snapshot(NOW), store=cast("Store", object())).writers == ("edit", "Write")


def after_write(before: bytes | None, plan_spans: list[Span], known: Sighting | None) -> Any:
    plan = splice_spans(Snapshot(before) if before is not None else ABSENT, plan_spans)
    found = sighting_after_write(plan, session="s", key="a", known=known)
    return found and (found.spans, found.whole)


PART = Sighting(session="s", path="a", sha256=sha256_hex(b"1\n2\n3\n4\n"), spans=((2, 3),))


@pytest.mark.parametrize(
    ("span", "known", "expected"),
    [
        (Span(2, 4, b"two\n"), PART, (((2, 3),), False)),
        (Span(2, 4, b""), PART, (((2, 2),), False)),
        (Span(0, 0, b"0\n"), PART, (((1, 1), (3, 4)), False)),
        (Span(0, 8, b"all\n"), PART, (((1, 1),), True)),
        (Span(0, 8, b""), PART, ((), True)),
        (Span(0, 8, b""), None, ((), True)),
        (Span(6, 8, b"4"), None, (((4, 4),), False)),
    ],
    ids=["a line", "a line goes", "one comes above", "everything", "nothing is left", "unseen", "the end"],
)
def test_what_was_seen_of_a_file_is_carried_over_an_edit(span: Span, known: Sighting | None, expected: Any) -> None:
    assert after_write(b"1\n2\n3\n4\n", [span], known) == expected


def test_neighbours_that_go_one_by_one_leave_no_line_between_them() -> None:
    both = Sighting(session="s", path="a", sha256=PART.sha256, spans=((1, 2),))
    assert after_write(b"1\n2\n3\n4\n", [Span(0, 2, b""), Span(2, 4, b"")], both) == ((), False)


def test_what_is_not_there_was_seen_whole() -> None:
    file = KnownFile(PathRecord(key="a"), ABSENT, session="s")
    assert file.sighting_of(()) == Sighting(session="s", path="a", sha256="", spans=(), whole=True)
    assert not KnownFile(PathRecord(key="a"), Snapshot(NOW), session="s").sighting_of(()).whole


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"\0\1\n", b"\0\2\n", ((), False)),
        (b"\0\1\n", b"", ((), True)),
        (None, b"\0\1\n", ((), True)),
        (b"1\n", b"\0\1\n", ((), False)),
        (b"\0\1\n", b"1\n", ((), False)),
    ],
    ids=["changed", "emptied", "new", "no text any more", "text by now"],
)
def test_of_a_file_that_is_no_text_no_lines_are_seen(before: bytes | None, after: bytes, expected: Any) -> None:
    plan = WriteBytes(after).plan(Snapshot(before) if before is not None else ABSENT)
    found = sighting_after_write(plan, session="s", key="a", known=None)
    assert found is not None
    assert (found.spans, found.whole) == expected


def test_a_mark_alone_shows_nothing() -> None:
    assert after_write(b"\xef\xbb\xbf1\n2\n", [Span(3, 7, b"")], PART) == ((), False)
