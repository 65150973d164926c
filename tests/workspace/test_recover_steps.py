"""How each change of a call that was not finished is taken back, whatever of it had happened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold.disk.base import Create, Remove, Rename, Replace, Step
from surehold.stores.base import Blob, Change, Intent
from surehold.stores.owner import Owner
from surehold.text.snapshot import Meta, Version, sha256_hex
from surehold.workspace.recovery import SettledIntent
from workspaces import Bench, call, make_bench

_DEAD = Owner(host="elsewhere", boot="", pid=1, started="")
_BLOBS = (b"old", b"new", b"theirs", b"other")


def version(data: bytes, mode: int | None = None) -> Version:
    meta = None if mode is None else Meta(mode=mode)
    return Version(sha256=sha256_hex(data), size=len(data), meta=meta)


OLD, NEW, THEIRS = version(b"old"), version(b"new"), version(b"theirs")
NEVER = Change(path="z", before=OLD, after=NEW)
"""A change of the same call that has not happened: so all of it is taken back."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A change, what its paths hold, and how that is brought back."""

    change: Change
    now: dict[str, bytes]
    steps: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    kept: tuple[bytes, ...] = ()


EDIT, CREATE, DELETE = (
    Change(path="a", before=one, after=other) for one, other in [(OLD, NEW), (None, NEW), (OLD, None)]
)
MOVE = Change(path="a", to_path="b", before=OLD, after=OLD)
EDITED_MOVE = replace(MOVE, after=NEW)
OVER = replace(MOVE, displaced=THEIRS)
IN_PLACE = replace(EDIT, in_place=True)
SCENES = {
    "an edit that has happened": Scene(change=EDIT, now={"a": b"new"}, steps=("replace a old",)),
    "an edit that has not happened": Scene(change=EDIT, now={"a": b"old"}),
    "an edit, and others have written": Scene(change=EDIT, now={"a": b"other"}, conflicts=("a",)),
    "an edit, and others have deleted": Scene(change=EDIT, now={}, conflicts=("a",)),
    "a file that was made": Scene(change=CREATE, now={"a": b"new"}, steps=("remove a",)),
    "a file that was not made": Scene(change=CREATE, now={}),
    "a file that others made": Scene(change=CREATE, now={"a": b"other"}, conflicts=("a",)),
    "a file that was deleted": Scene(change=DELETE, now={}, steps=("create a old",)),
    "a file that was not deleted": Scene(change=DELETE, now={"a": b"old"}),
    "a move that has happened is the same file again": Scene(change=MOVE, now={"b": b"old"}, steps=("rename b a",)),
    "a move that has not happened": Scene(change=MOVE, now={"a": b"old"}),
    "a move, and others have written to the new name": Scene(
        change=MOVE, now={"b": b"other"}, steps=("create a old",), conflicts=("b",)
    ),
    "a move, and others have written to the old name": Scene(
        change=MOVE, now={"a": b"other", "b": b"old"}, steps=("remove b",), conflicts=("a",)
    ),
    "a move with an edit": Scene(change=EDITED_MOVE, now={"b": b"new"}, steps=("create a old", "remove b")),
    "a move over a file": Scene(change=OVER, now={"b": b"old"}, steps=("create a old", "replace b theirs")),
    "a move that took away what was there": Scene(change=OVER, now={"a": b"old"}, steps=("create b theirs",)),
    "a move over a file, and others have written there": Scene(
        change=OVER, now={"a": b"old", "b": b"other"}, conflicts=("b",)
    ),
    "a move over a file that has not happened": Scene(change=OVER, now={"a": b"old", "b": b"theirs"}),
    "a write in place that has not begun": Scene(change=IN_PLACE, now={"a": b"old"}),
    "a write in place that has happened": Scene(change=IN_PLACE, now={"a": b"new"}, steps=("replace a old",)),
    "a write in place that stopped": Scene(
        change=IN_PLACE, now={"a": b"nld"}, steps=("replace a old",), kept=(b"nld",)
    ),
    "a write in place, and others have written": Scene(change=IN_PLACE, now={"a": b"xyz"}, conflicts=("a",)),
    "a write in place, and others have deleted": Scene(change=IN_PLACE, now={}, conflicts=("a",)),
    "an edit that looks as if it was written in place": Scene(change=EDIT, now={"a": b"nld"}, conflicts=("a",)),
    "a file that was made in place": Scene(change=replace(CREATE, in_place=True), now={"a": b"n"}, conflicts=("a",)),
    "a mode that is brought back": Scene(
        change=Change(path="a", before=version(b"old", 0o600), after=version(b"new", 0o755)),
        now={"a": b"new"},
        conflicts=("a",),
    ),
    "a mode that stayed is set too": Scene(
        change=Change(path="a", before=version(b"old", 0o600), after=version(b"new")),
        now={"a": b"new"},
        steps=("replace a old 600",),
    ),
    "a mode that was not known before decides nothing": Scene(
        change=Change(path="a", before=OLD, after=version(b"new", 0o755)), now={"a": b"old"}
    ),
    "nor does one that does not change": Scene(
        change=Change(path="a", before=version(b"old", 0o600), after=version(b"new", 0o600)),
        now={"a": b"new"},
        steps=("replace a old 600",),
    ),
    "the facts of a file that comes back": Scene(
        change=Change(path="a", before=version(b"old", 0o600), after=None), now={}, steps=("create a old 600",)
    ),
}


