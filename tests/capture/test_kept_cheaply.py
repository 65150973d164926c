"""What saves work for each call: records that are written together, and a directory that is listed once."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spec.marks import requirement
from surehold.capture.kept.stash import EntryFacts, Stash, list_journal
from surehold.workspace.runs.shared_paths import SharedPaths

FACTS = EntryFacts(0o100644, 0, 0, 1, 2, 3, 5, 8, 0, 0)


@requirement("run:killed:recovered")
def test_a_record_that_waits_is_written_before_the_next_one_and_by_a_flush(tmp_path: Path) -> None:
    stash = Stash(str(tmp_path))
    stash.add_record(b"O", b"/a", FACTS)
    assert list_journal(str(tmp_path)) == []
    kept = stash.keep_small(b"bytes", FACTS)
    assert [(one.type, one.name) for one in stash.read_records()] == [(b"O", b"/a"), (b"C", b"")]
    assert stash.read_content(kept) == b"bytes"

    stash.add_record(b"A", b"/b", FACTS)
    stash.flush()
    stash.flush()
    assert list_journal(str(tmp_path)) == [b"/a", b"/b"]
    stash.close()


@requirement("run:killed:recovered")
def test_a_record_that_could_not_be_written_waits_for_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stash = Stash(str(tmp_path))
    stash.add_record(b"O", b"/a", FACTS)
    with monkeypatch.context() as full:
        write = os.write

        def write_little(fd: int, data: bytes) -> int:
            return write(fd, data[:9])

        full.setattr(os, "write", write_little)
        with pytest.raises(OSError, match="No space"):
            stash.keep_small(b"bytes", FACTS)
    assert list_journal(str(tmp_path)) == []

    kept = stash.keep_small(b"others", FACTS)
    assert [(one.type, one.name) for one in stash.read_records()] == [(b"O", b"/a"), (b"C", b"")]
    assert stash.read_content(kept) == b"others"
    stash.close()


@requirement("run:together:attributed")
def test_a_command_that_begins_after_the_runs_were_listed_is_noticed(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "own").mkdir(parents=True)
    os.utime(runs, ns=(10**18, 10**18))
    shared = SharedPaths(cast("Any", SimpleNamespace(disk=SimpleNamespace(roots=[str(tmp_path)]))), runs)
    assert shared.list_running("own") == []

    (runs / "other").mkdir()
    assert shared.list_running("own") == ["other"]
    (runs / "third").mkdir()  # within the same step of the directory's time, perhaps
    assert sorted(shared.list_running("own")) == ["other", "third"]


def test_a_command_that_changes_files_loads_nothing_of_the_way_in_which_agents_write(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from surehold import Settings, open_workspace\n"
        "from surehold.stores.base import Call\n"
        "call = Call(tool='run', operation='run', writer='run', argv=('rm',))\n"
        "with open_workspace(sys.argv[1], settings=Settings(state_dir=sys.argv[2])) as workspace:\n"
        "    run = workspace.record_run(call, 'change')\n"
        "    run.open_keeper()\n"
        "    run.finish(0)\n"
        "unused = ('surehold.workspace.writer', 'surehold.workspace.draft', 'surehold.workspace.access.permission')\n"
        "print([name for name in unused if name in sys.modules])\n"
    )
    (tmp_path / "root").mkdir()
    words = [sys.executable, "-c", code, str(tmp_path / "root"), str(tmp_path / "state")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_command_that_changes_nothing_loads_nothing_of_the_history_nor_of_what_keeps(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from surehold.capture.runner import _RunSupervisor\n"
        "from surehold.front.cli.main import entry\n"
        "tell = _RunSupervisor._tell\n"
        "def note_modules(supervisor, message):\n"
        "    if 'done' in message:\n"
        "        with open(sys.argv[3] + '/../loaded', 'w') as file:\n"
        "            file.write(' '.join(sys.modules))\n"
        "    return tell(supervisor, message)\n"
        "_RunSupervisor._tell = note_modules\n"
        "entry()\n"
    )
    (tmp_path / "root").mkdir()
    (tmp_path / "state").mkdir()
    words = ["run", "--root", str(tmp_path / "root"), "--state-dir", str(tmp_path / "state"), "--wait", "0", "--"]
    here = [sys.executable, "-c", code, *words, "sh", "-c", "cat /dev/null"]
    assert subprocess.run(here, capture_output=True, text=True, check=True).stderr == ""

    loaded = set((tmp_path / "loaded").read_text().split())
    assert "surehold.capture.settled.settlement" in loaded
    heavy = {"surehold.stores.base", "surehold.capture.kept.keeper", "surehold.text.snapshot", "sqlite3"}
    assert loaded & heavy == set()
