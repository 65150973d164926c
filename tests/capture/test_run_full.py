"""The disk with the history is full when a command ends: its exit code stays, and what it did can be recorded later."""

import os
import resource
import subprocess
import sys
from typing import NoReturn

import pytest

from capture.desk import RunDesk
from capture.driver import call
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold.capture.filter import can_listen
from surehold.errors import StateUnavailable
from surehold.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


def fail(*_: object) -> NoReturn:
    raise StateUnavailable("The disk with the history is full.", reason="disk_full")


@requirement("run:report:unrecorded")
def test_a_full_history_changes_no_exit_code_and_loses_nothing(desk: RunDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = take_fingerprint(desk.root)
    where = ["--root", str(desk.root), "--state-dir", str(desk.state)]
    monkeypatch.chdir(desk.root)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "finish_run", fail)
        code, said = call("run", *where, "--report", str(desk.report), "--", "sh", "-c", "rm a.txt; exit 7")
        report = desk.read_report()
        refused, advice = call("undo", *where)
        named, same_advice = call("undo", *where, report["change_id"])

    assert (code, report["exit_code"], report["deleted"], report["complete"]) == (7, 7, 1, False)
    assert "the history is full" in report["not_kept"][0]["why"]
    assert "surehold recover" in said
    assert (refused, named) == (1, 1)
    assert "surehold recover" in advice
    assert "surehold recover" in same_advice

    assert call("recover", *where)[0] == 0
    assert call("undo", *where)[0] == 0
    assert take_fingerprint(desk.root) == before


@requirement("run:streams:unchanged")
def test_a_limit_on_the_size_of_files_is_one_of_the_command_alone(desk: RunDesk) -> None:
    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    words = [*desk.words(), "sh", "-c", "rm a.txt; ulimit -S -f"]
    plain = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python would keep the first 1024 bytes of what it compiles
    done = subprocess.run(words, cwd=desk.root, env=plain, capture_output=True, check=False, preexec_fn=set_limit)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"2\n", b"")
    assert (desk.read_report()["deleted"], desk.read_report()["complete"]) == (1, True)


@requirement("run:report:unrecorded")
def test_a_history_that_may_not_grow_is_not_called_a_failed_disk(desk: RunDesk) -> None:
    edit = [sys.executable, "-m", "surehold", "edit", "a.txt", "--old", "one", "--new", "two"]
    words = [*edit, "--root", str(desk.root), "--state-dir", str(desk.state)]
    done = subprocess.run(["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *words], capture_output=True, check=False)

    assert (done.returncode, (desk.root / "a.txt").read_text()) == (1, "one\n")
    assert b"The history cannot grow under this limit on the size of files" in done.stderr
    assert b"`ulimit -f`" in done.stderr
