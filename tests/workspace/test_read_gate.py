"""What a session must have seen of a file before it changes it."""

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from surehold.errors import BinaryFile, NotFound, StaleFile, SureholdError
from surehold.stores.base import Call, Change, Entry, LedgerQuery, PathRecord, Sighting, Store
from surehold.text.quoted.styled_edit import StyledEdit
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import ABSENT, LineRanges, Snapshot, Version, sha256_hex
from surehold.workspace.access import read_gate
from surehold.workspace.access.read_gate import Needs, ReadGate
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.settings import ReadGateSettings

NOW, OLD, OTHER = b"1\n2\n3\n4\n", b"0\n2\n3\n4\n", b"1\n9\n3\n4\n"
EDIT = StyledEdit(old="2", new="two")


@dataclass(frozen=True)
class Ledger:
    """A store with the newest change of one path."""

    session: str = "s"
    left: bytes | None = OLD

    def read_blob(self, sha256: str) -> bytes:
        return {sha256_hex(data): data for data in (NOW, OLD, OTHER)}[sha256]

    def list_entries(self, query: LedgerQuery) -> tuple[Entry, ...]:
        assert (query.path, query.ok_only, query.limit) == ("a", True, 1)
        after = None if self.left is None else Version(sha256=sha256_hex(self.left), size=0)
        before = Version(sha256=sha256_hex(NOW), size=0)
        call = Call(tool="edit", operation="edit", writer="edit", session=self.session)
        return (Entry(change_id="c", timestamp="", call=call, change=Change(path="a", before=before, after=after)),)


class Kept(Ledger):
    """A store with one version, which another session changed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(session="t")
        object.__setattr__(self, "left", data)

    def read_blob(self, sha256: str) -> bytes:
        assert self.left is not None
        return {sha256_hex(self.left): self.left}[sha256]


class Unkept(Ledger):
    """A store that has none of the versions that were shown."""

    def read_blob(self, sha256: str) -> bytes:
        raise NotFound(f"{sha256} is not kept.")


def seen(data: bytes | None, *spans: tuple[int, int], whole: bool = False) -> Sighting:
    return Sighting(session="s", path="a", sha256=sha256_hex(data) if data else "", spans=spans, whole=whole)


STRICT, OURS = ReadGateSettings(), Ledger()


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the session was shown of a file, what it wants to do, and what comes of that."""

    seen: tuple[Sighting, ...] = ()
    current: bytes | None = NOW
    edit: Any = EDIT
    needs: Needs = "lines"
    ledger: Ledger = OURS
    refused: str = ""
    warned: bool = False
    settings: ReadGateSettings = STRICT


