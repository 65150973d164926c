"""What a call does while another change of the same file is under way."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from surehold.errors import LockTimeout
from surehold.stores.base import Blob, Change, Intent
from surehold.stores.owner import current_owner
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.snapshot import Version, sha256_hex
from surehold.workspace.proposal import Exact, Proposal
from surehold.workspace.settings import Limits
from workspaces import Bench, call, make_bench

OLD, NEW = b"old\n", b"new\n"


@dataclass
class UnderWay:
    """A change of `a` by this process, which has begun and has not written yet."""

    bench: Bench
    intent: Intent


@pytest.fixture
def under_way(tmp_path: Path) -> Iterator[UnderWay]:
    bench = make_bench("sqlite", "local", tmp_path, limits=Limits(lock_timeout=0))
    bench.put("a", OLD)
    old, new = (Version(sha256=sha256_hex(data), size=len(data)) for data in (OLD, NEW))
    change = Change(path="a", before=old, after=new)
    intent = Intent(id="other", call=call(), changes=(change,), owner=current_owner(), began=bench.clock().isoformat())
    bench.store.begin(intent, [Blob(data=data, sha256=sha256_hex(data)) for data in (OLD, NEW)], lease=60, fence=0)
    yield UnderWay(bench, intent)
    bench.workspace.close()


def edit(old: str) -> Proposal:
    return Proposal(path="a", edit=SnapshotEdits((StringEdit(old=old, new="mine"),)), proof=Exact())


def test_an_edit_waits_before_it_looks_for_its_text_and_names_the_change_that_it_waits_for(under_way: UnderWay) -> None:
    bench = under_way.bench

    with pytest.raises(LockTimeout) as refused:
        bench.workspace.write(edit("new"), call=call())

    assert (refused.value.path, refused.value.details) == ("a", {"holder": "other"})
    assert (bench.get("a"), [busy.intent for busy in bench.store.open_intents()]) == (OLD, [under_way.intent])
    bench.put("a", NEW)
    bench.store.finish("other")
    bench.workspace.write(edit("new"), call=call())
    assert bench.get("a") == b"mine\n"


def test_a_rehearsal_waits_for_nothing_and_shows_the_file_as_it_is(under_way: UnderWay) -> None:
    rehearsed = under_way.bench.workspace.write(edit("old"), call=call(), dry_run=True)

    assert (rehearsed.dry_run, rehearsed.files[0].plan.after.data) == (True, b"mine\n")
    assert under_way.bench.get("a") == OLD


def test_the_changes_that_are_under_way_are_counted(under_way: UnderWay) -> None:
    workspace = under_way.bench.workspace

    assert (workspace.count_open_changes(), workspace.check_history()) == (1, True)
    under_way.bench.store.abort("other", error_kind="interrupted", message="Given up.")
    assert workspace.count_open_changes() == 0