def in_words(step: Step, now: dict[str, bytes]) -> str:
    if isinstance(step, Rename | Remove | Replace):
        old = step.source if isinstance(step, Rename) else step.target
        assert step.expected == sha256_hex(now[old.key])
    match step:
        case Rename():
            return f"rename {step.source} {step.target}"
        case Remove():
            return f"remove {step.target}"
        case Create():
            return f"create {step.target} {step.data.decode()}{f' {step.meta.mode:o}' if step.meta else ''}"
        case Replace():
            return f"replace {step.target} {step.data.decode()}{f' {step.mode:o}' if step.mode else ''}"
        case _:
            raise AssertionError(step)


@requirement("engine:recover:backward")
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_what_has_happened_of_a_change_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    bench = make_bench("memory", "memory", tmp_path)
    steps = watch_steps(bench, monkeypatch)
    now = {**scene.now, "z": b"old"}
    for path, data in now.items():
        bench.put(path, data)
    blobs = [Blob(data=data, sha256=sha256_hex(data)) for data in _BLOBS]
    intent = Intent(id="left", call=call(), changes=(scene.change, NEVER), owner=_DEAD, began=bench.clock().isoformat())
    bench.store.begin(intent, blobs, lease=-1, fence=0)

    settled = bench.workspace.recover()

    paths = (*(path for path, _, _ in scene.change.transitions()), "z")
    direction = "conflict" if scene.conflicts else "backward"
    assert settled == (SettledIntent(change_id="left", direction=direction, paths=paths, conflicts=scene.conflicts),)
    assert [in_words(step, now) for step in reversed(steps)] == list(scene.steps)
    assert [data for data in (b"nld", b"n", b"xyz") if bench.store.has_blob(sha256_hex(data))] == list(scene.kept)
    left = f"Interrupted; left as they are, since they hold neither version: {', '.join(scene.conflicts)}."
    told = left if scene.conflicts else "Interrupted; the old version was put back."
    assert {(row.error_kind, row.message) for row in bench.workspace.history.log()} == {("interrupted", told)}


def watch_steps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Return a list that gets every step which changes the disk."""
    found, apply = list[Step](), bench.disk.apply

    def note_and_apply(steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: Any) -> None:
        assert tag == "leftr"
        found.extend(steps)
        apply(steps, tag=tag, fence=fence, keep=keep)

    monkeypatch.setattr(bench.disk, "apply", note_and_apply)
    return found
