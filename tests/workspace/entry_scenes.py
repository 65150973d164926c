"""Entries of a small tree, and the steps from one such tree to another, in words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from surehold.disk.base import Disk, PutEntry, Rename, Replace, SetFacts, Step, StoredEntry, TakeEntry, Target
from surehold.text.snapshot import Kind, Meta, Version, sha256_hex
from surehold.workspace.runs.entry_plan import EntryPlan, WantedEntry

_LIMIT_BYTES, _MTIME_NS = 1000, 7


@dataclass
class Tree:
    """A disk of which nothing but its entries is looked at."""

    entries: dict[str, StoredEntry]
    known: Mapping[str, StoredEntry | None]
    """What was looked at already: by a second look it may be another one."""

    def locate(self, key: str) -> Target:
        return Target(root="/r", parts=() if key == "." else tuple(key.strip("/").split("/")), key=key)

    def read_entry(self, target: Target, *, limit: int) -> StoredEntry | None:
        assert limit == _LIMIT_BYTES
        assert not self.known.get(target.key)
        return self.entries.get(target.key)


def version(kind: Kind, data: bytes = b"", mode: int = 0o644, **facts: Any) -> Version:
    meta = Meta(mode=mode, mtime_ns=_MTIME_NS, xattrs=facts.pop("xattrs", ()))
    return Version(sha256=sha256_hex(kind.encode() + data), size=len(data), meta=meta, kind=kind, **facts)


def file(data: bytes, *, inode: int = 0, links: int = 1, **facts: Any) -> StoredEntry:
    return StoredEntry(version=version("file", data, **facts), data=data, links=links, identity=(1, inode))


def link(to: bytes) -> StoredEntry:
    return StoredEntry(version=version("link", to), data=to, links=1, identity=(1, 0))


def fifo() -> StoredEntry:
    return StoredEntry(version=version("fifo"), data=b"", links=1, identity=(1, 0))


def folder(*names: str, mode: int = 0o755, **facts: Any) -> StoredEntry:
    return StoredEntry(
        version=version("directory", mode=mode, **facts), data=b"", links=2, identity=(1, 0), names=names
    )


def without_facts(entry: StoredEntry) -> StoredEntry:
    return replace(entry, version=replace(entry.version, meta=None))


def want(entry: StoredEntry, *links: str, **facts: Any) -> WantedEntry:
    return WantedEntry(version=replace(entry.version, links=links), data=entry.data, **facts)


Case = tuple[dict[str, StoredEntry], dict[str, WantedEntry | None], str]
"""What is there, what is wanted, and the steps from one to the other."""


def steps_of(case: Case) -> str:
    """Return the steps from what is there to what is wanted, in words."""
    now, wanted, _ = case
    disk = Tree({".": folder(*{one.split("/")[0] for one in now}), **now}, {})
    disk.known = current = {key: disk.entries.get(key) for key in wanted}
    plan = EntryPlan(cast("Disk", disk), _LIMIT_BYTES, current, {**wanted})
    made = [in_words(step) for step in plan.make_steps()]
    return "; ".join([*(f"keep {key}" for key in plan.kept_directories), *made])


def in_words(step: Step) -> str:
    match step:
        case SetFacts():
            before, after = (
                f"{one.mode:o}{'' if one.mtime_ns == _MTIME_NS else f' at {one.mtime_ns}'}"
                for one in (step.before, step.after)
            )
            return f"set {step.kind} {step.target} {after if before == after else f'{before} -> {after}'}"
        case TakeEntry():
            return f"take {step.expected.kind} {step.target} beside {step.refuge}"
        case PutEntry():
            linked = f" as {step.link_to}" if step.link_to else ""
            displaced = f" over {step.expected.kind}" if step.expected else ""
            return f"put {step.version.kind} {step.target} {step.data.decode()}".rstrip() + linked + displaced
        case Rename():
            assert step.expected == A.version.sha256
            return f"rename {step.source} {step.target}"
        case Replace():
            assert step.expected == sha256_hex(b"file" + (step.old or b""))
            return f"overwrite {step.target} {step.data.decode()}{' with holes' if step.holes else ''}"
        case _:
            raise AssertionError(step)


A, B, C = file(b"a"), file(b"b"), file(b"c")
A_TWICE = file(b"a", links=2, inode=3)
BOTH = {"x": A_TWICE, "y": A_TWICE}
APART = {"x": file(b"a", inode=3), "y": file(b"a", inode=4)}


def each_of(cases: dict[str, Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases.values(), ids=cases)
