"""What some changes did all together: the difference between the files without them and the files as they are."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from surehold.errors import NotFound, StaleFile
from surehold.stores.base import Change, Entry
from surehold.text.diff_rows import count_rows
from surehold.text.plan import DEV_NULL, diff_between, name_difference
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.past.recorded import describe_facts, load_recorded
from surehold.workspace.undo.planner import FileSwitch
from surehold.workspace.undo.recorded_changes import name_entry
from surehold.workspace.undo.selection import SelectionSwitch
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
    before_version: Version | None = None
    after_version: Version | None = None
    facts: tuple[str, ...] = ()
    """What the diff does not say: directories, links and modes, in words."""
    added: int = 0
    removed: int = 0
    conflict: str = ""
    """Why it cannot be told as one; then the diff is that of each change, one after the other."""
    parts: "tuple[FileNetDiff, ...]" = ()
    """Those single differences, oldest first."""


def net_diff(workspace: Workspace, entries: Sequence[Entry]) -> list[FileNetDiff]:
    """Return what entries of the ledger did, file by file; what is undone or has left no trace is not in it."""
    for _ in range(_MAX_ATTEMPTS - 1):
        with suppress(StaleFile):  # an outside edit was noticed and recorded: the history is another one now
            return _net_diff(workspace, entries)
    return _net_diff(workspace, entries)


def _net_diff(workspace: Workspace, entries: Sequence[Entry]) -> list[FileNetDiff]:
    switch = SelectionSwitch(workspace, entries, "undo")
    found, single = list[FileNetDiff](), list[tuple[str, Collection[str], str]]()
    for one in switch.switches:
        if one.old.is_directory and one.new.is_directory and not one.has_effect:
            continue  # its time follows from what is in it
        try:
            found.append(_diff_of_switch(one, switch.attempt.load(one.new), switch.attempt.load(one.old)))
        except NotFound:
            names = [step.entry_name for step in one.file.steps]
            single.append((one.old.key or one.new.key, names, "bytes that it had are not stored any more"))
    single += ((conflict.key, conflict.entries, conflict.why) for conflict in switch.conflicts)
    by_name = {name_entry(entry): entry for entry in entries} if single else {}
    for key, names, why in single:
        found.append(_single_diffs(workspace, key, [by_name[name] for name in names if name in by_name], why))
    return sorted(found, key=lambda one: one.key)


def _diff_of_switch(switch: FileSwitch, before: Snapshot, after: Snapshot) -> FileNetDiff:
    old, new = switch.new, switch.old  # it is the undoing that is switched to
    return diff_versions(old.key or new.key, new.key or old.key, (old.version, new.version), (before, after))


def diff_versions(
    key: str, to_key: str, versions: tuple[Version | None, Version | None], snapshots: tuple[Snapshot, Snapshot]
) -> FileNetDiff:
    """Return the difference between two versions of a file, with the name that it had and the one that it has."""
    diff = diff_between(*snapshots, from_name=key, to_name=to_key)
    return FileNetDiff(
        key=key,
        to_key=to_key if to_key != key else "",
        diff=diff.text,
        before=snapshots[0],
        after=snapshots[1],
        before_version=versions[0],
        after_version=versions[1],
        facts=describe_facts(*versions, *snapshots),
        added=diff.added,
        removed=diff.removed,
    )


def _single_diffs(workspace: Workspace, key: str, entries: Sequence[Entry], why: str) -> FileNetDiff:
    """Return what each of some entries did to one file."""
    ordered = sorted(entries, key=lambda one: one.seq)
    text = "".join(single_diff(workspace, entry) for entry in ordered)
    added, removed = count_rows(text)
    parts = tuple(one for entry in ordered if (one := diff_of_entry(workspace, entry)))
    return FileNetDiff(key=key, to_key="", diff=text, added=added, removed=removed, conflict=why, parts=parts)


def diff_of_entry(workspace: Workspace, entry: Entry) -> FileNetDiff | None:
    """Return what one entry did to its file; None if its bytes are not stored any more."""
    change = entry.change
    try:
        before, after = (load_recorded(workspace, one, change.path) for one in (change.before, change.after))
    except NotFound:
        return None
    return diff_versions(change.path, change.to_path or change.path, (change.before, change.after), (before, after))


def single_diff(workspace: Workspace, entry: Entry) -> str:
    """Return the whole difference that one entry made, also where the ledger keeps only its beginning, or none."""
    change = entry.change
    if not change.diff_truncated and entry.call.operation != "external":
        return change.diff
    try:
        before, after = (load_recorded(workspace, one, change.path) for one in (change.before, change.after))
    except NotFound:
        return change.diff or _name_missing(change)
    return diff_between(before, after, from_name=change.path, to_name=change.to_path or change.path).text


def proposed_diff(workspace: Workspace, entries: Sequence[Entry]) -> str:
    """Return what an agent had proposed of a change, where the person who was asked wrote something else or left it out."""
    parts = list[str]()
    for change in (entry.change for entry in entries if entry.ok and entry.change.proposal_sha256):
        before = load_recorded(workspace, change.before, change.path)
        proposed, to_name = Snapshot(workspace.store.read_blob(change.proposal_sha256)), change.to_path or change.path
        parts.append(diff_between(before, proposed, from_name=change.path, to_name=to_name).text)
    return "".join([*parts, *(single_diff(workspace, entry) for entry in entries if not entry.ok)])


def _name_missing(change: Change) -> str:
    """Say that two versions differ of which one is not stored."""
    versions = (change.before, change.after)
    if change.before and change.after and change.before.sha256 == change.after.sha256:
        return ""
    names = (change.path if change.before else DEV_NULL, (change.to_path or change.path) if change.after else DEV_NULL)
    return name_difference(*names, versions, why="not all of their bytes are stored")
