"""What the tests of the stores are made of: a clock that is turned by hand, versions, calls and whole edits."""

import hashlib
import multiprocessing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from surehold.stores.base import Begun, Blob, Call, Change, Entry, Intent, Operation, Sighting, Store
from surehold.stores.ledger_entries import utc_timestamp
from surehold.stores.owner import Owner, current_owner
from surehold.text.snapshot import Version

START = datetime(2026, 1, 1, tzinfo=UTC)
ELSEWHERE = Owner(host="another-machine", boot="b", pid=1, started="1")
SPAWN: Any = multiprocessing.get_context("spawn")


@dataclass
class Clock:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **delta: float) -> None:
        self.now += timedelta(**delta)

    @property
    def text(self) -> str:
        return utc_timestamp(self.now)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def version(data: bytes) -> Version:
    return Version(sha256=sha(data), size=len(data))


def blob(data: bytes, base: bytes | None = None) -> Blob:
    return Blob(data=data, sha256=sha(data), base="" if base is None else sha(base))


def sighting(path: str, data: bytes, *spans: tuple[int, int], session: str = "s", seq: int = 0) -> Sighting:
    return Sighting(session=session, path=path, sha256=version(data).sha256, spans=spans, seq=seq)


def call(operation: Operation = "edit", **more: Any) -> Call:
    return Call(tool=f"{operation}_file", operation=operation, writer="files", **more)


def change(path: str, before: bytes | None, after: bytes | None, **more: Any) -> Change:
    return Change(
        path=path,
        before=None if before is None else version(before),
        after=None if after is None else version(after),
        **more,
    )


def intent(name: str, *changes: Change, asked: Call | None = None, owner: Owner | None = None) -> Intent:
    return Intent(
        id=name, call=asked or call(), changes=changes, owner=owner or current_owner(), began="2026-01-01T00:00:00Z"
    )


@dataclass
class Author:
    """Makes whole edits and remembers what is where."""

    store: Store
    number: int = 0
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def write(self, path: str, data: bytes, **more: str) -> tuple[Entry, ...]:
        before = self.files.get(path)
        entries = self.do(change(path, before, data), before, data, asked=call("write", **more))
        self.files[path] = data
        return entries

    def delete(self, path: str, trash_id: str = "", **more: str) -> tuple[Entry, ...]:
        before = self.files.pop(path)
        return self.do(change(path, before, None, trash_id=trash_id), before, None, asked=call("delete", **more))

    def do(self, changed: Change, before: bytes | None, after: bytes | None, *, asked: Call) -> tuple[Entry, ...]:
        self.number += 1
        name = f"change-{self.number}"
        blobs = [] if before is None else [blob(before)]
        blobs += [] if after is None else [blob(after, before)]
        begun = self.store.begin(intent(name, changed, asked=asked), blobs, lease=10, fence=0)
        assert begun == Begun(), begun
        return self.store.finish(name)
