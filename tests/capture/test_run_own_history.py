"""Commands that reach for the history of their own workspace, as `rm -rf ~` does."""

import os
import subprocess
import sys

import pytest

from capture.desk import RunDesk
from capture.driver import call
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

_LARGE = b"large\n" * 20_000


def fingerprint(desk: RunDesk) -> dict[str, list[object]]:
    """Look at all but the state, whose files come and go, and the times of the directories above it."""
    found = take_fingerprint(desk.root)
    return {
        name: facts
        for name, facts in found.items()
        if not name.startswith(".local/state") and name not in {".", ".local"}
    }


@pytest.fixture
def home(desk: RunDesk) -> RunDesk:
    """Return a workspace that has its history below it, as that of a home directory has."""
    desk.state = desk.root / ".local/state/surehold/home"
    desk.state.mkdir(parents=True, mode=0o700)
    (desk.root / "large").write_bytes(_LARGE)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session().create_file("seen.txt", _LARGE.decode())
    return desk


@requirement("run:history:kept")
@pytest.mark.parametrize(
    "script",
    [
        "rm -rf a.txt large sub seen.txt .local",
        "rm -rf ./* ./.[a-z]*",
        "find . -type f -delete",
        "mv .local other; rm a.txt",
        "mv .local/state/surehold ../elsewhere; rm a.txt",
        "mkdir x; rm a.txt; mv -T x .local/state/surehold/home/blobs; mv -f seen.txt .local/state/surehold/home/state.db",
        "rm a.txt; for one in $(find .local -type f -name 'state*' -o -type f -path '*/runs/*'); do : > $one; done",
        "rm large; truncate -s 0 $(find .local -type f -path '*/runs/*' -o -type f -path '*/blobs/*')",
    ],
)
def test_a_command_that_removes_the_history_is_undone_as_any_other(home: RunDesk, script: str) -> None:
    before = fingerprint(home)

    home.run(script)

    report = home.read_report()
    assert (report["change_id"] is not None, report["complete"]) == (True, True)
    with open_workspace(home.root, settings=home.settings()) as workspace:
        workspace.history.undo(report["change_id"])
        assert fingerprint(home) == before
    assert call("verify", "--root", str(home.root), "--state-dir", str(home.state))[0] == 0


@requirement("run:history:kept")
def test_a_history_outside_of_the_workspace_is_kept_too_and_what_is_beside_it_is_not(desk: RunDesk) -> None:
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.session().create_file("seen.txt", "seen\n")
    (desk.state.parent / "beside").write_text("beside\n")
    before = take_fingerprint(desk.root)

    done = desk.run("rm -rf ../state ../beside ./*")

    assert (done.returncode, b"state.db': Operation not permitted" in done.stderr) == (1, True)
    assert not (desk.state.parent / "beside").exists()
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(desk.read_report()["change_id"])
    assert take_fingerprint(desk.root) == before


@requirement("run:history:kept")
def test_our_own_programs_remove_what_the_history_no_longer_needs(desk: RunDesk) -> None:
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        session = workspace.session()
        session.delete_file("seen.txt", expected_sha256=session.create_file("seen.txt", _LARGE.decode()).sha256)
    database, blob = desk.state / "state.db", desk.state / "blobs/00"
    blob.mkdir(parents=True)
    opened = f"import os; opened = open({os.fspath(database)!r}, 'rb'); os.rmdir({os.fspath(blob)!r})"

    assert desk.run(f"rmdir {blob}").returncode == 1
    words = [*desk.words(), sys.executable, "-c", opened]
    assert subprocess.run(words, cwd=desk.root, capture_output=True, check=False).returncode == 0

    assert not blob.exists()
