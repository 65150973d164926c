"""What a command did follows what the ledger got of the same paths while it ran."""

# A command that meets an edit at the right moment takes a process and a gate; here every case is one call.
# pyright: reportPrivateUsage=false

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

import pytest

from doubles.memory_store import MemoryStore
from spec.marks import requirement
from surehold.capture.settled.settlement import Settlement, UnkeptPath
from surehold.stores.base import Change, Store
from surehold.text.snapshot import Meta, Version, sha256_hex
from surehold.workspace.runs import recorder
from workspaces import call

BEGAN, BEFORE, DURING = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (12, 11, 13))


def version(data: bytes, mode: int | None = None, *, mtime_ns: int = 0) -> Version:
    meta = None if mode is None else Meta(mode=mode, mtime_ns=mtime_ns)
    return Version(sha256=sha256_hex(data), size=len(data), meta=meta)


OLD, EDITED, NEW = version(b"old"), version(b"edited"), version(b"new")


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """What the command did to `a`, what an edit left there, and what of it is recorded for the command."""

    did: Change
    left: Version | None
    at: datetime = DURING
    recorded: Change | None
    is_named: bool = False

    @property
    def keeps_before(self) -> bool:
        """Whether what the command met is kept apart, since no entry may have it."""
        return self.is_named and self.did.before is not None and self.did.before.kind == "file"


def changed(before: Version | None, after: Version | None) -> Change:
    return Change(path="a", before=before, after=after)


def cut(before: Version | None, after: Version | None) -> Change:
    return replace(changed(before, after), diff_truncated=True)


MEETINGS = {
    "the edit came before the command began": Meeting(
        did=changed(OLD, NEW), left=EDITED, at=BEFORE, recorded=changed(OLD, NEW)
    ),
    "the edit came in the moment in which the command began": Meeting(
        did=changed(OLD, NEW), left=EDITED, at=BEGAN, recorded=cut(EDITED, NEW), is_named=True
    ),
    "the edit came before the command changed the file": Meeting(
        did=changed(EDITED, NEW), left=EDITED, recorded=changed(EDITED, NEW)
    ),
    "the same but for the time, which an edit does not know": Meeting(
        did=changed(version(b"edited", 0o644, mtime_ns=5), NEW),
        left=version(b"edited", 0o644),
        recorded=changed(version(b"edited", 0o644, mtime_ns=5), NEW),
    ),
    "the same bytes with another mode are another version": Meeting(
        did=changed(version(b"edited", 0o600), NEW),
        left=version(b"edited", 0o644),
        recorded=cut(version(b"edited", 0o644), NEW),
        is_named=True,
    ),
    "the command wrote on both sides of the edit": Meeting(
        did=changed(OLD, NEW), left=EDITED, recorded=cut(EDITED, NEW), is_named=True
    ),
    "the command wrote before the edit alone": Meeting(
        did=changed(OLD, EDITED), left=EDITED, recorded=None, is_named=True
    ),
    "the file was deleted in between": Meeting(
        did=changed(OLD, NEW), left=None, recorded=cut(None, NEW), is_named=True
    ),
    "the command deleted what was edited": Meeting(
        did=changed(EDITED, None), left=EDITED, recorded=changed(EDITED, None)
    ),
    "a link with the same content": Meeting(
        did=changed(replace(EDITED, kind="link"), NEW), left=EDITED, recorded=cut(EDITED, NEW), is_named=True
    ),
}


@requirement("run:together:attributed")
@pytest.mark.parametrize("meeting", MEETINGS.values(), ids=MEETINGS)
def test_the_part_of_a_command_that_came_after_an_edit_is_its_own(meeting: Meeting) -> None:
    store = MemoryStore(clock=lambda: meeting.at)
    store.record(call(), changed(OLD, meeting.left), change_id="edit", ok=True)
    settled = Settlement(changes=[meeting.did], renamed={"x": "y"}, unrecorded=["deleted"])

    found = recorder._follow_ledger(cast("Store", store), settled, BEGAN.isoformat())

    assert found == Settlement(
        changes=[meeting.recorded] if meeting.recorded else [],
        not_kept=[UnkeptPath(key="a", why=recorder._CHANGED_BETWEEN)] if meeting.is_named else [],
        renamed={"x": "y"},
        unrecorded=["deleted"],
        displaced=[("a", meeting.did.before)] if meeting.keeps_before and meeting.did.before else [],
    )
