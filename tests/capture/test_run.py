"""`surehold run` as a command: what it passes on, what it reports, and what becomes of it when processes are killed."""

import fcntl
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capture.desk import RunDesk
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen
from surehold.errors import InvalidArgument, PermissionDenied
from waiting import wait_until

_SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


@requirement("run:streams:unchanged")
@requirement("run:report:fields")
def test_streams_and_exit_code_are_those_of_the_command(desk: RunDesk) -> None:
    done = desk.run("cat; echo err >&2; echo new > c; exit 7", stdin=b"in")

    assert (done.returncode, done.stdout, done.stderr) == (7, b"in", b"err\n")
    report = desk.read_report()
    counts = {name: report[name] for name in ("exit_code", "created", "changed", "deleted", "moved", "complete")}
    assert counts == {"exit_code": 7, "created": 1, "changed": 0, "deleted": 0, "moved": 0, "complete": True}
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        entry = workspace.history.show(report["change_id"]).entries[0]
    assert (entry.call.operation, entry.call.exit_code) == ("run", 7)
    assert entry.call.argv[:2] == ("bash", "-c")


@requirement("run:streams:unchanged")
@pytest.mark.parametrize(("closed", "open_ones"), [("<&-", "12"), (">&-", "02"), ("2>&-", "01"), ("<&- >&- 2>&-", "")])
def test_streams_that_are_closed_are_closed_for_the_command(desk: RunDesk, closed: str, open_ones: str) -> None:
    script = "for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && seen=$seen$n; done; echo $seen > seen"
    line = shlex.join([*desk.words("--json"), "bash", "-c", script])

    done = subprocess.run(["bash", "-c", f"{line} {closed}"], cwd=desk.root, stdin=subprocess.DEVNULL, check=False)

    assert (done.returncode, desk.read_report()["created"]) == (0, 1)
    assert (desk.root / "seen").read_text() == f"{open_ones}\n"


@requirement("run:exit:codes")
def test_a_command_that_is_killed_not_found_or_not_executable_has_its_usual_exit_code(desk: RunDesk) -> None:
    assert desk.run("kill -TERM $$").returncode == 128 + signal.SIGTERM
    for name, code in (("no-such-command-here", 127), ("", 127), ("./a.txt", 126)):
        done = subprocess.run([*desk.words(), name], cwd=desk.root, capture_output=True, check=False)
        assert (done.returncode, name.encode() in done.stderr, done.stderr != b"") == (code, True, True)
    assert desk.read_report()["change_id"] is None


@requirement("run:nothing:no_entry")
def test_a_command_that_changes_nothing_leaves_no_trace(desk: RunDesk) -> None:
    assert desk.run("cat a.txt >/dev/null; echo x > t; rm t").returncode == 0

    assert desk.read_report()["change_id"] is None
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        assert workspace.history.log() == ()


@requirement("run:nested:joins")
def test_a_nested_run_joins_the_outer_one(desk: RunDesk) -> None:
    inner = f"{sys.executable} -m surehold run --root {desk.root} -- rm a.txt"

    assert desk.run(f"{inner}; rm sub/b.txt").returncode == 0

    assert desk.read_report()["deleted"] == 2
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        assert len({entry.change_id for entry in workspace.history.log()}) == 1


