"""Tells whose bytes are whose where running commands, or a command and an edit, change one file.

1. Before a command changes a file that another running command has begun to change, and before an edit of such a file,
   what is there is recorded by itself, on behalf of the command that wrote the file last.
2. Two commands never change a path at once: from before the look at what is there until its call has happened, one has the
   turn. An edit does not wait for that: it looks at what it replaced.
3. So the history has every such file as a chain: each piece is from the moment when a command began to write to the moment
   when the next one did. What two commands have open for writing at the same moment is not told apart.
4. It costs a look at the time of one directory where no other command runs.
"""

import hashlib
import json
import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from surehold.capture.kept.stash import JournalRecord, KeptContent, Stash, list_journal, open_stash
from surehold.capture.settled.present import meta_from
from surehold.capture.turns import TURN_SECONDS, PathTurns
from surehold.disk.base import Target
from surehold.errors import LockTimeout, SureholdError
from surehold.stores.base import Blob, Intent
from surehold.stores.ledger_entries import normalize_timestamp
from surehold.text.snapshot import Snapshot, Version
from surehold.workspace.foreign.noted_edits import NotedFile, record_locked

if TYPE_CHECKING:
    from surehold.workspace.reader import WorkspaceReader

_WRITERS = "writers"
_PATIENCE_SECONDS = 1.0
"""How long the call of a command waits for an edit of the same file; the edit may be the command's own."""
_MAX_PIECE_BYTES = 8 << 20
_TIME_STEP_NS = 100_000_000
"""More than the steps in which the time of a directory goes on."""


class _Writer(NamedTuple):
    """A command that changed a path: the last one wrote what is there."""

    run: str
    coming: str = ""
    """What was to get the path, if a call gave it to another file."""
    inode: int = 0
    line: int = 0

    @property
    def is_pending(self) -> bool:
        """Tell whether the call has not happened yet."""
        try:
            return self.inode != 0 and os.lstat(self.coming).st_ino == self.inode
        except OSError:
            return False


