"""The options of `surehold run`: each of them has its effect, or is refused before anything runs."""

import ctypes
import errno
import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from capture.desk import RunDesk
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen
from surehold.capture.landlock import landlock_version

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")
needs_landlock = pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")

_NAMESPACES = ("unshare", *(() if os.geteuid() == 0 else ("-Ur",)), "--mount", "--pid", "--fork")
needs_namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*_NAMESPACES, "true"], check=False).returncode != 0,
    reason="namespaces cannot be made here",
)


def forbid_request(request: int) -> None:
    """Let one request of `ioctl` fail for this process and all below it, as the rules of a container may."""
    ioctl, set_filter = {"x86_64": (16, 317), "aarch64": (29, 277)}[os.uname().machine]
    load, if_equal, give = 0x20, 0x15, 0x06
    rows = ((load, 0, 0, 0), (if_equal, 0, 3, ioctl), (load, 0, 0, 24), (if_equal, 0, 1, request))
    rows += ((give, 0, 0, 0x00050000 | errno.EPERM), (give, 0, 0, 0x7FFF0000))
    code = b"".join(struct.pack("HBBI", *row) for row in rows)
    buffer, libc = ctypes.create_string_buffer(code, len(code)), ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(buffer)))
    assert libc.syscall(set_filter, 1, 0, program) == 0


def surehold(desk: RunDesk, *words: str) -> str:
    """Return a nested `surehold run`, for a script."""
    return f"{sys.executable} -m surehold run --root {desk.root} --state-dir {desk.state} {' '.join(words)} --"


@requirement("run:report:unwritable")
@pytest.mark.parametrize("name", ["missing/report.json", "."])
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(desk: RunDesk, name: str) -> None:
    desk.report = desk.root.parent / name

    done = desk.run("rm a.txt")

    assert (done.returncode, (desk.root / "a.txt").exists()) == (1, True)
    assert b"cannot be written" in done.stderr
    assert b"Nothing was run" in done.stderr


@requirement("run:report:unwritable")
def test_a_report_that_cannot_be_written_in_the_end_changes_neither_exit_code_nor_record(desk: RunDesk) -> None:
    folder = desk.root.parent / "reports"
    folder.mkdir()
    desk.report = folder / "report.json"

    done = desk.run(f"rm a.txt; rm -r {folder}; exit 3")

    assert (done.returncode, b"could not be written" in done.stderr) == (3, True)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        assert [entry.change.path for entry in workspace.history.log() if entry.change.after is None] == ["a.txt"]


@requirement("run:confine:writes", "run:nested:joins")
@needs_landlock
def test_a_nested_run_confines_what_it_runs(desk: RunDesk) -> None:
    outside = Path.home() / f".surehold-confine-test-{os.getpid()}"

    desk.run(f"{surehold(desk, '--confine')} sh -c 'echo in > in.txt; echo out > {outside}'")

    assert ((desk.root / "in.txt").exists(), outside.exists()) == (True, False)


@requirement("run:guard:refuses", "run:nested:joins")
def test_a_nested_run_refuses_a_guard_that_it_could_not_be(desk: RunDesk) -> None:
    done = desk.run(f"{surehold(desk, '--guard', '1')} rm a.txt")

    assert (done.returncode, (desk.root / "a.txt").exists()) == (1, True)
    assert b"part of another run" in done.stderr


@requirement("run:report:complete", "run:nested:joins")
def test_the_report_of_a_nested_run_claims_nothing_that_it_does_not_know(desk: RunDesk, tmp_path: Path) -> None:
    inner = tmp_path / "inner.json"

    desk.run(f"{surehold(desk, '--report', str(inner))} rm a.txt")

    report = json.loads(inner.read_text())
    assert (report["change_id"], report["exit_code"]) == (desk.read_report()["change_id"], 0)
    assert (report["deleted"], report["complete"], report["joined"]) == (None, False, True)


@requirement("run:nested:joins", "host:hook:shell")
@pytest.mark.parametrize("alive", [True, False], ids=["of another process", "of none"])
def test_what_is_left_of_a_run_in_the_environment_does_not_keep_a_command_from_being_recorded(
    desk: RunDesk, alive: bool
) -> None:
    bystander = subprocess.Popen(["sleep", "600"]) if alive else None
    left_over = f"01abc {bystander.pid if bystander else 99999999} {desk.root}"
    environment = {**os.environ, "SUREHOLD_RUN": left_over, "HOME": str(desk.state), "XDG_STATE_HOME": str(desk.state)}
    try:
        command = [sys.executable, "-m", "surehold", "-c", "rm a.txt"]
        subprocess.run(command, cwd=desk.root, env=environment, check=True)
        log = [sys.executable, "-m", "surehold", "log", "--json"]
        done = subprocess.run(log, cwd=desk.root, env=environment, check=True, capture_output=True)
    finally:
        if bystander:
            bystander.kill()
            bystander.wait()
    assert "a.txt" in [row["path"] for row in json.loads(done.stdout)["entries"]]