ALL = seen(NOW, whole=True)
SAME = WriteText(NOW.decode())
CASES = {
    "nothing was shown": Case(refused="not_read"),
    "all was shown": Case(seen=(ALL,)),
    "the line was shown": Case(seen=(seen(NOW, (2, 2)),)),
    "another line was shown": Case(seen=(seen(NOW, (1, 1), (3, 4)),), refused="partially_read"),
    "it was shown in a version where it is the same": Case(seen=(seen(NOW, (1, 1)), seen(OLD, (2, 2)))),
    "it was shown in a version where it was another": Case(
        seen=(seen(NOW, (1, 1)), seen(OTHER, (2, 2))), refused="partially_read"
    ),
    "the version is enough": Case(needs="version", seen=(seen(NOW, (1, 1)),)),
    "nothing is asked": Case(settings=ReadGateSettings(require_read="off")),
    "an exact match is enough": Case(settings=ReadGateSettings(require_read="matched")),
    "two matches are not": Case(
        settings=ReadGateSettings(require_read="matched"),
        edit=StyledEdit(old="\n", new=" ", replace_all=True),
        refused="not_read",
    ),
    "a match is not enough for a whole file": Case(
        settings=ReadGateSettings(require_read="matched"), needs="whole", edit=WriteText("x"), refused="not_read"
    ),
    "a whole file that was not shown": Case(needs="whole", edit=WriteText("x"), refused="not_read"),
    "a whole file that was shown in part": Case(
        needs="whole", edit=WriteText("x"), seen=(seen(NOW, (1, 3)),), refused="partially_read"
    ),
    "a whole file that was shown": Case(needs="whole", edit=WriteText("x"), seen=(seen(NOW, (1, 4)),)),
    "the content that is there already": Case(needs="whole", edit=SAME),
    "the same of a file that was shown in part": Case(needs="whole", edit=SAME, seen=(seen(NOW, (1, 1)),)),
    "the same of a file that changed": Case(needs="whole", edit=SAME, seen=(seen(OTHER, whole=True),)),
    "it changed since": Case(seen=(seen(OTHER, whole=True),), ledger=Ledger(session="t"), refused="changed_since"),
    "it changed elsewhere since our own change": Case(seen=(seen(OLD, whole=True),), warned=True),
    "since the change of another session": Case(
        seen=(seen(OLD, whole=True),), ledger=Ledger(session="t"), refused="changed_since"
    ),
    "since a change of ours that is not the newest": Case(
        seen=(seen(OLD, whole=True),), ledger=Ledger(left=OTHER), refused="changed_since"
    ),
    "elsewhere, whoever changed it": Case(
        seen=(seen(OLD, whole=True),),
        ledger=Ledger(session="t"),
        settings=ReadGateSettings(on_stale="rebase"),
        warned=True,
    ),
    "in the line of the edit": Case(
        seen=(seen(OTHER, whole=True),), settings=ReadGateSettings(on_stale="rebase"), refused="changed_since"
    ),
    "elsewhere, and the line was not shown": Case(seen=(seen(OLD, (3, 4)),), refused="changed_since"),
    "elsewhere, and all is to be written": Case(
        seen=(seen(OLD, whole=True),), needs="whole", edit=WriteText("x"), refused="changed_since"
    ),
    "it is gone": Case(current=None, seen=(ALL,), refused="not_found"),
    "it is gone and is to be made": Case(
        current=None, seen=(ALL,), needs="whole", edit=WriteText("x"), refused="deleted"
    ),
    "we removed it": Case(current=None, seen=(ALL,), needs="whole", edit=WriteText("x"), ledger=Ledger(left=None)),
    "another session removed it": Case(
        current=None,
        seen=(ALL,),
        needs="whole",
        edit=WriteText("x"),
        ledger=Ledger(session="t", left=None),
        refused="deleted",
    ),
    "it is gone, and was never shown": Case(current=None, needs="whole", edit=WriteText("x")),
    "it was shown absent": Case(current=None, seen=(seen(None),), needs="whole", edit=WriteText("x")),
    "it is gone, and nothing is asked": Case(
        current=None, seen=(ALL,), needs="whole", edit=WriteText("x"), settings=ReadGateSettings(require_read="off")
    ),
    "it is no text": Case(current=b"\0\1", seen=(seen(b"\0\1", whole=True),), refused="binary_file"),
}


def try_gate(case: Case) -> tuple[str, ...]:
    current = ABSENT if case.current is None else Snapshot(case.current)
    record = PathRecord(key="a", sightings=case.seen)
    gate = ReadGate(case.edit, needs=case.needs, settings=case.settings)
    gate.check(KnownFile(record, current, store=cast("Store", case.ledger), session="s"))
    return gate(case.edit.plan(current))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_change_needs_what_it_touches_to_have_been_shown(case: Case) -> None:
    if not case.refused:
        assert bool(try_gate(case)) is case.warned
        return
    with pytest.raises(SureholdError) as refused:
        try_gate(case)
    assert refused.value.path == "a"
    match case.refused:
        case "not_found":
            assert isinstance(refused.value, NotFound)
        case "binary_file":
            assert isinstance(refused.value, BinaryFile)
        case reason:
            assert isinstance(refused.value, StaleFile)
            assert refused.value.reason == reason


def test_a_gate_that_was_not_asked_for_proof_says_nothing() -> None:
    assert ReadGate(EDIT, needs="lines", settings=STRICT)(EDIT.plan(Snapshot(NOW))) == ()


@pytest.mark.parametrize(
    ("unseen", "words"),
    [
        ((), "read the file again"),
        (((3, 3),), "Read with offset=3, limit=1"),
        (((3, 5), (9, 9)), "Read with offset=3, limit=3 (unseen are 3-5, 9)"),
        (
            tuple((line, line) for line in range(1, 18, 2)),
            "Read with offset=1, limit=17 (unseen are 1, 3, 5, 7, 9, 11, 13, 15 and more)",
        ),
        (
            (*((line, line) for line in range(1, 18, 2)), (2000, 2000), (2001, 2001)),
            "Read with offset=1, limit=2000 (unseen are 1, 3, 5, 7, 9, 11, 13, 15 and more)",
        ),
    ],
    ids=["none", "one line", "two ranges", "many", "more than a page"],
)
def test_what_to_read_first_is_one_call(unseen: LineRanges, words: str) -> None:
    assert read_gate._read_call(unseen) == words  # pyright: ignore[reportPrivateUsage]


