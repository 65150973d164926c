"""What the history knows of an entry of any kind: its name, its bytes, what it was in words, and where it is in the trash."""

import os
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from surehold.errors import NotAFile, NotFound, SureholdError
from surehold.stores.base import Change, Entry, LedgerQuery, Store
from surehold.stores.ledger_rules import pruned_before
from surehold.stores.run_records import (
    CREATED_BUDGET_BYTES,
    DIFFERING_BUDGET_BYTES,
    MAX_KEPT_AFTER_BYTES,
    SMALL_AFTER_BYTES,
)
from surehold.stores.store_errors import trash_entry_missing_error
from surehold.stores.upkeep import TrashItem, iterate_trash
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.past.selectors import MIN_END_CHARS, matches_id

if TYPE_CHECKING:
    from surehold.workspace.paths import AnyPath
    from surehold.workspace.workspace import Workspace

_MAX_ENTRIES = 10_000_000
_UNKNOWN_ACTION = "A file is in the history from its first change through Surehold on."


def recorded_key(workspace: "Workspace", path: "AnyPath") -> str:
    """Return the name under which the history knows a path; a link that it knows is not followed."""
    from surehold.workspace.paths import spelled_path

    word = spelled_path(path)
    root = workspace.roots[0]
    name = os.path.normpath(os.path.join(root, word))  # noqa: PTH118 - a key, not a path
    key = name.removeprefix(f"{root.rstrip('/')}/")
    newest = workspace.store.list_entries(LedgerQuery(path=key, ok_only=True, limit=1))
    sides = [one for entry in newest for _, *both in entry.change.transitions() for one in both if one]
    if not any(one.kind == "link" for one in sides):
        return workspace.target(path).key
    workspace.reader.names.check_recorded_path(key)
    return key


def is_recorded(workspace: "Workspace", key: str) -> bool:
    return bool(workspace.store.list_entries(LedgerQuery(path=key, ok_only=True, limit=1)))


def recorded_keys(workspace: "Workspace", word: str) -> list[str]:
    """Return the name of a path, and every recorded one below it."""
    key = recorded_key(workspace, word.rstrip("/") or "/")
    below = workspace.store.list_entries(LedgerQuery(under=key, ok_only=True, limit=_MAX_ENTRIES))
    names = {name for one in below for name, _, _ in one.change.transitions() if name.startswith(f"{key}/")}
    if is_recorded(workspace, key):
        names.add(key)
    if not names:
        raise no_history_error(word)
    return sorted(names)


def no_history_error(word: str) -> NotFound:
    return NotFound(f"`{word}` is not in the history.", path=word, reason="no_history", action=_UNKNOWN_ACTION)


def find_trash_item(store: Store, reference: str) -> TrashItem:
    """Return a deleted file by its id, or by a unique end of it."""
    item = store.trash_item(reference)
    if item is None and len(reference) >= MIN_END_CHARS:
        named = (one for page in iterate_trash(store) for one in page if matches_id(one.id, reference.lower()))
        found = list(islice(named, 2))
        item = found[0] if len(found) == 1 else None
    if item is None or item.state == "emptied":
        raise trash_entry_missing_error(reference)
    return item


def read_recorded(workspace: "Workspace", sha256: str, key: str = "") -> bytes:
    """Return the bytes of a name; those that were not stored because they never changed are still in a file."""
    try:
        return workspace.store.read_blob(sha256)
    except NotFound:
        heads = (one.path for one in workspace.store.list_heads() if one.version and one.version.sha256 == sha256)
        for name in dict.fromkeys((*filter(None, [key]), *heads)):
            with suppress(SureholdError):
                entry = workspace.read_entry(name)
                if entry and entry.version.kind == "file" and entry.version.sha256 == sha256:
                    return entry.data
        if unkept := _unkept_after(workspace, sha256, key):
            raise unkept from None
        raise