@requirement("run:best_effort:compares")
def test_where_capture_is_impossible_that_is_said_or_the_tree_is_compared(desk: RunDesk) -> None:
    without = f"env -u SUREHOLD_RUN {surehold(desk)} rm a.txt"
    done = desk.run(without)
    assert (done.returncode, (desk.root / "a.txt").exists()) == (1, True)
    assert b"another program watches the calls" in done.stderr

    report = desk.root.parent / "inner.json"
    compared = f"env -u SUREHOLD_RUN {surehold(desk, '--best-effort', '--report', str(report))}"
    shutil.rmtree(desk.state, ignore_errors=True)
    done = desk.run(f"{compared} sh -c 'rm a.txt; exit 9'")
    facts = json.loads(report.read_text())
    assert (done.returncode, facts["deleted"], facts["complete"]) == (9, 1, False)
    assert b"compared before and after" in done.stderr
    assert [desk.run(f"{compared} {name}").returncode for name in ("no-such-command", "./sub/b.txt")] == [127, 126]


@requirement("run:best_effort:compares")
@pytest.mark.parametrize("request_number", [0xC0502100, 0xC0182101], ids=["receive", "answer"])
def test_where_calls_are_reported_and_cannot_be_heard_nothing_begins(desk: RunDesk, request_number: int) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[bytes]:
        words = [*desk.words(*options), "rm", "a.txt"]
        forbid = partial(forbid_request, request_number)
        return subprocess.run(words, cwd=desk.root, capture_output=True, check=False, preexec_fn=forbid, timeout=300)

    done = run()
    assert (done.returncode, (desk.root / "a.txt").exists()) == (1, True)
    assert b"the kernel does not let calls be heard" in done.stderr

    done = run("--best-effort")
    assert (done.returncode, desk.read_report()["deleted"], desk.read_report()["complete"]) == (0, 1, False)


@requirement("run:best_effort:compares")
@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        ("exec", b"/proc shows the processes of another PID namespace"),
        ("mount -t tmpfs none /proc && exec", b"processes cannot be looked into without /proc"),
    ],
    ids=["another", "none"],
)
@needs_namespaces
def test_where_proc_does_not_show_the_processes_nothing_begins(desk: RunDesk, prepare: str, why: bytes) -> None:
    def run(*options: str) -> subprocess.CompletedProcess[bytes]:
        line = f"{prepare} {shlex.join([*desk.words(*options), 'rm', 'a.txt'])}"
        return subprocess.run([*_NAMESPACES, "sh", "-c", line], cwd=desk.root, capture_output=True, check=False)

    done = run()
    assert (done.returncode, (desk.root / "a.txt").exists()) == (1, True)
    assert why in done.stderr

    done = run("--best-effort")
    assert (done.returncode, desk.read_report()["deleted"], desk.read_report()["complete"]) == (0, 1, False)


@requirement("run:best_effort:compares", "run:confine:writes")
@needs_landlock
def test_a_compared_command_is_confined_and_a_guard_is_refused(desk: RunDesk) -> None:
    outside = Path.home() / f".surehold-confine-test-{os.getpid()}"
    compared = f"env -u SUREHOLD_RUN {surehold(desk, '--best-effort', '--confine')}"

    desk.run(f"{compared} sh -c 'echo in > in.txt; echo out > {outside}'")
    assert ((desk.root / "in.txt").exists(), outside.exists()) == (True, False)

    done = desk.run(f"env -u SUREHOLD_RUN {surehold(desk, '--best-effort', '--guard', '1')} rm a.txt")
    assert (done.returncode, (desk.root / "a.txt").exists()) == (1, True)


@requirement("run:exit:codes")
def test_no_command_is_wrong_usage(desk: RunDesk) -> None:
    done = subprocess.run(desk.words(), cwd=desk.root, capture_output=True, check=False)

    assert (done.returncode, b"No command was given" in done.stderr) == (2, True)


@requirement("run:report:fields")
def test_with_json_the_report_is_the_last_line_of_the_output(desk: RunDesk) -> None:
    done = desk.run("echo said; rm a.txt", "--json")

    said, report = done.stdout.splitlines()
    assert (said, json.loads(report)) == (b"said", desk.read_report())


@requirement("run:call:recorded")
def test_the_tool_call_of_a_host_is_recorded(desk: RunDesk) -> None:
    desk.run("rm a.txt", "--call", "toolu_1")

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        assert workspace.history.log()[0].call.call_id == "toolu_1"


@requirement("run:background:recorded")
def test_an_interrupt_ends_the_waiting_for_what_was_left_running(desk: RunDesk) -> None:
    (gate,) = desk.make_gates("gate")
    name = desk.root.parent / "pid"
    program = desk.start(f"rm a.txt; (read x < {gate}) & echo $$ > {name}; exit 4", "--wait", "600")
    while not name.exists() or not name.read_text() or Path(f"/proc/{name.read_text().strip()}").exists():
        os.sched_yield()
    os.kill(program.pid, signal.SIGINT)
    assert (program.wait(), len(desk.read_report()["running"])) == (4, 1)
    gate.write_text("go\n")
    while desk.read_report()["running"]:
        os.sched_yield()
