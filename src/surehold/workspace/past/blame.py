"""Who wrote each line of a file: the newest change that put it there, followed through moves.

Lines are carried from version to version by the diffs in the ledger, which say where each change added and removed some;
bytes are read only where the ledger has no whole diff. At the end the lines must be as many as the file has, or all
versions are compared byte by byte.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from surehold.errors import BinaryFile, FileTooLarge, NotFound, SpelledText, spell
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.text.align import find_changes
from surehold.text.diff import split_lines
from surehold.text.diff_rows import HUNK_HEADER, classify_rows
from surehold.text.plan import MAX_COMPARED_BYTES
from surehold.text.snapshot import Snapshot, Version
from surehold.workspace.paths import AnyPath
from surehold.workspace.workspace import Workspace

_PAGE_ENTRIES = 1000
Lines = list[Entry | None]
"""Who wrote each line; None where the history does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    """One line of a file, and the entry of the ledger that put it there."""

    number: int
    text: str
    entry: Entry | None
    """None for lines of before the first recorded change, and of outside edits that are not recorded yet."""


def blame_file(workspace: Workspace, path: AnyPath) -> list[BlamedLine]:
    """Return every line of a file as it is now, with the change that it is from."""
    target = workspace.target(path)
    current = workspace.read(target)
    if not current.is_text:
        raise BinaryFile(f"`{target.key}` is not text, so it has no lines.", path=target.key)
    steps = _follow_back(workspace.store, target.key)
    if not steps:
        action = "A file is in the history from its first change through Surehold on."
        raise NotFound(f"`{target.key}` is not in the history.", path=target.key, reason="no_history", action=action)
    if current.size > MAX_COMPARED_BYTES:
        message = f"`{target.key}` has {current.size} bytes, too many to tell line by line who wrote them."
        changes = SpelledText(f"surehold log {target.key}", f"workspace.changes({target.key!r})")
        action = spell("Up to {} bytes can be. See its changes: {}", str(MAX_COMPARED_BYTES), changes)
        raise FileTooLarge(message, path=target.key, reason="too_large_to_blame", action=action)
    rows = split_lines(current.data)
    versions = _KnownVersions(workspace.store, current, rows)
    lines = _carry_lines(versions, steps, trust_diffs=True)
    if len(lines) != len(rows):
        lines = _carry_lines(versions, steps, trust_diffs=False)
    texts = [current.encoding.decode(row).rstrip("\r\n") for row in rows]
    return [
        BlamedLine(number=number, text=text, entry=entry)
        for number, (text, entry) in enumerate(zip(texts, lines, strict=True), start=1)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _VersionStep:
    entry: Entry
    before: Version | None
    after: Version | None


def _follow_back(store: Store, key: str) -> list[_VersionStep]:
    """Return what happened to a file, oldest first, under all of its names."""
    steps = list[_VersionStep]()
    for entry in _entries_back(store, key, 0):
        change = entry.change
        if change.to_path == key:
            steps.append(_VersionStep(entry=entry, before=change.before, after=change.after))
            key = change.path
        elif change.path == key and not change.to_path:
            if change.after is None and steps and not _returned_from(entry, steps[-1]):
                break  # another file that had this name before
            steps.append(_VersionStep(entry=entry, before=change.before, after=change.after))
            if change.before is None and not (_comes_back(entry) or _is_outside(entry)):
                break
        else:
            break  # it was moved away: what came later is another file
    return _without_detours(steps[::-1])


def _returned_from(removal: Entry, next_step: _VersionStep) -> bool:
    """Tell whether a step brought back what was removed before it: other programs bring back what they removed."""
    both_outside = _is_outside(removal) and _is_outside(next_step.entry)
    return next_step.before is None and (both_outside or _comes_back(next_step.entry))


def _without_detours(steps: Sequence[_VersionStep]) -> list[_VersionStep]:
    """Leave out what other programs did in a row and took back, as `git stash` and `git stash pop` do."""
    kept, began = list[_VersionStep](), 0
    for step in steps:
        if not _is_outside(step.entry):
            began = len(kept) + 1
        kept.append(step)
        same = (at for at in range(max(began, 1), len(kept)) if _is_same(kept[at].before, step.after))
        del kept[next(same, len(kept)) :]
    return kept


def _is_same(one: Version | None, other: Version | None) -> bool:
    return one is not None and other is not None and one.sha256 == other.sha256


def _is_outside(entry: Entry) -> bool:
    return entry.call.operation == "external"


def _comes_back(entry: Entry) -> bool:
    return entry.call.operation in {"undo", "redo", "restore"}


def _entries_back(store: Store, key: str, before: int) -> Iterator[Entry]:
    """Yield the entries about a file, newest first, under the names that it had."""
    while rows := store.list_entries(LedgerQuery(path=key, ok_only=True, before_seq=before, limit=_PAGE_ENTRIES)):
        for entry in rows:
            yield entry
            if entry.change.to_path == key:
                yield from _entries_back(store, entry.change.path, entry.seq)
                return
        if len(rows) < _PAGE_ENTRIES:
            return
        before = rows[-1].seq


def _carry_lines(versions: "_KnownVersions", steps: Sequence[_VersionStep], *, trust_diffs: bool) -> list[Entry | None]:
    rows = versions.rows
    returned = {step.after.sha256 for step in steps if step.after and _comes_back(step.entry)}
    known = steps[0].before
    carried = _CarriedLines([None] * len(versions.read_rows(known)), keeps_removed=bool(returned))
    whole: dict[str, Lines] = {known.sha256: [*carried.lines]} if known else {}
    """Who wrote the lines of the versions that came back later."""
    for step in steps:
        if known != step.before and (known and known.sha256) != (step.before and step.before.sha256):
            carried.splice_versions(versions.read_rows(known), versions.read_rows(step.before), None)
        change = step.entry.change
        if step.before and step.after and step.before.sha256 == step.after.sha256:
            pass
        elif trust_diffs and change.diff and not change.diff_truncated:
            carried.splice_diff(change.diff, step.entry)
        else:
            carried.splice_versions(versions.read_rows(step.before), versions.read_rows(step.after), step.entry)
        if step.after and _comes_back(step.entry) and step.after.sha256 in whole:
            carried.lines[:] = whole[step.after.sha256]
        if step.after and step.after.sha256 in returned:
            whole[step.after.sha256] = [*carried.lines]
        known = step.after
    last = versions.read_rows(known)
    if last != rows:
        carried.splice_versions(last, rows, None)
    return carried.lines


@dataclass(frozen=True, slots=True)
class _KnownVersions:
    """The rows of the versions of a file; those of the file itself need not be stored."""

    store: Store
    current: Snapshot
    rows: Sequence[bytes]

    def read_rows(self, version: Version | None) -> list[bytes]:
        if version and version.sha256 == self.current.sha256:
            return [*self.rows]
        try:
            data = self.store.read_blob(version.sha256) if version else b""
        except NotFound:  # an earlier version that was given up
            return []
        return split_lines(data)


@dataclass(slots=True)
class _CarriedLines:
    """Who wrote each line of a file, from version to version; lines that come back are those of who wrote them first."""

    lines: Lines
    keeps_removed: bool
    _removed: dict[str, tuple[int, Lines]] = field(default_factory=dict[str, tuple[int, Lines]])
    """Who wrote the lines that were removed last, by their text, and at which step that was."""
    _step: int = 0
    _returned: Counter[str] = field(default_factory=Counter[str])
    """How many lines of each text came back in this step."""

    def splice_diff(self, diff: str, entry: Entry) -> None:
        """Carry lines over a change that says itself where it added and removed some."""
        self._begin_step()
        at, shift = 0, 0
        added = list[tuple[int, str]]()
        for kind, row in classify_rows(diff):
            if kind == "hunk" and (match := HUNK_HEADER.match(row)):
                start, count = int(match[1]), int(match[2] or 1)
                at = start - (1 if count else 0) + shift
            elif kind == "added":
                self.lines.insert(at, entry)
                added.append((at, row[1:]))
                at += 1
                shift += 1
            elif kind == "removed":
                self._remove(row[1:], self.lines[at : at + 1])
                del self.lines[at : at + 1]
                shift -= 1
            elif kind == "same":
                at += 1
        for place, text in added:
            self.lines[place] = self._writer_of(text, entry)

    def splice_versions(self, before: Sequence[bytes], after: Sequence[bytes], entry: Entry | None) -> None:
        self._begin_step()
        lines = self.lines
        if len(lines) != len(before):  # an earlier version is missing: nothing is known of where its lines went
            lines[:] = [entry] * len(after)
            return
        changes = find_changes(before, after)
        for region in changes:
            for at in range(region.a, region.a_end):
                self._remove(_to_text(before[at]), lines[at : at + 1])
        writers: Lines = [entry] * len(after)
        for at in (at for region in changes for at in range(region.b, region.b_end)):
            writers[at] = self._writer_of(_to_text(after[at]), entry)
        for region in reversed(changes):
            lines[region.a : region.a_end] = writers[region.b : region.b_end]

    def _begin_step(self) -> None:
        self._step += 1
        self._returned.clear()

    def _remove(self, text: str, writers: Lines) -> None:
        if not self.keeps_removed:
            return
        step, earlier = self._removed.get(text, (0, Lines()))
        self._removed[text] = (self._step, [*earlier, *writers] if step == self._step else writers)

    def _writer_of(self, text: str, entry: Entry | None) -> Entry | None:
        if entry is None or not _comes_back(entry) or text not in self._removed:
            return entry
        _, writers = self._removed[text]
        self._returned[text] += 1
        return writers[min(self._returned[text], len(writers)) - 1] if writers else entry


def _to_text(row: bytes) -> str:
    return row.decode("utf-8", "surrogateescape").removesuffix("\n")