@requirement("run:background:recorded")
def test_what_is_left_running_is_recorded_into_the_same_change(desk: RunDesk, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    before = take_fingerprint(desk.root)

    done = desk.run(f"rm a.txt; (read x < {gate}; echo late > late.txt) >/dev/null 2>&1 &", "--wait", "0")

    report = desk.read_report()
    assert (done.returncode, bool(report["running"]), report["complete"]) == (0, True, False)
    with (
        open_workspace(desk.root, settings=desk.settings()) as workspace,
        pytest.raises(InvalidArgument, match="still runs"),
    ):
        workspace.history.undo(report["change_id"])
    gate.write_text("go\n")
    while desk.read_report()["running"]:
        os.sched_yield()
    assert (desk.read_report()["created"], desk.read_report()["deleted"]) == (1, 1)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert take_fingerprint(desk.root) == before


@requirement("run:guard:refuses")
def test_the_deletion_that_no_person_allows_fails_and_the_rest_stays(desk: RunDesk) -> None:
    for number in range(9):
        (desk.root / f"f{number}").write_text("x")

    done = desk.run("setsid -w rm f0 f1 f2 f3 f4 f5 f6 f7 f8", "--guard", "4")

    assert done.returncode == 1
    assert b"Operation not permitted" in done.stderr
    assert sorted(path.name for path in desk.root.glob("f?")) == [f"f{number}" for number in range(3, 9)]


@requirement("run:confine:writes")
def test_a_confined_command_writes_only_below_the_roots(desk: RunDesk, tmp_path: Path) -> None:
    outside = Path.home() / f".surehold-confine-test-{os.getpid()}"

    done = desk.run(f"echo in > in.txt; echo out > {outside}", "--confine")

    assert (done.returncode, (desk.root / "in.txt").read_text(), outside.exists()) == (1, "in\n", False)


@requirement("run:killed:recovered")
@pytest.mark.parametrize("who", ["$PPID", "$$", "$PPID $$"], ids=["supervisor", "command", "both"])
@pytest.mark.parametrize("calls", range(200) if _SOAK else [1, 9])
def test_whoever_is_killed_nothing_is_lost(desk: RunDesk, calls: int, who: str) -> None:
    for number in range(200 if _SOAK else 12):
        (desk.root / f"f{number:03}").write_text("x" * number)
    (desk.root / "g").hardlink_to(desk.root / "f011")
    before = take_fingerprint(desk.root)
    changes = (
        "for f in f*; do case $((i++ % 4)) in 0) rm $f;; 1) echo x >> $f;; 2) mv $f $f.new;; 3) chmod 600 $f;; esac"
    )
    script = f"i=0; {changes}; [ $i -le {calls} ] || kill -9 {who}; done; rm a.txt; sed -i s/two/2/ sub/b.txt"

    done = desk.run(script)

    assert done.returncode == (128 + signal.SIGKILL if who == "$$" else 125)
    assert (desk.root / "a.txt").exists(), "without its supervisor a command changes nothing"
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        # A process that was killed is there a moment longer.
        wait_until(lambda: bool(workspace.recover() or workspace.history.log()))
        change = workspace.history.log()[0].change_id
        workspace.history.undo(change)
    assert take_fingerprint(desk.root) == before
    assert list((desk.state / "runs").iterdir()) == []


@requirement("run:killed:recovered")
def test_what_was_made_in_a_directory_that_was_elsewhere_is_known_after_a_kill(desk: RunDesk) -> None:
    before = take_fingerprint(desk.root)

    desk.run("mv sub d; echo new > d/new; mkdir d/in; echo x > d/in/x; mv d sub; kill -9 $PPID; rm a.txt")

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        wait_until(lambda: bool(workspace.recover() or workspace.history.log()))
        workspace.history.undo(workspace.history.log()[0].change_id)
    assert take_fingerprint(desk.root) == before


@requirement("run:killed:recovered")
def test_a_run_that_another_process_records_delays_no_one(desk: RunDesk) -> None:
    (desk.root / "f1").write_text("x")
    desk.run("rm f1; kill -9 $PPID; rm a.txt")
    (folder,) = (desk.state / "runs").iterdir()

    with (folder / "journal").open("r+b") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        with open_workspace(desk.root, settings=desk.settings()) as workspace:
            (settled,) = workspace.recover()
            assert (settled.direction, settled.problem) == ("failed", "Another process is recording this run.")
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        assert workspace.history.log()[0].change_id == folder.name
    assert not folder.exists()


@requirement("run:library:receipt")
def test_the_library_runs_a_command_and_returns_what_it_did(desk: RunDesk) -> None:
    before = take_fingerprint(desk.root)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        done = workspace.run(["sh", "-c", "cat; rm a.txt; exit 3"], agent="me", reason="why", stdin=b"in")

        assert (done.exit_code, done.stdout, done.deleted, done.complete) == (3, b"in", 1, True)
        entry = workspace.history.show(done.change_id).entries[0]
        assert (entry.call.agent, entry.call.reason) == ("me", "why")
        workspace.history.undo(done.change_id)
    assert take_fingerprint(desk.root) == before


@requirement("run:library:plan_mode")
def test_no_command_runs_on_behalf_of_a_session_in_plan_mode(desk: RunDesk) -> None:
    before = take_fingerprint(desk.root)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        with pytest.raises(PermissionDenied) as refused:
            workspace.run(["rm", "a.txt"], session=workspace.session(agent="me", mode="plan"))

        assert refused.value.reason == "plan_mode"
    assert take_fingerprint(desk.root) == before
