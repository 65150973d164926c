"""The numbers that all writers of a history share: when a commit counts as synced, and what a failure means for all."""

# The numbers are inside.
# pyright: reportPrivateUsage=false

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stores.scenes import Clock, blob, change, intent
from surehold.stores.sqlite import writers
from surehold.stores.sqlite.store import SqliteStore
from surehold.stores.sqlite.writers import LogSync


class Log:
    """A log whose syncs and mendings are counted, and can fail."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = self.mended = 0
        self.fails, self.can_mend = False, True
        monkeypatch.setattr(writers, "sync_data", self._sync)
        self.sync = LogSync(path, mend=self._mend)
        self.words = self.sync._open_shared().words

    def _sync(self, place: int) -> None:
        assert place == 99
        self.syncs += 1
        if self.fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _mend(self) -> bool:
        self.mended += 1
        if self.can_mend:
            self.sync.note_failure(failed=False)
        return self.can_mend

    @property
    def facts(self) -> tuple[int, int, int, int]:
        """How often it was synced and mended, up to which number, and whether a failure is known."""
        return self.syncs, self.mended, self.words[writers._SYNCED], self.words[writers._FAILED]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    log = Log(tmp_path / "shared", monkeypatch)
    yield log
    log.sync.close()


def test_tickets_are_above_all_that_were_given_or_published(log: Log) -> None:
    assert [log.sync.take_ticket(), log.sync.take_ticket()] == [1, 2]
    log.words[writers._SYNCED] = 7
    assert [log.sync.take_ticket(), log.words[writers._COMMITTED]] == [8, 8]
    log.words[writers._COMMITTED] = writers._LARGEST_TICKET - 1
    assert [log.sync.take_ticket(), log.sync.take_ticket()] == [writers._LARGEST_TICKET, 0]


@pytest.mark.parametrize(
    ("synced", "failed", "facts"),
    [(4, 0, (1, 0, 5, 0)), (5, 0, (0, 0, 5, 0)), (6, 0, (0, 0, 6, 0)), (6, 1, (1, 1, 6, 0)), (4, 1, (1, 1, 5, 0))],
)
def test_a_commit_that_is_covered_needs_no_sync_unless_one_failed_since(
    log: Log, synced: int, failed: int, facts: tuple[int, int, int, int]
) -> None:
    log.words[writers._COMMITTED], log.words[writers._SYNCED], log.words[writers._FAILED] = 5, synced, failed
    log.sync.wait(5, 99)
    assert log.facts == facts


def test_a_commit_without_a_ticket_is_synced_alone(log: Log) -> None:
    log.sync.wait(0, 99)
    assert log.facts == (1, 0, 0, 0)


@pytest.mark.parametrize("known", [True, False], ids=["of another process", "of this sync"])
@pytest.mark.parametrize("can_mend", [True, False])
def test_a_failure_is_made_good_or_raised_and_known_to_all(log: Log, *, known: bool, can_mend: bool) -> None:
    log.can_mend, log.fails = can_mend, not known
    log.words[writers._FAILED] = int(known)
    if can_mend:
        log.sync.sync_alone(99)
    else:
        with pytest.raises(OSError, match=os.strerror(errno.EIO if known else errno.ENOSPC)):
            log.sync.sync_alone(99)
    assert log.facts == (1, 1, 0, int(not can_mend))


def test_a_commit_that_could_not_be_synced_is_not_covered_and_another_may_lead(log: Log) -> None:
    log.can_mend, log.fails = False, True
    ticket = log.sync.take_ticket()
    for number in (1, 2):
        with pytest.raises(OSError, match=os.strerror(errno.EIO if number > 1 else errno.ENOSPC)):
            log.sync.wait(ticket, 99)
        assert log.facts == (number, number, 0, 1)
        log.fails = False
    log.can_mend = True
    log.sync.wait(ticket, 99)
    assert log.facts == (3, 3, 1, 0)


def test_what_only_keeps_or_frees_an_intent_waits_for_no_disk(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, syncs = SqliteStore(tmp_path / "state", clock=clock), list[int]()
    monkeypatch.setattr(writers, "sync_data", syncs.append)
    store.begin(intent("one", change("a", None, b"1")), [blob(b"1")], lease=9, fence=0)
    assert len(syncs) == 1
    store.renew("one", lease=9)
    store.withdraw("one")
    store.keep_blobs([blob(b"2")])
    assert len(syncs) == 1
    store.keep_blob(blob(b"3"))
    assert len(syncs) == 2
    store.begin(intent("two", change("a", None, b"1")), [blob(b"1")], lease=9, fence=0)
    store.finish("two")
    assert len(syncs) == 4
    store.close()
