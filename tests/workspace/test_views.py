from collections.abc import Sequence
from typing import Any

from spec.marks import requirement
from surehold.disk.base import Step
from surehold.stores.base import Blob, Change, Intent
from surehold.stores.owner import Owner
from surehold.text.snapshot import Version, sha256_hex
from surehold.workspace.recovery import SettledIntent
from workspaces import Bench, call

DEAD = Owner(host="elsewhere", boot="", pid=1, started="")


def abandon(bench: Bench, before: bytes, after: bytes) -> Intent:
    """Leave an intent open, as a process does that is killed between its two commits."""
    versions = [Version(sha256=sha256_hex(d), size=len(d)) for d in (before, after)]
    change = Change(path="a", before=versions[0], after=versions[1])
    intent = Intent(id="dead", call=call(), changes=(change,), owner=DEAD, began=bench.clock().isoformat())
    blobs = [Blob(data=d, sha256=sha256_hex(d)) for d in (before, after)]
    bench.store.begin(intent, blobs, lease=-1, fence=0)
    return intent


@requirement("engine:views:checkpoints")
def test_an_open_checkpoint_is_listed_with_its_old_bytes(bench: Bench) -> None:
    bench.put("a", b"old")
    intent = abandon(bench, b"old", b"new")
    checkpoints = bench.workspace.checkpoints

    assert checkpoints.open() == (intent,)
    assert (checkpoints.old_bytes(intent, "a"), checkpoints.old_bytes(intent, "b")) == (b"old", None)


@requirement("engine:views:checkpoints", "promise:nothing_lost:checkpoint")
def test_a_checkpoint_is_open_with_its_old_bytes_while_the_disk_changes_and_closed_after(bench: Bench) -> None:
    bench.put("a", b"old")
    checkpoints, apply = bench.workspace.checkpoints, bench.disk.apply
    during = list[tuple[bytes | None, bytes | None]]()

    def watched(steps: Sequence[Step], **more: Any) -> None:
        (checkpoint,) = checkpoints.open()
        during.append((checkpoints.old_bytes(checkpoint, "a"), bench.get("a")))
        apply(steps, **more)

    bench.disk.apply = watched  # type: ignore[method-assign]  # a look in between, then the real thing
    bench.workspace.session().edit("a", ("old", "new"))

    assert during == [(b"old", b"old")]
    assert (checkpoints.open(), bench.get("a")) == ((), b"new")


@requirement("engine:recover:forward", "engine:views:roll_back")
def test_an_abandoned_checkpoint_whose_bytes_arrived_is_closed_forward(bench: Bench) -> None:
    bench.put("a", b"new")
    abandon(bench, b"old", b"new")

    assert bench.workspace.checkpoints.roll_back_abandoned() == (
        SettledIntent(change_id="dead", direction="forward", paths=("a",)),
    )
    assert bench.workspace.history.log()[0].ok is True
    assert bench.workspace.recover() == ()


@requirement("engine:recover:backward", "engine:views:roll_back")
def test_an_abandoned_checkpoint_whose_bytes_did_not_arrive_is_closed_backward(bench: Bench) -> None:
    bench.put("a", b"old")
    abandon(bench, b"old", b"new")

    assert bench.workspace.checkpoints.roll_back_abandoned() == (
        SettledIntent(change_id="dead", direction="backward", paths=("a",)),
    )
    assert (bench.get("a"), bench.workspace.history.log()[0].ok) == (b"old", False)


@requirement("engine:recover:outside_edit")
def test_a_file_that_holds_neither_version_is_left_alone_and_reported(bench: Bench) -> None:
    bench.put("a", b"third")
    abandon(bench, b"old", b"new")

    assert bench.workspace.recover() == (
        SettledIntent(change_id="dead", direction="conflict", paths=("a",), conflicts=("a",)),
    )
    assert bench.get("a") == b"third"


def test_an_abandoned_checkpoint_does_not_stand_in_the_way_of_the_next_write(bench: Bench) -> None:
    bench.put("a", b"old")
    abandon(bench, b"old", b"new")

    bench.workspace.session().edit("a", ("old", "newer"))

    assert bench.get("a") == b"newer"


@requirement("engine:views:last_writer")
def test_the_last_writer_is_known_and_an_outsider_is_noticed(bench: Bench) -> None:
    bench.put("a", b"one\n")
    writers, session = bench.workspace.writers, bench.workspace.session()
    assert writers.last_writer("a") == ""

    session.edit("a", ("one", "two"))
    assert writers.last_writer("a") == "edit"

    bench.put("a", b"outside\n")
    assert writers.last_writer("a") == "external"
    session.edit("a", ("outside", "three"))
    assert writers.writers_since("a", 0) == ("edit", "external")


@requirement("engine:views:continuity")
def test_the_baseline_is_clean_while_only_edit_writes(bench: Bench) -> None:
    bench.put("a", b"one\n")
    session = bench.workspace.session(id="s")
    session.record_shown_lines("a", session.read("a"), spans=((1, 1),), whole=True, anchored=True)
    session.edit("a", ("one", "two"))
    assert bench.workspace.writers.baseline_continuity("a", "s") == "clean"

    session.write("a", "three\n")
    assert bench.workspace.writers.baseline_continuity("a", "s") == "mixed"

    session.record_shown_lines("a", session.read("a"), spans=((1, 1),), whole=True, anchored=True)
    assert bench.workspace.writers.baseline_continuity("a", "s") == "mixed"

    later = bench.workspace.session(id="later")
    later.record_shown_lines("a", later.read("a"), spans=((1, 1),), whole=True)
    assert bench.workspace.writers.baseline_continuity("a", "later") == "clean"


@requirement("engine:views:continuity")
def test_an_outside_edit_mixes_the_baseline_of_sessions_that_saw_the_file_before_it(bench: Bench) -> None:
    bench.put("a", b"one\n")
    before, after = bench.workspace.session(id="before"), bench.workspace.session(id="after")
    before.record_shown_lines("a", before.read("a"), spans=((1, 1),), whole=True)
    before.edit("a", ("one", "two"))
    bench.put("a", b"outside\n")
    after.record_shown_lines("a", after.read("a"), spans=((1, 1),), whole=True)
    told = bench.workspace.writers.baseline_continuity

    assert (told("a", "before"), told("a", "after")) == ("mixed", "clean")
    after.edit("a", ("outside", "three"))
    assert (told("a", "before"), told("a", "after")) == ("mixed", "clean")
