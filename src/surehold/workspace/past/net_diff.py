"""What some changes did all together: the difference between the files without them and the files as they are."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from surehold.errors import StaleFile
from surehold.stores.base import Entry
from surehold.text.diff_rows import count_rows
from surehold.text.plan import diff_between
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.undo.selection import SelectionSwitch
from surehold.workspace.undo.timeline import name_entry
from surehold.workspace.workspace import Workspace

_MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNetDiff:
    """What some changes did to one file."""

    key: str
    """Its name without them."""
    to_key: str
    """Its name with them, where that is another one; empty otherwise."""
    diff: str
    before: Snapshot = ABSENT
    """The file without the changes; absent as well where it cannot be told."""
    after: Snapshot = ABSENT
    added: int = 0
    removed: int = 0
    conflict: str = ""
    """Why it cannot be told as one; then the diff is that of each change, one after the other."""


def net_diff(workspace: Workspace, entries: Sequence[Entry]) -> list[FileNetDiff]:
    """Return what entries of the ledger did, file by file; what is undone or has left no trace is not in it."""
    for _ in range(_MAX_ATTEMPTS - 1):
        with suppress(StaleFile):  # an outside edit was noticed and recorded: the history is another one now
            return _net_diff(workspace, entries)
    return _net_diff(workspace, entries)


def _net_diff(workspace: Workspace, entries: Sequence[Entry]) -> list[FileNetDiff]:
    switch = SelectionSwitch(workspace, entries, "undo")
    found = list[FileNetDiff]()
    for one in switch.switches:
        before, after = switch.attempt.load(one.new), switch.attempt.load(one.old)
        key, to_key = one.new.key or one.old.key, one.old.key or one.new.key
        diff = diff_between(before, after, from_name=key, to_name=to_key)
        found.append(
            FileNetDiff(
                key=key,
                to_key=to_key if to_key != key else "",
                diff=diff.text,
                before=before,
                after=after,
                added=diff.added,
                removed=diff.removed,
            )
        )
    by_name = {name_entry(entry): entry for entry in entries}
    for conflict in switch.conflicts:
        single = [by_name[name] for name in conflict.entries if name in by_name]
        text = "".join(single_diff(workspace, entry) for entry in sorted(single, key=lambda one: one.seq))
        added, removed = count_rows(text)
        found.append(
            FileNetDiff(key=conflict.key, to_key="", diff=text, added=added, removed=removed, conflict=conflict.why)
        )
    return sorted(found, key=lambda one: one.key)


def single_diff(workspace: Workspace, entry: Entry) -> str:
    """Return the whole difference that one entry made, also where the ledger keeps only its beginning, or none."""
    change = entry.change
    if not change.diff_truncated and entry.call.operation != "external":
        return change.diff
    before, after = (_load_version(workspace, version) for version in (change.before, change.after))
    return diff_between(before, after, from_name=change.path, to_name=change.to_path or change.path).text


def _load_version(workspace: Workspace, version: Version | None) -> Snapshot:
    return Snapshot(workspace.store.read_blob(version.sha256), meta=version.meta) if version else ABSENT