def _unkept_after(workspace: "Workspace", sha256: str, key: str) -> NotFound | None:
    """Return why the bytes that a command left are not there, if it was a command that left them."""
    if not key:
        return None
    for entry in workspace.store.list_entries(LedgerQuery(path=key, operation="run", ok_only=True, limit=_MAX_ENTRIES)):
        change, after = entry.change, entry.change.after
        why = _why_not_kept(change) if after and after.sha256 == sha256 else ""
        if after and why and (after.size > MAX_KEPT_AFTER_BYTES or not _was_pruned(workspace, entry)):
            message = (
                f"`{key}` as the command of change {entry.change_id} left it ({after.size} bytes) was not kept: {why}."
            )
            action = f"What it was before that is kept: surehold read {key} --before {entry.change_id}"
            if change.before is None:
                action = "Run the command again, or take the file from a backup."
            return NotFound(message, path=key, reason="not_kept", action=action, sha256=sha256)
    return None


def _why_not_kept(change: Change) -> str:
    """Return which limit of what a command leaves may have kept a file out of the history; empty if there is none for it."""
    size = change.after.size if change.after else 0
    if size > MAX_KEPT_AFTER_BYTES:
        return f"files above {MAX_KEPT_AFTER_BYTES >> 20} MiB are not stored as a command left them"
    if change.before is None:
        return f"of the new files of a command {CREATED_BUDGET_BYTES >> 20} MiB are stored, all together"
    limit = f"{DIFFERING_BUDGET_BYTES >> 20} MiB of changes in large files are stored of a command, all together"
    return limit if size > SMALL_AFTER_BYTES else ""


def _was_pruned(workspace: "Workspace", entry: Entry) -> bool:
    """Tell whether the history was cleaned up since, of what is as old as an entry."""
    query = LedgerQuery(operation="gc", after_seq=entry.seq, limit=_MAX_ENTRIES)
    return any(pruned_before(one) > entry.timestamp for one in workspace.store.list_entries(query))


def load_recorded(workspace: "Workspace", version: Version | None, key: str = "") -> Snapshot:
    """Return a version with its bytes, which are where a link leads to; nothing of what has no bytes."""
    if version is None or version.kind not in {"file", "link"}:
        return ABSENT
    return Snapshot(read_recorded(workspace, version.sha256, key), meta=version.meta)


def load_file(workspace: "Workspace", version: Version, key: str) -> Snapshot:
    """Return a version that is a file; `NotAFile` says what it is otherwise."""
    if version.kind == "file":
        return load_recorded(workspace, version, key)
    what = describe_entry(version, load_recorded(workspace, version, key))
    action = f"See what happened to it: surehold log {key}"
    raise NotAFile(f"`{key}` was a {what} then.", path=key, action=action)


def describe_entry(version: Version, snapshot: Snapshot) -> str:
    """Return what a version is, in words."""
    if version.kind == "link":
        return f"symbolic link to {os.fsdecode(snapshot.data)}"
    return {"file": "file", "directory": "directory", "fifo": "FIFO"}[version.kind]


def describe_facts(before: Version | None, after: Version | None, old: Snapshot, new: Snapshot) -> tuple[str, ...]:
    """Say what a difference of lines does not: what an entry is, and its mode."""
    if before is None or after is None:
        version, snapshot = (after, new) if after else (before, old)
        if version is None or (version.kind == "file" and snapshot.size):
            return ()
        what = f"{'empty ' if version.kind == 'file' else ''}{describe_entry(version, snapshot)}"
        return (f"new {what}" if after else f"{what}, removed",)
    found = list[str]()
    if (before.kind, before.sha256) != (after.kind, after.sha256) and {before.kind, after.kind} != {"file"}:
        found.append(f"{describe_entry(before, old)}, now {describe_entry(after, new)}")
    if before.mode is not None and after.mode is not None and before.mode != after.mode and after.kind != "link":
        found.append(f"mode {before.mode:04o} → {after.mode:04o}")
    return tuple(found)
