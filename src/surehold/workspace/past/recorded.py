"""What the history knows of an entry of any kind: its name, its bytes, and what it was in words."""

import os
from contextlib import suppress

from surehold.errors import NotAFile, NotFound, SureholdError
from surehold.stores.base import LedgerQuery
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.paths import AnyPath, spelled_path
from surehold.workspace.workspace import Workspace

_MAX_ENTRIES = 10_000_000
_UNKNOWN_ACTION = "A file is in the history from its first change through Surehold on."


def recorded_key(workspace: Workspace, path: AnyPath) -> str:
    """Return the name under which the history knows a path; a link that it knows is not followed."""
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


def is_recorded(workspace: Workspace, key: str) -> bool:
    return bool(workspace.store.list_entries(LedgerQuery(path=key, ok_only=True, limit=1)))


def recorded_keys(workspace: Workspace, word: str) -> list[str]:
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


def read_recorded(workspace: Workspace, sha256: str, key: str = "") -> bytes:
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
        raise


def load_recorded(workspace: Workspace, version: Version | None, key: str = "") -> Snapshot:
    """Return a version with its bytes, which are where a link leads to; nothing of what has no bytes."""
    if version is None or version.kind not in {"file", "link"}:
        return ABSENT
    return Snapshot(read_recorded(workspace, version.sha256, key), meta=version.meta)


def load_file(workspace: Workspace, version: Version, key: str) -> Snapshot:
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