def test_a_refusal_names_and_shows_the_lines_that_were_not_seen() -> None:
    with pytest.raises(StaleFile) as refused:
        try_gate(Case(seen=(seen(NOW, (1, 1)),)))
    error = refused.value
    assert error.message == "The edit touches lines of `a` that were not shown in this session: 2."
    assert error.action == "Look at `lines`; if they are to change, send the same edit again."
    assert error.details == {"unseen_lines": ["2"], "lines": "2→2", "sha256": sha256_hex(NOW)}
    assert error.shown == ((1, 2),)

    with pytest.raises(StaleFile) as refused:
        try_gate(Case(needs="whole", edit=WriteText("x"), seen=(seen(NOW, (1, 1), (3, 3)),)))
    error = refused.value
    assert error.message == "`a` would be overwritten, and lines of it were not shown in this session: 2, 4."
    assert error.action.startswith("First Read with offset=2, limit=1 (unseen are 2, 4), then write;")
    assert error.details == {"unseen_lines": ["2", "4"], "sha256": sha256_hex(NOW)}


def test_a_refusal_of_a_file_that_changed_shows_the_difference() -> None:
    with pytest.raises(StaleFile) as refused:
        try_gate(Case(seen=(seen(OTHER, whole=True),), ledger=Ledger(session="t")))
    error = refused.value
    assert error.action == "Look at `changes_since`; if the change is still right, send it again."
    assert (error.details["expected_sha256"], error.details["sha256"]) == (sha256_hex(OTHER), sha256_hex(NOW))
    assert error.details["changes_since_truncated"] is False
    assert error.shown == ((1, 4),)

    with pytest.raises(StaleFile) as refused:
        try_gate(Case(seen=(seen(b"not kept", whole=True),), ledger=Unkept()))
    assert refused.value.action == "Read it again, then make the change."
    assert "changes_since" not in refused.value.details


@pytest.mark.parametrize(
    ("needs", "spans", "is_enough"),
    [("lines", ((1, 1),), True), ("whole", ((1, 1),), False), ("whole", ((1, 4),), True)],
    ids=["lines", "the rest was not shown", "all was shown"],
)
def test_a_whole_file_that_changed_is_read_before_it_is_written(
    needs: Needs, spans: LineRanges, is_enough: bool
) -> None:
    edit = EDIT if needs == "lines" else WriteText("x")
    old = b"1\n9\n3\n" + b"4\n" * 40
    case = Case(seen=(seen(old, *spans, whole=spans == ((1, 4),)),), needs=needs, edit=edit, ledger=Ledger(session="t"))

    with pytest.raises(StaleFile) as refused:
        try_gate(replace(case, current=old.replace(b"9", b"2"), ledger=Kept(old)))

    enough = "Look at `changes_since`; if the change is still right, send it again."
    if is_enough:
        assert refused.value.action == enough
    else:
        assert refused.value.action.startswith("Look at `changes_since`, and Read with offset=")


@pytest.mark.parametrize("needs", ["lines", "whole"])
def test_a_difference_that_is_too_long_is_read_in_the_file(needs: Needs) -> None:
    old = b"".join(b"%d\n" % number for number in range(2000))
    edit = StyledEdit(old="x5\n", new="two\n") if needs == "lines" else WriteText("x")
    case = Case(seen=(seen(old, whole=True),), needs=needs, edit=edit, current=b"x" + old.replace(b"\n", b"\nx"))

    with pytest.raises(StaleFile) as refused:
        try_gate(replace(case, ledger=Kept(old)))

    assert refused.value.details["changes_since_truncated"] is True
    assert refused.value.action.startswith("Look at `changes_since`, and Read with offset=")


def test_lines_that_are_too_long_to_show_are_read_first() -> None:
    long = b"1\n" + b"2" * 5000 + b"\n"
    edit = StyledEdit(old="2" * 5000, new="two")

    with pytest.raises(StaleFile) as refused:
        try_gate(Case(current=long, edit=edit, seen=(seen(long, (1, 1)),)))

    assert refused.value.action == "First Read with offset=2, limit=1, then send the edit again."
    assert refused.value.shown == ((1, 1),)
