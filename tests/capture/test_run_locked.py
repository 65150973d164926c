"""Files and processes that may not be looked into: nothing of them is lost, and what is not known is named."""

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from capture.desk import RunDesk
from spec.marks import requirement
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

_NO_DUMPS = "import ctypes, os; fd = os.open('a.txt', os.O_RDONLY); ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); "
_DEEP = "import os\nfor _ in range(30):\n os.makedirs('d' * 200, exist_ok=True)\n os.chdir('d' * 200)\n"


def run_unprivileged(*words: str) -> subprocess.CompletedProcess[str]:
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    return subprocess.run([*drop, *words], capture_output=True, text=True, check=False)


def run_script(desk: RunDesk, *command: str) -> dict[str, Any]:
    done = run_unprivileged(*desk.words(), "env", "-C", str(desk.root), *command)
    assert done.returncode == 0, done.stderr
    return json.loads(desk.report.read_text())


def undo(desk: RunDesk) -> subprocess.CompletedProcess[str]:
    where = ["--root", str(desk.root), "--state-dir", str(desk.state)]
    return run_unprivileged(sys.executable, "-m", "surehold", "undo", *where)


@requirement("run:undo:exact")
def test_what_was_written_to_a_file_that_may_not_be_read_stays(desk: RunDesk) -> None:
    run_script(desk, "sh", "-c", "sed -i s/one/two/ a.txt")
    (desk.root / "a.txt").write_text("two\nlater\n")
    (desk.root / "a.txt").chmod(0)

    undo(desk)

    (desk.root / "a.txt").chmod(0o600)
    assert (desk.root / "a.txt").read_text().splitlines()[1:] == ["later"]


@requirement("run:report:complete")
@pytest.mark.parametrize("call", ["os.fchmod(fd, 0o600)", "os.utime(fd, ns=(5, 5))", "os.truncate('a.txt', 1)"])
def test_a_process_that_may_not_be_looked_into_is_named(desk: RunDesk, call: str) -> None:
    report = run_script(desk, sys.executable, "-c", _NO_DUMPS + call)

    assert not report["complete"]
    assert report["not_kept"]


@requirement("run:report:complete")
@pytest.mark.parametrize("call", ["open('f', 'w')", "os.mkdir('in')", "os.symlink('x', 'y')"])
def test_a_working_directory_whose_path_is_too_long_is_named(desk: RunDesk, call: str) -> None:
    try:
        assert not run_script(desk, sys.executable, "-c", _DEEP + call)["complete"]
    finally:
        subprocess.run(["rm", "-rf", str(desk.root)], check=True)


@requirement("run:report:complete")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a program of another user")
@pytest.mark.parametrize(
    ("mode", "script"),
    [
        (0o4755, "../program"),
        (0o2755, "../program"),
        (0o4755, "PATH=..:$PATH; program"),
        (0o4755, "{python} -c \"import os; os.execve(os.open('../program', os.O_RDONLY), ['program'], {{}})\""),
        (0o4755, "{python} -c \"import os; os.chroot('/'); os.execv('../program', ['program'])\""),
        (0o4755, '{python} -c "{execveat}"'),
    ],
)
def test_a_program_that_would_run_as_another_user_is_named(desk: RunDesk, mode: int, script: str) -> None:
    program = desk.root.parent / "program"
    shutil.copy("/bin/true", program)
    os.chown(program, 12345, 12345)
    program.chmod(mode)
    number = {"x86_64": 322, "aarch64": 281}[os.uname().machine]
    execveat = (
        "import ctypes, os; words = (ctypes.c_char_p * 2)(b'program', None); "
        f"ctypes.CDLL(None).syscall({number}, os.open('..', os.O_PATH), b'program', words, None, 0)"
    )

    assert desk.run(script.format(python=sys.executable, execveat=execveat)).returncode == 0

    report = desk.read_report()
    assert (report["change_id"], report["complete"]) == (None, False)
    assert "a set-uid program took part" in report["not_kept"][0]["why"]
    program.chmod(0o755)
    desk.run(script.format(python=sys.executable, execveat=execveat))
    assert desk.read_report()["complete"]