class SharedPaths:
    """The files that several running commands change, and who wrote each last."""

    def __init__(self, reader: "WorkspaceReader", runs: Path) -> None:
        self._reader, self._runs, self._folder = reader, runs, str(runs)
        root = os.fsencode(reader.disk.roots[0])
        self._prefix = root if root == b"/" else root + b"/"
        self.turns = PathTurns(f"{runs}.lock")
        self._names: dict[str, tuple[int, frozenset[bytes]]] = {}
        self._writers: dict[str, list[_Writer]] = {}
        self._read_bytes = 0
        self._listed: list[str] = []
        self._listed_at = 0
        """The time of the directory when it was listed; 0 if it is to be listed again."""

    def credit_before_edit(self, found: Mapping[Target, Snapshot]) -> None:
        """Record what running commands made of files, as an edit found them that holds their locks."""
        if running := self.list_running(""):
            for target, snapshot in found.items():
                self._credit(target, running, "", snapshot)

    def credit_before_call(self, path: bytes, coming: bytes, *, own: str) -> None:
        """Record what other running commands made of a path that a command is about to change, or to give to another file."""
        if not (running := self.list_running(own)):
            return
        key = self._key_of(path)
        with suppress(SureholdError, OSError):
            self.turns.take(path, coming)
            line = self._note_writer(key, own, coming)
            if self._find_writer(key, running, own, line):
                target = self._reader.disk.resolve(key)
                with self._lock_for_credit(target):
                    self._credit(target, running, own, line=line)

    @contextmanager
    def _lock_for_credit(self, target: Target) -> Generator[None]:
        """Hold the name of a file; not if it takes long and an edit is under way, which has seen what is there."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._reader.disk.lock([target], timeout=_PATIENCE_SECONDS))
            except LockTimeout:
                changes = [change for busy in self._reader.store.open_intents() for change in busy.intent.changes]
                if any(target.key in {change.path, change.to_path} for change in changes):
                    raise
                stack.enter_context(self._reader.disk.lock([target], timeout=TURN_SECONDS))
            yield

    @contextmanager
    def hold_at_end(self, paths: Sequence[bytes], own: str) -> Generator[list[bytes]]:
        """Hold the paths of a command that has ended while its change is recorded: no edit comes in between.

        What edits do not let go of is yielded.
        """
        with ExitStack() as stack:
            targets = {target: path for path in paths if (target := self._find_target(path))}
            missed = self._lock_free(stack, list(targets))
            running = self.list_running(own)
            for target in (one for one in targets if running and one not in missed):
                with suppress(SureholdError, OSError):
                    self._credit(target, running, own)
            yield [targets[one] for one in missed]
            if not self.list_running(own):
                with suppress(OSError):
                    (self._runs / _WRITERS).unlink(missing_ok=True)

    def _find_target(self, path: bytes) -> Target | None:
        with suppress(SureholdError, OSError):
            return self._reader.disk.resolve(self._key_of(path))
        return None  # no edit changes it either

    def _lock_free(self, stack: ExitStack, targets: list[Target]) -> list[Target]:
        """Lock the names of files, all at once; return those that others do not let go of."""
        end, missed = time.monotonic() + TURN_SECONDS, list[Target]()
        while targets:
            try:
                stack.enter_context(self._reader.disk.lock(targets, timeout=max(end - time.monotonic(), 0.0)))
            except LockTimeout as busy:
                missed += [one for one in targets if one.key == busy.path]
                targets = [one for one in targets if one.key != busy.path]
            except (SureholdError, OSError):  # no edit can lock them either
                break
            else:
                break
        return missed

    def _credit(
        self, target: Target, running: Sequence[str], own: str, now: Snapshot | None = None, line: int = 0
    ) -> None:
        if found := self._find_piece(target.key, running, own, line):
            noted, intent = found
            record_locked(
                self._reader, [noted], [self._reader.read_snapshot(target) if now is None else now], intent.call
            )

    def _key_of(self, path: bytes) -> str:
        return os.fsdecode(path.removeprefix(self._prefix))

    def _path_of(self, key: str) -> bytes:
        path = os.fsencode(key)
        return path if path.startswith(b"/") else self._prefix + path

    def list_running(self, own: str) -> list[str]:
        """Return the other commands that run."""
        try:
            facts = os.stat(self._folder)  # noqa: PTH116 - done for every call
            if facts.st_mtime_ns != self._listed_at:
                # A directory's time has steps: what changed within the last one could change again at the same time.
                is_over = time.time_ns() - facts.st_mtime_ns > _TIME_STEP_NS
                self._listed = os.listdir(self._folder)  # noqa: PTH208
                self._listed_at = facts.st_mtime_ns if is_over else 0
            return [name for name in self._listed if name not in {own, _WRITERS}]
        except OSError:
            return []

    def _find_writer(self, key: str, running: Sequence[str], own: str, line: int) -> "_Writer | None":
        """Return the other command that wrote a path last, before a line of the list; None if that is the command itself."""
        writers = list[_Writer]()
        for one in self._list_writers(key):
            if one.line == line:
                break
            if (one.run == own or one.run in running) and not (line == 0 and one.is_pending):
                writers.append(one)
        if not writers:
            path = self._path_of(key)
            writers = [_Writer(name) for name in running if path in self._paths_of(name)]
        return writers[-1] if writers and writers[-1].run != own else None

    def _find_piece(self, key: str, running: Sequence[str], own: str, line: int) -> tuple[NotedFile, Intent] | None:
        """Return where the piece of the other command begins that wrote a path last."""
        if not (last := self._find_writer(key, running, own, line)):
            return None
        path, writer = self._path_of(key), last.run
        intents = [busy.intent for busy in self._reader.store.open_intents() if busy.intent.id == writer]
        if not intents:
            return None
        head = self._reader.store.head_of(key)
        if head and head.timestamp >= normalize_timestamp(intents[0].began):
            return NotedFile(key=key, version=head.version, seq=0), intents[0]
        found, version = self._read_earlier(writer, path)
        return (NotedFile(key=key, version=version, seq=head.seq if head else 0), intents[0]) if found else None

    def _paths_of(self, run: str) -> frozenset[bytes]:
        with suppress(OSError):
            journal = self._runs / run / "journal"
            size = journal.stat().st_size
            known = self._names.get(run)
            if known is None or known[0] != size:
                known = self._names[run] = (size, frozenset(list_journal(str(journal.parent))))
            return known[1]
        return frozenset()

    def _read_earlier(self, run: str, path: bytes) -> tuple[bool, Version | None]:
        """Return whether it is known what a path was before a command changed it, and that version, whose bytes are stored."""
        stash = open_stash(str(self._runs / run), read_only=True)
        try:
            before: JournalRecord | None = None
            for record in stash.read_records():
                if record.name == path and record.type == b"A":
                    return True, None
                if record.name == path and record.type == b"O":
                    before = record
                if before and record.type == b"C" and record.facts.identity == before.facts.identity:
                    return self._store_earlier(before, record, stash)
            return False, None
        finally:
            stash.close()

    def _store_earlier(self, before: JournalRecord, record: JournalRecord, stash: Stash) -> tuple[bool, Version | None]:
        file = str(record.extra.get("file", ""))
        kept = KeptContent(record.facts.size, file=file) if file else KeptContent(record.size, record.offset)
        if kept.size > _MAX_PIECE_BYTES or record.extra.get("holes"):
            return False, None
        data = stash.read_content(kept)
        sha256 = hashlib.sha256(data).hexdigest()
        self._reader.store.keep_blob(Blob(data=data, sha256=sha256))
        return True, Version(sha256=sha256, size=len(data), meta=meta_from(before.facts, ()))

    # Who wrote a file last; one line for each time that another command was running.

    def _list_writers(self, key: str) -> Sequence["_Writer"]:
        with suppress(OSError), (self._runs / _WRITERS).open("rb") as file:
            if self._read_bytes > os.fstat(file.fileno()).st_size:
                self._read_bytes = 0  # it was begun again
                self._writers.clear()
            file.seek(self._read_bytes)
            for row in file:
                if not row.endswith(b"\n"):
                    break
                self._read_bytes += len(row)
                path, *words = json.loads(row)
                self._writers.setdefault(path, []).append(_Writer(*words))
        return self._writers.get(key, ())

    def _note_writer(self, key: str, own: str, coming: bytes) -> int:
        inode, line = 0, time.monotonic_ns()
        with suppress(OSError):
            inode = os.lstat(coming).st_ino if coming else 0
        fd = os.open(self._runs / _WRITERS, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, f"{json.dumps([key, own, os.fsdecode(coming), inode, line])}\n".encode())
        finally:
            os.close(fd)
        return line
